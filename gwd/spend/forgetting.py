"""What tags and users spent on days past an organization's retention, which is forgotten as their records forget it."""

from collections.abc import Sequence
from typing import Final

from gwd.core.clock import US_PER_DAY
from gwd.store.connection import Connection

# A tag or user that a budget is for stays: the budget names it anyway. The lifetime goes with the last day.
_OLD: Final = """
    SELECT scope_id, day FROM spend AS old
    WHERE scope_id > ?1 || ':' AND scope_id < ?1 || ';' AND CASE day
        WHEN 0 THEN NOT EXISTS (SELECT 1 FROM spend WHERE scope_id = old.scope_id AND day >= ?2)
        ELSE day < ?2 END
    AND NOT EXISTS (SELECT 1 FROM budget WHERE spend_id = old.scope_id) LIMIT ?3"""
_FORGOTTEN: Final = "SELECT before_day FROM senders_forgotten WHERE organization_id = ?"


def old_names(
    connection: Connection, organization_id: str, *, before_us: int, at_most: int
) -> list[tuple[str, int]]:
    """(counter, day) of tags and users on days that ended before a time and that their records have forgotten."""
    row = connection.row(_FORGOTTEN, (organization_id,))
    if row is None:
        return []
    before_day = min(before_us // US_PER_DAY, row[0])
    return [
        (str(counter), int(day))
        for counter, day in connection.rows(_OLD, (organization_id, before_day, at_most))
    ]


def forget_names(connection: Connection, counters: Sequence[tuple[str, int]]) -> None:
    """Delete counters that `old_names` found, unless a budget was made for one meanwhile."""
    connection.execute_many(
        "DELETE FROM spend WHERE scope_id = ?1 AND day = ?2"
        " AND NOT EXISTS (SELECT 1 FROM budget WHERE spend_id = ?1)",
        counters,
    )
