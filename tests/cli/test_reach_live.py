"""gwctl on the way to a real node: redirects, logins in front, certificates, a proxy with a path of its own."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from importlib.metadata import distributions
from pathlib import Path

import pytest
import pytest_asyncio

from gwctl.commands.server import _owned
from gwctl.connection_trouble import roots
from tests.cli.test_live import Cli, cli, node
from tests.support.certificates import authority, server_tls
from tests.support.node import Gateway

__all__ = ["cli", "node"]

Front = Callable[..., Awaitable[int]]
Answer = Callable[[str], bytes]


@pytest_asyncio.fixture
async def front(node: Gateway) -> AsyncIterator[Front]:
    """Something in front of the node: `said` answers a path itself, or "" passes it on below `prefix`."""
    servers: list[asyncio.Server] = []

    async def start(said: Answer, *, prefix: str = "", tls: ssl.SSLContext | None = None) -> int:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with closing(writer):
                head = await reader.readuntil(b"\r\n\r\n")
                _, path, _ = head.split(b" ", 2)
                answer = said(path.decode())
                if not answer:
                    inner = path.decode().removeprefix(prefix)
                    head = head.replace(path, inner.encode(), 1)
                    head = head.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
                    onwards, back = await asyncio.open_connection("127.0.0.1", node.running.port)
                    back.write(head.replace(b"Connection: keep-alive\r\n", b""))
                    length = int(dict(_headers(head)).get("content-length", "0"))
                    if length:
                        back.write(await reader.readexactly(length))
                    answer = await onwards.read()
                    back.close()
                writer.write(answer)
                await writer.drain()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield start
    for server in servers:
        server.close()


def _headers(head: bytes) -> list[tuple[str, str]]:
    lines = head.decode().split("\r\n")[1:]
    return [(n.lower(), v.strip()) for n, _, v in (line.partition(":") for line in lines) if v]


def _moved(status: int, location: str) -> bytes:
    return f"HTTP/1.1 {status} M\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()


PAGE = b"<!doctype html><title>Sign in</title>"
LOGIN = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n%b" % (len(PAGE), PAGE)  # fmt: skip


async def test_a_redirect_says_where_to_and_its_hint_leads_there(
    cli: Cli, node: Gateway, front: Front
) -> None:
    root = node.base_url.removesuffix("/api/v1")
    port = await front(lambda path: _moved(308, root + path))
    old = f"http://127.0.0.1:{port}/api/v1"
    for words in (["key", "list"], ["key", "create", "x"], ["chat", "demo/chat", "hi"], ["whoami"]):
        _, err = await cli(*words, code=7, GWCTL_URL=old)
        assert f"{old} redirects to {node.base_url}" in err, words
        assert f"gwctl config set url {node.base_url}" in err
    _, err = await cli("server", "check", code=7, GWCTL_URL=old)
    assert f"redirects to {root}/healthz" in err
    environment = {**cli.environment}
    del environment["GWCTL_URL"]
    at_home = Cli(environment)
    await at_home("config", "set", "url", node.base_url)
    await at_home("key", "list")
    port = await front(lambda _: _moved(302, "https://user:word@sso.example/login?back=gwm_secret"))
    _, err = await cli("key", "list", code=7, GWCTL_URL=f"http://127.0.0.1:{port}/api/v1")
    assert "redirects to https://sso.example/login instead" in err
    assert "address of the gateway itself" in err
    assert "word" not in err
    port = await front(lambda _: LOGIN)
    for line in ("key list", "server check", "version", "doctor"):
        _, err = await cli(
            *line.split(),
            code=0 if line == "version" else 7,
            GWCTL_URL=f"http://127.0.0.1:{port}/api/v1",
        )
        assert "a web page answered in place of the gateway" in err, line


async def test_certificates_are_named_and_the_hint_s_file_is_taken(
    cli: Cli, node: Gateway, front: Front, tmp_path: Path
) -> None:
    signer = authority(tmp_path)
    good = await front(lambda _: b"", tls=server_tls(tmp_path, by=signer))
    ca = {"GWCTL_CA_FILE": str(signer.file)}
    another = server_tls(tmp_path, by=signer, host="x.example")
    cases: tuple[tuple[int, dict[str, str], str, str], ...] = (
        (good, {}, "is of an authority not known here", "gwctl config set ca_file FILE"),
        (await front(lambda _: b"", tls=server_tls(tmp_path)), {}, "is self-signed", "GWCTL_CA_FILE"),
        (await front(lambda _: b"", tls=server_tls(tmp_path, by=signer, days=-1)), ca, "has expired", "renew"),
        (await front(lambda _: b"", tls=another), ca, "is for another name", "use the name"),
        (node.running.port, ca, "does not speak TLS at this port", "http://"),
    )  # fmt: skip
    for port, more, said, do in cases:
        url = f"https://localhost:{port}/api/v1"
        _, err = await cli("key", "list", code=7, GWCTL_URL=url, **more)
        assert said in err, (said, err)
        assert do in err, (do, err)
    url = f"https://localhost:{good}/api/v1"
    await cli("config", "set", "ca_file", str(signer.file))
    await cli("key", "list", GWCTL_URL=url)
    await cli("server", "check", GWCTL_URL=url)
    marked = tmp_path / "marked.pem"
    marked.write_bytes(b"\xef\xbb\xbf" + signer.file.read_bytes())
    await cli("key", "list", GWCTL_URL=url, GWCTL_CA_FILE=str(marked))
    for content, said in ((b"no pem", "holds no certificate"), ("x".encode("utf-16"), "UTF-16")):
        marked.write_bytes(content)
        _, err = await cli(
            "key", "list", code=2 if said[0] == "h" else 1, GWCTL_URL=url, GWCTL_CA_FILE=str(marked)
        )
        assert said in err


async def test_a_proxy_with_a_path_of_its_own_is_a_gateway_like_any_other(
    cli: Cli, node: Gateway, front: Front
) -> None:
    """Whether the proxy takes its path off for everything, or passes the API alone."""
    lost = b"HTTP/1.1 404 N\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"
    everything = await front(lambda p: b"" if p.startswith("/gw/") else lost, prefix="/gw")
    api_alone = await front(
        lambda p: b"" if p.startswith("/gw/api/") or p in ("/healthz", "/readyz") else lost,
        prefix="/gw",
    )
    for port in (everything, api_alone):
        url = f"http://127.0.0.1:{port}/gw/api/v1"
        assert (await cli("server", "check", GWCTL_URL=url))[
            0
        ] == "healthz\tok\tok\t\nreadyz\tok\tready\t\n"
        assert f" at {url}" in (await cli("version", GWCTL_URL=url))[0]
        await cli("key", "list", GWCTL_URL=url)
        out, _ = await cli("doctor", GWCTL_URL=url)
        assert "versions\tok" in out
    none = await front(lambda p: b"" if p.startswith("/gw/api/") else lost, prefix="/gw")
    _, err = await cli("server", "check", code=7, GWCTL_URL=f"http://127.0.0.1:{none}/gw/api/v1")
    assert "a web page answered in place of the gateway" in err


async def test_the_doctor_sees_what_holds_streams_back_and_when_a_certificate_ends(
    cli: Cli, node: Gateway, front: Front, tmp_path: Path
) -> None:
    out, _ = await cli("doctor")
    assert "streams\tok\teach piece of a stream arrives when it is sent" in out
    assert "base_url\tok" in out
    port = await front(lambda _: b"")  # it collects whole answers
    out, _ = await cli("doctor", GWCTL_URL=f"http://127.0.0.1:{port}/api/v1")
    assert "streams\twarning\tthe pieces of a stream arrive together" in out
    assert "proxy_buffering off" in out
    assert "streams of base_url\tok" in out
    signer = authority(tmp_path)
    port = await front(lambda _: b"", tls=server_tls(tmp_path, by=signer, days=2))
    url = f"https://localhost:{port}/api/v1"
    out, _ = await cli("doctor", GWCTL_URL=url, GWCTL_CA_FILE=str(signer.file))
    assert "certificate from here\twarning\tgood for this address until 20" in out
    assert "certificate of base_url" not in out


async def test_a_base_url_that_leads_nowhere_is_told_of(
    cli: Cli, node: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = property(lambda _: "http://127.0.0.1:9/api/v1")
    monkeypatch.setattr(type(node.running.node), "base_url", nowhere)
    out, _ = await cli("doctor")
    assert "streams of base_url\twarning\thttp://127.0.0.1:9/api/v1 does not answer" in out


async def test_a_node_that_takes_no_requests_says_so_itself(cli: Cli, node: Gateway) -> None:
    node.running.node.status.quarantine = "I1"
    out, _ = await cli("server", "check", code=1)
    assert "readyz\tfailed\tthe gateway takes no requests now\tgwctl doctor tells why" in out
    node.running.node.status.quarantine = None


def test_where_the_health_pages_may_be() -> None:
    for url, found in (
        ("https://a.example/api/v1", ["https://a.example"]),
        ("https://a.example/v1", ["https://a.example"]),
        ("https://a.example/gw/api/v1", ["https://a.example/gw", "https://a.example"]),
        ("https://a.example/gw/v1", ["https://a.example/gw", "https://a.example"]),
        ("https://a.example/odd", ["https://a.example"]),
        ("https://[2001:db8::1]:8/x/api/v1", ["https://[2001:db8::1]:8/x", "https://[2001:db8::1]:8"]),
    ):  # fmt: skip
        assert roots(url) == found, url


def test_what_an_installed_distribution_brings_is_nobody_s_secret(tmp_path: Path) -> None:
    """A `.pth` file is told of only where no distribution has it on its list of files."""
    record = tmp_path / "good-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: good\nVersion: 1.0\n")
    (record / "RECORD").write_text(
        "good.pth,,\ngood-1.0.dist-info/METADATA,,\ninside/other.pth,,\n"
    )
    assert [each.name for each in distributions(path=[str(tmp_path)])] == ["good"]
    assert _owned(tmp_path) == {"good.pth"}
