"""No destination leads inside: not when it is made, not when it is changed, and not when its name has moved since."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.listener import Listener, listener
from tests.support.names import Names
from tests.support.node import Gateway, open_gateway
from tests.unit.outbound.test_guard import SPELLINGS

__all__ = ["listener"]

PLACE = "/notifications/destinations"
PUBLIC = "93.184.216.34"
KINDS = ("webhook", "chat")
INNER = [
    ["127.0.0.1"],
    ["127.0.0.2"],
    ["0.0.0.0"],
    ["10.0.0.1"],
    ["169.254.169.254"],
    ["192.168.1.1"],
    ["100.64.0.1"],
    ["224.0.0.1"],
    ["::1"],
    ["::"],
    ["::127.0.0.1"],
    ["::ffff:127.0.0.1"],
    ["::ffff:a9fe:a9fe"],
    ["64:ff9b::7f00:1"],
    ["64:ff9b:1::1"],
    ["2002:7f00:1::"],
    ["2001:0:7f00:1::"],
    ["fe80::1"],
    ["fc00::1"],
    [PUBLIC, "127.0.0.1"],
    ["127.0.0.1", PUBLIC],
    ["2606:2800:21f:cb07::1", "::1"],
]


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names().install(monkeypatch)


@pytest.fixture
async def open_port(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> int:
    """The listener's port may be called, so that the address alone decides."""
    monkeypatch.setattr("gwd.outbound.guard.PORTS", (443, 8443, listener.port))
    return listener.port


async def add(gateway: Gateway, kind: str, url: str) -> str:
    made = await gateway.manage("POST", PLACE, {"type": kind, "name": "ops", "url": url})
    destination_id: str = made["data"]["id"]
    return destination_id


async def tried(gateway: Gateway, destination_id: str) -> Any:
    """How a test of it went."""
    return (await gateway.manage("POST", f"{PLACE}/{destination_id}/test", {}))["data"]


async def test_no_spelling_of_an_inner_address_is_taken(
    gateway: Gateway, listener: Listener, open_port: int, names: Names
) -> None:
    names.addresses["fine.example"] = [PUBLIC]
    made = {kind: await add(gateway, kind, "https://fine.example/hook") for kind in KINDS}
    taken = []
    for url in SPELLINGS:
        asked = [
            gateway.operator.post(PLACE, json={"type": kind, "name": "ops", "url": url})
            for kind in KINDS
        ] + [gateway.operator.patch(f"{PLACE}/{made[kind]}", json={"url": url}) for kind in KINDS]
        for reply in await asyncio.gather(*asked):
            if reply.status_code != 400 or reply.json()["error"]["param"] != "url":
                taken.append((url, reply.status_code, reply.text))
    assert taken == []
    assert (await gateway.manage("GET", PLACE))["total_count"] == len(KINDS)
    assert listener.connections == 0


async def test_a_name_that_leads_inside_is_not_taken(
    gateway: Gateway, listener: Listener, open_port: int, names: Names
) -> None:
    for addresses in INNER:
        names.addresses["inner.example"] = addresses
        for kind in KINDS:
            reply = await gateway.operator.post(
                PLACE,
                json={"type": kind, "name": "x", "url": f"https://inner.example:{open_port}/h"},
            )
            assert reply.status_code == 400, addresses
            assert "inner.example is not a public address" in reply.json()["error"]["message"]
            assert not any(each in reply.text for each in addresses if len(each) > 4)
    assert listener.connections == 0


async def test_a_name_that_has_moved_inside_is_not_called(
    gateway: Gateway, listener: Listener, open_port: int, names: Names
) -> None:
    """At each send it is resolved and judged anew; the reason is on record, and not where the name leads."""
    secret = "services/T0/B0/very-secret"
    names.addresses["moved.example"] = [PUBLIC]
    url = f"https://moved.example:{open_port}/{secret}"
    made = [await add(gateway, kind, url) for kind in KINDS]
    for addresses in INNER:
        names.addresses["moved.example"] = addresses
        for destination_id in made:
            record = await tried(gateway, destination_id)
            assert record["status"] == "failed", addresses
            assert "moved.example is not a public address" in record["error"]
            assert not any(each in record["error"] for each in addresses if len(each) > 4)
            assert secret not in record["error"]
    assert listener.connections == 0


async def test_the_queue_judges_at_each_try(
    gateway: Gateway, listener: Listener, open_port: int, names: Names
) -> None:
    names.addresses["moved.example"] = [PUBLIC]
    made = await add(gateway, "webhook", f"https://moved.example:{open_port}/hook")
    names.addresses["moved.example"] = ["169.254.169.254"]
    key, _ = await gateway.new_key(limit=0.0000001)
    reply = await gateway.chat(headers={"authorization": f"Bearer {key}"})
    assert reply.status_code == 200
    errors: list[str] = []
    async with asyncio.timeout(30):
        while not errors:
            await asyncio.sleep(0.05)
            rows = (await gateway.manage("GET", f"{PLACE}/{made}/deliveries"))["data"]
            errors = [row["error"] for row in rows if row["error"]]
    assert "moved.example is not a public address" in errors[0]
    assert "169.254" not in (await gateway.operator.get(f"{PLACE}/{made}")).text
    assert listener.connections == 0


class TestWhereTheOperatorAllowsTheLoopback:
    """What is allowed is called; the node's own port, users in addresses and redirects stay out."""

    @pytest.fixture
    async def gateway(self, tmp_path: Path) -> AsyncIterator[Gateway]:
        environment = {
            "GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]',
            "GWD_WEBHOOKS_ALLOW_HTTP": "true",
        }
        async with open_gateway(tmp_path, environment=environment) as made:
            yield made

    async def test_the_node_itself_is_never_called(self, gateway: Gateway, names: Names) -> None:
        port = gateway.running.port
        for host in ("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1"):
            reply = await gateway.operator.post(
                PLACE, json={"type": "webhook", "name": "x", "url": f"http://{host}:{port}/"}
            )
            assert reply.status_code == 400, host
        names.addresses["self.example"] = ["127.0.0.9"]
        made = [await add(gateway, kind, f"http://self.example:{port}/") for kind in KINDS]
        names.addresses["self.example"] = ["127.0.0.1"]
        for each in made:
            record = await tried(gateway, each)
            assert "not a public address" in record["error"]
            assert "127.0.0.1" not in record["error"]

    async def test_a_redirect_leads_nowhere(
        self, gateway: Gateway, listener: Listener, names: Names
    ) -> None:
        inner: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            inner.append(await reader.read(100))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/metadata"
        url = f"http://127.0.0.1:{listener.port}/very-secret"
        made = [await add(gateway, kind, url) for kind in KINDS]
        for status in (301, 302, 303, 307, 308):
            listener.answer = (
                f"HTTP/1.1 {status} Go\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n".encode()
            )
            for each in made:
                record = await tried(gateway, each)
                assert (record["status"], record["response_status"]) == ("failed", status)
                assert "not followed" in record["error"]
                assert "very-secret" not in record["error"]
        server.close()
        assert inner == []

    async def test_users_in_addresses_and_other_schemes_are_not_taken(
        self, gateway: Gateway, listener: Listener
    ) -> None:
        place = f"127.0.0.1:{listener.port}/"
        for url in (f"http://u:p@{place}", f"http://u@{place}", f"ftp://{place}", f"ws://{place}"):
            for kind in KINDS:
                body = {"type": kind, "name": "x", "url": url}
                reply = await gateway.operator.post(PLACE, json=body)
                assert reply.status_code == 400, url
                assert ":p@" not in reply.text
        assert listener.connections == 0
