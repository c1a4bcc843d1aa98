"""One attempt to hand a mail to the operator's mail server."""

import asyncio
import ssl
import time
from email.message import EmailMessage
from typing import Final, Literal

import msgspec

from gwd.alerts.queue import Outcome
from gwd.channels.text import one_line
from gwd.core.connection_trouble import ssl_error_of, tls_trouble
from gwd.core.errors import InvalidValue
from gwd.orgs import checks

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

    async def send(self, mail: EmailMessage, recipient: str) -> Outcome:
        """To one address, whatever the mail's header says. Never raises for what a mail server can do."""
        import aiosmtplib  # a twentieth of a second, for nodes that send mail only

        started_s = time.monotonic()
        server = self._server
        try:
            checks.email(recipient, param="address")
        except InvalidValue as error:
            # Of a version that took more: what separates addresses would name other recipients.
            return _failed(error.message, None, started_s)
        if self._tls is None and server.tls != "none":
            # Once, and in a thread: the authorities of the machine take longer to read than a mail to send.
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        try:
            await aiosmtplib.send(
                mail,
                recipients=[recipient],
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
            [first] = error.recipients
            return _failed(
                f"the mail server refused the address: {first.message}", first.code, started_s
            )
        except aiosmtplib.SMTPAuthenticationError as error:
            refused = "the mail server refused the user name or the password ([smtp] username, password_ref)"
            return _failed(f"{refused}: {error.message}", error.code, started_s)
        except aiosmtplib.SMTPResponseException as error:
            return _failed(f"the mail server answered: {error.message}", error.code, started_s)
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            handshake = ssl_error_of(error)
            said = str(error) or type(error).__name__
            if handshake is not None:
                said = tls_trouble(handshake)
            return _failed(f"the mail server {server.host}:{server.port}: {said}", None, started_s)
        return Outcome(error=None, response_status=250, latency_ms=_ms(started_s))


def _failed(error: str, status: int | None, started_s: float) -> Outcome:
    return Outcome(
        error=one_line(error)[:MAX_ERROR], response_status=status, latency_ms=_ms(started_s)
    )


def _ms(started_s: float) -> int:
    return int((time.monotonic() - started_s) * 1000)
