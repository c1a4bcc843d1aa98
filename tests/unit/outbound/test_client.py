"""The client against real listeners on the loopback: what arrives, and that nothing arrives where it may not."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gwd.outbound import OutboundClient, Rules
from gwd.outbound import client as outbound_client
from gwd.outbound.guard import route
from tests.support.listener import LOOPBACK, Listener, answers, listener

__all__ = ["listener"]


def client(rules: Rules = LOOPBACK, *addresses: str) -> OutboundClient:
    return OutboundClient(
        rules, user_agent="gwd-webhooks/test", resolver=answers(*(addresses or ("127.0.0.1",)))
    )


async def test_the_bytes_are_sent_as_they_are_under_the_url_s_name(listener: Listener) -> None:
    url = f"http://hooks.example:{listener.port}/in?a=1"
    answer = await client().post(url, body=b'{"a": 1}', headers={"x-gw-event": "alert.test"})
    assert (answer.status, answer.succeeded, answer.error) == (204, True, None)
    head, _, body = listener.requests[0].partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert lines[0] == b"post /in?a=1 http/1.1"
    assert f"host: hooks.example:{listener.port}".encode() in lines
    assert b"x-gw-event: alert.test" in lines
    assert b"user-agent: gwd-webhooks/test" in lines
    assert body == b'{"a": 1}'


async def test_a_redirect_is_an_answer_and_is_not_followed(listener: Listener) -> None:
    listener.answer = (
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:%d/\r\ncontent-length: 0\r\n\r\n"
        % listener.port
    )
    answer = await client().post(f"http://a.example:{listener.port}/", body=b"", headers={})
    assert (answer.status, answer.succeeded) == (302, False)
    assert listener.connections == 1


async def test_a_name_that_changes_its_mind_is_not_followed_inside(listener: Listener) -> None:
    """Rebinding: resolved once, so the second answer is never asked for."""
    rebinding = client(Rules(), "93.184.216.34", "127.0.0.1")
    judged = await route(
        "https://rebind.example:8443/", rebinding.rules, answers("93.184.216.34", "127.0.0.1")
    )
    assert judged.addresses == ("93.184.216.34",)
    inner = client(Rules(), "127.0.0.1")
    answer = await inner.post(f"https://rebind.example:{listener.port}/", body=b"", headers={})
    assert (answer.status, answer.refused) == (None, True)
    assert listener.connections == 0


async def test_the_connection_goes_to_the_judged_address_whatever_the_name_says(
    listener: Listener,
) -> None:
    answer = await client(LOOPBACK, "127.0.0.1", "10.0.0.1").post(
        f"http://localhost.invalid:{listener.port}/", body=b"x", headers={}
    )
    assert answer.status == 204


async def test_the_next_address_is_tried_when_the_first_does_not_answer(listener: Listener) -> None:
    answer = await client(LOOPBACK, "127.0.0.2 127.0.0.1").post(
        f"http://two.example:{listener.port}/", body=b"x", headers={}
    )
    assert answer.status == 204


async def test_retry_after_is_read_up_to_an_hour(listener: Listener) -> None:
    for sent, read in ((b"90", 90), (b"999999", 3_600), (b"-1", None), (b"soon", None)):
        listener.answer = (
            b"HTTP/1.1 503 Busy\r\nretry-after: " + sent + b"\r\ncontent-length: 0\r\n\r\n"
        )
        answer = await client().post(f"http://a.example:{listener.port}/", body=b"", headers={})
        assert (answer.status, answer.retry_after_s) == (503, read)


async def test_a_long_answer_is_cut_and_dropped(listener: Listener) -> None:
    listener.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n" + b"x" * 200_000
    answer = await client().post(f"http://a.example:{listener.port}/", body=b"", headers={})
    assert answer.status == 200
    await asyncio.wait_for(listener.closed.wait(), 5)


async def test_a_silent_receiver_costs_no_more_than_the_deadline(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound_client, "TOTAL_TIMEOUT_S", 0.2)
    listener.answer = b""
    answer = await client().post(f"http://a.example:{listener.port}/", body=b"", headers={})
    assert (answer.status, answer.error) == (None, "no answer within 0.2 s")


@pytest.mark.parametrize(
    "answer", [b"", b"not http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"]
)
async def test_a_broken_receiver_is_an_error_not_an_exception(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = await client().post(f"http://a.example:{port}/", body=b"", headers={})
    server.close()
    await server.wait_closed()
    assert found.status is None
    assert found.error is not None
    assert not found.refused


async def test_nobody_listening_is_an_error(listener: Listener) -> None:
    answer = await client(LOOPBACK, "127.0.0.3").post(
        f"http://a.example:{listener.port}/", body=b"", headers={}
    )
    assert (answer.status, answer.refused) == (None, False)
    assert answer.error is not None


async def test_tls_is_spoken_and_the_certificate_is_checked(tmp_path: Path) -> None:
    seen: list[str] = []
    served, trusting = _contexts(tmp_path, "hooks.example")
    served.sni_callback = lambda _socket, name, _context: seen.append(name or "")
    made = Listener()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=served)
    port = server.sockets[0].getsockname()[1]
    trusted = OutboundClient(
        LOOPBACK, user_agent="test", resolver=answers("127.0.0.1"), tls=trusting
    )
    good = await trusted.post(f"https://hooks.example:{port}/", body=b"x", headers={})
    wrong_name = await trusted.post(f"https://other.example:{port}/", body=b"x", headers={})
    unknown = await client().post(f"https://hooks.example:{port}/", body=b"x", headers={})
    server.close()
    await server.wait_closed()
    assert (good.status, wrong_name.status, unknown.status) == (204, None, None)
    assert seen == ["hooks.example", "other.example", "hooks.example"]
    assert len(made.requests) == 1


def _contexts(directory: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a fresh certificate for the name, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = datetime(2020, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain = directory / "chain.pem"
    chain.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(chain)
    return served, ssl.create_default_context(cafile=str(chain))
