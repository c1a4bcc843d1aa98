"""What stands between gwctl and the gateway: a redirect, another server's page, a certificate, a path in front."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from gwctl.errors import UNREACHABLE, CommandError, usage
from gwctl.files import read_text
from gwctl.text import mask_keys

_API = ("/api/v1", "/v1")
_ORIGIN = "gwctl config list --show-origin tells where the address comes from"
# The numbers are OpenSSL's (X509_V_ERR_…).
_CERTIFICATE = {
    9: ("is not valid yet", "check the clocks of both machines"),
    10: ("has expired", "renew the gateway's certificate"),
    62: ("is for another name", "use the name that the certificate is for"),
    64: ("is for another address", "use the name that the certificate is for"),
}
_UNKNOWN_SIGNER = {
    18: "is self-signed",
    19: "is of an authority of its own, which is not known here",
}
_TRUST = (
    "if it is the right one, save the certificate of its authority as a PEM file and name it: "
    "gwctl config set ca_file FILE, or GWCTL_CA_FILE"
)


def is_redirect(status: int) -> bool:
    return 300 <= status < 400


def redirected(url: str, asked: str, status: int, location: str, path: str) -> CommandError:
    """The failure where the address leads elsewhere; `asked` is the address of the request, `url` the base."""
    place = _place(asked, location)
    base = place.removesuffix(path) if path.startswith("/") and place.endswith(path) else ""
    if base and base != url.rstrip("/") and not _loses_tls(url, base):
        do = f"gwctl config set url {base}, or --url {base}"
    elif base and base != url.rstrip("/"):
        do = "it leads from https to plain http, so keys would travel unprotected: ask who runs it"
    else:
        do = "something in front of the gateway answers: give the address of the gateway itself"
    return CommandError(
        f"{mask_keys(url)} redirects{f' to {mask_keys(place)}' if place else ''} instead of answering",
        exit_code=UNREACHABLE,
        code="redirected",
        why=f"status {status}; a key is not sent on to another address",
        do=f"{do}; {_ORIGIN}",
    )


def a_web_page(url: str, status: int, method: str, path: str) -> CommandError:
    """The failure where a page for people stands in place of the API's answer."""
    return CommandError(
        f"a web page answered in place of the gateway at {mask_keys(url)}",
        exit_code=UNREACHABLE,
        code=f"http_{status}",
        why=f"{method} {path} answered {status} with a page for people",
        do="check that the URL ends in /api/v1 and leads past logins and portals: gwctl config get url",
    )


def is_a_web_page(headers: Mapping[str, str], content: bytes) -> bool:
    kind = headers.get("content-type", "").lower()
    return "html" in kind or content.lstrip()[:1] == b"<"


def untrusted(url: str, error: BaseException) -> CommandError | None:
    """The failure of a TLS handshake, named; None where that is not what failed."""
    found = _tls_error(error)
    if found is None:
        return None
    if not isinstance(found, ssl.SSLCertVerificationError):
        speaks_no_tls = found.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")
        return CommandError(
            f"the gateway at {mask_keys(url)} "
            + (
                "does not speak TLS at this port"
                if speaks_no_tls
                else "broke off the TLS handshake"
            ),
            exit_code=UNREACHABLE,
            code="unreachable",
            why=(found.reason or "no details").lower().replace("_", " "),
            do=f"check whether the address begins with http:// and its port; {_ORIGIN}",
        )
    what, do = _CERTIFICATE.get(found.verify_code, ("", ""))
    if not what:
        what, do = (
            _UNKNOWN_SIGNER.get(found.verify_code, "is of an authority not known here"),
            _TRUST,
        )
    return CommandError(
        f"the certificate of {mask_keys(url)} {what}",
        exit_code=UNREACHABLE,
        code="certificate",
        why=str(found.verify_message),
        do=do,
    )


def trusting(context: ssl.SSLContext, file: str) -> ssl.SSLContext:
    """The context with the certificates of a PEM file beside the public authorities."""
    text = read_text(Path(file).expanduser(), "ca_file")
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise usage(
            f"{file} holds no certificate that can be read",
            do="give a PEM file, with BEGIN CERTIFICATE in it: gwctl config set ca_file FILE",
        ) from None
    return context


def compare(error: CommandError, ours: str, theirs: str | None) -> None:
    """A path that the gateway does not know: nothing is said of versions but what they are."""
    if theirs is None or "unknown" in (ours, theirs):
        return
    if ours == theirs:
        error.why = f"gwctl and the gateway are both version {ours}"
        error.do = "check what stands in front of the gateway: it changes the path"
    else:
        error.why = f"gwctl is {ours}, the gateway {theirs}"
        error.do = f"use the gwctl of version {theirs}, or install {ours} on the node"


def roots(url: str) -> list[str]:
    """Where the health pages may be: beside the API's path behind a prefix, then at the host's root."""
    scheme, _, rest = url.partition("://")
    host = f"{scheme}://{rest.partition('/')[0]}"
    beside = next((url.removesuffix(end) for end in _API if url.endswith(end)), host)
    return [beside] if beside == host else [beside, host]


def _place(asked: str, location: str) -> str:
    """Where it leads, without user, query and whatever is no address."""
    try:
        parts = urlsplit(urljoin(asked, location.strip()))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host or not location.strip():
        return ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{'' if port is None else f':{port}'}{parts.path}"[:300]


def _loses_tls(before: str, after: str) -> bool:
    return before.startswith("https:") and not after.startswith("https:")


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    for _ in range(10):
        if error is None or isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None
