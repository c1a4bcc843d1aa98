"""Vendors behind a proxy: the way there, the login, the certificate inside, and everything a proxy does wrong."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from gwd.core.target import UpstreamCall
from gwd.upstream.base import Timeouts, UpstreamFault
from gwd.upstream.http_client import HttpClient
from tests.cases.caserunner.ports import free_port
from tests.support.certificates import Authority, authority, server_tls
from tests.support.proxy import Proxy

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("authority"))


class Vendor:
    """Answers every request on a kept connection; notes the heads."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.connections = 0
        self.url = ""

    @asynccontextmanager
    async def running(
        self,
        directory: Path | None = None,
        signer: Authority | None = None,
        host: str = "localhost",
    ) -> AsyncIterator["Vendor"]:
        tls = server_tls(directory, host=host, by=signer) if directory else None
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}/v1/x?y=1"
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n{}"))
                is_last = b"Connection: close" in self.heads[-1]
                writer.write(
                    OK.replace(b"\r\n", b"\r\nconnection: close\r\n", 1) if is_last else OK
                )
                await writer.drain()
                if is_last:
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def call(url: str) -> UpstreamCall:
    return UpstreamCall(url=url, headers={"authorization": "Bearer sk"}, body=b"{}", stream=False)


async def asked(client: HttpClient, url: str) -> None:
    reply = await client.send(call(url), 5)
    assert (reply.status, await reply.read_all(5)) == (200, b"{}")
    reply.close()


async def fault_of(
    proxy_url: str, url: str, *, connect_s: float = 5, ca_file: str = ""
) -> UpstreamFault:
    client = HttpClient(Timeouts(connect_s=connect_s), proxy=proxy_url, ca_file=ca_file)
    try:
        with pytest.raises(UpstreamFault) as found:
            await client.send(call(url), 5)
    finally:
        await client.close()
    assert "secret" not in str(found.value)
    return found.value


async def through_every_kind_of_proxy(tmp_path: Path, signer: Authority) -> None:
    """https and http vendors, a proxy that is asked plainly and one that is asked with TLS."""
    vendor_files, proxy_files = tmp_path / "vendor", tmp_path / "proxy"
    for directory in (vendor_files, proxy_files):
        directory.mkdir()
    async with Vendor().running(vendor_files, signer) as safe, Vendor().running() as plain:
        for tls in (None, server_tls(proxy_files, by=signer)):
            async with Proxy(tls=tls).running() as proxy:
                client = HttpClient(Timeouts(), proxy=proxy.url, ca_file=str(signer.file))
                for _ in range(2):
                    await asked(client, safe.url)
                    await asked(client, plain.url)
                await client.close()
            connect, absolute = proxy.heads[0], proxy.heads[1]
            place = safe.url.split("/")[2].encode()
            assert connect == b"CONNECT %s HTTP/1.1\r\nhost: %s\r\n\r\n" % (place, place)
            assert absolute.startswith(
                b"POST " + plain.url.encode() + b" HTTP/1.1\r\nhost: localhost:"
            )
        assert safe.connections == 2  # one for each proxy: it is used again
        assert all(head.startswith(b"POST /v1/x?y=1 HTTP/1.1") for head in safe.heads)


async def test_every_kind_of_vendor_through_every_kind_of_proxy(
    tmp_path: Path, signer: Authority
) -> None:
    await through_every_kind_of_proxy(tmp_path, signer)


def test_so_on_the_loop_that_the_daemon_uses(tmp_path: Path, signer: Authority) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(through_every_kind_of_proxy(tmp_path, signer))


async def test_the_login_goes_to_the_proxy_and_no_further(
    tmp_path: Path, signer: Authority
) -> None:
    login = base64.b64encode("Käthe:a:b@c%".encode()).decode()
    async with (
        Vendor().running(tmp_path, signer) as safe,
        Vendor().running() as plain,
        Proxy(login=f"proxy-authorization: Basic {login}\r\n").running() as proxy,
    ):
        there = proxy.url.replace("://", "://K%C3%A4the:a%3Ab%40c%25@")
        client = HttpClient(Timeouts(), proxy=there, ca_file=str(signer.file))
        await asked(client, safe.url)
        await asked(client, plain.url)
        await client.close()
        assert b"Bearer" not in proxy.heads[0]
        assert b"proxy-authorization" not in safe.heads[0]
        wrong = proxy.url.replace("://", "://me:secret@")
        for address, words in (
            (proxy.url, "wants a user and password (status 407)"),
            (wrong, "does not accept the user and password in its address (status 407)"),
        ):
            for vendor in (safe, plain):
                fault = (await fault_of(address, vendor.url)).fault
                assert words in fault.message
                assert fault.reason == "network"


async def test_a_certificate_has_to_be_the_vendor_s_not_the_proxy_s(
    tmp_path: Path, signer: Authority
) -> None:
    # The proxy is joined under the vendor's name, and a certificate for the proxy's would be another's.
    async with (
        Vendor().running(tmp_path, signer, host="127.0.0.1") as vendor,
        Proxy().running() as proxy,
    ):
        fault = (await fault_of(proxy.url, vendor.url, ca_file=str(signer.file))).fault
        assert "the vendor has a certificate for another name" in fault.message
        assert fault.detail == "certificate"
    (tmp_path / "self").mkdir()
    async with Proxy(tls=server_tls(tmp_path / "self")).running() as proxy:
        fault = (await fault_of(proxy.url, vendor.url)).fault
        assert "the proxy of [upstream] has a self-signed certificate" in fault.message


async def test_an_answer_in_single_bytes_and_with_interim_ones_is_understood(
    tmp_path: Path, signer: Authority
) -> None:
    said = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 299 Fine\r\nvia: x\r\ncontent-length: 0\r\n\r\n"
    async with Vendor().running(tmp_path, signer) as vendor:
        for pieces in ([said], [said[at : at + 1] for at in range(len(said))]):
            async with Proxy(answer=pieces).running() as proxy:
                client = HttpClient(Timeouts(), proxy=proxy.url, ca_file=str(signer.file))
                await asked(client, vendor.url)
                await client.close()


async def test_what_a_proxy_does_wrong_is_named(tmp_path: Path, signer: Authority) -> None:
    begun = b"HTTP/1.1 200 OK\r\n"
    cases = (
        ([b"HTTP/1.1 403 No\r\ncontent-length: 9\r\n\r\nforbidden"], "answered with status 403"),
        ([b"HTTP/1.1 502 Bad\r\n\r\n"], "answered with status 502"),
        ([b"SSH-2.0-x\r\n"], "gave an answer that was not HTTP"),
        ([b"HTTP/1.1 101 Switch\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], "not HTTP"),
        ([begun + b"content-length: 3\r\n\r\nabc"], "sent more than its answer to CONNECT"),
        ([begun, b"x: " + b"y" * 20_000], "answers without end"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000], "answers without end"),
    )
    wrong = []
    async with Vendor().running(tmp_path, signer) as vendor:
        for pieces, words in cases:
            async with Proxy(answer=pieces).running() as proxy:
                fault = (await fault_of(proxy.url, vendor.url)).fault
            if words not in fault.message or fault.reason != "network":
                wrong.append((pieces, fault))
        assert not vendor.heads
    assert not wrong


@asynccontextmanager
async def listening(*, says: bytes | None) -> AsyncIterator[str]:
    """A server that reads a little, says this and closes; with None it says nothing and stays."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        if says is None:
            await reader.read()
        else:
            writer.write(says)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://me:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_proxy_that_closes_is_silent_or_is_not_there() -> None:
    far = "https://vendor.example/v1"
    for says in (b"", b"HTTP/1.1 2"):
        async with listening(says=says) as address:
            assert "closed the connection without" in (await fault_of(address, far)).fault.message
    async with listening(says=b"HTTP/1.1 200 OK\r\n\r\n") as address:
        fault = (await fault_of(address, far)).fault
        assert (fault.reason, "vendor" in fault.message) == ("network", True)
    async with listening(says=None) as address:
        began = time.monotonic()
        fault = (await fault_of(address, far, connect_s=0.2)).fault
        assert fault.reason == "timeout"
        assert "through the proxy of [upstream]" in fault.message
        assert time.monotonic() - began < 2
    for url in (far, "http://vendor.example/v1"):
        fault = (await fault_of(f"http://me:secret@127.0.0.1:{free_port()}", url)).fault
        assert fault.message == "the proxy of [upstream] could not be reached"
        fault = (await fault_of("http://me:secret@proxy.invalid:1", url)).fault
        assert fault.message == "the proxy of [upstream] has a name that could not be resolved"


async def test_the_attempts_deadline_counts_the_way_through_the_proxy() -> None:
    async with listening(says=None) as address:
        client = HttpClient(Timeouts(connect_s=60), proxy=address)
        began = time.monotonic()
        with pytest.raises(UpstreamFault) as found:
            await client.send(call("https://vendor.example/"), 0.2)
        assert (found.value.fault.reason, time.monotonic() - began < 5) == ("timeout", True)
        waiting = asyncio.ensure_future(client.send(call("https://vendor.example/"), 60))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await client.close()
