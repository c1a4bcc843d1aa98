"""gwd, the gateway daemon: one request line from client to vendor and back, paid exactly."""

from typing import Final

__version__: Final = "0.1.0"
