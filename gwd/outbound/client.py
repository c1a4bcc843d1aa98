"""The one guarded HTTP client: a new connection for each call, to an address that was judged for this call.

Calls are few and go anywhere, so nothing is pooled: a pooled connection would outlive the judgement of its address.
"""

import asyncio
import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from gwd.core.connection_trouble import is_redirect, redirect_trouble
from gwd.outbound.guard import AddressRefused, Resolve, Route, Rules, resolve, route

if TYPE_CHECKING:
    from gwd.outbound.exchange import Exchange

TOTAL_TIMEOUT_S: Final = 15.0
MAX_RETRY_AFTER_S: Final = 3_600


class OutboundReply(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended: a status, or an error that says why there is none. Bodies are not kept.

    `error` stands beside a status that leads elsewhere. `refused` tells that the guard did not let the call out.
    """

    status: int | None
    error: str | None = None
    refused: bool = False
    retry_after_s: int | None = None
    latency_ms: int = 0

    @property
    def succeeded(self) -> bool:
        """Any 2xx."""
        return self.status is not None and 200 <= self.status < 300


class CallBroken(Exception):
    """The call ended below HTTP's meaning; the text says how."""


class OutboundClient:
    """Calls addresses that users typed. One for the node; it keeps no connection.

    `tls` replaces the context that trusts the public authorities. Those, and the library that speaks HTTP, are loaded
    by the first call: most nodes never make one, and it is a tenth of their start.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        user_agent: str,
        resolver: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.rules = rules
        self._user_agent = user_agent
        self._resolver = resolver
        self._given_tls = tls
        self._exchange: Exchange | None = None

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> OutboundReply:
        """POST the bytes as they are; redirects are answers like any other. Never raises for what a call can meet."""
        started_s = time.monotonic()
        try:
            async with asyncio.timeout(TOTAL_TIMEOUT_S):
                path = await route(url, self.rules, self._resolver)
                return await self._post(path, body, headers, started_s)
        except AddressRefused as refused:
            return OutboundReply(status=None, error=str(refused), refused=True)
        except TimeoutError:
            error = f"no answer within {TOTAL_TIMEOUT_S:g} s"
            return OutboundReply(status=None, error=error, latency_ms=_ms_since(started_s))
        except CallBroken as broken:
            return OutboundReply(status=None, error=str(broken), latency_ms=_ms_since(started_s))

    async def _post(
        self, path: Route, body: bytes, headers: Mapping[str, str], started_s: float
    ) -> OutboundReply:
        if self._exchange is None:
            # In a thread: the other requests of the node do not wait for it.
            self._exchange = await asyncio.to_thread(_exchange, self._given_tls)
        sent = {"user-agent": self._user_agent, "accept-encoding": "identity", **headers}
        status, location, retry_after = await self._exchange.post(
            path, body, sent, timeout_s=TOTAL_TIMEOUT_S
        )
        return OutboundReply(
            status=status,
            error=_elsewhere(status, location, path.url) if is_redirect(status) else None,
            retry_after_s=_retry_after(retry_after),
            latency_ms=_ms_since(started_s),
        )


def _exchange(tls: ssl.SSLContext | None) -> "Exchange":
    from gwd.outbound.exchange import Exchange, load

    load()
    return Exchange(tls)


def _elsewhere(status: int, location: str | None, url: str) -> str:
    trouble = redirect_trouble(status, location, asked=url)
    return f"the receiver {trouble}, which is not followed; set the address to where it listens"


def _retry_after(value: str | None) -> int | None:
    """Whole seconds up to an hour; a date or nonsense is no hint."""
    if value is None or not value.strip().isdecimal() or len(value) > 9:
        return None
    return min(int(value), MAX_RETRY_AFTER_S)


def _ms_since(started_s: float) -> int:
    return int((time.monotonic() - started_s) * 1000)
