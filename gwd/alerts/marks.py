"""Marks: each cause raises its alert once, and again only at a higher level."""

import msgspec

from gwd.store import Connection


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


def forget_old(connection: Connection, *, prefix: str, marked_before_us: int) -> int:
    """Drop marks of periods long past; gives back how many. Marks without a period must not be named."""
    assert prefix, "an empty prefix would re-arm every alert"
    return connection.execute(
        "DELETE FROM alert_mark WHERE substr(name, 1, ?) = ? AND marked_at < ?",
        (len(prefix), prefix, marked_before_us),
    )
