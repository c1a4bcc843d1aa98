"""Windows in UTC: days, weeks from Monday, months, and the lifetime."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gwd.core import periods
from gwd.core.clock import US_PER_DAY
from gwd.core.periods import Window

moments = st.integers(min_value=0, max_value=4_102_444_800_000_000)
bounded = st.sampled_from(("daily", "weekly", "monthly"))


def _us(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000_000)


@given(bounded, moments)
def test_a_moment_lies_in_its_period(window: Window, at_us: int):
    end = periods.period_end_us(window, at_us)
    assert end is not None
    assert periods.period_start_us(window, at_us) <= at_us < end


@given(bounded, moments)
def test_periods_follow_each_other_without_a_gap(window: Window, at_us: int):
    end = periods.period_end_us(window, at_us)
    assert end is not None
    assert periods.period_start_us(window, end) == end
    assert periods.period_end_us(window, end - 1) == end


@given(bounded, moments)
def test_a_period_begins_at_midnight_utc(window: Window, at_us: int):
    assert periods.period_start_us(window, at_us) % US_PER_DAY == 0


@given(moments)
def test_weeks_begin_on_monday_and_months_on_the_first(at_us: int):
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    week = epoch + timedelta(microseconds=periods.period_start_us("weekly", at_us))
    month = epoch + timedelta(microseconds=periods.period_start_us("monthly", at_us))
    assert week.weekday() == 0
    assert month.day == 1


@given(moments)
def test_a_lifetime_never_ends(at_us: int):
    assert periods.period_start_us("lifetime", at_us) == 0
    assert periods.period_end_us("lifetime", at_us) is None


def test_the_last_second_of_july_is_july_and_the_next_is_august():
    last = _us("2026-07-31T23:59:59Z")
    first = _us("2026-08-01T00:00:00Z")
    assert periods.period_end_us("monthly", last) == first
    assert periods.period_start_us("monthly", first) == first


def test_february_has_29_days_in_a_leap_year():
    at = _us("2028-02-10T12:00:00Z")
    assert periods.period_end_us("monthly", at) == _us("2028-03-01T00:00:00Z")


def test_sunday_night_belongs_to_the_week_that_began_on_monday():
    assert periods.period_start_us("weekly", _us("2026-03-15T23:59:59Z")) == _us(
        "2026-03-09T00:00:00Z"
    )
