"""The read-write connection: how a batch of functions becomes one transaction, what it remembers, and its log."""

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import apsw

from gwd.core.counters import WriterCounters
from gwd.store.connection import BUSY_TIMEOUT_MS, CACHE_KIB, CachedRows, Connection, Row

MOST_CACHED_ROWS: Final = 50_000
LONG_LOG_PAGES: Final = 4_000
PAGE_BYTES: Final = 4_096

log = logging.getLogger(__name__)

Job = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], "asyncio.Future[Any]"]
Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]


class Journal(Protocol):
    """What has to be on the disk before a transaction is committed, beside the database."""

    def watch(self, connection: Connection) -> None:
        """Called once, with the writer's connection."""
        ...

    def keep(self, connection: Connection) -> None:
        """Called before each COMMIT, on the writer's thread. Raises OSError: then nothing is committed."""
        ...


class TransactionLost(Exception):
    """SQLite rolled the whole batch back."""

    def __init__(self, cause: BaseException | None) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Writer:
    """The read-write connection and how a batch of functions becomes one transaction.

    It also keeps the connection's cached rows true: they are dropped after a function that is not marked to maintain
    them, after one that failed, with a transaction that was lost, and when another process has written.
    """

    def __init__(
        self,
        connection: Connection,
        counters: WriterCounters,
        on_broken: Callable[[AssertionError], None],
        journal: Journal | None = None,
    ) -> None:
        self._on_broken = on_broken
        self._journal = journal
        if journal is not None:
            journal.watch(connection)
        self._connection = connection
        self._cached_rows: CachedRows = defaultdict(dict)
        self._data_version: Row | None = None
        self._raw = connection.raw
        self._raw.set_busy_timeout(0)
        self._raw.set_wal_hook(
            self._committed
        )  # instead of SQLite's automatic checkpoint within a COMMIT
        self._log_pages = 0
        self._counters = counters

    @property
    def tolerated(self) -> int:
        """How many failures were left out of a transaction that was kept."""
        return self._connection.tolerated

    def run(self, jobs: list[Job], *, patiently: bool = False) -> list[Outcome]:
        """Run the batch; the transaction stays open for `commit`. Raises TransactionLost when nothing was kept.

        Only `patiently` waits for a lock that another process holds.
        """
        self._begin(patiently=patiently)
        try:
            return self._run_together(jobs, patiently=patiently) or [
                self._run_in_savepoint(job) for job in jobs
            ]
        except apsw.Error as error:
            self._roll_back()
            raise TransactionLost(error) from error
        except TransactionLost:
            self._roll_back()
            raise

    def commit(self) -> None:
        """Make the batch durable. Raises TransactionLost."""
        try:
            if self._journal is not None:
                self._journal.keep(self._connection)
            self._raw.execute("COMMIT")
        except (apsw.Error, OSError) as error:
            self._roll_back()
            raise TransactionLost(error) from error

    @property
    def is_log_long(self) -> bool:
        """The write-ahead log should be moved into the file."""
        return self._log_pages >= LONG_LOG_PAGES

    def reserve_log(self) -> None:
        """Write as much as the log may hold and roll back: its file keeps the size, the database is unchanged.

        Where the disk does not give it, the log grows as it is needed.
        """
        raw = self._raw
        cached = CACHE_KIB * 1_024  # what the cache holds is not written
        with suppress(apsw.BusyError, apsw.FullError, apsw.IOError):
            raw.execute("BEGIN IMMEDIATE")
            raw.execute("CREATE TABLE log_reserve (filler BLOB)")
            size = LONG_LOG_PAGES * PAGE_BYTES + cached
            raw.execute("INSERT INTO log_reserve VALUES (zeroblob(?))", (size,))
        self._roll_back()
        with suppress(OSError), Path(raw.filename_wal).open("rb") as log_file:
            os.fdatasync(log_file.fileno())

    def shorten_log(self) -> None:
        """Move the log into the file as far as readers allow; what fails is tried again after the next batch."""
        with suppress(apsw.Error):
            self._raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        self._log_pages = 0

    def empty_log(self) -> bool:
        """Move the log into the file and cut it off, then give it its length again; False while a reader needs it."""
        log_file = Path(self._raw.filename_wal)
        try:
            size = log_file.stat().st_size
            self._raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.Error, OSError):
            return False
        self._log_pages = 0
        if size >= LONG_LOG_PAGES * PAGE_BYTES:
            self.reserve_log()
        return True

    def close(self) -> None:
        try:
            self._raw.close()
        except apsw.Error as error:
            # What closing does last, moving the log into the file, waits until the disk can take it.
            log.warning("the database was closed without a checkpoint: %s", error)

    def _begin(self, *, patiently: bool) -> None:
        raw = self._raw
        try:
            if patiently:
                raw.set_busy_timeout(BUSY_TIMEOUT_MS)
            raw.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            raise TransactionLost(error) from error
        finally:
            if patiently:
                raw.set_busy_timeout(0)
        self._check_cached_rows()

    def _run_together(self, jobs: list[Job], *, patiently: bool) -> list[Outcome] | None:
        """The outcomes of jobs none of which raised; else None, and the transaction has begun anew without them."""
        try:
            return [(job[3], self._call(job), None) for job in jobs]
        except Exception as error:  # noqa: BLE001 - run in a savepoint of its own, it goes to its caller
            self._check_lost(error)
            self._roll_back()
            self._begin(patiently=patiently)
            return None

    def _run_in_savepoint(self, job: Job) -> Outcome:
        self._raw.execute("SAVEPOINT job")
        try:
            value = self._call(job)
        except Exception as error:  # noqa: BLE001 - whatever a room raises goes to its caller, and to nobody else
            self._check_lost(error)
            self._cached_rows.clear()
            self._raw.execute("ROLLBACK TO job")
            self._raw.execute("RELEASE job")
            if isinstance(error, AssertionError):
                self._counters.invariant_failures += 1
                self._on_broken(error)
            return job[3], None, error
        self._raw.execute("RELEASE job")
        return job[3], value, None

    def _call(self, job: Job) -> Any:
        fn, args, kwargs, _ = job
        maintains_cache = getattr(fn, "maintains_cache", False)
        self._connection.cached_rows = self._cached_rows if maintains_cache else None
        value = fn(self._connection, *args, **kwargs)
        if not maintains_cache:
            self._cached_rows.clear()
        if not self._raw.in_transaction:
            raise TransactionLost(None)
        return value

    def _check_lost(self, error: Exception) -> None:
        """Raises TransactionLost when a job's failure took the whole transaction with it."""
        if isinstance(error, TransactionLost):
            raise error
        if self._connection.is_lost(error):
            raise TransactionLost(error) from error

    def _committed(self, _connection: apsw.Connection, _name: str, log_pages: int) -> int:
        self._log_pages = log_pages
        return apsw.SQLITE_OK

    def _check_cached_rows(self) -> None:
        """Called once a batch holds the write lock: from then on nobody else writes."""
        version = self._connection.row("PRAGMA data_version")
        count = sum(map(len, self._cached_rows.values()))
        if version != self._data_version or count > MOST_CACHED_ROWS:
            self._data_version = version
            self._cached_rows.clear()

    def _roll_back(self) -> None:
        self._cached_rows.clear()
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")
