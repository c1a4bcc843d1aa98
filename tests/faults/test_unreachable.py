"""Vendors that cannot be reached: refused, unknown, untrusted, or no HTTP at all."""

import asyncio
import itertools
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cases.caserunner.ports import free_port
from tests.faults.bills import billed
from tests.faults.clients import CHAT, Seen
from tests.support.node import PRICES, Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {"GWD_TIMEOUTS_CONNECT_S": "1", "GWD_TIMEOUTS_FIRST_EVENT_S": "2"}
Served = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Listen = Callable[..., Awaitable[int]]

_numbers = itertools.count(1)


@pytest_asyncio.fixture(loop_scope="module")
async def listen() -> AsyncIterator[Listen]:
    """Start a server on the loopback that treats each connection so; its port."""
    servers: list[asyncio.Server] = []

    async def start(serve: Served, context: ssl.SSLContext | None = None) -> int:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()


def self_signed(directory: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / "self-signed.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def model_at(node: Gateway, base_url: str) -> str:
    """A new model whose only endpoint is a vendor at this address."""
    slug = f"vendor-{next(_numbers)}"  # not from the address: a port comes back after its server is gone
    model = f"demo/{slug}"
    await node.add_provider(slug, "openai_chat", base_url)
    await node.add_model(model, pricing=PRICES)
    await node.add_endpoint(model, slug, "gpt-demo")
    return model


async def ask(node: Gateway, base_url: str, *, stream: bool) -> tuple[int, str, int]:
    """Status and reason of a request to a vendor at this address, and what it cost."""
    seen, bill = await billed(node, CHAT, stream=stream, model=await model_at(node, base_url))
    assert bill.record["error"]["code"] in ("upstream_unavailable", "upstream_error")
    [fallback] = bill.record["gateway_metadata"]["routing"]["fallbacks"]
    return seen.status, fallback["reason"], bill.charged_nano


async def test_refused_connection(node: Gateway, stream: bool) -> None:
    found = await ask(node, f"http://127.0.0.1:{free_port()}/v1", stream=stream)
    assert found == (503, "network", 0)


async def test_name_that_nobody_knows(node: Gateway, stream: bool) -> None:
    found = await ask(node, "https://nobody.invalid/v1", stream=stream)
    assert found == (503, "network", 0)


async def test_self_signed_certificate_is_not_accepted(
    node: Gateway, stream: bool, listen: Listen, tmp_path: Path
) -> None:
    port = await listen(hang_up, self_signed(tmp_path))
    found = await ask(node, f"https://localhost:{port}/v1", stream=stream)
    assert found == (503, "network", 0)


async def test_plain_http_where_tls_was_expected(
    node: Gateway, stream: bool, listen: Listen
) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    port = await listen(plain)
    found = await ask(node, f"https://localhost:{port}/v1", stream=stream)
    assert found == (503, "network", 0)


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", (502, "upstream_error", 0)),
        (b"HTTP/1.1 2000 Odd\r\n\r\n", (502, "upstream_error", 0)),
        (b"HTTP/1.1 000 Odd\r\n\r\n", (502, "upstream_error", 0)),
        (b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", (502, "upstream_error", 0)),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 20_000 + b"\r\n\r\n", (502, "upstream_error", 0)),
        (b"", (503, "network", 0)),
    ],
    ids=["another protocol", "odd status", "status 000", "odd header", "endless header", "nothing"],
)
async def test_something_that_is_no_http(
    node: Gateway, stream: bool, listen: Listen, said: bytes, reported: tuple[int, str, int]
) -> None:
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        writer.close()

    port = await listen(odd)
    found = await ask(node, f"http://127.0.0.1:{port}/v1", stream=stream)
    assert found == reported


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{",
    ],
    ids=["odd chunk", "short body"],
)
async def test_http_that_breaks_inside_the_body(
    node: Gateway, stream: bool, listen: Listen, said: bytes
) -> None:
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        writer.close()

    port = await listen(odd)
    found = await ask(node, f"http://127.0.0.1:{port}/v1", stream=stream)
    assert found == (503, "network", 0)


@pytest.mark.alone
async def test_listener_that_never_takes_the_connection_in(
    node: Gateway, stream: bool, listen: Listen
) -> None:
    """TLS to somebody who is silent: connecting has a limit of its own, not that of the first event."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    port = await listen(silent)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    found = await ask(node, f"https://localhost:{port}/v1", stream=stream)
    assert found == (503, "timeout", 0)
    assert loop.time() - began_s < 1.9


ENDED = (
    b'data: {"choices":[{"index":0,"delta":{"content":"All of it"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}}\n\n'
)
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@pytest.mark.parametrize("chunked", [False, True], ids=["without a length", "in chunks"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_connection_that_is_cut_behind_the_last_word_has_done_its_work(
    node: Gateway, listen: Listen, chunked: bool, reset: bool
) -> None:
    """The end after a finish reason and usage counts as success, without `[DONE]` too."""
    seen, charged_nano = await cut_after(node, listen, ENDED, chunked=chunked, reset=reset)
    assert (seen.text, seen.ended_well) == ("All of it", True)
    assert charged_nano == 10 * 2_000 + 3 * 8_000


@pytest.mark.parametrize("chunked", [False, True], ids=["without a length", "in chunks"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_connection_that_is_cut_before_the_last_word_has_not(
    node: Gateway, listen: Listen, chunked: bool, reset: bool
) -> None:
    first, _, _ = ENDED.partition(b"\n\n")
    seen, charged_nano = await cut_after(
        node, listen, first + b"\n\n", chunked=chunked, reset=reset
    )
    assert (seen.text, seen.ended_well) == ("All of it", False)
    assert seen.error["code"] == "upstream_error"
    assert charged_nano > 0


async def cut_after(
    node: Gateway, listen: Listen, said: bytes, *, chunked: bool, reset: bool
) -> tuple[Seen, int]:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if chunked:
            writer.write(STREAM + b"transfer-encoding: chunked\r\n\r\n")
            writer.write(b"%x\r\n%b\r\n" % (len(said), said))
        else:
            writer.write(STREAM + b"connection: close\r\n\r\n" + said)
        await writer.drain()
        await asyncio.sleep(0.1)
        if reset:
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            writer.transport.abort()
        else:
            writer.close()

    port = await listen(cut)
    model = await model_at(node, f"http://127.0.0.1:{port}/v1")
    seen, bill = await billed(node, CHAT, stream=True, model=model)
    return seen, bill.charged_nano
