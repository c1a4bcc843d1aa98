"""Numbers and times as people read them: rounded once, half up, never through a float."""

from datetime import date
from decimal import Decimal

import pytest

from gwd.page import formats


@pytest.mark.parametrize(("amount", "text"), [
    ("0", "$0.00"), ("0.004999999", "<$0.01"), ("0.005", "$0.01"), ("-0.000000001", "−<$0.01"),
    ("1234.565", "$1,234.57"), ("-1234.5", "−$1,234.50"), ("8999999999.999999999", "$9,000,000,000.00"),
])  # fmt: skip
def test_money_in_cents(amount, text):
    assert formats.usd(Decimal(amount)) == text


@pytest.mark.parametrize(("amount", "fine", "nine"), [
    ("0", "$0", "0"), ("0.0073484", "$0.007348", "0.007348400"), ("0.0000005", "$0.000001", "0.000000500"),
    ("-1", "−$1.000000", "−1.000000000"), ("12", "$12.000000", "12.000000000"),
])  # fmt: skip
def test_money_of_one_request(amount, fine, nine):
    assert formats.usd_fine(Decimal(amount)) == fine
    assert formats.nine(Decimal(amount)) == nine


def test_an_exact_amount_keeps_all_nine_places():
    assert (
        formats.exact(Decimal("-1786.630123456")) == '−$1,786.63<small class="tail">0123456</small>'
    )
    assert formats.exact(0) == '$0.00<small class="tail">0000000</small>'


@pytest.mark.parametrize(("price", "text"), [
    ("2", "2.00"), ("0.075", "0.075"), ("0.10", "0.10"), ("0.0375", "0.0375"), ("10.500", "10.50"),
])  # fmt: skip
def test_prices_have_two_places_or_more(price, text):
    assert formats.price(Decimal(price)) == text


def test_used_is_rounded_down_so_that_100_means_reached():
    assert formats.used(Decimal("99.999"), 100) == 99
    assert formats.used(100, 100) == 100
    assert formats.used(0, 0) == 100
    assert formats.percent(0, 0) == "0 %"
    assert formats.percent(1, 200) == "0.5 %"
    assert formats.percent(Decimal("43.25"), 100) == "43 %"


@pytest.mark.parametrize(("ms", "text"), [
    (0, "0 ms"), (999, "999 ms"), (1000, "1.0 s"), (4149, "4.1 s"), (125_000, "2 min 5 s"),
])  # fmt: skip
def test_durations(ms, text):
    assert formats.duration(ms) == text


def test_counts():
    assert [
        formats.short_count(n) for n in (999, 9_999, 12_400, 1_000_000, 12_450_000, 3 * 10**9)
    ] == [
        "999",
        "9,999",
        "12.4 k",
        "1 M",
        "12.4 M",
        "3 G",
    ]


def test_times_are_utc_and_say_so():
    at = "2026-11-28T17:05:09+01:00"
    assert (
        formats.long_time(at)
        == '<time datetime="2026-11-28T16:05:09Z">28 Nov 2026, 16:05 UTC</time>'
    )
    assert formats.clock(at) == '<time datetime="2026-11-28T16:05:09Z">16:05:09</time>'
    assert "3 Sep" in formats.last("2026-09-03T00:00:00Z", date(2026, 11, 28))
    assert formats.span(date(2026, 11, 1), date(2026, 11, 28)) == "1 to 28 November 2026"
    assert (
        formats.span(date(2025, 12, 31), date(2026, 1, 1)) == "31 December 2025 to 1 January 2026"
    )


def test_texts_of_others_lose_what_cannot_be_seen_and_are_cut():
    assert formats.shown("a\x00b\u202ec\u200bd\x1be\ud800f") == "abcdef"
    assert formats.shown("two\nlines") == "two lines"
    assert len(formats.shown("x" * 10_000)) == formats.MOST
    assert formats.shown(formats.Whole("x" * 10_000)) == "x" * 10_000
    assert formats.shown(None) == "–"
