"""Where calls to addresses that users typed may go, from the node's settings."""

import ipaddress
import socket

from gwd.core.web_address import Address
from gwd.outbound.guard import Rules
from gwd.settings import Settings


def outbound_rules(settings: Settings) -> Rules:
    """The operator's networks, and the node's own listeners, which no such call may reach."""
    webhooks, server = settings.webhooks, settings.server
    listeners = [(server.host, server.port)]
    if server.metrics_port:
        listeners.append((server.metrics_host, server.metrics_port))
    return Rules(
        allow_networks=tuple(ipaddress.ip_network(text) for text in webhooks.allow_networks),
        allow_http=webhooks.allow_http,
        own_sockets=tuple(
            (address, port) for host, port in listeners for address in _addresses(host)
        ),
    )


def _addresses(host: str) -> list[Address]:
    """A listener may be given by name; one that does not resolve is told of when it is opened."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
