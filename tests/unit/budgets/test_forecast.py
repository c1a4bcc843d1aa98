"""Forecasts are linear, in integers, and never before now."""

from hypothesis import given
from hypothesis import strategies as st

from gwd.budgets.forecast import HORIZON_US, MIN_ELAPSED_US, Forecast, for_lifetime, in_period

DAY = 86_400_000_000
USD = 1_000_000_000


def test_half_spent_in_a_quarter_is_gone_at_half_time() -> None:
    start = 1_000 * DAY
    found = in_period(
        50 * USD, 100 * USD, start_us=start, end_us=start + 40 * DAY, now_us=start + 10 * DAY
    )
    assert found == Forecast(projected_nano=200 * USD, exhausts_at_us=start + 20 * DAY)


def test_spending_that_fits_never_exhausts() -> None:
    start = 1_000 * DAY
    found = in_period(
        10 * USD, 100 * USD, start_us=start, end_us=start + 40 * DAY, now_us=start + 10 * DAY
    )
    assert found == Forecast(projected_nano=40 * USD, exhausts_at_us=None)


def test_the_first_minutes_count_as_an_hour() -> None:
    start = 1_000 * DAY
    found = in_period(
        1 * USD, 100 * USD, start_us=start, end_us=start + DAY, now_us=start + 60_000_000
    )
    assert found.projected_nano is not None
    assert found.projected_nano < 25 * USD
    assert found.exhausts_at_us is None


def test_a_used_up_budget_is_exhausted_now() -> None:
    start = 1_000 * DAY
    found = in_period(100 * USD, 100 * USD, start_us=start, end_us=start + DAY, now_us=start + 5)
    assert found.exhausts_at_us == start + 5


def test_a_lifetime_goes_on_at_the_rate_of_the_last_days() -> None:
    now = 1_000 * DAY
    found = for_lifetime(30 * USD, 100 * USD, recent_nano=7 * USD, recent_us=7 * DAY, now_us=now)
    assert found == Forecast(projected_nano=None, exhausts_at_us=now + 70 * DAY)
    idle = for_lifetime(30 * USD, 100 * USD, recent_nano=0, recent_us=7 * DAY, now_us=now)
    assert idle.exhausts_at_us is None


@given(
    st.integers(0, 10**18),
    st.integers(1, 10**18),
    st.integers(0, 31 * DAY),
    st.integers(0, 31 * DAY),
)
def test_a_forecast_is_never_less_than_spent_nor_before_now(
    spent: int, limit: int, elapsed: int, left: int
) -> None:
    start = 20_000 * DAY
    now = start + elapsed
    found = in_period(spent, limit, start_us=start, end_us=now + left, now_us=now)
    assert found.projected_nano is not None
    assert found.projected_nano >= spent
    if found.exhausts_at_us is not None:
        assert now <= found.exhausts_at_us < now + left
        assert spent >= limit or found.projected_nano + spent // MIN_ELAPSED_US + 1 >= limit


@given(st.integers(0, 10**15), st.integers(1, 10**15), st.integers(0, 10**15))
def test_a_lifetime_forecast_stays_within_a_hundred_years(
    spent: int, limit: int, recent: int
) -> None:
    now = 20_000 * DAY
    found = for_lifetime(spent, limit, recent_nano=recent, recent_us=6 * DAY, now_us=now)
    if found.exhausts_at_us is not None:
        assert now <= found.exhausts_at_us < now + HORIZON_US
