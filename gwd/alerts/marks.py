"""Marks: each cause raises its alert once, and again only at a higher level."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gwd.core.clock import US_PER_DAY
from gwd.store import Connection

KEPT_US: Final = 400 * US_PER_DAY
"""Longer than any period, and than any notice of a change that is told when it has come."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a cause and its level: a threshold in percent, or 1 where there is only one level."""

    name: str
    value: int = 1


def mark_once(connection: Connection, mark: Mark, *, now_us: int) -> bool:
    """Store the mark; true if the cause has not reached this level before."""
    changed = connection.execute(
        "INSERT INTO alert_mark (name, value, marked_at) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
        " SET value = excluded.value, marked_at = excluded.marked_at WHERE excluded.value > value",
        (mark.name, mark.value, now_us),
    )
    return changed > 0


def is_raised(connection: Connection, mark: Mark) -> bool:
    """Whether the cause has reached this level before."""
    row = connection.row("SELECT value FROM alert_mark WHERE name = ?", (mark.name,))
    return row is not None and row[0] >= mark.value


def clear(connection: Connection, name: str) -> bool:
    """Delete the marks of a cause, so that it raises its alert again; true if there were any."""
    return connection.execute("DELETE FROM alert_mark WHERE name = ?", (name,)) > 0


def old(connection: Connection, *, now_us: int, at_most: int) -> list[str]:
    """The names of marks whose cause cannot come again: of periods, top-ups and catalog changes long past."""
    return [
        row[0]
        for row in connection.rows(
            "SELECT name FROM alert_mark WHERE marked_at < ? AND ("
            "(name GLOB 'key_limit:*' OR name GLOB 'budget:*') AND name NOT GLOB '*:lifetime:*'"
            " OR name GLOB 'auto_topup:*' OR name GLOB 'topup_cap:*' OR name GLOB 'node:certificate:*'"
            " OR name GLOB 'catalog:deprecated:*' OR name GLOB 'catalog:retiring:*' OR name GLOB 'catalog:retired:*'"
            " OR name GLOB 'catalog:price_changed:*' OR name GLOB 'catalog:alias_moved:*') LIMIT ?",
            (now_us - KEPT_US, at_most),
        )
    ]


def forget(connection: Connection, names: Sequence[str], *, now_us: int) -> None:
    """Drop these marks, except one that was made anew since it was found to be old."""
    connection.execute_many(
        "DELETE FROM alert_mark WHERE name = ? AND marked_at < ?",
        [(name, now_us - KEPT_US) for name in names],
    )
