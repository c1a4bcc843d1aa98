"""One SQLite connection as rooms see it: plain SQL with constant text on the hot path, peewee queries elsewhere."""

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import apsw
from playhouse.apsw_ext import APSWDatabase  # type: ignore[import-untyped]

MINIMUM_SQLITE: Final = (3, 51, 3)
BUSY_TIMEOUT_MS: Final = 5_000
STATEMENT_CACHE: Final = 400
CACHE_KIB: Final = 8_000

Value = int | str | bytes | float | None
Row = tuple[Any, ...]
CachedRows = defaultdict[str, dict[tuple[Hashable, ...], Any]]
"""What is remembered: by the name of its finder, then by the finder's arguments."""

log = logging.getLogger(__name__)

_PRAGMAS: Final = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
    "PRAGMA mmap_size=0",
    "PRAGMA temp_store=MEMORY",
    f"PRAGMA cache_size=-{CACHE_KIB}",
)
_WRITER_PRAGMAS: Final = (
    "PRAGMA secure_delete=ON",  # what was deleted is in no free page, and so in no backup
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",
    "PRAGMA checkpoint_fullfsync=ON",
    "PRAGMA journal_size_limit=67108864",
    "PRAGMA wal_autocheckpoint=4000",
)


class OldSqliteError(RuntimeError):
    """The library can damage a database; the text names the version that does not."""


class Connection:
    """What a room function is given. It runs inside its caller's transaction and never commits.

    `cached_rows` is what the writer remembers for functions that keep it true (`gwd.store.cached`), else None.
    `tolerated` counts the failures that were left out of their transactions.
    """

    def __init__(self, raw: apsw.Connection) -> None:
        self.raw = raw
        self.cached_rows: CachedRows | None = None
        self.tolerated = 0
        self._orm = _Orm(raw)

    def execute(self, sql: str, parameters: tuple[Value, ...] | Mapping[str, Value] = ()) -> int:
        """Run one statement that returns no rows; gives back how many rows it changed."""
        self.raw.execute(sql, parameters)
        return self.raw.changes()

    def execute_many(self, sql: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """Run one statement once for each row of parameters."""
        self.raw.executemany(sql, rows)

    def in_savepoint(self, what: str, fn: Callable[[], object]) -> None:
        """Run `fn` in a savepoint: if it raises, only its own changes are undone."""
        self.raw.execute("SAVEPOINT part")
        try:
            fn()
        except Exception as error:  # noqa: BLE001 - tolerated, whatever it is
            self.tolerate(what, error)
            if self.cached_rows is not None:
                self.cached_rows.clear()
            self.raw.execute("ROLLBACK TO part")
        self.raw.execute("RELEASE part")

    def tolerate(self, what: str, error: Exception) -> None:
        """Log and count a failure that its transaction survives. Raises one that took the transaction with it."""
        if self.is_lost(error):
            raise error
        self.tolerated += 1
        log.error("%s failed and was left out: %s", what, error, exc_info=error)

    def is_lost(self, error: BaseException) -> bool:
        """Whether a failure means that SQLite has taken the whole transaction away, or must."""
        return not self.raw.in_transaction or isinstance(error, apsw.FullError | apsw.IOError)

    def row(self, sql: str, parameters: tuple[Value, ...] = ()) -> Row | None:
        """The first row, or None."""
        return self.raw.execute(sql, parameters).fetchone()

    def rows(self, sql: str, parameters: tuple[Value, ...] = ()) -> list[Row]:
        """All rows."""
        return self.raw.execute(sql, parameters).fetchall()

    def run(self, query: Any) -> Any:
        """Execute a peewee query here: rows of a select, the count of an update or delete."""
        return query.execute(self._orm)

    def first(self, query: Any) -> Any:
        """The first row of a peewee select, or None."""
        return next(iter(query.limit(1).execute(self._orm)), None)

    def count(self, query: Any) -> int:
        """How many rows a peewee select would give."""
        return int(query.count(self._orm))


class NoDatabaseError(RuntimeError):
    """There is no database where the settings say; the text names the place and the remedy."""


class ReadOnlyDatabaseError(RuntimeError):
    """The database may not be written; the text names the file and the remedy."""


def require(database: Path) -> None:
    """Raises NoDatabaseError for a missing file; opening it would create an empty one."""
    if not database.is_file():
        raise NoDatabaseError(f"{database} does not exist; run `gwd init` or restore a backup")


def open_connection(path: str, mode: Literal["writer", "reader"]) -> Connection:
    """A connection with gwd's pragmas; readers cannot write. Raises OldSqliteError, ReadOnlyDatabaseError."""
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < MINIMUM_SQLITE:
        wanted = ".".join(map(str, MINIMUM_SQLITE))
        raise OldSqliteError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt its log; install apsw with SQLite {wanted} or newer"
        )
    readwrite = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    flags = readwrite if mode == "writer" else apsw.SQLITE_OPEN_READONLY
    raw = apsw.Connection(path, flags=flags, statementcachesize=STATEMENT_CACHE)
    if mode == "writer" and raw.readonly("main"):
        raw.close()
        raise ReadOnlyDatabaseError(
            f"{path} cannot be written; make it and its directory writable for the user that gwd runs as"
        )
    raw.set_busy_timeout(BUSY_TIMEOUT_MS)
    for pragma in _PRAGMAS:
        raw.execute(pragma)
    if mode == "writer":
        for pragma in _WRITER_PRAGMAS:
            raw.execute(pragma)
    else:
        raw.execute("PRAGMA query_only=ON")
    return Connection(raw)


def holds(path: Path, fn: Callable[[Connection], bool]) -> bool:
    """What `fn` says of a file that nobody writes. False if it is no database or lacks what `fn` reads."""
    raw = None
    try:
        raw = apsw.Connection(
            f"file:{quote(str(path))}?immutable=1",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )
        return fn(Connection(raw))
    except apsw.Error:
        return False
    finally:
        if raw is not None:
            raw.close()


@contextmanager
def transaction(connection: Connection, mode: Literal["IMMEDIATE", "DEFERRED"]) -> Iterator[None]:
    """BEGIN … COMMIT, or ROLLBACK on any error. For migrations and readers; the writer has its own batches."""
    connection.raw.execute(f"BEGIN {mode}")
    try:
        yield
    except BaseException:
        if connection.raw.in_transaction:
            connection.raw.execute("ROLLBACK")
        raise
    connection.raw.execute("COMMIT")


class _Orm(APSWDatabase):  # type: ignore[misc]
    """peewee over a connection that `Connection` owns; it opens and closes nothing."""

    def __init__(self, raw: apsw.Connection) -> None:
        super().__init__(None, thread_safe=False, autoconnect=False)
        self.init("given")
        self._given = raw
        self.connect()

    def _connect(self) -> apsw.Connection:
        return self._given
