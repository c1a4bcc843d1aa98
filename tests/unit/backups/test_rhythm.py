"""When a copy is due, and which copies stay."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gwd.backups import rhythm
from gwd.backups.directory import Copy
from gwd.backups.rhythm import Keep
from gwd.backups.standing import Standing
from gwd.core.clock import US_PER_DAY

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)  # a Sunday
HOUR_US = rhythm.HOUR_US
KEEP = Keep(hourly=24, daily=14, weekly=8)


def us(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000


def test_words_of_the_settings_are_read() -> None:
    assert [rhythm.read_every(text) for text in ("15m", "1h", "2d")] == [
        HOUR_US // 4,
        HOUR_US,
        2 * US_PER_DAY,
    ]
    assert rhythm.read_keep("24h 14d 8w") == KEEP


def test_of_a_year_of_hours_the_last_of_each_hour_day_and_week_stays() -> None:
    times = [us(NOON - timedelta(hours=hours)) for hours in range(366 * 24)]
    stay = sorted(rhythm.kept(times, KEEP), reverse=True)
    hours = [us(NOON - timedelta(hours=number)) for number in range(24)]
    days = [us(NOON.replace(hour=23) - timedelta(days=number)) for number in range(1, 14)]
    sundays = [us(NOON.replace(hour=23) - timedelta(weeks=number)) for number in range(1, 8)]
    assert stay == sorted({*hours, *days, *sundays}, reverse=True)


def test_thinning_each_hour_leaves_what_thinning_once_leaves() -> None:
    held: set[int] = set()
    times = [us(NOON - timedelta(hours=hours)) for hours in range(90 * 24)]
    for at_us in sorted(times):
        held = rhythm.kept({*held, at_us}, KEEP)
    assert held == rhythm.kept(times, KEEP)


@pytest.mark.parametrize("keep", [Keep(hourly=1, daily=0, weekly=0), KEEP])
def test_the_newest_always_stays(keep: Keep) -> None:
    times = [us(NOON + timedelta(minutes=number)) for number in range(200)]
    for count in (1, 2, 60, 200):
        assert max(times[:count]) in rhythm.kept(times[:count], keep)
    assert rhythm.kept([], keep) == set()


def test_copies_of_before_a_long_stop_stay() -> None:
    """Hours count that have a copy: a node that was off for a year does not lose its day of hours at once."""
    before = [us(NOON - timedelta(days=365, hours=number)) for number in range(24)]
    stay = rhythm.kept([*before, us(NOON)], KEEP)
    assert len(stay & set(before)) == 23


def test_a_copy_is_due_by_the_newest_and_a_failed_try_waits() -> None:
    def due(newest_us: int | None, tried_us: int | None, now_us: int) -> bool:
        return rhythm.is_due(newest_us, tried_us, every_us=HOUR_US, now_us=now_us)

    assert due(None, None, 5 * HOUR_US)
    assert not due(4 * HOUR_US + 1, None, 5 * HOUR_US)
    assert due(4 * HOUR_US, 4 * HOUR_US, 5 * HOUR_US)
    assert not due(None, 5 * HOUR_US - rhythm.RETRY_US + 1, 5 * HOUR_US)
    assert due(None, 5 * HOUR_US - rhythm.RETRY_US, 5 * HOUR_US)
    assert due(None, 9 * HOUR_US, 5 * HOUR_US), "the clock was ahead at the last try"


def copy_of(made_us: int) -> Copy:
    return Copy(
        path=Path("gwd.db"), made_us=made_us, size_bytes=7, sha256="", entries=1, by_clock=True
    )


def test_overdue_is_twice_the_gap_and_a_start_is_given_time() -> None:
    began_us = 100 * HOUR_US
    standing = Standing(directory="/b", every_us=HOUR_US, began_us=began_us)
    assert not standing.is_overdue(began_us + 2 * HOUR_US)
    assert standing.is_overdue(began_us + 2 * HOUR_US + 1)
    standing.failure = "no room"
    assert standing.is_overdue(began_us), "nothing, and the first try failed"
    standing.take([copy_of(98 * HOUR_US)], began_us)
    assert not standing.is_overdue(began_us)
    assert standing.is_overdue(began_us + 1)
    assert not standing.is_well
    standing.failure = ""
    assert not standing.is_overdue(began_us + 1), "after a stop it has not tried yet"
    assert standing.is_well


def test_a_copy_from_the_future_is_not_the_newest() -> None:
    standing = Standing(directory="/b", every_us=HOUR_US, began_us=0)
    standing.take([copy_of(9 * HOUR_US), copy_of(99 * HOUR_US)], 10 * HOUR_US)
    assert standing.age_us(10 * HOUR_US) == HOUR_US
    assert (standing.count, standing.size_bytes) == (2, 14)
