"""The one reading of an http address that somebody typed: of a provider, an endpoint or a hook.

Parsers disagree about odd addresses, and where two disagree a check of the one lets through what the other calls. So
this one is strict: whatever could be read in two ways is refused when it is set.
"""

import ipaddress
import re
import socket
from typing import Final
from urllib.parse import urlsplit

import msgspec

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS: Final = {"https": 443, "http": 80}
MAX_LENGTH: Final = 2_048
_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
_AUTHORITY: Final = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?")


class WebAddressError(ValueError):
    """The text is no address that can be called; it says what is wrong with which part, never quoting a password."""


class WebAddress(msgspec.Struct, frozen=True, kw_only=True):
    """`host` is in lower case, without brackets and final dot; `port` is the scheme's where none was given."""

    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def origin(self) -> str:
        """Scheme, host and port, always all three: two addresses of one origin have the same."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def read_web_address(text: str) -> WebAddress:
    """Raises WebAddressError unless `text` is an http or https address that every parser reads alike."""
    if len(text) > MAX_LENGTH:
        raise WebAddressError(f"is longer than {MAX_LENGTH} characters")
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise WebAddressError(
            "must be plain ASCII without spaces and backslashes; write other characters in their encoded form"
        )
    try:
        parts = urlsplit(text)
    except ValueError:
        raise WebAddressError("has a host in brackets that is no IPv6 address") from None
    if parts.scheme not in DEFAULT_PORTS or not text.lower().startswith(f"{parts.scheme}://"):
        raise WebAddressError("must begin with https://")
    if "@" in parts.netloc:
        raise WebAddressError("must not carry a user name or password; a secret has its own field")
    if "#" in text:
        raise WebAddressError("must not have a part behind #")
    if "%" in parts.netloc:
        raise WebAddressError("has an encoded character in its host; write the host's plain name")
    authority = _AUTHORITY.fullmatch(parts.netloc)
    if authority is None:
        raise WebAddressError("must have a host and, behind a colon, at most a port number")
    return WebAddress(
        scheme=parts.scheme,
        host=_host(authority["host"]),
        port=_port(authority["port"], parts.scheme),
        path=parts.path,
        query=parts.query,
    )


def origin_of(text: str) -> str | None:
    """The origin of an address that was stored; None for one that earlier versions took and that is none."""
    try:
        return read_web_address(text).origin
    except WebAddressError:
        return None


def written_out(host: str) -> Address | None:
    """The address that a host is without asking anybody; resolvers take 127.1, 0x7f000001 and the like as well."""
    if host == "localhost" or host.endswith(".localhost"):
        return ipaddress.ip_address("127.0.0.1")
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError:
            raise WebAddressError("has a host in brackets that is no IPv6 address") from None
    if not text:
        raise WebAddressError("has no host")
    if not _NAME.fullmatch(text):
        raise WebAddressError("has a host that is no name and no address")
    return text.lower().rstrip(".")


def _port(text: str | None, scheme: str) -> int:
    if text is None:
        return DEFAULT_PORTS[scheme]
    port = int(text)
    if not 0 < port < 65_536:
        raise WebAddressError(f"has port {text}; a port is a number from 1 to 65535")
    return port
