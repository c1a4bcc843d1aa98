"""Reports: reads that may take long, on threads and connections of their own, each with an end.

They hold up neither the loop nor the readers of ordinary requests. One whose time is over, or whose client has left, is
ended inside SQLite. Each owner has one at a time, so that nobody's reports wait behind all of somebody else's.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from time import monotonic
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import apsw
from peewee import OperationalError

from gwd.core.errors import Overloaded, ReportTooLarge
from gwd.store.connection import Connection, open_connection, transaction

PLACES: Final = 2
STEPS: Final = 50_000  # of SQLite's machine between two looks at the clock: a few milliseconds

P = ParamSpec("P")
T = TypeVar("T")


class Reports:
    """Made inside the running loop."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(PLACES, thread_name_prefix="store-report")
        self._places = asyncio.Semaphore(PLACES)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._local = threading.local()
        self._running: set[_Reading] = set()

    async def read(
        self,
        owner: str,
        within_s: float,
        fn: Callable[Concatenate[Connection, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run `fn(connection, …)` on a read-only connection, in one snapshot.

        Raises ReportTooLarge where it takes longer than `within_s`, and Overloaded where it has not begun by then.
        """
        turn = self._turns.get(owner)
        if turn is None:
            turn = self._turns[owner] = asyncio.Lock()
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(within_s):
                    await held.enter_async_context(turn)
                    await held.enter_async_context(self._places)
            except TimeoutError:
                raise Overloaded(
                    "other reports are still being read; ask for one after the other",
                    retry_after_s=5,
                ) from None
            reading = _Reading(within_s)
            self._running.add(reading)
            try:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(
                    self._threads, self._read, reading, fn, args, kwargs
                )
            finally:
                reading.stop()
                self._running.discard(reading)

    def close(self) -> None:
        """End what runs; nothing may be asked any more."""
        for reading in self._running:
            reading.stop()
        self._threads.shutdown(wait=True)

    def _read(
        self,
        reading: "_Reading",
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = open_connection(self._path, "reader")
        reading.begin()
        with transaction(connection, "DEFERRED"), _watched(connection, reading):
            return fn(connection, *args, **kwargs)


@contextmanager
def limited(connection: Connection, within_s: float) -> Iterator[None]:
    """What is read inside ends after `within_s`: a short report amid other reads. Raises ReportTooLarge."""
    reading = _Reading(within_s)
    reading.begin()
    with _watched(connection, reading):
        yield


@contextmanager
def _watched(connection: Connection, reading: "_Reading") -> Iterator[None]:
    connection.raw.set_progress_handler(reading.is_over, STEPS)
    try:
        yield
    except (apsw.InterruptError, OperationalError):
        if not reading.is_over():
            raise
        raise ReportTooLarge(
            f"it takes more than {reading.within_s:g} s to add this up; ask for a shorter range, fewer"
            " dimensions, no percentiles, or days of UTC"
        ) from None
    finally:
        connection.raw.set_progress_handler(None)


class _Reading:
    """One report under way: when it must end."""

    def __init__(self, within_s: float) -> None:
        self.within_s = within_s
        self._ends_s = float("inf")
        self._is_stopped = False

    def begin(self) -> None:
        self._ends_s = monotonic() + self.within_s

    def stop(self) -> None:
        self._is_stopped = True

    def is_over(self) -> bool:
        return self._is_stopped or monotonic() >= self._ends_s
