"""Notifications to the service manager (sd_notify): ready, stopping, and the watchdog's sign of life."""

import logging
import os
import socket
from collections.abc import Mapping

US_PER_S = 1_000_000
FIRST_HANDED = 3
"""The descriptor of the first socket that a manager hands over (sd_listen_fds)."""

_NO_SOCKET = "what the service manager hands over is no listening TCP socket; ListenStream in gwd.socket is HOST:PORT"

log = logging.getLogger("gwd")


class HandedSocketError(RuntimeError):
    """The socket that was handed over cannot be used; the text says what to do."""


def notify(environment: Mapping[str, str], state: str) -> None:
    """One datagram to the socket that the manager named; nothing where there is no manager."""
    address = environment.get("NOTIFY_SOCKET")
    if not address:
        return
    shown = address
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(address)
            sender.sendall(state.encode())
    except OSError as error:
        # A notification that cannot be sent does not stop the node.
        log.warning("NOTIFY_SOCKET %s: %s was not sent: %s", shown, state, error.strerror or error)


def handed_socket(environment: Mapping[str, str]) -> socket.socket | None:
    """The listening socket that the manager made; None where it made none for this process.

    Raises HandedSocketError for several of them, and for one that does not listen for TCP connections.
    """
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return None
    count = environment.get("LISTEN_FDS", "")
    if count != "1":
        raise HandedSocketError(
            f"the service manager hands over {count or 'no'} sockets; name one ListenStream in gwd.socket"
        )
    try:
        handed = socket.socket(fileno=FIRST_HANDED)
    except OSError:
        raise HandedSocketError(_NO_SOCKET) from None
    is_listening = handed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if not is_listening or handed.family not in (socket.AF_INET, socket.AF_INET6):
        handed.close()
        raise HandedSocketError(_NO_SOCKET)
    handed.set_inheritable(False)
    return handed


def watchdog_gap_s(environment: Mapping[str, str]) -> float | None:
    """Seconds between two watchdog notifications, so that one may be lost; None where the manager has no watchdog."""
    limit_us = environment.get("WATCHDOG_USEC", "")
    if not limit_us.isdecimal() or int(limit_us) == 0:
        return None
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(limit_us) / US_PER_S / 3
