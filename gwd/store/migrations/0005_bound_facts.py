"""Entries vouch for facts beside them, audit lines are a chain, and prices are never edited.

An entry's `seal` is part of its hash where it is given: for credit the moment it expires, for the end of a hold the
digest of its generation's record. Entries written before have none; the lots that may still expire are named in an
audit line instead. Audit lines get numbers and hashes, in the order in which they were written.
"""

from hashlib import sha256
from typing import Final

import msgspec

from gwd.core.ids import mint
from gwd.store.connection import Connection

_STEPS: Final = (
    "ALTER TABLE entry ADD COLUMN seal TEXT",
    "ALTER TABLE audit ADD COLUMN seq INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE audit ADD COLUMN hash BLOB NOT NULL DEFAULT x''",
    """CREATE TABLE audit_end (
        organization_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, hash BLOB NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "DROP TRIGGER audit_no_update",
)
_RULES: Final = (
    "CREATE UNIQUE INDEX audit_in_order ON audit (COALESCE(organization_id, ''), seq)",
    "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER price_no_update BEFORE UPDATE ON price BEGIN SELECT RAISE(ABORT, 'append-only'); END",
)
_NAMED_LOTS: Final = (
    "SELECT organization_id, id, expires_at, (SELECT last_at FROM account WHERE organization_id = lot.organization_id)"
    " FROM lot WHERE expires_at IS NOT NULL ORDER BY organization_id, id"
)
_NAME_LOTS: Final = (
    "INSERT INTO audit (id, organization_id, action, subject_type, details, created_at)"
    " VALUES (?, ?, 'ledger.bind_lots', 'organization', ?, ?)"
)
_LINES: Final = (
    "SELECT rowid, COALESCE(organization_id, ''), id, actor_key_id, actor_user_id, actor_role, action, subject_type,"
    " subject_id, details, address, request_id, created_at FROM audit ORDER BY rowid"
)

_encode = msgspec.json.Encoder().encode


def up(connection: Connection) -> None:
    for statement in _STEPS:
        connection.execute(statement)
    _name_lots(connection)
    _chain_lines(connection)
    for statement in _RULES:
        connection.execute(statement)


def _name_lots(connection: Connection) -> None:
    lots: dict[str, dict[str, int]] = {}
    times: dict[str, int] = {}
    for organization_id, lot_id, expires_at, last_at in connection.rows(_NAMED_LOTS):
        lots.setdefault(organization_id, {})[lot_id] = expires_at
        times[organization_id] = last_at
    for organization_id, expiries in lots.items():
        details = _encode({"expires_at_us": expiries}).decode()
        connection.execute(
            _NAME_LOTS, (mint("aud_"), organization_id, details, times[organization_id])
        )


def _chain_lines(connection: Connection) -> None:
    ends: dict[str, tuple[int, bytes]] = {}
    for number, organization_id, *rest in connection.rows(_LINES):
        seq, previous = ends.get(organization_id, (0, b""))
        hash_ = sha256(previous + _encode((organization_id, seq + 1, *rest))).digest()
        connection.execute(
            "UPDATE audit SET seq = ?, hash = ? WHERE rowid = ?", (seq + 1, hash_, number)
        )
        ends[organization_id] = (seq + 1, hash_)
    connection.execute_many(
        "INSERT INTO audit_end (organization_id, seq, hash) VALUES (?, ?, ?)",
        [(name, *end) for name, end in ends.items()],
    )
