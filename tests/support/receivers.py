"""Receivers of alerts on the loopback: HTTP that answers what a test says, and a mail server that keeps its mails."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session


class Received:
    """One request as it came."""

    def __init__(self, head: bytes, body: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.path = lines[0].split(" ")[1]
        self.headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """Keeps every request; `answer` says the status of each, `hangs` keeps a path waiting without end.

    `delay_s` is how long the answer to each takes.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answer: Callable[[Received], bytes] = lambda _: b"204 No Content"
        self.hangs: set[str] = set()
        self.delay_s: Callable[[Received], float] = lambda _: 0.0
        self.port = 0
        self.connections = 0

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def on(self, path: str) -> list[Received]:
        """What came to one path."""
        return [each for each in self.received if each.path == path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            request = Received(head, b"")
            request.body = await reader.readexactly(int(request.headers["content-length"]))
            self.received.append(request)
            if request.path in self.hangs:
                await reader.read()
                return
            await asyncio.sleep(self.delay_s(request))
            status = self.answer(request)
            writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def open_receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


class MailBox:
    """What a mail server took. `refuses` are addresses that it does not know.

    `answers` are what it says to the next mails in place of its own answer, and so many it `drops` before any of that:
    the connection ends in the middle of the mail.
    """

    def __init__(self) -> None:
        self.mails: list[tuple[str, EmailMessage]] = []
        self.refuses: set[str] = set()
        self.logins: list[str] = []
        self.answers: list[str] = []
        self.drops = 0
        self.encrypted: list[bool] = []
        self.is_tls = False
        self.port = 0

    def to(self, address: str) -> list[EmailMessage]:
        return [mail for recipient, mail in self.mails if recipient == address]

    async def handle_RCPT(  # noqa: N802 - the library's names
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refuses:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - the library's names
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.drops:
            self.drops -= 1
            assert isinstance(server.transport, asyncio.WriteTransport)
            server.transport.abort()
            return "421 gone"
        if self.answers:
            return self.answers.pop(0)
        self.encrypted.append(session.ssl is not None or self.is_tls)
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails += [(address, mail) for address in envelope.rcpt_tos]
        return "250 kept"


@asynccontextmanager
async def open_mail_box(
    *, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[MailBox]:
    """A mail server, which speaks TLS from the first byte with `tls`.

    `options` are those of the library's SMTP, such as `authenticator` and `tls_context`.
    """
    box = MailBox()
    box.is_tls = tls is not None
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(box, loop=loop, **options), "127.0.0.1", 0, ssl=tls
    )
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
