"""The store: one writer with group commit, a few readers, one way in for each.

`await store.write(fn, …)` queues `fn(connection, …)` for the writer. Queued functions run in one `BEGIN IMMEDIATE`
transaction, one COMMIT, then all callers wake at once. A function that raises undoes only itself: the batch begins
again with a savepoint for each function. When SQLite takes the whole transaction away (full disk, I/O error), the
functions of the batch run again one by one after a full disk; after an I/O error all of them fail, nothing is written
any more, and the node stops.

The functions themselves run on the event loop, where no second thread competes for the interpreter lock at every
statement; whatever may wait for a disk or a lock (the COMMIT, a locked file, a lost batch) runs on the writer's thread,
and while it does, the next batch gathers. The connection is used by one of the two at a time, never by both.
"""

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import apsw

from gwd.core.counters import WriterCounters
from gwd.core.errors import StorageUnavailable
from gwd.store.ballast import Ballast
from gwd.store.connection import Connection, open_connection, transaction
from gwd.store.reports import Reports
from gwd.store.writer import Job, Journal, Outcome, TransactionLost, Writer

MAX_BATCH: Final = 64
READERS: Final = 3

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Store:
    """Open it inside the running loop; close it when everything that writes has stopped.

    `on_failure` is called when the disk failed, `on_broken` when a function found an invariant broken; `journal` is
    asked before each COMMIT.
    """

    def __init__(
        self,
        path: str,
        *,
        on_failure: Callable[[BaseException], None] | None = None,
        on_broken: Callable[[AssertionError], None] | None = None,
        ballast: Ballast | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.path = path
        self.counters = WriterCounters()
        self._ballast = ballast
        self._on_failure = on_failure
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Job] = deque()
        self._is_busy = False  # a batch is with the writer's thread
        self._is_due = False  # the next batch begins in this turn of the loop
        self._drained = asyncio.Event()
        self._emptying: deque[asyncio.Future[bool]] = deque()
        self._slow: queue.SimpleQueue[Callable[[], list[Outcome]] | None] = queue.SimpleQueue()
        self._failed: BaseException | None = None
        self._closed = False
        self._writer = Writer(open_connection(path, "writer"), self.counters, self._broken, journal)
        self._thread = threading.Thread(target=self._slow_loop, name="store-writer", daemon=True)
        self._thread.start()
        self._local = threading.local()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self.reports = Reports(path)

    async def write(
        self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `fn(connection, …)` on the writer and return its value once it is durable.

        `fn` is short and can be run again. Raises what `fn` raised, or StorageUnavailable (nothing was written).
        """
        return await self.submit(fn, *args, **kwargs)

    def submit(
        self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> "asyncio.Future[T]":
        """Queue `fn` now, in order, whether or not anybody waits for the future."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(StorageUnavailable("the store is closed"))
        else:
            self._waiting.append((fn, args, kwargs, future))
            self._begin_soon()
        return future

    async def read(
        self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `fn(connection, …)` on a read-only connection, in one snapshot."""
        return await self._loop.run_in_executor(self._readers, self._read, fn, args, kwargs)

    @property
    def failed(self) -> bool:
        """The disk failed: nothing is written any more."""
        return self._failed is not None

    @property
    def tolerated(self) -> int:
        """How many alerts and the like failed beside something that was kept."""
        return self._writer.tolerated

    @property
    def queued(self) -> int:
        """How many functions wait for the writer."""
        return len(self._waiting)

    async def reserve_log(self) -> None:
        """Give the log its full length, at the start: a COMMIT that need not lengthen its file is done sooner."""
        await self._idle()
        self._is_busy = True
        self._slow.put(self._reserve_log)
        await self._idle()

    async def empty_log(self) -> bool:
        """Move the whole log into the file, so that nothing is left in it of what was erased.

        False where a reader still needs what is in it; then it has to be asked for again.
        """
        emptied: asyncio.Future[bool] = self._loop.create_future()
        self._emptying.append(emptied)
        try:
            await self.write(
                _nothing
            )  # after this batch the writer's thread looks what is asked for
        except StorageUnavailable:
            return False
        return await emptied

    async def close(self) -> None:
        """Run what is queued, then close all connections."""
        if self._closed:
            return
        self._closed = True
        await self._idle()
        self._slow.put(None)
        await asyncio.to_thread(self._thread.join)
        self._readers.shutdown(wait=True)
        self.reports.close()
        self._writer.close()

    async def _idle(self) -> None:
        while self._waiting or self._is_busy:
            self._drained.clear()
            await self._drained.wait()

    def _read(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = open_connection(self.path, "reader")
        with transaction(connection, "DEFERRED"):
            return fn(connection, *args, **kwargs)

    def _begin_soon(self) -> None:
        if not self._is_busy and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._gather, 0)

    def _gather(self, seen: int) -> None:
        """Begin in the first turn of the loop that queued nothing more: a busy loop fills the batch first."""
        waiting = len(self._waiting)
        if waiting == seen or waiting >= MAX_BATCH:
            self._begin()
        else:
            self._loop.call_soon(self._gather, waiting)

    def _begin(self) -> None:
        """Run the next batch's functions here, and have the writer's thread make them durable."""
        self._is_due = False
        jobs = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
        if not jobs:
            return
        self._is_busy = True
        began_s = perf_counter()
        finish: Callable[[], list[Outcome]]
        try:
            if self._failed is not None:
                finish = partial(self._run, jobs)
            else:
                finish = partial(self._commit, jobs, self._writer.run(jobs))
        except TransactionLost as lost:
            # Locked by another process: worth a wait. Anything else: see what can be done about it.
            is_locked = isinstance(lost.cause, apsw.BusyError)
            finish = (
                partial(self._run, jobs) if is_locked else partial(self._recover, jobs, lost.cause)
            )
        except Exception as error:
            log.exception("the writer broke")
            finish = partial(self._fail, jobs, error)

        def slowly() -> list[Outcome]:
            try:
                done = finish()
            except Exception as error:
                # What was kept is not known, as after a failed disk: the next start finds out.
                log.exception("the writer broke")
                done = self._fail(jobs, error)
            self.counters.commit.observe(perf_counter() - began_s)
            self.counters.batch.observe(len(jobs))
            return done

        self._slow.put(slowly)

    def _slow_loop(self) -> None:
        """The writer's thread: what may block, one thing after the other."""
        while (slowly := self._slow.get()) is not None:
            outcomes = slowly()
            if not self._emptying and not self._writer.is_log_long:
                self._loop.call_soon_threadsafe(self._ended, outcomes)
                continue
            # No caller waits for the log to be shortened, but one who asked for it to be emptied.
            self._loop.call_soon_threadsafe(_wake, outcomes)
            if self._emptying:
                outcomes = [(self._emptying.popleft(), self._writer.empty_log(), None)]
            else:
                self._writer.shorten_log()
                outcomes = []
            self._loop.call_soon_threadsafe(self._ended, outcomes)

    def _ended(self, outcomes: list[Outcome]) -> None:
        self._is_busy = False
        _wake(outcomes)
        if self._waiting:
            self._begin_soon()
        else:
            self._drained.set()

    def _reserve_log(self) -> list[Outcome]:
        try:
            self._writer.reserve_log()
        except Exception as error:
            log.exception("the writer broke")
            return self._fail([], error)
        return []

    def _commit(self, jobs: list[Job], outcomes: list[Outcome]) -> list[Outcome]:
        try:
            self._writer.commit()
        except TransactionLost as lost:
            return self._recover(jobs, lost.cause)
        return outcomes

    def _run(self, jobs: list[Job]) -> list[Outcome]:
        """A batch from beginning to end, waiting for a lock if need be."""
        if self._failed is not None:
            return [(job[3], None, _unavailable(self._failed)) for job in jobs]
        try:
            outcomes = self._writer.run(jobs, patiently=True)
            self._writer.commit()
        except TransactionLost as lost:
            return self._recover(jobs, lost.cause)
        return outcomes

    def _recover(self, jobs: list[Job], cause: BaseException | None) -> list[Outcome]:
        """The batch was rolled back: run its functions again one by one, or fail them all."""
        full = isinstance(cause, apsw.FullError)
        if full and self._ballast is not None and self._ballast.drop():
            return self._run(jobs)
        if isinstance(cause, apsw.IOError | apsw.CorruptError | apsw.NotADBError):
            return self._fail(jobs, cause)
        if len(jobs) == 1 or isinstance(cause, apsw.BusyError):
            # Somebody else has locked the file: each of them alone would wait as long again.
            return [(job[3], None, _unavailable(cause)) for job in jobs]
        return [outcome for job in jobs for outcome in self._run([job])]

    def _broken(self, error: AssertionError) -> None:
        """A function found an invariant broken and was undone: call `on_broken`, on the loop from either thread."""
        if self._on_broken is not None:
            self._loop.call_soon_threadsafe(self._on_broken, error)

    def _fail(self, jobs: list[Job], cause: BaseException) -> list[Outcome]:
        self._failed = cause
        if self._on_failure is not None:
            self._loop.call_soon_threadsafe(self._on_failure, cause)
        return [(job[3], None, _unavailable(cause)) for job in jobs]


def _nothing(_connection: Connection) -> None:
    return None


def _wake(outcomes: list[Outcome]) -> None:
    for future, value, error in outcomes:
        if future.done():
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
            future.exception()  # somebody may have stopped waiting: that is not an unhandled error


def _unavailable(cause: BaseException | None) -> StorageUnavailable:
    error = StorageUnavailable(
        "the gateway cannot write to its disk now; nothing was charged", retry_after_s=5
    )
    error.__cause__ = cause
    return error
