"""A node behind proxies: whose address is in the audit log and in the rate of failed sign-ins, paths, sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gwd.api.auth import FAILURES_PER_MINUTE
from gwd.settings import SettingsError
from tests.flows.conftest import Opened
from tests.support.node import Gateway, Nodes

PROXY, STRANGER = "127.0.0.1", "127.0.0.2"
TRUSTING = {"GWD_SERVER_TRUSTED_PROXIES": PROXY}


@asynccontextmanager
async def coming_from(gateway: Gateway, address: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.AsyncHTTPTransport(local_address=address, verify=False)
    async with httpx.AsyncClient(
        transport=transport, base_url=gateway.base_url, headers=gateway.operator.headers
    ) as client:
        yield client


async def audited(gateway: Gateway, client: httpx.AsyncClient, **headers: str) -> str:
    """The address under which a change by this client is in the audit log."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    made = await client.post("/keys", json={"name": "k"}, headers=given)
    assert made.status_code == 201, made.text
    [line] = (await gateway.manage("GET", "/audit?limit=1"))["data"]
    assert line["subject_id"] == made.json()["data"]["id"]
    address: str = line["address"]
    return address


async def test_a_change_is_audited_under_the_client_s_address_and_strangers_are_not_believed(
    opened: Opened,
) -> None:
    async with (
        opened(**TRUSTING) as gateway,
        coming_from(gateway, PROXY) as proxy,
        coming_from(gateway, STRANGER) as stranger,
    ):
        forged = {"x_forwarded_for": "198.51.100.1", "forwarded": "for=198.51.100.2"}
        assert (
            await audited(gateway, proxy, x_forwarded_for="1.1.1.1, 203.0.113.7") == "203.0.113.7"
        )
        assert await audited(gateway, proxy, forwarded="for=198.51.100.2") == PROXY
        assert await audited(gateway, proxy) == PROXY
        assert await audited(gateway, stranger, **forged) == STRANGER


async def test_nobody_is_believed_where_nobody_is_trusted(gateway: Gateway) -> None:
    async with coming_from(gateway, PROXY) as client:
        assert await audited(gateway, client, x_forwarded_for="203.0.113.7") == PROXY


async def test_failed_sign_ins_are_counted_by_the_client_behind_the_proxy(opened: Opened) -> None:
    async with (
        opened(**TRUSTING) as gateway,
        coming_from(gateway, PROXY) as proxy,
        coming_from(gateway, STRANGER) as stranger,
    ):

        async def fail(client: httpx.AsyncClient, forwarded: str) -> int:
            headers = {"authorization": "Bearer wrong", "x-forwarded-for": forwarded}
            return (await client.get("/auth/key", headers=headers)).status_code

        of_one = [await fail(proxy, f"2001:db8:9:9::{n:x}") for n in range(FAILURES_PER_MINUTE)]
        assert set(of_one) == {401}
        assert await fail(proxy, "2001:db8:9:9:ffff::1") == 429
        assert await fail(proxy, "2001:db8:9:8::1") == 401
        assert await fail(proxy, "9.9.9.9, 203.0.113.7") == 401
        changing = [await fail(stranger, f"203.0.113.{n}") for n in range(FAILURES_PER_MINUTE + 1)]
        assert changing == [401] * FAILURES_PER_MINUTE + [429]


@pytest.mark.parametrize(
    ("settings", "headers", "state", "said"),
    [
        ({}, {}, "ok", "none in front; you are 127.0.0.1"),
        ({}, {"x-forwarded-for": "203.0.113.7"}, "warning", "a proxy at 127.0.0.1 whose word"),
        (TRUSTING, {"x-forwarded-for": "203.0.113.7"}, "ok", "it says that you are 203.0.113.7"),
        (TRUSTING, {"forwarded": "for=203.0.113.7"}, "warning", "writes forwarded; read is x-"),
    ],
)
async def test_the_doctor_looks_at_the_way_its_own_request_came(
    opened: Opened, settings: dict[str, str], headers: dict[str, str], state: str, said: str
) -> None:
    async with opened(**settings) as gateway:
        reply = await gateway.operator.get("/operator/doctor", headers=headers)
        [check] = [each for each in reply.json()["data"]["checks"] if each["name"] == "proxy"]
        assert check["state"] == state
        assert said in check["message"]


async def test_trusted_proxies_have_no_cap_of_their_own_on_connections(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gwd.api.http_guard._is_loopback", lambda address: False)
    async with opened(**TRUSTING, GWD_LIMITS_CONNECTIONS_PER_ADDRESS="2") as gateway:
        for address, answers in ((PROXY, 4), (STRANGER, 2)):
            found = await asyncio.gather(
                *(_raw(gateway, address, b"GET /healthz HTTP/1.1\r\nhost: h\r\n") for _ in range(4))
            )
            assert sum(b" 200 " in each for each in found) == answers, address


async def test_proxies_introduce_their_connections_and_others_need_not(opened: Opened) -> None:
    async with opened(**TRUSTING, GWD_SERVER_PROXY_PROTOCOL="true") as gateway:
        asked = (
            b"POST /api/v1/keys HTTP/1.1\r\nhost: h\r\nx-forwarded-for: 198.51.100.1\r\n"
            b"authorization: Bearer " + gateway.management_key.encode() + b"\r\n"
            b'content-length: 12\r\n\r\n{"name":"a"}'
        )
        header = b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 443\r\n"
        for introduction, address in (
            (header, "203.0.113.7"),
            (b"PROXY UNKNOWN\r\n", "198.51.100.1"),
            (header.replace(b"203.0.113.7", PROXY.encode()), "198.51.100.1"),
        ):
            assert b" 201 " in await _raw(gateway, PROXY, introduction + asked, pieces=7)
            assert await _last_address(gateway) == address
        assert b" 201 " in await _raw(gateway, STRANGER, asked)
        assert await _last_address(gateway) == STRANGER
        refused = await _raw(gateway, PROXY, asked)
        assert b" 400 " in refused
        assert b"proxy_protocol" in refused
        assert gateway.running.node.counters.heads_refused["proxy_protocol"] == 1
        assert b" 400 " in await _raw(gateway, STRANGER, header + asked)


async def test_a_path_that_a_proxy_leaves_in_front_is_taken_off(opened: Opened) -> None:
    async with opened(GWD_SERVER_PATH_PREFIX="/gw/one") as gateway:
        root = f"http://127.0.0.1:{gateway.running.port}"
        status = {
            path: (await gateway.client.get(f"{root}{path}")).status_code
            for path in (
                *("/gw/one/healthz", "/gw/one/api/v1/models", "/gw/one", "/gw/one/"),
                *("/gw/one?a=b", "/gw/one/v1/models?limit=1", "/healthz", "/api/v1/models"),
                *("/gw/oneX/healthz", "/gw/healthz", "/gw/one/nowhere"),
            )
        }
        assert [path for path, code in status.items() if code != 200] == [
            "/gw/oneX/healthz",
            "/gw/healthz",
            "/gw/one/nowhere",
        ]
        asked = {"model": "demo/chat", "messages": [{"role": "user", "content": "a"}]}
        served = await gateway.client.post(f"{root}/gw/one/api/v1/chat/completions", json=asked)
        assert served.status_code == 200
        wrong = await gateway.client.post(f"{root}/gw/one/api/v1/messages", json={"model": 1})
        assert wrong.json()["type"] == "error"  # in the dialect of the path
        base_url = gateway.running.settings.server.base_url
        assert base_url.endswith("/gw/one/api/v1")
        assert gateway.running.settings.server.app_url.endswith("/gw/one/app")
        page = (await gateway.client.get(f"{root}/gw/one")).text
        assert base_url in page
        assert "/gw/one/healthz" in page
        written = (await gateway.client.get(f"{root}/gw/one/api/v1/openapi.json")).json()
        assert written["servers"] == [{"url": "/gw/one/api/v1"}]


async def test_a_unix_socket_leads_there_as_well_and_its_peers_may_be_trusted(
    opened: Opened, tmp_path: Path
) -> None:
    path = tmp_path / "node" / "gwd.sock"
    path.parent.mkdir(exist_ok=True)
    left_behind = socket.socket(socket.AF_UNIX)
    left_behind.bind(str(path))
    left_behind.close()
    async with opened(
        GWD_SERVER_UNIX_SOCKET="gwd.sock", GWD_SERVER_TRUSTED_PROXIES="unix"
    ) as gateway:
        transport = httpx.AsyncHTTPTransport(uds=str(path), verify=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://gw/api/v1", headers=gateway.operator.headers
        ) as client:
            assert await audited(gateway, client, x_forwarded_for="203.0.113.7") == "203.0.113.7"
            assert await audited(gateway, client) == ""
        assert path.stat().st_mode & 0o777 == 0o660
    assert not path.exists()


async def test_a_file_in_the_place_of_the_socket_is_named_and_left(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    nodes.init()
    (nodes.folder / "gwd.sock").write_text("mine")
    with pytest.raises(SettingsError, match=r"unix_socket: .*gwd.sock: .*name another"):
        async with nodes.running(GWD_SERVER_UNIX_SOCKET="gwd.sock"):
            pass
    assert (nodes.folder / "gwd.sock").read_text() == "mine"


async def _last_address(gateway: Gateway) -> Any:
    [line] = await gateway.store.read(
        lambda c: list(c.rows("SELECT address FROM audit ORDER BY rowid DESC LIMIT 1"))
    )
    return line[0]


async def _raw(gateway: Gateway, address: str, sent: bytes, *, pieces: int = 1) -> bytes:
    """What is answered to these bytes, the first of them cut into pieces, from this address."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", gateway.running.port, local_addr=(address, 0)
    )
    sent = sent if sent.endswith(b"}") else sent + b"\r\n"
    try:
        for place in range(pieces):
            writer.write(sent[place : place + 1] if place < pieces - 1 else sent[place:])
            await asyncio.sleep(0.01)
        async with asyncio.timeout(20):
            answer = await reader.read(65_536)
            await asyncio.sleep(0.2)  # the others are open meanwhile
            return answer
    finally:
        writer.close()
