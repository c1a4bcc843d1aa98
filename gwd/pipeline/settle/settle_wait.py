"""The wait for a settlement: bounded for the client; the settlement itself is tried until it is durable.

The client waits for its last frame at most so long. If the settlement is not durable by then, a streamed answer is
settled later all the same; a whole answer is given up: its client was given nothing, so it may not be charged.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gwd.activity.row import GenerationRow
from gwd.core.clock import Clock
from gwd.core.errors import GatewayError, StorageUnavailable
from gwd.ledger.service import Settlement
from gwd.pipeline.settle.settlement import settle
from gwd.store import Connection, Store, maintains_cache

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0


class SettleWait:
    """The settlement of one generation. `otherwise` makes its record if it is given up; None if it never is."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        app_url: str,
        *,
        row: GenerationRow,
        charged: bool,
        otherwise: Callable[[], GenerationRow] | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._app_url = app_url
        self._row = row
        self._charged = charged
        self._otherwise = otherwise
        self._late: asyncio.Future[Settlement | None] | None = None

    async def settle(self, limit_s: float) -> bool:
        """Try until it is durable. False when the time is over; then `settle_later` goes on with it."""
        now_s = asyncio.get_running_loop().time
        deadline_s, pause_s = now_s() + limit_s, FIRST_PAUSE_S
        while not self._store.failed:
            claim = _Claim()
            writing = self._submit(claim)
            try:
                await _wait(writing, deadline_s)
                return True
            except TimeoutError:
                if claim.give_up():
                    self._late = writing
                    return False
                with suppress(StorageUnavailable):  # the writer has begun: its answer is near
                    await asyncio.shield(writing)
                    return True
            except StorageUnavailable:
                pass
            if now_s() + pause_s >= deadline_s:
                return False
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return False

    async def settle_later(self) -> None:
        """Try until it is durable; what is left when the node stops is settled by recovery."""
        while not self._store.failed:
            writing = self._late or self._submit(_Claim.given_up())
            self._late = None
            with suppress(StorageUnavailable):
                await asyncio.shield(writing)
                return
            await asyncio.sleep(LONGEST_PAUSE_S)

    def _submit(self, claim: "_Claim") -> "asyncio.Future[Settlement | None]":
        return self._store.submit(
            _settle_or_give_up,
            self._row,
            self._otherwise,
            claim,
            charged=self._charged,
            app_url=self._app_url,
            now_us=self._clock.now_us(),
        )


async def _wait(writing: "asyncio.Future[Settlement | None]", deadline_s: float) -> None:
    """Wait for the writer, but never cancel what it does. Raises TimeoutError, and what the writer raised."""
    waiter = asyncio.get_running_loop().create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    timer = asyncio.get_running_loop().call_at(deadline_s, wake)
    writing.add_done_callback(wake)
    try:
        await waiter
    finally:
        timer.cancel()
        writing.remove_done_callback(wake)
    if not writing.done():
        raise TimeoutError
    writing.result()


class _Claim:
    """Decides once, on any thread, whether the settlement or the give-up came first."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    @staticmethod
    def given_up() -> "_Claim":
        claim = _Claim()
        claim.give_up()
        return claim

    def settle(self) -> bool:
        return self._first.setdefault("end", "settled") == "settled"

    def give_up(self) -> bool:
        return self._first.setdefault("end", "given up") == "given up"


@maintains_cache
def _settle_or_give_up(
    connection: Connection,
    row: GenerationRow,
    otherwise: Callable[[], GenerationRow] | None,
    claim: _Claim,
    *,
    charged: bool,
    app_url: str,
    now_us: int,
) -> Settlement | None:
    if not claim.settle() and otherwise is not None:
        return settle(connection, otherwise(), charged=False, app_url=app_url, now_us=now_us)
    return settle(connection, row, charged=charged, app_url=app_url, now_us=now_us)


def late() -> GatewayError:
    """What a stream is told whose settlement takes longer than its client should wait."""
    return StorageUnavailable("the answer could not be settled in time; it will be settled later")


def given_up() -> GatewayError:
    """What a whole answer becomes whose settlement takes longer than its client should wait."""
    return StorageUnavailable(
        "the answer could not be settled in time, so it is not charged; try again", retry_after_s=5
    )
