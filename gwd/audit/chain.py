"""The hash chain of audit lines, one for each organization and one for the node's own: h(n) = SHA-256(h(n−1) ‖ line n).

The canonical line is the JSON array of the columns in the order of `COLUMNS`; changing it would break every chain.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import msgspec

from gwd.store.connection import Connection, Value

NODE: Final = ""
"""In place of an organization: the chain of lines that belong to none."""
COLUMNS: Final = (
    "organization_id",
    "seq",
    "id",
    "actor_key_id",
    "actor_user_id",
    "actor_role",
    "action",
    "subject_type",
    "subject_id",
    "details",
    "address",
    "request_id",
    "created_at",
)
_START: Final = (0, b"")
_END: Final = "SELECT seq, hash FROM audit_end WHERE organization_id = ?"
_KEEP: Final = (
    "INSERT INTO audit_end (organization_id, seq, hash) VALUES (?, ?, ?)"
    " ON CONFLICT (organization_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash"
)
_LINES: Final = (
    f"SELECT COALESCE(organization_id, ''), {', '.join(COLUMNS[1:])}, hash FROM audit"  # noqa: S608
    " WHERE COALESCE(organization_id, '') = ? AND seq > ? ORDER BY seq LIMIT 2000"
)
_HASH_AT: Final = "SELECT hash FROM audit WHERE COALESCE(organization_id, '') = ? AND seq = ?"
_NAMES: Final = "SELECT organization_id FROM audit_end UNION SELECT COALESCE(organization_id, '') FROM audit ORDER BY 1"

_encode = msgspec.json.Encoder().encode


def end(connection: Connection, chain: str) -> tuple[int, bytes]:
    """(number, hash) of the last line of a chain."""
    row = connection.row(_END, (chain,))
    return _START if row is None else (row[0], row[1])


def append(connection: Connection, chain: str, rest: tuple[Value, ...]) -> tuple[int, bytes]:
    """The number and the hash of a new line of which `rest` are the columns behind its number."""
    seq, previous = end(connection, chain)
    hash_ = _link(previous, (chain, seq + 1, *rest))
    connection.execute(_KEEP, (chain, seq + 1, hash_))
    return seq + 1, hash_


def names(connection: Connection) -> list[str]:
    """All chains there are."""
    return [row[0] for row in connection.rows(_NAMES)]


def hash_at(connection: Connection, chain: str, seq: int) -> bytes:
    """The hash of one line; nothing before the first, and for one that is not there."""
    row = connection.row(_HASH_AT, (chain, seq))
    return b"" if row is None else row[0]


def check(connection: Connection, chain: str) -> Iterator[str]:
    """What is wrong with a chain, in words."""
    seq, hash_ = _START
    while rows := connection.rows(_LINES, (chain, seq)):
        for *line, stored in rows:
            if line[1] != seq + 1:
                yield f"audit line {line[1]} follows line {seq}: lines between them are missing"
            seq, hash_ = line[1], _link(hash_, tuple(line))
            if hash_ != stored:
                yield f"audit line {seq} ({line[2]}) does not have the hash of its content"
                hash_ = stored
    said = end(connection, chain)
    if said != (seq, hash_):
        yield f"the audit trail should end with line {said[0]}, it ends with line {seq}"


def _link(previous: bytes, line: tuple[Value, ...]) -> bytes:
    return sha256(previous + _encode(line)).digest()
