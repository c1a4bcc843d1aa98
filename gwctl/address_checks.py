"""What `gwctl doctor` looks at between this machine and the gateway: the certificate, streams that are held back.

The gateway sends pieces of a test stream some time apart (`/healthz/stream`); what holds answers back on the way hands
them over together. No key is sent.
"""

from datetime import datetime, timedelta
from typing import Any

from gwctl import connection_trouble
from gwctl.client import Gateway, Look
from gwctl.errors import CommandError
from gwctl.session import Session
from gwctl.text import mask_keys
from gwctl.time_input import utc_now

AT_ONCE_S = 0.25
"""The whole test stream takes three times as long; who holds nothing back never comes below."""

SOON = timedelta(days=21)
_UNREACHABLE = ("unreachable", "certificate")


def checks(session: Session, base_url: str | None) -> list[dict[str, Any]]:
    """Rows of the address in use, and of `base_url` where clients have another one."""
    url = session.settings.url()
    rows = _of(session, url, "")
    if base_url is not None and base_url.rstrip("/") != url.rstrip("/"):
        rows += _of(session, base_url, " of base_url")
    return rows


def _of(session: Session, url: str, which: str) -> list[dict[str, Any]]:
    try:
        look = _look(session, url)
    except CommandError as error:
        return [
            _row(
                f"streams{which}",
                "warning",
                f"{mask_keys(url)} does not answer this machine: {error.why or error.what}",
                "see that clients reach it; [server] base_url is what they are told to use",
            )
        ]
    rows = [] if look is None else [_streams(look, which)]
    if look is not None and look.ends is not None:
        rows.append(_certificate(look.ends, which))
    return rows


def _look(session: Session, url: str) -> Look | None:
    """None where no test stream is sent: by an older gateway, or by a proxy that passes only the API on."""
    gateway = Gateway(
        url,
        key="",
        timeout_s=session.settings.timeout_s(),
        debug=session.out.debug if session.flags.debug else None,
        show_waiting=not session.flags.quiet and not session.flags.debug,
        ca_file=session.settings.get("ca_file").value,
    )
    try:
        for root in connection_trouble.roots(url):
            try:
                return gateway.look(f"{root}/healthz/stream")
            except CommandError as error:
                if error.code in _UNREACHABLE:
                    raise
    finally:
        gateway.close()
    return None


def _streams(look: Look, which: str) -> dict[str, Any]:
    spread_s = look.pieces_s[-1] - look.pieces_s[0] if look.pieces_s else 0.0
    if spread_s >= AT_ONCE_S:
        return _row(f"streams{which}", "ok", "each piece of a stream arrives when it is sent")
    return _row(
        f"streams{which}",
        "warning",
        "the pieces of a stream arrive together: something on the way holds them back",
        "switch off the proxy's buffering (nginx: proxy_buffering off), and its compression of answers",
    )


def _certificate(ends: datetime, which: str) -> dict[str, Any]:
    left = ends - utc_now()
    message = f"good for this address until {ends:%Y-%m-%d %H:%M} UTC"
    if left >= SOON:
        return _row(f"certificate{which} from here", "ok", message)
    return _row(
        f"certificate{which} from here",
        "warning",
        message,
        "renew it where TLS ends: at the proxy, or [server] tls_cert and gwctl server reload",
    )


def _row(name: str, state: str, message: str, do: str = "") -> dict[str, Any]:
    return {"name": name, "state": state, "message": message, "do": do}
