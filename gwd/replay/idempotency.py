"""First replies by Idempotency-Key: the same key and the same request within 24 hours get the first reply again.

The caller runs `begin`, the action, and `finish` in one transaction of the writer, so two requests with one key are
one after the other and only the first acts. An action that raises rolls back, and nothing is stored. The body given
to `finish` must hold no secret.
"""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

import msgspec

from gwd.core.clock import US_PER_DAY
from gwd.core.errors import IdempotencyConflict, InvalidValue
from gwd.store import Connection

LIFE_US: Final = US_PER_DAY
NAME_LENGTH: Final = 255


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One use of an Idempotency-Key: `scope` is the id of the API key, `name` what the client chose."""

    scope: str
    name: str
    fingerprint: bytes


class FirstReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the first request with this key was answered."""

    status: int
    body: bytes


def claim(*, key_id: str, name: str, method: str, path: str, body: bytes) -> Claim:
    """A claim with the fingerprint of method, path and body. Raises InvalidValue for an unusable name."""
    if not 1 <= len(name) <= NAME_LENGTH or not name.isprintable():
        raise InvalidValue(
            f"Idempotency-Key must have 1 to {NAME_LENGTH} printable characters.",
            param="Idempotency-Key",
        )
    head = f"{method.upper()} {path}\n".encode()
    return Claim(scope=key_id, name=name, fingerprint=hashlib.sha256(head + body).digest())


def begin(connection: Connection, wanted: Claim, *, now_us: int) -> FirstReply | None:
    """The first reply to repeat, or None: then act and `finish`. Raises IdempotencyConflict for another request."""
    row = connection.row(
        "SELECT fingerprint, status, body, created_at FROM idempotency WHERE scope = ? AND name = ?",
        (wanted.scope, wanted.name),
    )
    if row is None:
        return None
    fingerprint, status, body, created_at = row
    if created_at <= now_us - LIFE_US:
        return None
    if not hmac.compare_digest(fingerprint, wanted.fingerprint):
        raise IdempotencyConflict(
            "This Idempotency-Key was used for another request within 24 hours; choose a new one.",
            param="Idempotency-Key",
        )
    return FirstReply(status=status, body=body)


def finish(connection: Connection, done: Claim, *, status: int, body: bytes, now_us: int) -> None:
    """Store the reply that a repetition gets."""
    connection.execute(
        "INSERT INTO idempotency (scope, name, fingerprint, status, body, created_at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (scope, name) DO UPDATE SET fingerprint = excluded.fingerprint,"
        " status = excluded.status, body = excluded.body, created_at = excluded.created_at",
        (done.scope, done.name, done.fingerprint, status, body, now_us),
    )


def old(connection: Connection, *, now_us: int, at_most: int) -> list[tuple[str, str]]:
    """(scope, name) of replies older than 24 hours."""
    return [
        (str(row[0]), str(row[1]))
        for row in connection.rows(
            "SELECT scope, name FROM idempotency WHERE created_at <= ? LIMIT ?",
            (now_us - LIFE_US, at_most),
        )
    ]


def forget(connection: Connection, replies: Sequence[tuple[str, str]], *, now_us: int) -> None:
    """Drop these replies, except one that was made anew since it was found to be old."""
    connection.execute_many(
        "DELETE FROM idempotency WHERE scope = ? AND name = ? AND created_at <= ?",
        [(scope, name, now_us - LIFE_US) for scope, name in replies],
    )
