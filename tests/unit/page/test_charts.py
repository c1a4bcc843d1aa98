"""Drawings: shapes add up to what they show, words of others are text."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from gwd.page import charts
from gwd.page.charts import bars, burn_down, legend, meter, round_top, stacked

DAYS = [date(2026, 11, 1) + timedelta(days=n) for n in range(28)]


def test_the_largest_five_have_a_colour_and_the_rest_is_one():
    amounts = {f"m{n}": {DAYS[0]: Decimal(n), DAYS[1]: Decimal(1)} for n in range(9)}
    chart = stacked(DAYS, amounts, rest="models")
    assert [each.name for each in chart.series] == ["m8", "m7", "m6", "m5", "m4", "4 other models"]
    assert [each.colour for each in chart.series] == ["c1", "c2", "c3", "c4", "c5", "c0"]
    assert chart.totals[0] == sum(range(9))
    assert chart.total == sum(range(9)) + 9
    assert sum(each.total for each in chart.series) == chart.total


def test_six_need_no_rest():
    chart = stacked(DAYS, {f"m{n}": {DAYS[0]: 1} for n in range(6)}, rest="models")
    assert [each.colour for each in chart.series] == ["c1", "c2", "c3", "c4", "c5", "c0"]
    assert "other" not in chart.series[-1].name


def test_names_in_a_chart_are_text():
    chart = stacked(DAYS, {'<script>"': {DAYS[0]: 1}}, rest="models")
    assert "<script" not in bars(chart, what='"><script>') + legend(chart)


def test_nothing_makes_an_empty_chart_and_no_error():
    for days in ([], DAYS[:1], DAYS):
        chart = stacked(days, {}, rest="models")
        assert chart.is_empty
        assert "</svg>" in bars(chart, what="Spend")


@pytest.mark.parametrize(
    "highest", ["0", "0.000000001", "0.3", "1", "7.99", "168.8", "999999", "1e9"]
)
def test_the_scale_ends_at_a_round_number_above(highest):
    for parts in (2, 4):
        top = round_top(Decimal(highest), parts=parts)
        assert top >= Decimal(highest)
        assert len((top / parts).normalize().as_tuple().digits) <= 2


def test_bars_are_as_high_as_what_they_show():
    chart = stacked(
        DAYS[:2], {"a": {DAYS[0]: Decimal(50)}, "b": {DAYS[0]: Decimal(50)}}, rest="models"
    )
    drawn = bars(chart, what="Spend")
    heights = [int(found) for found in re.findall(r'class="c\d" d="M[\d.]+ \d+h7\.2v(\d+)', drawn)]
    assert heights == [493, 493]  # of 1000, each less the gap


@pytest.mark.parametrize(("used", "limit", "expected", "state"), [
    (0, 100, None, "ok"), (79, 100, None, "ok"), (80, 100, None, "warn"), (100, 100, None, "bad"),
    (10, 100, 110, "warn"), (110, 100, 120, "bad"), (0, 0, None, "bad"),
])  # fmt: skip
def test_a_meter_says_how_a_limit_stands(used, limit, expected, state):
    drawn = meter(used, limit, what="it", expected=expected)
    assert f'class="meter {state}"' in drawn
    widths = [Decimal(found) for found in re.findall(r'width="([\d.]+)%"', drawn)]
    assert all(0 <= width <= 100 for width in widths)


def test_a_balance_goes_down_to_its_end():
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    points = [(datetime(2026, 11, 1, tzinfo=UTC), Decimal(0)), (now, Decimal("-3"))]
    for a_day in (Decimal(0), Decimal("0.000000001"), Decimal(10**6)):
        assert "</svg>" in burn_down(points, now=now, a_day=a_day, what="Balance")
        assert "</svg>" in burn_down([(now, Decimal(5))], now=now, a_day=a_day, what="Balance")


def test_a_life_is_drawn_within_its_months():
    drawn = charts.life(
        date(2026, 9, 1), date(2027, 6, 1), date(2026, 11, 28), since=None,
        deprecated=date(2026, 6, 11), retired=date(2026, 12, 11), what="a model",
    )  # fmt: skip
    assert 'class="on" x="0.0%" width="0.0%"' in drawn
    assert 'class="dep" x="0.0%"' in drawn
