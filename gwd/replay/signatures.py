"""Signed reasoning of tool calls, kept for a day so that clients which drop it can go on.

Blobs belong to one organization and mean something only to the format that made them; they come sealed.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from gwd.core.clock import US_PER_DAY
from gwd.store import Connection, maintains_cache

LIFE_US: Final = US_PER_DAY
MAX_BLOB: Final = 256 * 1024

_SAVE: Final = (
    "INSERT INTO signature (organization_id, call_id, body, expires_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (organization_id, call_id) DO UPDATE SET body = excluded.body, expires_at = excluded.expires_at"
)


@maintains_cache
def save(
    connection: Connection, organization_id: str, blobs: Mapping[str, bytes], *, now_us: int
) -> None:
    """Keep the blobs of one answer; oversized ones are not kept."""
    for call_id, blob in blobs.items():
        if len(blob) <= MAX_BLOB:
            connection.execute(_SAVE, (organization_id, call_id, blob, now_us + LIFE_US))


def load(
    connection: Connection, organization_id: str, call_ids: Sequence[str], *, now_us: int
) -> dict[str, bytes]:
    """What is still kept for these calls."""
    found = {}
    for call_id in dict.fromkeys(call_ids):
        row = connection.row(
            "SELECT body FROM signature WHERE organization_id = ? AND call_id = ? AND expires_at > ?",
            (organization_id, call_id, now_us),
        )
        if row is not None:
            found[call_id] = bytes(row[0])
    return found


def old(connection: Connection, *, now_us: int, at_most: int) -> list[tuple[str, str]]:
    """(organization, call) of what has expired."""
    return [
        (str(row[0]), str(row[1]))
        for row in connection.rows(
            "SELECT organization_id, call_id FROM signature WHERE expires_at <= ? LIMIT ?",
            (now_us, at_most),
        )
    ]


def forget(connection: Connection, calls: Sequence[tuple[str, str]], *, now_us: int) -> None:
    """Drop these, except one that was saved anew since it was found to be old."""
    connection.execute_many(
        "DELETE FROM signature WHERE organization_id = ? AND call_id = ? AND expires_at <= ?",
        [(organization_id, call_id, now_us) for organization_id, call_id in calls],
    )
