"""Which addresses may be called: https on public addresses, and whatever the operator's networks allow besides.

The list is our own because the standard library calls multicast, NAT64 and 6to4 addresses global. Names are judged by
what they resolve to, never by how they are spelled.
"""

import asyncio
import importlib
import ipaddress
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from gwd.core.errors import InvalidValue
from gwd.core.web_address import Address, WebAddressError, read_web_address, written_out

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[list[str]]]

PORTS: Final = (443, 8443)
RESOLVE_TIMEOUT_S: Final = 5.0

_FORBIDDEN: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/96",
        "::ffff:0:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
        "2002::/16",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)


class AddressRefused(Exception):
    """The guard does not let this call out; the text says why and never shows what a name resolved to."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator allows besides public https: networks, plain http inside them; and never the node itself.

    `own_sockets` are the addresses and ports on which the node listens; 0.0.0.0 and :: are all of the machine's.
    """

    allow_networks: tuple[Network, ...] = ()
    allow_http: bool = False
    own_sockets: tuple[tuple[Address, int], ...] = ()


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A URL whose host was resolved and judged: connect to one of `addresses`, say `host` in TLS and Host."""

    url: str
    host: str
    port: int
    addresses: tuple[str, ...]


async def resolve(host: str, port: int) -> list[str]:
    """What the system's resolver answers, off the loop."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
    )
    return [str(entry[4][0]) for entry in found]


async def route(url: str, rules: Rules, resolver: Resolve = resolve) -> Route:
    """Parse, resolve once, judge every answer. Raises AddressRefused."""
    if "httpx" not in sys.modules:
        await asyncio.to_thread(importlib.import_module, "httpx")  # the other requests do not wait
    scheme, host, port = _parsed(url)
    try:
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            answers = await resolver(host, port)
    except (OSError, TimeoutError, UnicodeError):
        raise AddressRefused(f"{host} does not resolve") from None
    addresses = [_address(answer) for answer in answers]
    if not addresses:
        raise AddressRefused(f"{host} does not resolve")
    _judge(scheme, host, port, addresses, rules)
    return Route(url=url, host=host, port=port, addresses=tuple(dict.fromkeys(map(str, addresses))))


async def check_url(url: str, rules: Rules, *, param: str, resolver: Resolve = resolve) -> None:
    """For registration: raises InvalidValue naming `param` when the address may not be called."""
    try:
        await route(url, rules, resolver)
    except AddressRefused as refused:
        raise InvalidValue(f"{param}: {refused}", param=param) from None


def check_literal(url: str, rules: Rules, *, param: str) -> None:
    """What can be told without a resolver: the shape, and an address that is written out, however it is spelled.

    Raises InvalidValue naming `param`.
    """
    try:
        scheme, host, port = _parsed(url)
        address = written_out(host)
        if address is not None:
            _judge(scheme, host, port, [_plain(address)], rules)
    except AddressRefused as refused:
        raise InvalidValue(f"{param}: {refused}", param=param) from None


def allowed(address: Address, port: int, rules: Rules) -> bool:
    """Whether a connection may go there; the operator's networks are, the node's own listeners never."""
    plain = _plain(address)
    if any(_is_own(plain, port, own, own_port) for own, own_port in rules.own_sockets):
        return False
    if _inside(plain, rules.allow_networks):
        return True
    return not _inside(plain, _FORBIDDEN)


def _judge(scheme: str, host: str, port: int, addresses: list[Address], rules: Rules) -> None:
    inside = all(_inside(address, rules.allow_networks) for address in addresses)
    if scheme == "http" and not (inside and rules.allow_http):
        raise AddressRefused("only https addresses may be called")
    if port not in PORTS and not inside:
        raise AddressRefused(f"port {port} may not be called; use 443 or 8443")
    if not all(allowed(address, port, rules) for address in addresses):
        raise AddressRefused(
            f"{host} is not a public address; the operator can allow its network in gwd.toml"
            " ([webhooks] allow_networks)"
        )


def _parsed(url: str) -> tuple[str, str, int]:
    """Scheme, host and port, as the client that calls reads them too."""
    import httpx  # a tenth of a second, for nodes that have hooks only

    try:
        read = read_web_address(url)
        parsed = httpx.URL(url)
    except WebAddressError as error:
        raise AddressRefused(f"the address {error}") from None
    except httpx.InvalidURL:
        raise AddressRefused("must be an https address such as https://example.com/hook") from None
    if _canonical(parsed.host) != _canonical(read.host):  # what is judged is what is called
        raise AddressRefused("the address has a host that can be read in two ways")
    return parsed.scheme, read.host, read.port


def _canonical(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower().rstrip(".")


def _is_own(address: Address, port: int, own: Address, own_port: int) -> bool:
    if port != own_port:
        return False
    return address == own or (own.is_unspecified and _is_of_this_machine(address))


def _is_of_this_machine(address: Address) -> bool:
    """Only an address of this machine can be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _address(text: str) -> Address:
    return _plain(ipaddress.ip_address(text.partition("%")[0]))


def _plain(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _inside(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks if network.version == address.version)
