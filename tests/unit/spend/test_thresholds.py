"""Thresholds speak for what was newly reached, highest first, in whole arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from gwd.core.clock import us_from_iso
from gwd.spend.thresholds import crossing, mark_name, reached, severity

AMOUNTS = st.integers(0, 10**18)
LIMITS = st.integers(1, 10**18)
PERCENTS = st.sets(st.integers(1, 100), max_size=6).map(tuple)


def test_default_thresholds_of_one_dollar() -> None:
    """Alerts fire at 50, 80, 90 and 100 percent."""
    steps = [499_999_999, 500_000_000, 799_999_999, 900_000_000, 1_000_000_000, 5_000_000_000]
    limit = 1_000_000_000
    found = []
    before = 0
    for after in steps:
        over = crossing(
            before, after, limit, (100, 50, 90, 80), subject="s", window="daily", at_us=0
        )
        found.append(None if over is None else (over.threshold_percent, over.thresholds_crossed))
        before = after
    assert found == [None, (50, (50,)), None, (90, (80, 90)), (100, (100,)), None]


def test_a_limit_of_zero_has_no_percentages() -> None:
    assert crossing(0, 10, 0, (50, 100), subject="s", window="daily", at_us=0) is None


@given(st.lists(AMOUNTS, max_size=8), LIMITS, PERCENTS)
def test_each_threshold_is_crossed_once_however_spending_arrives(
    charges: list[int], limit_nano: int, percents: tuple[int, ...]
) -> None:
    spent_nano = 0
    crossed: list[int] = []
    for charge in charges:
        over = crossing(
            spent_nano,
            spent_nano + charge,
            limit_nano,
            percents,
            subject="s",
            window="daily",
            at_us=0,
        )
        spent_nano += charge
        if over is not None:
            assert over.threshold_percent == max(over.thresholds_crossed)
            crossed += over.thresholds_crossed
    assert crossed == sorted(set(crossed))
    assert tuple(crossed) == reached(spent_nano, limit_nano, percents)


@given(AMOUNTS, LIMITS)
def test_the_last_threshold_is_reached_exactly_when_the_limit_is(
    spent_nano: int, limit_nano: int
) -> None:
    assert (100 in reached(spent_nano, limit_nano, (50, 100))) == (spent_nano >= limit_nano)


def test_a_mark_is_new_in_each_period_and_the_same_within() -> None:
    def name(at: str) -> str:
        return mark_name("key_limit:fam", "weekly", us_from_iso(at))

    assert name("2026-11-23T00:00:00Z") == name("2026-11-29T23:59:59Z")
    assert name("2026-11-29T23:59:59Z") != name("2026-11-30T00:00:00Z")


def test_severity_follows_the_percentage() -> None:
    assert [severity(percent, refuses=True) for percent in (50, 80, 90, 100)] == [
        "info",
        "warning",
        "warning",
        "critical",
    ]
    assert severity(100, refuses=False) == "warning"
