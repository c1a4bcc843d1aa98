"""Spend counters at the edges of windows, all in UTC."""

import pytest

from gwd import spend
from gwd.core.clock import us_from_iso
from gwd.core.periods import WINDOWS, Window
from gwd.store.connection import Connection
from tests.support.store import connection

__all__ = ["connection"]


def count(connection: Connection, at: str, charged_nano: int, byok_nano: int = 0) -> None:
    spend.add(
        connection,
        ("org_1", "ws_1", "key_1"),
        charged_nano=charged_nano,
        byok_nano=byok_nano,
        at_us=us_from_iso(at),
    )


def total(connection: Connection, window: Window, at: str, *, include_byok: bool = False) -> int:
    return spend.total_nano(
        connection, "key_1", window, at_us=us_from_iso(at), include_byok=include_byok
    )


@pytest.mark.parametrize(
    ("window", "last", "first"),
    [
        ("daily", "2026-11-27T23:59:59.999Z", "2026-11-28T00:00:00Z"),
        ("weekly", "2026-11-29T23:59:59.999Z", "2026-11-30T00:00:00Z"),
        ("monthly", "2026-07-31T23:59:59.999Z", "2026-08-01T00:00:00Z"),
        ("monthly", "2028-02-29T23:59:59.999Z", "2028-03-01T00:00:00Z"),
        ("daily", "2028-02-28T23:59:59.999Z", "2028-02-29T00:00:00Z"),
        ("weekly", "2026-01-04T23:59:59.999Z", "2026-01-05T00:00:00Z"),
        ("monthly", "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z"),
    ],
)
def test_a_window_ends_with_the_last_microsecond_before_its_edge(
    connection: Connection, window: Window, last: str, first: str
) -> None:
    count(connection, last, 5)
    assert total(connection, window, last) == 5
    assert total(connection, window, first) == 0
    count(connection, first, 7)
    assert total(connection, window, first) == 7
    assert total(connection, "lifetime", first) == 12


@pytest.mark.parametrize(
    ("window", "inside"),
    [
        ("weekly", "2026-11-23T00:00:00Z"),
        ("monthly", "2026-11-01T00:00:00Z"),
        ("lifetime", "2020-02-29T12:00:00Z"),
    ],
)
def test_a_window_counts_from_its_first_microsecond(
    connection: Connection, window: Window, inside: str
) -> None:
    count(connection, inside, 5)
    assert total(connection, window, "2026-11-27T22:00:00Z") == 5


def test_a_month_end_inside_a_week_splits_the_month_alone(connection: Connection) -> None:
    count(connection, "2026-09-30T12:00:00Z", 5)
    assert total(connection, "weekly", "2026-10-01T12:00:00Z") == 5
    assert total(connection, "monthly", "2026-10-01T12:00:00Z") == 0


def test_an_offset_means_the_utc_moment(connection: Connection) -> None:
    count(connection, "2026-08-01T08:30:00+09:00", 5)
    assert total(connection, "monthly", "2026-07-31T23:59:59Z") == 5
    assert total(connection, "monthly", "2026-08-01T00:00:00Z") == 0


def test_own_key_spend_counts_only_where_it_is_included(connection: Connection) -> None:
    count(connection, "2026-11-27T12:00:00Z", 5, byok_nano=100)
    assert total(connection, "daily", "2026-11-27T13:00:00Z") == 5
    assert total(connection, "daily", "2026-11-27T13:00:00Z", include_byok=True) == 105
    assert spend.totals(
        connection, "org_1", WINDOWS, at_us=us_from_iso("2026-11-27T13:00:00Z")
    ) == dict.fromkeys(WINDOWS, (5, 100))


def test_nothing_spent_leaves_no_counter(connection: Connection) -> None:
    count(connection, "2026-11-27T12:00:00Z", 0)
    assert connection.rows("SELECT * FROM spend") == []
    assert total(connection, "lifetime", "2026-11-27T12:00:00Z") == 0
