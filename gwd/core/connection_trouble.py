"""What stands between us and a server that somebody named: a certificate that is not trusted, a redirect elsewhere.

One reading for vendors, hooks and endpoints, so that each error names the same thing in the same words.
"""

import ssl
from typing import Final
from urllib.parse import urljoin, urlsplit

from gwd.core.secret_patterns import hide_credentials

MAX_PLACE: Final = 300
# The numbers are OpenSSL's (X509_V_ERR_…).
_CERTIFICATE: Final = {
    9: "has a certificate that is not valid yet; check the clocks of both machines",
    10: "has a certificate that has expired",
    18: "has a self-signed certificate",
    19: "has a certificate whose authority is self-signed and not known here",
    2: "has a certificate of an authority that is not known here",
    20: "has a certificate of an authority that is not known here",
    21: "has a certificate of an authority that is not known here, or sends it without the intermediate ones",
    23: "has a certificate that was revoked",
    62: "has a certificate for another name",
    64: "has a certificate for another address",
}
_UNKNOWN_SIGNER: Final = frozenset((2, 18, 19, 20, 21))


def tls_trouble(error: ssl.SSLError, *, trust: str = "") -> str:
    """What a failed handshake was about, as a sentence without its subject. `trust` is the remedy where nobody here
    knows who signed the certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _CERTIFICATE.get(error.verify_code)
        text = known or f"has a certificate that is not accepted ({error.verify_message})"
        return f"{text}; {trust}" if trust and error.verify_code in _UNKNOWN_SIGNER else text
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
        return "does not speak TLS at this port; check whether its address begins with http://"
    if error.reason in ("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION"):
        return "speaks no TLS of version 1.2 or newer"
    named = f" ({error.reason.lower().replace('_', ' ')})" if error.reason else ""
    return f"did not finish the TLS handshake{named}"


def ssl_error_of(error: BaseException) -> ssl.SSLError | None:
    """The TLS error that a library wrapped in errors of its own."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        if isinstance(found, ssl.SSLError):
            return found
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return None


def is_redirect(status: int | None) -> bool:
    """A 304 counts as well: it answers a conditional request, which we never send, so it comes from another server."""
    return status is not None and 300 <= status < 400


def redirect_trouble(status: int, location: str | None, *, asked: str | None = None) -> str:
    """What was answered, as a sentence without its subject: where to, without what may be a secret in it.

    `asked` is the address of a hook, whose path may be its secret: then no path is shown.
    """
    place = shown_place(location or "") if asked is None else _origin(location or "", asked)
    where = f" to {place}" if place else ", without saying where to"
    return f"answered with a redirect (status {status}){where}"


def shown_place(location: str) -> str:
    """An address as it may be shown: no user, no query, nothing that looks like a credential; empty without one."""
    try:
        parts = urlsplit(location.strip())
    except ValueError:
        return ""
    origin = _origin(location, "")
    if not origin and (parts.scheme or parts.netloc):
        return ""
    shown = "".join(c for c in origin + parts.path if c.isprintable())
    return hide_credentials(shown)[:MAX_PLACE]


def _origin(location: str, asked: str) -> str:
    """`https://host:port` of where it leads; empty where that could not be called."""
    if not location:
        return ""
    try:
        parts = urlsplit(urljoin(asked, location.strip()))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host or parts.scheme not in ("http", "https", ""):
        return ""
    shown = f"[{host}]" if ":" in host else host
    scheme = f"{parts.scheme}://" if parts.scheme else "//"
    return "".join(
        c for c in f"{scheme}{shown}{'' if port is None else f':{port}'}" if c.isprintable()
    )
