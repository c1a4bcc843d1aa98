"""Ports for servers that a test starts.

Between asking for a port and serving on it there is time. So none is given twice in a process, and none lies where the
system takes the ports of outgoing connections from. Processes that test side by side share no port either.
"""

import os
import random
import socket
from typing import Final

HOST: Final = "127.0.0.1"
SHARES: Final = 8
_share = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % SHARES
_ports = range(15_000 + _share, 32_000, SHARES)
_candidates = iter(random.SystemRandom().sample(_ports, len(_ports)))


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
