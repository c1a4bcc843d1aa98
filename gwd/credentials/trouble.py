"""What vendors said of credentials, and when those were used: what the records of credentials learn once a second."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from gwd.core.errors import FaultReason
from gwd.store import Connection, maintains_cache


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor turns a credential away: why, since when, how often. `reason` None: it serves again since `last_us`.

    `is_certain` is false as long as it may be one request that is refused, and not the credential.
    """

    reason: FaultReason | None
    first_us: int
    last_us: int
    failures: int = 0
    is_certain: bool = True


class Troubled(NamedTuple):
    """A credential that a vendor turns away, as its owner knows it; the platform's have no organization."""

    id: str
    organization_id: str | None
    provider: str
    name: str
    label: str
    updated_at: int


_NOTE: Final = (
    "UPDATE credential SET last_error_at = ?, last_error_reason = ? WHERE id = ? AND updated_at <= ?"
    " RETURNING id, organization_id, provider, name, label, updated_at"
)


@maintains_cache
def note(connection: Connection, credential_id: str, trouble: Trouble) -> Troubled | None:
    """Put it on the credential's record. Nothing that a cache must see.

    None where the credential is gone, or was changed since: then what its vendor said before no longer counts.
    """
    at_us = None if trouble.reason is None else trouble.last_us
    rows = connection.rows(_NOTE, (at_us, trouble.reason, credential_id, trouble.last_us))
    return Troubled._make(rows[0]) if rows else None


@maintains_cache
def note_used(connection: Connection, used: Mapping[str, int]) -> None:
    """When a call last carried each credential. Nothing that a cache must see."""
    for credential_id, at_us in used.items():
        connection.execute(
            "UPDATE credential SET last_used_at = ? WHERE id = ? AND COALESCE(last_used_at, 0) < ?",
            (at_us, credential_id, at_us),
        )
