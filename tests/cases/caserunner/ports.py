"""Ports for servers that a test starts.

Between asking for a port and serving on it there is time. So none is given twice in a process, and none lies where the
system takes the ports of outgoing connections from.
"""

import random
import socket
from typing import Final

HOST: Final = "127.0.0.1"
_candidates = iter(random.SystemRandom().sample(range(15_000, 32_000), 17_000))


def free_port() -> int:
    """A port that nobody listens on."""
    for port in _candidates:
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        return port
    raise RuntimeError("every port was given away once")
