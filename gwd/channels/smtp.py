"""One attempt to hand a mail to the operator's mail server."""

import asyncio
import ssl
import time
from email.message import EmailMessage
from typing import Final, Literal

import msgspec

from gwd.alerts.queue import Outcome
from gwd.channels.text import one_line

TIMEOUT_S: Final = 20.0
MAX_ERROR: Final = 300


class MailServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where mail is handed over. Without a user name there is no login."""

    host: str
    port: int
    tls: Literal["starttls", "tls", "none"]
    sender: str
    username: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"MailServer(host={self.host!r}, port={self.port})"


class Mailer:
    """Sends through one server; a connection for each mail."""

    def __init__(self, server: MailServer) -> None:
        self.sender = server.sender
        self._server = server
        self._tls: ssl.SSLContext | None = None

    async def send(self, mail: EmailMessage) -> Outcome:
        """Never raises for what a mail server can do."""
        import aiosmtplib  # a twentieth of a second, for nodes that send mail only

        started_s = time.monotonic()
        server = self._server
        if self._tls is None and server.tls != "none":
            # Once, and in a thread: the authorities of the machine take longer to read than a mail to send.
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        try:
            await aiosmtplib.send(
                mail,
                hostname=server.host,
                port=server.port,
                username=server.username,
                password=server.password,
                use_tls=server.tls == "tls",
                start_tls=server.tls == "starttls",
                tls_context=self._tls,
                timeout=TIMEOUT_S,
            )
        except aiosmtplib.SMTPRecipientsRefused as error:
            refused = error.recipients[0]
            return _failed(
                f"the mail server refused the address: {refused.message}", refused.code, started_s
            )
        except aiosmtplib.SMTPResponseException as error:
            return _failed(f"the mail server answered: {error.message}", error.code, started_s)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            said = str(error) or type(error).__name__
            return _failed(f"the mail server {server.host}:{server.port}: {said}", None, started_s)
        return Outcome(error=None, response_status=250, latency_ms=_ms(started_s))


def _failed(error: str, status: int | None, started_s: float) -> Outcome:
    return Outcome(
        error=one_line(error)[:MAX_ERROR], response_status=status, latency_ms=_ms(started_s)
    )


def _ms(started_s: float) -> int:
    return int((time.monotonic() - started_s) * 1000)
