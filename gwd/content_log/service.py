"""Storing, finding and erasing what is stored of requests. Each function runs inside its caller's transaction."""

from collections.abc import Collection
from typing import Final

import msgspec

from gwd.core.clock import US_PER_DAY
from gwd.core.errors import NotFound
from gwd.core.ids import mint
from gwd.credentials.data_keys import DataKey
from gwd.orgs.content_log import ContentLog
from gwd.orgs.settings import settings
from gwd.store import Connection, maintains_cache

_MARK: Final = "content_log_erased"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of one generation; `content` is sealed by `data_key`."""

    generation_id: str
    organization_id: str
    workspace_id: str | None
    family_id: str
    user_digest: bytes | None
    session_digest: bytes | None
    created_us: int
    data_key: DataKey
    content: bytes


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One entry as it is read back."""

    data_key_id: str
    sealed_key: str
    created_us: int
    expires_us: int
    content: bytes


class Which(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of one organization: all of them, or those of which everything that is named holds."""

    organization_id: str
    generation_id: str | None = None
    family_id: str | None = None
    workspace_id: str | None = None
    user_digest: bytes | None = None
    session_digest: bytes | None = None


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an organization is stored, and when the oldest of it was asked."""

    count: int
    size: int
    oldest_us: int | None


@maintains_cache
def write(connection: Connection, entry: Entry) -> bool:
    """Store it, unless the organization has switched that off meanwhile; whether it was stored."""
    wanted = _wanted(connection, entry.organization_id)
    if wanted is None:
        return False
    key = entry.data_key
    connection.execute(
        "INSERT INTO content_log_key (id, organization_id, sealed) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (key.id, key.organization_id, key.sealed),
    )
    connection.execute(
        "INSERT INTO content_log (generation_id, organization_id, workspace_id, family_id, user_digest, session_digest,"
        " data_key_id, created_at, expires_at, size, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            entry.generation_id,
            entry.organization_id,
            entry.workspace_id,
            entry.family_id,
            entry.user_digest,
            entry.session_digest,
            key.id,
            entry.created_us,
            entry.created_us + wanted.days * US_PER_DAY,
            len(entry.content),
            entry.content,
        ),
    )
    return True


def get(
    connection: Connection, organization_id: str, generation_id: str, *, now_us: int
) -> Stored | None:
    """What is stored of a generation; None where nothing is, or its time is over."""
    row = connection.row(
        "SELECT data_key_id, sealed, created_at, expires_at, content FROM content_log"
        " JOIN content_log_key ON content_log_key.id = data_key_id"
        " WHERE generation_id = ? AND content_log.organization_id = ?",
        (generation_id, organization_id),
    )
    if row is None:
        return None
    data_key_id, sealed_key, created_us, expires_us, content = row
    wanted = _wanted(connection, organization_id)
    if wanted is not None:  # its time may have been shortened since
        expires_us = min(expires_us, created_us + wanted.days * US_PER_DAY)
    if expires_us <= now_us:
        return None
    return Stored(
        data_key_id=data_key_id,
        sealed_key=sealed_key,
        created_us=created_us,
        expires_us=expires_us,
        content=content,
    )


def totals(connection: Connection, organization_id: str) -> Totals:
    """How much is stored of an organization."""
    count, size, oldest_us = connection.rows(
        "SELECT COUNT(*), COALESCE(SUM(size), 0),"
        " (SELECT created_at FROM content_log WHERE organization_id = ?1 ORDER BY created_at LIMIT 1)"
        " FROM content_log WHERE organization_id = ?1",
        (organization_id,),
    )[0]
    return Totals(count=count, size=size, oldest_us=oldest_us)


def find(connection: Connection, *, which: Which, at_most: int) -> list[int]:
    """The first of these entries."""
    named = {
        "generation_id": which.generation_id,
        "family_id": which.family_id,
        "workspace_id": which.workspace_id,
        "user_digest": which.user_digest,
        "session_digest": which.session_digest,
    }
    named = {name: value for name, value in named.items() if value is not None}
    where = "".join(f" AND {name} = ?" for name in named)
    rows = connection.rows(
        f"SELECT id FROM content_log WHERE organization_id = ?{where} LIMIT ?",  # noqa: S608 - our own names
        (which.organization_id, *named.values(), at_most),
    )
    return [row[0] for row in rows]


def expired(connection: Connection, *, now_us: int, at_most: int) -> list[int]:
    """Entries whose time is over, and those of organizations that were deleted."""
    rows = connection.rows(
        "SELECT id FROM content_log WHERE expires_at <= ?1 UNION ALL"
        " SELECT content_log.id FROM content_log WHERE organization_id IN"
        " (SELECT id FROM organization WHERE deleted_at IS NOT NULL) LIMIT ?2",
        (now_us, at_most),
    )
    return [row[0] for row in rows]


def too_old(
    connection: Connection, *, organization_id: str, before_us: int, at_most: int
) -> list[int]:
    """Entries that are older than their organization wants by now."""
    rows = connection.rows(
        "SELECT id FROM content_log WHERE organization_id = ? AND created_at <= ? LIMIT ?",
        (organization_id, before_us, at_most),
    )
    return [row[0] for row in rows]


def too_many(
    connection: Connection, *, organization_id: str, max_bytes: int, at_most: int
) -> list[int]:
    """The oldest entries of an organization that has more than `max_bytes` stored."""
    above = totals(connection, organization_id).size - max_bytes
    found = []
    if above > 0:
        rows = connection.rows(
            "SELECT id, size FROM content_log WHERE organization_id = ? ORDER BY created_at LIMIT ?",
            (organization_id, at_most),
        )
        for identity, size in rows:
            if above <= 0:
                break
            above -= size
            found.append(identity)
    return found


@maintains_cache
def erase(connection: Connection, entries: Collection[int]) -> int:
    """Erase entries, and data keys that nothing needs any more; how many were there."""
    if not entries:
        return 0
    marks = ", ".join("?" * len(entries))
    keys = connection.rows(
        f"SELECT DISTINCT data_key_id FROM content_log WHERE id IN ({marks})",  # noqa: S608
        (*entries,),
    )
    count = connection.execute(
        f"DELETE FROM content_log WHERE id IN ({marks})",  # noqa: S608
        (*entries,),
    )
    connection.execute_many(
        "DELETE FROM content_log_key WHERE id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM content_log WHERE data_key_id = ?1)",
        keys,
    )
    if count:
        connection.execute(
            "INSERT INTO node_fact (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (_MARK, mint("erased_").encode()),
        )
    return count


def erased(connection: Connection) -> bytes | None:
    """The mark that something was erased which the log of writes still holds."""
    row = connection.row("SELECT value FROM node_fact WHERE name = ?", (_MARK,))
    return None if row is None else bytes(row[0])


def note_emptied(connection: Connection, mark: bytes) -> None:
    """The log of writes was emptied after this mark was read."""
    connection.execute("DELETE FROM node_fact WHERE name = ? AND value = ?", (_MARK, mark))


def _wanted(connection: Connection, organization_id: str) -> ContentLog | None:
    try:
        return settings(connection, organization_id).settings.content_log
    except NotFound:
        return None
