"""Notifications to the service manager (sd_notify): ready, stopping, and the watchdog's sign of life."""

import logging
import os
import socket
from collections.abc import Mapping

US_PER_S = 1_000_000

log = logging.getLogger("gwd")


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


def watchdog_gap_s(environment: Mapping[str, str]) -> float | None:
    """Seconds between two watchdog notifications, so that one may be lost; None where the manager has no watchdog."""
    limit_us = environment.get("WATCHDOG_USEC", "")
    if not limit_us.isdecimal() or int(limit_us) == 0:
        return None
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(limit_us) / US_PER_S / 3
