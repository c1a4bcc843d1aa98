"""Vendors and hooks that redirect, or show a certificate that is not trusted: every error names it and the remedy."""

import asyncio
import itertools
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from gwd.core.target import UpstreamCall
from gwd.outbound import OutboundClient
from gwd.outbound.guard import Rules
from gwd.store import Connection
from gwd.upstream.base import Timeouts, UpstreamFault, tls_context
from gwd.upstream.http_client import HttpClient
from tests.support.certificates import authority, server_tls
from tests.support.node import PRICES, Gateway
from tests.support.proxy import Proxy

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = itertools.count(1)

Listen = Callable[..., Awaitable[int]]


@pytest_asyncio.fixture(loop_scope="module")
async def listen() -> AsyncIterator[Listen]:
    """A server that answers every call with these lines; its port."""
    servers: list[asyncio.Server] = []

    async def start(*head: str, tls: ssl.SSLContext | None = None) -> int:
        said = "\r\n".join((*head, "content-length: 0", "", "")).encode()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with closing(writer):
                await reader.read(65_536)
                writer.write(said)
                await writer.drain()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield start
    for server in servers:
        server.close()


async def served(node: Gateway, base_url: str) -> tuple[str, str]:
    """A new provider at this address and its only model."""
    slug = f"elsewhere-{next(_numbers)}"
    await node.add_provider(slug, "openai_chat", base_url)
    await node.add_model(f"demo/{slug}", pricing=PRICES)
    await node.add_endpoint(f"demo/{slug}", slug, "gpt-demo")
    return slug, f"demo/{slug}"


async def reported(node: Gateway, base_url: str) -> tuple[int, str, str, str]:
    """What a request, `provider test` and doctor say of a vendor there: status, message, reason, finding."""
    slug, model = await served(node, base_url)
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    reply = await node.client.post(
        "/chat/completions", json=body, headers={"authorization": f"Bearer {node.key}"}
    )
    tested = await node.manage("POST", f"/catalog/providers/{slug}/test", {}, status=502)
    found = (await node.manage("GET", "/operator/doctor"))["data"]["checks"]
    [rests] = [check for check in found if check["name"] == "rests"]
    await node.manage("PATCH", f"/catalog/providers/{slug}", {"disabled": True})
    return (
        reply.status_code,
        reply.json()["error"]["message"],
        tested["error"]["message"],
        rests["message"],
    )


REDIRECTS = (
    ("https://new.example/v1/chat/completions?key=sk-topsecret99", "to https://new.example/v1/chat/completions,"),
    ("https://user:word@new.example:8443/v1", "to https://new.example:8443/v1,"),
    ("/login?next=%2Fv1", "to /login,"),
    ("//other.example/v1", "to //other.example/v1,"),
    ("javascript:alert(1)", "without saying where to,"),
    ("https://[/", "without saying where to,"),
    (None, "without saying where to,"),
)  # fmt: skip


async def test_a_vendor_that_redirects_is_told_with_where_it_leads(
    node: Gateway, listen: Listen
) -> None:
    wrong = []
    for number, (location, said) in enumerate(REDIRECTS):
        status = (301, 302, 303, 307, 308)[number % 5]
        head = (f"HTTP/1.1 {status} Moved", *([f"location: {location}"] if location else []))
        port = await listen(*head)
        code, *texts = await reported(node, f"http://127.0.0.1:{port}/v1")
        expected = f"answered with a redirect (status {status})"
        for text in texts:
            hidden = "topsecret" not in text and "word@" not in text
            if code != 502 or expected not in text or said not in text or not hidden:
                wrong.append((location, code, text))
    assert not wrong


async def test_a_certificate_is_named_as_what_it_is(
    node: Gateway, listen: Listen, tmp_path: Path
) -> None:
    signer = authority(tmp_path)
    cases = (
        (server_tls(tmp_path), "has a self-signed certificate; if it is the right one"),
        (server_tls(tmp_path, by=signer), "authority that is not known here"),
    )
    wrong = []
    for tls, said in cases:
        port = await listen("HTTP/1.1 200 OK", tls=tls)
        code, *texts = await reported(node, f"https://localhost:{port}/v1")
        wrong += [(code, text) for text in texts if code != 503 or said not in text]
        wrong += [(code, text) for text in texts if "[upstream] ca_file" not in text]
    assert not wrong


async def test_both_ways_name_the_same_with_a_file_of_trusted_authorities(
    listen: Listen, tmp_path: Path
) -> None:
    signer = authority(tmp_path)
    cases = (
        (server_tls(tmp_path, by=signer, days=-1), "has a certificate that has expired", "certificate"),
        (server_tls(tmp_path, by=signer, host="other.example"), "a certificate for another name", "certificate"),
        (server_tls(tmp_path), "has a self-signed certificate", "certificate"),
        (None, "does not speak TLS at this port", None),
    )  # fmt: skip
    wrong = []
    for tls, said, detail in cases:
        port = await listen("HTTP/1.1 200 OK", tls=tls)
        call = UpstreamCall(
            url=f"https://localhost:{port}/v1", headers={}, body=b"{}", stream=False
        )
        async with Proxy().running() as proxy:
            for way in ("", proxy.url):
                client = HttpClient(Timeouts(), proxy=way, ca_file=str(signer.file))
                try:
                    with pytest.raises(UpstreamFault) as found:
                        await client.send(call, 5)
                finally:
                    await client.close()
                fault = found.value.fault
                if said not in fault.message or (fault.reason, fault.detail) != ("network", detail):
                    wrong.append((way, said, fault))
    assert not wrong


async def test_what_the_hint_says_of_the_file_is_so(listen: Listen, tmp_path: Path) -> None:
    """A certificate named in it is trusted, also one that signed itself, and so is whoever was trusted before."""
    trusted = 0
    for directory, signer in ((tmp_path / "self", None), (tmp_path / "other", authority(tmp_path))):
        directory.mkdir()
        port = await listen("HTTP/1.1 200 OK", tls=server_tls(directory, by=signer))
        file = directory / "server.pem" if signer is None else signer.file
        trusted = len(tls_context(str(file)).get_ca_certs())
        call = UpstreamCall(url=f"https://localhost:{port}/", headers={}, body=b"{}", stream=False)
        async with Proxy().running() as proxy:
            for way in ("", proxy.url):
                client = HttpClient(Timeouts(), proxy=way, ca_file=str(file))
                reply = await client.send(call, 5)
                assert reply.status == 200
                reply.close()
                await client.close()
    theirs = ssl.create_default_context().get_ca_certs()
    assert trusted == len(theirs) + 1


async def test_a_hook_that_leads_elsewhere_shows_no_path(listen: Listen, tmp_path: Path) -> None:
    """The path of a hook may be its secret, and a redirect mostly repeats it."""
    rules = Rules(allow_networks=(ip_network("127.0.0.0/8"),), allow_http=True)
    client = OutboundClient(rules, user_agent="test", tls=ssl.create_default_context())
    port = await listen("HTTP/1.1 308 Moved", "location: https://hooks.example/T0/s3cret")
    answer = await client.post(f"http://127.0.0.1:{port}/T0/s3cret", body=b"{}", headers={})
    assert answer.status == 308
    assert answer.error is not None
    assert "redirect (status 308) to https://hooks.example, which is not followed" in answer.error
    port = await listen("HTTP/1.1 200 OK", tls=server_tls(tmp_path))
    answer = await client.post(f"https://localhost:{port}/", body=b"{}", headers={})
    assert answer.status is None
    assert answer.error is not None
    assert "has a self-signed certificate; it needs one of a public authority" in answer.error


async def test_a_key_that_cannot_be_read_is_told_at_once_and_everywhere(
    node: Gateway, tmp_path: Path
) -> None:
    slug, model = await served(node, "https://vendor.example/v1")
    [row] = (await node.manage("GET", f"/catalog/credentials?provider={slug}"))["data"]
    address = f"/catalog/credentials/{row['id']}"
    pipe = tmp_path / "pipe"
    (tmp_path / "wide").write_text("sk-acme", "utf-16")
    (tmp_path / "umlaut").write_text("schlüssel", "utf-8")
    os.mkfifo(pipe)
    cases = (
        ("env:NO_SUCH_VARIABLE_HERE", "NO_SUCH_VARIABLE_HERE is empty or not set; set it in the daemon's environment"),
        (f"file:{tmp_path}/none", "cannot be read by the daemon: No such file"),
        (f"file:{tmp_path}/wide", "it is UTF-16 text; save it as UTF-8"),
        (f"file:{tmp_path}/umlaut", "has characters that no header can carry"),
        (f"file:{pipe}", "is no file of at most 64 KiB"),
        ("file:/dev/zero", "is no file of at most 64 KiB"),
        (f"file:{tmp_path}", "is no file of at most 64 KiB"),
    )  # fmt: skip
    wrong = []
    for reference, said in cases:
        set_ = await node.manage("PATCH", address, {"key_ref": reference})
        read = await node.manage("GET", address)
        tested = await node.manage("POST", f"/catalog/providers/{slug}/test", {}, status=409)
        reply = await ask(node, model)
        error = reply.json()["error"]
        texts = [set_["data"]["problem"], read["data"]["problem"], tested["error"]["message"]]
        if not all(said in text for text in texts):
            wrong.append((reference, texts))
        if tested["error"]["metadata"]["reason"] != "no_credential":
            wrong.append((reference, tested))
        if reply.status_code != 503 or error["metadata"]["excluded_by"] != ["no_credential"]:
            wrong.append((reference, error))
        if f"no usable key for `{slug}`" not in error["message"] or str(tmp_path) in reply.text:
            wrong.append((reference, error))
    assert not wrong
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfsk-acme\r\n")
    repaired = await node.manage("PATCH", address, {"key_ref": f"file:{tmp_path}/marked"})
    assert repaired["data"]["problem"] is None


async def ask(node: Gateway, model: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    return await node.client.post(
        "/chat/completions", json=body, headers={"authorization": f"Bearer {node.key}"}
    )


def _begin_later(connection: Connection, model: str) -> None:
    """The model's prices as a clock that was two hours ahead wrote them; rows of prices are not changed otherwise."""
    guards = connection.rows(
        "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'price' AND type = 'trigger'"
    )
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(
        "UPDATE price SET effective_at = effective_at + 7200000000 WHERE model = ?", (model,)
    )
    for _, made in guards:
        connection.execute(made)


async def test_a_catalog_that_was_born_after_the_clock_s_time_is_there_but_not_open(
    node: Gateway,
) -> None:
    slug, model = await served(node, "https://vendor.example/v1")
    await node.store.write(_begin_later, model)
    await node.manage("PATCH", f"/catalog/providers/{slug}", {"name": "Again"})
    reply = await ask(node, model)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (503, "no_available_endpoint")
    assert error["metadata"]["excluded_by"] == ["price"]
    assert "its first price begins at 20" in error["message"]
    assert "has to set the clock" in error["message"]
    assert "retry-after" not in reply.headers
