"""Counters of what was charged: add at settlement, total over a window's current period."""

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from gwd.core.clock import US_PER_DAY
from gwd.core.periods import WINDOWS, Window, day_of, first_day
from gwd.store import Connection, cached

LIFETIME_DAY: Final = 0

# What the writer remembers of one scope: (charged, own-key list price) by window and first day of its period.
Sums = dict[tuple[Window, int], tuple[int, int]]

_ADD: Final = (
    "INSERT INTO spend (scope_id, day, charged_nano, byok_nano) VALUES {}"
    " ON CONFLICT (scope_id, day) DO UPDATE SET charged_nano = charged_nano + excluded.charged_nano,"
    " byok_nano = byok_nano + excluded.byok_nano"
)
_ROWS: Final = "(?{0}, ?1, ?2, ?3), (?{0}, 0, ?2, ?3)"
_SINCE: Final = (
    "SELECT COALESCE(SUM(charged_nano), 0), COALESCE(SUM(byok_nano), 0) FROM spend"
    " WHERE scope_id = ? AND day >= ?"
)
_AROUND: Final = (
    "SELECT COALESCE(SUM(charged_nano) FILTER (WHERE day < ?2), 0),"
    " COALESCE(SUM(charged_nano) FILTER (WHERE day >= ?2 AND day < ?3), 0),"
    " COALESCE(SUM(charged_nano) FILTER (WHERE day >= ?3), 0) FROM spend WHERE scope_id = ?1 AND day > 0"
)
_LIFETIME: Final = "SELECT charged_nano, byok_nano FROM spend WHERE scope_id = ? AND day = 0"


class Around(NamedTuple):
    """What was charged before, in and after a stretch of days, in nano-USD."""

    before_nano: int
    nano: int
    after_nano: int


def add(
    connection: Connection,
    spend_ids: Sequence[str],
    *,
    charged_nano: int,
    byok_nano: int,
    at_us: int,
) -> None:
    """Count one settled request for each scope: its organization, workspace, key family, tags and user.

    `at_us` is the ledger time of the settlement; `byok_nano` the list price of a request on the owner's own key.
    """
    if not charged_nano and not byok_nano:
        return
    day = day_of(at_us)
    assert day > LIFETIME_DAY
    firsts = {window: first_day(window, at_us) for window in WINDOWS}
    connection.execute(_adding(len(spend_ids)), (day, charged_nano, byok_nano, *spend_ids))
    for spend_id in spend_ids:
        sums = _sums.peek(connection, spend_id) or {}
        for (window, first), (charged_before, byok_before) in sums.items():
            if first == firsts[window]:
                sums[window, first] = (charged_before + charged_nano, byok_before + byok_nano)


@cache
def _adding(scopes: int) -> str:
    """The statement that adds to the day and the lifetime of so many scopes, no two the same."""
    return _ADD.format(", ".join(_ROWS.format(4 + place) for place in range(scopes)))


def total_nano(
    connection: Connection, spend_id: str, window: Window, *, at_us: int, include_byok: bool
) -> int:
    """What was spent in the window's period that holds `at_us`."""
    charged_nano, byok_nano = _pair(connection, spend_id, window, at_us)
    return charged_nano + byok_nano if include_byok else charged_nano


def totals(
    connection: Connection, spend_id: str, windows: Sequence[Window], *, at_us: int
) -> dict[Window, tuple[int, int]]:
    """(charged, own-key list price) for each window's period that holds `at_us`."""
    return {window: _pair(connection, spend_id, window, at_us) for window in windows}


def between_nano(
    connection: Connection, spend_id: str, *, from_us: int, to_us: int, include_byok: bool
) -> int:
    """What was spent on the whole UTC days from that of `from_us` to that of `to_us`, both included."""
    row = connection.row(
        f"{_SINCE} AND day <= ?", (spend_id, max(1, from_us // US_PER_DAY), day_of(to_us))
    )
    assert row is not None
    return int(row[0] + row[1] if include_byok else row[0])


def charged_around(
    connection: Connection, spend_id: str, *, first_day: int, end_day: int
) -> Around:
    """What was charged before, in and after the UTC days from `first_day` to the one before `end_day`."""
    row = connection.row(_AROUND, (spend_id, first_day, end_day))
    assert row is not None
    return Around(*row)


def _pair(connection: Connection, spend_id: str, window: Window, at_us: int) -> tuple[int, int]:
    period = (window, first_day(window, at_us))
    sums = _sums(connection, spend_id)
    if period not in sums:
        sums[period] = _find(connection, spend_id, *period)
    return sums[period]


@cached("spend")
def _sums(_: Connection, spend_id: str) -> Sums:
    """The sums of a scope that were asked for: none at first; each is found when it is first wanted."""
    return {}


def _find(connection: Connection, spend_id: str, window: Window, first: int) -> tuple[int, int]:
    of_period = (_LIFETIME, (spend_id,)) if window == "lifetime" else (_SINCE, (spend_id, first))
    row = connection.row(*of_period)
    return (0, 0) if row is None else (row[0], row[1])
