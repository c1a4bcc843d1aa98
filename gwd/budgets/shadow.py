"""What a shadow budget would have refused: the requests it let through while it was used up, and what they cost.

A request is counted in the transaction that admits it, in the budget's period of that moment; its cost follows there
when it ends. Plain SQL with constant text.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from gwd.core.periods import Window, first_day, period_start_us
from gwd.store.connection import Connection

_COUNT: Final = (
    "INSERT INTO budget_would_refuse (budget_id, first_day, requests, first_at, last_at) VALUES (?1, ?2, 1, ?3, ?3)"
    " ON CONFLICT (budget_id, first_day) DO UPDATE SET requests = requests + 1, last_at = excluded.last_at"
)
_OPEN: Final = (
    "INSERT INTO budget_would_refuse_open (budget_id, first_day, generation_id) VALUES (?, ?, ?)"
)
_COST: Final = (
    "UPDATE budget_would_refuse SET charged_nano = charged_nano + ?2, byok_nano = byok_nano + ?3"
    " WHERE (budget_id, first_day) IN"
    " (SELECT budget_id, first_day FROM budget_would_refuse_open WHERE generation_id = ?1)"
)
_END: Final = "DELETE FROM budget_would_refuse_open WHERE generation_id = ?"
_OF_PERIOD: Final = (
    "SELECT requests, charged_nano, byok_nano, first_at, last_at FROM budget_would_refuse"
    " WHERE budget_id = ? AND first_day = ?"
)


class WouldRefuse(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one period that a budget would have refused; amounts in nano-USD, times None for none."""

    requests: int = 0
    charged_nano: int = 0
    byok_nano: int = 0
    first_at_us: int | None = None
    last_at_us: int | None = None

    def cost_nano(self, *, include_byok: bool) -> int:
        """What they cost so far, as the budget counts it; requests under way have cost nothing yet."""
        return self.charged_nano + self.byok_nano if include_byok else self.charged_nano


def count(
    connection: Connection,
    budgets: Sequence[tuple[str, Window]],
    generation_id: str,
    *,
    at_us: int,
) -> None:
    """Count a request that was just admitted for each of the budgets (id, interval) that would have refused it."""
    for budget_id, interval in budgets:
        first = first_day(interval, at_us)
        connection.execute(_COUNT, (budget_id, first, at_us))
        connection.execute(_OPEN, (budget_id, first, generation_id))


def end(connection: Connection, generation_id: str, *, charged_nano: int, byok_nano: int) -> None:
    """Add what a request cost wherever it was counted; it has ended, so a second call changes nothing."""
    if charged_nano or byok_nano:
        connection.execute(_COST, (generation_id, charged_nano, byok_nano))
    connection.execute(_END, (generation_id,))


def forget(connection: Connection, budget_id: str) -> None:
    """Drop all that was counted for a budget: it ends, or refuses from now on."""
    connection.execute("DELETE FROM budget_would_refuse_open WHERE budget_id = ?", (budget_id,))
    connection.execute("DELETE FROM budget_would_refuse WHERE budget_id = ?", (budget_id,))


def in_period(connection: Connection, budget_id: str, interval: Window, at_us: int) -> WouldRefuse:
    """What was counted in the period that holds `at_us`."""
    return _of_period(connection, budget_id, first_day(interval, at_us))


def in_last_period(
    connection: Connection, budget_id: str, interval: Window, at_us: int
) -> WouldRefuse | None:
    """What was counted in the period before it; None for a lifetime, which has none before."""
    if interval == "lifetime":
        return None
    before_us = period_start_us(interval, at_us) - 1
    return _of_period(connection, budget_id, first_day(interval, before_us))


def _of_period(connection: Connection, budget_id: str, first: int) -> WouldRefuse:
    row = connection.row(_OF_PERIOD, (budget_id, first))
    if row is None:
        return WouldRefuse()
    requests, charged_nano, byok_nano, first_at_us, last_at_us = row
    return WouldRefuse(
        requests=requests,
        charged_nano=charged_nano,
        byok_nano=byok_nano,
        first_at_us=first_at_us,
        last_at_us=last_at_us,
    )
