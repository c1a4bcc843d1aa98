"""Money is integers; text and JSON at the edges lose nothing."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core import money

amounts_nano = st.integers(min_value=-money.MAX_NANO, max_value=money.MAX_NANO)
tokens = st.integers(min_value=0, max_value=10_000_000)
prices_pico = st.integers(min_value=0, max_value=money.PICO_PER_USD)


@given(tokens, prices_pico)
def test_a_class_of_cost_is_rounded_once_half_up(count: int, price: int):
    exact = Decimal(count) * price / money.PICO_PER_NANO
    rounded = money.nano_from_pico(count * price)
    assert rounded - exact <= Decimal("0.5")
    assert exact - rounded < Decimal("0.5")


def test_half_a_nano_is_charged_as_one():
    assert money.nano_from_pico(500) == 1
    assert money.nano_from_pico(499) == 0


@given(
    st.integers(min_value=0, max_value=money.MAX_NANO), st.integers(min_value=0, max_value=10_000)
)
def test_a_percentage_fee_never_overcharges(amount: int, bps: int):
    fee = money.fee_nano(amount, bps)
    assert 0 <= Decimal(amount) * bps / 10_000 - fee < 1


@given(st.integers(min_value=0, max_value=money.MAX_INPUT_USD * money.NANO_PER_USD))
def test_usd_text_reads_back_to_the_same_amount(nano: int):
    assert money.nano_from_usd(Decimal(money.usd_text(nano))) == nano


@given(amounts_nano)
def test_usd_text_is_plain(nano: int):
    text = money.usd_text(nano)
    assert "e" not in text.lower()
    assert not ("." in text and text.endswith(("0", ".")))
    assert Decimal(text) * money.NANO_PER_USD == nano


@given(prices_pico)
def test_price_text_reads_back_to_the_same_price(pico: int):
    assert money.pico_from_price(money.price_text(pico)) == pico


@given(amounts_nano)
def test_usd_json_is_a_number_that_keeps_every_digit(nano: int):
    body = msgspec.json.encode({"cost": money.usd_json(nano)})
    read = msgspec.json.decode(body, type=dict[str, Decimal], strict=False)
    assert read["cost"] * money.NANO_PER_USD == nano


def test_per_million_is_the_price_of_a_million_tokens():
    assert bytes(money.per_million_json(37_500)) == b"0.0375"
    assert bytes(money.per_million_json(3_000_000)) == b"3"


@pytest.mark.parametrize(
    ("amount", "why"),
    [
        (Decimal("-0.01"), "negative"),
        (Decimal("NaN"), "finite"),
        (Decimal("Infinity"), "finite"),
        (Decimal("0.0000000001"), "at most 9 decimals"),
        (Decimal("1.0000000001"), "at most 9 decimals"),
        (Decimal("1." + "0" * 60 + "1"), "at most 9 decimals"),
        (Decimal("1e-999999999"), "at most 9 decimals"),
        (Decimal("1000000.01"), "at most 1000000"),
        (Decimal("1e999999999"), "at most 1000000"),
    ],
)
def test_an_amount_that_cannot_be_taken_says_why(amount: Decimal, why: str):
    with pytest.raises(money.MoneyError, match=why):
        money.nano_from_usd(amount)


@pytest.mark.parametrize("price", ["", "free", "0x1", "1,5", "-0.1", "1.1", "0.0000000000001"])
def test_a_price_that_cannot_be_taken_is_refused(price: str):
    with pytest.raises(money.MoneyError):
        money.pico_from_price(price)


@pytest.mark.parametrize("text", ["1." + "0" * 100, "0.1e1", "1", "0.00001e5"])
def test_an_amount_may_be_written_as_it_likes(text: str):
    assert money.nano_from_usd(Decimal(text)) == money.NANO_PER_USD


def test_an_exponent_in_a_price_means_what_it_says():
    assert money.pico_from_price("1.5E-7") == 150_000
