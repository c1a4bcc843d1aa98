"""Whom a request comes from where proxies stand in front: what trusted ones passed on, and nobody else's word.

The header is read from its end: each proxy adds whom it heard from behind what it was sent, so the last address that is
no trusted proxy's is the client's, and whatever stands before it anybody can have written.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from sanic.compat import Header

from gwd.settings import UNIX

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

CLIENT_BITS: Final = 64
_FOR: Final = re.compile(r'(?:^|[;,])\s*for\s*=\s*(?:"([^",;]*)"|([^",;\s]*))', re.IGNORECASE)
_PORT: Final = re.compile(r"\[([^\]]*)\](?::\d*)?|([^:]*):\d*")


class Proxies:
    """The proxies in front of one listener, and the header in which they pass on whom they heard from.

    Whoever comes over the Unix socket has no address, and is trusted where UNIX is among them.
    """

    def __init__(self, trusted: Iterable[str], header: str) -> None:
        """`trusted` are addresses, networks and UNIX, `header` is x-forwarded-for or forwarded."""
        names = set(trusted)
        self._trusts_unix = UNIX in names
        self._networks = [ipaddress.ip_network(name) for name in names - {UNIX}]
        self._header = header

    def trusts(self, address: str) -> bool:
        """Whether a peer is a trusted proxy."""
        if not address:
            return self._trusts_unix
        if not self._networks:
            return False
        found = _address(address)
        return found is not None and self._is_trusted(found)

    def client(self, peer: str, headers: Header) -> str:
        """Whom the trusted proxy at `peer` passes on: the last address that is no proxy's, or the last that is one."""
        client = peer
        for hop in reversed(self._hops(headers)):
            found = _address(hop)
            if found is None:  # unknown or hidden: no more is known than the proxy that says so
                break
            client = str(found)
            if not self._is_trusted(found):
                break
        return client

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def _hops(self, headers: Header) -> list[str]:
        text = ",".join(headers.getall(self._header, ()))
        if self._header == "forwarded":
            return [quoted or plain for quoted, plain in _FOR.findall(text)]
        return text.split(",") if text else []


def one_client(address: str) -> str:
    """What the addresses of one client have in common: of IPv6 the network of 64 bits that a client has for itself."""
    if ":" not in address:
        return address
    found = _address(address)
    if not isinstance(found, ipaddress.IPv6Address):
        return str(found or address)
    return str(ipaddress.ip_network((int(found) >> CLIENT_BITS << CLIENT_BITS, CLIENT_BITS)))


def _address(text: str) -> Address | None:
    """An address as headers and sockets write it, with or without its port; None for anything else."""
    text = text.strip()
    with_port = _PORT.fullmatch(text)
    if with_port is not None:
        text = with_port[1] or with_port[2] or ""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
