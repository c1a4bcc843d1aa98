"""How long alerts and deliveries stay on record: a year and a month, and three months.

A delivery is forgotten with its alert at the latest; what waits to be delivered is never forgotten.
"""

from collections.abc import Sequence
from typing import Final

from gwd.core.clock import US_PER_DAY
from gwd.store import Connection

ALERTS_KEPT_US: Final = 400 * US_PER_DAY
DELIVERIES_KEPT_US: Final = 90 * US_PER_DAY


def old_deliveries(connection: Connection, *, now_us: int, at_most: int) -> list[str]:
    """Deliveries that ended, made longer ago than they are kept, oldest first."""
    rows = connection.rows(
        "SELECT id FROM delivery WHERE created_at < ? AND status <> 'pending' ORDER BY created_at LIMIT ?",
        (now_us - DELIVERIES_KEPT_US, at_most),
    )
    return [row[0] for row in rows]


def old_alerts(connection: Connection, *, now_us: int, at_most: int) -> list[str]:
    """Alerts raised longer ago than they are kept, oldest first; not those that were sent again lately."""
    rows = connection.rows(
        "SELECT id FROM alert WHERE created_at < ?"
        " AND NOT EXISTS (SELECT 1 FROM delivery WHERE event_id = alert.id) ORDER BY created_at LIMIT ?",
        (now_us - ALERTS_KEPT_US, at_most),
    )
    return [row[0] for row in rows]


def forget_deliveries(connection: Connection, ids: Sequence[str]) -> None:
    """Drop these deliveries."""
    connection.execute_many(
        "DELETE FROM delivery WHERE id = ? AND status <> 'pending'", [(each,) for each in ids]
    )


def forget_alerts(connection: Connection, ids: Sequence[str]) -> None:
    """Drop these alerts, except one that was sent again since it was found to be old."""
    connection.execute_many(
        "DELETE FROM alert WHERE id = ? AND NOT EXISTS (SELECT 1 FROM delivery WHERE event_id = alert.id)",
        [(each,) for each in ids],
    )
