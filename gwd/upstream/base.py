"""The port to vendors: no redirects, no proxy from the environment, deadlines of our own.

`send` answers once the status line is there; the body is read in the pieces the network delivers. Whatever goes wrong
on the way is an `UpstreamFault` that carries the `Fault`; nothing else escapes.
"""

import ssl
from typing import Final, Protocol

import msgspec

from gwd.core.connection_trouble import tls_trouble
from gwd.core.errors import Fault, FaultDetail, FaultReason
from gwd.core.target import UpstreamCall

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
MAX_IN_FLIGHT: Final = 4_000
MAX_PER_ORIGIN: Final = 1_000
KEEPALIVE_S: Final = 30
TRUST: Final = "if it is the right one, name the file with it (PEM) as [upstream] ca_file"


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds: to connect, to the first event, between reads, in all."""

    connect_s: float = 5.0
    first_event_s: float = 120.0
    idle_s: float = 120.0
    total_s: float = 900.0
    drain_s: float = 120.0


class UpstreamFault(Exception):
    """The call broke below HTTP's meaning: network or time."""

    def __init__(
        self, reason: FaultReason, message: str, *, detail: FaultDetail | None = None
    ) -> None:
        super().__init__(message)
        self.fault = Fault(reason=reason, message=message, detail=detail)


class UpstreamReply(Protocol):
    """An answer whose body is still to come. Header names are lower case."""

    status: int
    headers: dict[str, str]

    async def read(self, timeout_s: float) -> bytes:
        """The next bytes, b"" at the end. Raises UpstreamFault."""
        ...

    async def read_all(self, timeout_s: float) -> bytes:
        """The whole body within the time. Raises UpstreamFault."""
        ...

    def close(self) -> None:
        """Give the connection back if the body was read to its end, else cut it."""
        ...


class Upstream(Protocol):
    """What dispatch needs of a client."""

    async def send(self, call: UpstreamCall, timeout_s: float) -> UpstreamReply:
        """Send the call and wait for the status line. Raises UpstreamFault."""
        ...

    async def close(self) -> None: ...


def untrusted(error: ssl.SSLError) -> UpstreamFault:
    """The fault of a handshake that failed."""
    is_certificate = isinstance(error, ssl.SSLCertVerificationError)
    return UpstreamFault(
        "network",
        f"the vendor {tls_trouble(error, trust=TRUST)}",
        detail="certificate" if is_certificate else None,
    )


def tls_context(ca_file: str) -> ssl.SSLContext:
    """The rules of TLS towards vendors: checked certificates, 1.2 or newer. A file's come beside the system's."""
    context = ssl.create_default_context()
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
