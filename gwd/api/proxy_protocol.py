"""The PROXY protocol, versions 1 and 2: what a proxy says of a connection's client before the client's first byte.

Source: haproxy.org/download/3.0/doc/proxy-protocol.txt, read on 2026-11-29.
"""

import ipaddress
import struct
from typing import Final

import msgspec

MAX_BYTES: Final = 4_096
"""More than any proxy says: a header in binary form may carry fields that nobody here reads."""
_SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_WORD: Final = b"PROXY "
_MAX_LINE: Final = 107
_LENGTH_AT: Final = 14
_HEAD: Final = 16
_LOCAL: Final = 0x20
_PROXIED: Final = 0x21
_TCP4: Final = 0x11
_TCP6: Final = 0x21
_ADDRESS_BYTES: Final = {_TCP4: 4, _TCP6: 16}
_BOTH_PORTS: Final = 4


class NoIntroductionError(Exception):
    """The connection does not begin with a header of the protocol."""


class Introduction(msgspec.Struct, frozen=True):
    """`length` bytes that come first; `address` is the client's, None where the proxy speaks for itself."""

    length: int
    address: str | None


def read(data: bytes) -> Introduction | None:
    """The header at the beginning of `data`; None until it is all there. Raises NoIntroductionError."""
    if _SIGNATURE.startswith(data[: len(_SIGNATURE)]):
        return _binary(data)
    if _WORD.startswith(data[: len(_WORD)]):
        return _line(data)
    raise NoIntroductionError


def _line(data: bytes) -> Introduction | None:
    """PROXY TCP4 192.0.2.7 192.0.2.1 56324 443"""
    end = data.find(b"\r\n", 0, _MAX_LINE)
    if end < 0:
        if len(data) >= _MAX_LINE:
            raise NoIntroductionError
        return None
    words = data[:end].split(b" ")
    if words[1] == b"UNKNOWN":
        return Introduction(end + 2, None)
    if len(words) != len(("PROXY", "TCP4", "client", "server", "port", "port")):
        raise NoIntroductionError
    try:
        address = ipaddress.ip_address(words[2].decode())
    except ValueError:
        raise NoIntroductionError from None
    if words[1] != b"TCP%d" % address.version:
        raise NoIntroductionError
    return Introduction(end + 2, str(address))


def _binary(data: bytes) -> Introduction | None:
    if len(data) < _HEAD:
        return None
    command, family = data[12], data[13]
    length = _HEAD + struct.unpack_from("!H", data, _LENGTH_AT)[0]
    if command not in (_LOCAL, _PROXIED) or length > MAX_BYTES:
        raise NoIntroductionError
    if len(data) < length:
        return None
    size = _ADDRESS_BYTES.get(family)
    if command == _LOCAL or size is None:
        return Introduction(length, None)
    if length < _HEAD + 2 * size + _BOTH_PORTS:
        raise NoIntroductionError
    return Introduction(length, str(ipaddress.ip_address(data[_HEAD : _HEAD + size])))
