"""`gwctl webhook listen`: a receiver on this machine that checks signatures, prints events and can pass them on."""

import hashlib
import hmac
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Annotated, Any

from gwctl import jsontext
from gwctl.commands.webhook import webhook
from gwctl.errors import CommandError, usage
from gwctl.secret_input import read_secret
from gwctl.session import Session
from gwctl.text import clean_line
from gwctl.values import flag, opt, whole

TOLERANCE_S = 300
MAX_BODY = 1_000_000
FORWARD_S = 10.0
PASSED_ON = ("content-type", "x-gw-event", "x-gw-delivery-id", "x-gw-timestamp", "x-gw-signature")


@webhook.verb(
    "listen",
    "gwctl webhook listen --port 9000",
    "gwctl webhook listen --secret-file signing.secret --forward http://127.0.0.1:3000/hook",
)
def listen(
    session: Session,
    port: Annotated[int, whole("--port", "PORT", "Port on 127.0.0.1; 9000.", most=65_535)] = 9000,
    count: Annotated[
        int | None, whole("--count", "N", "Stop after so many genuine events.")
    ] = None,
    forward: Annotated[
        str | None,
        opt("--forward", "URL", "Pass genuine events on, as they are, and answer what it does."),
    ] = None,
    secret_stdin: Annotated[bool, flag("--secret-stdin", "Read the secret from stdin.")] = False,
    secret_file: Annotated[
        Path | None, opt("--secret-file", "FILE", "Read the signing secret from a file.")
    ] = None,
) -> None:
    """Receive alerts on 127.0.0.1, check their signatures and print them.

    The gateway must allow the address: [webhooks] allow_networks = ["127.0.0.0/8"] and
    allow_http = true in gwd.toml. Then: gwctl webhook add http://127.0.0.1:9000/, and try it
    with gwctl webhook trigger.
    """
    if forward is not None and not forward.startswith(("http://", "https://")):
        raise usage(f"--forward {forward!r} is no address", do="write http://127.0.0.1:3000/hook")
    secret = read_secret("signing secret", stdin=secret_stdin, file=secret_file)
    genuine = 0

    def heard() -> None:
        nonlocal genuine
        genuine += 1

    try:
        server = HTTPServer(("127.0.0.1", port), _handler(session, secret, forward, heard))
    except OSError as error:
        raise CommandError(
            f"port {port} cannot be opened: {error.strerror or error}",
            code="port",
            do="choose another with --port",
        ) from None
    session.out.note(f"listening on http://127.0.0.1:{server.server_port}")
    with server:
        while count is None or genuine < count:
            server.handle_request()


def verdict(secret: str, timestamp: str, body: bytes, signature: str, now: float) -> str:
    """Empty when the delivery is genuine and fresh, else what is wrong with it.

    While a secret is replaced there are two signatures, with a comma between; one that is right is enough.
    """
    if not (timestamp.isascii() and timestamp.isdigit()) or abs(now - int(timestamp)) > TOLERANCE_S:
        return "the timestamp is missing or older than five minutes"
    signed = f"{timestamp}.".encode() + body
    expected = "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    found = [
        hmac.compare_digest(expected.encode(), one.strip().encode()) for one in signature.split(",")
    ]
    return "" if any(found) else "wrong signature"


def _length(text: str) -> int:
    """The length a sender announced; more than is ever read where it is no number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else MAX_BODY + 1


def _handler(
    session: Session, secret: str, forward: str | None, heard: Callable[[], None]
) -> type[BaseHTTPRequestHandler]:
    class Receiver(BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self) -> None:
            length = _length(self.headers.get("content-length") or "0")
            if length > MAX_BODY:
                self._answer(413)
                return
            body = self.rfile.read(length)
            wrong = verdict(
                secret,
                self.headers.get("x-gw-timestamp", ""),
                body,
                self.headers.get("x-gw-signature", ""),
                time.time(),
            )
            if wrong:
                self._answer(400)
                session.out.note(f"refused: {wrong}", again=True)
                return
            heard()
            _print(session, body)
            self._answer(204 if forward is None else self._passed_on(forward, body))

        def _passed_on(self, url: str, body: bytes) -> int:
            """What the other receiver answers; 502 where it does not."""
            import httpx

            headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
            try:
                status = httpx.post(
                    url, content=body, headers=headers, timeout=FORWARD_S
                ).status_code
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                session.out.note(f"{url} did not answer: {error}", again=True)
                return 502
            session.out.note(f"{url} answered {status}", again=True)
            return status

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet: what was received is printed, not logged."""

    return Receiver


def _print(session: Session, body: bytes) -> None:
    try:
        event = jsontext.loads(body)
    except ValueError:
        session.out.note("refused: the body is not JSON", again=True)
        return
    if not isinstance(event, dict):
        session.out.note("refused: the body is no event", again=True)
        return
    if session.out.shape.machine:
        session.out.data(event)
    else:
        session.out.line(_in_words(event))
    session.out.flush()  # whoever reads from a pipe is told now


def _in_words(event: dict[str, Any]) -> str:
    parts = (event.get("severity"), event.get("type"), event.get("title"), event.get("message"))
    return "   ".join(clean_line(str(part)) for part in parts if part)
