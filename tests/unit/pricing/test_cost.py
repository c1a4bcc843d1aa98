"""Cost: parts add up, tiers hold for the whole request, fees round down."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.cost import Cost, Price, PriceTier
from gwd.core.extras import Applied, Factor
from gwd.core.money import nano_from_usd, pico_from_price, price_text, usd_text
from gwd.core.usage import Usage
from gwd.pricing.cost import cost, rates_for
from tests.unit.pricing.builders import OPUS, TIERED

counts = st.integers(0, 2_000_000)
prices_pico = st.integers(0, 200_000_000)


def usages() -> st.SearchStrategy[Usage]:
    return st.builds(
        Usage,
        input=counts,
        cache_read=counts,
        cache_write_5m=counts,
        cache_write_1h=counts,
        output=counts,
        reasoning=counts,
        images=st.integers(0, 40),
    )


def rates() -> dict[str, st.SearchStrategy[int]]:
    names = ("prompt", "completion", "cache_read", "cache_write_5m", "cache_write_1h", "reasoning")
    return {f"{name}_pico": prices_pico for name in names}


def prices() -> st.SearchStrategy[Price]:
    tiers = st.lists(
        st.builds(PriceTier, above_prompt_tokens=st.integers(0, 1_000_000), **rates()), max_size=2
    ).map(tuple)
    return st.builds(
        Price,
        version=st.just("v1"),
        request_nano=st.integers(0, 10**9),
        image_nano=st.integers(0, 10**8),
        tiers=tiers,
        **rates(),
    )


def parts_of(made: Cost) -> int:
    return made.list_price_nano + made.platform_fee_nano


def test_each_class_is_charged_at_its_own_price() -> None:
    usage = Usage(
        input=1_000,
        cache_read=10_000,
        cache_write_5m=2_000,
        cache_write_1h=500,
        output=300,
        reasoning=200,
    )
    made = cost(usage, OPUS, insured=False)
    assert made == Cost(
        prompt_nano=4_000_000,
        cache_read_nano=2_000_000,
        cache_write_nano=14_000_000,
        completion_nano=6_000_000,
        reasoning_nano=4_000_000,
        total_nano=30_000_000,
        cache_discount_nano=34_000_000,
    )


@pytest.mark.parametrize(
    ("tokens", "price_pico", "nano"),
    [(1, 499, 0), (1, 500, 1), (3, 37_500, 113), (7, 37_500, 263), (1_000_000, 37_500, 37_500_000)],
)
def test_a_class_is_rounded_once_half_up(tokens: int, price_pico: int, nano: int) -> None:
    price = Price(
        version="v1",
        prompt_pico=price_pico,
        completion_pico=0,
        cache_read_pico=0,
        cache_write_5m_pico=0,
        cache_write_1h_pico=0,
        reasoning_pico=0,
    )
    assert cost(Usage(input=tokens), price, insured=False).prompt_nano == nano


def test_five_minute_and_one_hour_writes_are_one_class_and_rounded_together() -> None:
    price = Price(
        version="v1",
        prompt_pico=0,
        completion_pico=0,
        cache_read_pico=0,
        cache_write_5m_pico=400,
        cache_write_1h_pico=400,
        reasoning_pico=0,
    )
    assert cost(Usage(cache_write_5m=1, cache_write_1h=1), price, insured=False).total_nano == 1


def test_a_tier_begins_above_its_threshold_and_holds_for_every_token() -> None:
    at = cost(Usage(input=60_000, cache_read=40_000, output=100), TIERED, insured=False)
    above = cost(Usage(input=60_000, cache_read=40_001, output=100), TIERED, insured=False)
    assert at.total_nano == 60_000 * 100 + 40_000 * 10 + 100 * 500
    assert above.total_nano == 60_000 * 500 + 40_001 * 50 + 100 * 2_500


def test_output_tokens_do_not_reach_a_tier() -> None:
    assert (
        rates_for(TIERED, Usage(input=100_000, output=900_000).input_total).prompt_pico == 100_000
    )


def test_the_highest_tier_reached_counts_whatever_the_order() -> None:
    low, high = (
        TIERED.tiers[0],
        PriceTier(
            above_prompt_tokens=500_000,
            prompt_pico=9,
            completion_pico=9,
            cache_read_pico=9,
            cache_write_5m_pico=9,
            cache_write_1h_pico=9,
            reasoning_pico=9,
        ),
    )
    for tiers in ((low, high), (high, low)):
        price = Price(
            version="v1",
            prompt_pico=1,
            completion_pico=1,
            cache_read_pico=1,
            cache_write_5m_pico=1,
            cache_write_1h_pico=1,
            reasoning_pico=1,
            tiers=tiers,
        )
        assert rates_for(price, 500_001).prompt_pico == 9
        assert rates_for(price, 500_000).prompt_pico == 500_000


def test_images_are_inside_prompt_and_the_request_fee_is_its_own_part() -> None:
    price = Price(
        version="v1",
        prompt_pico=1_000_000,
        completion_pico=0,
        cache_read_pico=0,
        cache_write_5m_pico=0,
        cache_write_1h_pico=0,
        reasoning_pico=0,
        request_nano=700,
        image_nano=50,
    )
    made = cost(Usage(input=1, images=3), price, insured=False)
    assert (made.prompt_nano, made.request_fee_nano, made.total_nano) == (1_150, 700, 1_850)


def test_byok_charges_only_the_fee_and_shows_the_official_price() -> None:
    made = cost(Usage(input=1_000, output=1_000), OPUS, byok_fee_bps=500, insured=False)
    assert made.byok
    assert (made.prompt_nano, made.completion_nano) == (4_000_000, 20_000_000)
    assert made.platform_fee_nano == made.total_nano == 1_200_000


def test_a_byok_fee_of_zero_is_still_byok() -> None:
    made = cost(Usage(input=1_000), OPUS, byok_fee_bps=0, insured=False)
    assert made.byok
    assert made.total_nano == 0


@pytest.mark.parametrize("byok_fee_bps", [None, 500])
def test_an_insured_request_is_charged_nothing(byok_fee_bps: int | None) -> None:
    made = cost(Usage(input=1_000), OPUS, byok_fee_bps=byok_fee_bps, insured=True)
    assert made.insured
    assert (made.total_nano, made.platform_fee_nano) == (0, 0)
    assert made.prompt_nano == 4_000_000


@given(usages(), prices())
def test_the_parts_add_up_to_the_total(usage: Usage, price: Price) -> None:
    made = cost(usage, price, insured=False)
    assert parts_of(made) == made.total_nano >= 0


@given(usages(), prices(), st.integers(0, 10_000))
def test_a_fee_never_exceeds_its_percentage(usage: Usage, price: Price, fee_bps: int) -> None:
    made = cost(usage, price, byok_fee_bps=fee_bps, insured=False)
    assert made.total_nano == made.platform_fee_nano
    assert made.platform_fee_nano * 10_000 <= made.list_price_nano * fee_bps
    assert made.list_price_nano * fee_bps < (made.platform_fee_nano + 1) * 10_000


@given(usages(), usages(), prices().filter(lambda price: not price.tiers))
def test_more_tokens_never_cost_less(usage: Usage, more: Usage, price: Price) -> None:
    both = Usage(
        input=usage.input + more.input,
        cache_read=usage.cache_read + more.cache_read,
        cache_write_5m=usage.cache_write_5m + more.cache_write_5m,
        cache_write_1h=usage.cache_write_1h + more.cache_write_1h,
        output=usage.output + more.output,
        reasoning=usage.reasoning + more.reasoning,
        images=usage.images + more.images,
    )
    assert (
        cost(both, price, insured=False).total_nano >= cost(usage, price, insured=False).total_nano
    )


@given(st.integers(0, 10**15))
def test_an_amount_survives_being_written_and_read(nano: int) -> None:
    assert nano_from_usd(Decimal(usd_text(nano))) == nano


@given(st.integers(0, 10**12))
def test_a_price_survives_being_written_and_read(pico: int) -> None:
    assert pico_from_price(price_text(pico)) == pico


class TestCacheDiscount:
    """What the prompt would cost more if the vendor had no cache."""

    @pytest.mark.parametrize(
        ("usage", "saved_nano"),
        [
            (Usage(input=1_000, output=9), None),
            (Usage(input=1_000, cache_read=10_000), 10_000 * (4_000 - 200)),
            (Usage(input=1_000, cache_write_5m=2_000), -2_000 * (5_000 - 4_000)),
            (Usage(cache_write_1h=500), -500 * (8_000 - 4_000)),
            (Usage(cache_read=1_000, cache_write_5m=3_800), 0),
            (Usage(input=3, cache_read=1, output=5, images=9), 3_800),
        ],
    )
    def test_reads_save_and_writes_cost(self, usage: Usage, saved_nano: int | None) -> None:
        assert cost(usage, OPUS, insured=False).cache_discount_nano == saved_nano

    @given(usages(), prices())
    def test_it_is_the_difference_of_two_bills_to_the_nano(
        self, usage: Usage, price: Price
    ) -> None:
        bill = cost(usage, price, insured=False)
        plain = Usage(
            input=usage.input_total,
            output=usage.output,
            reasoning=usage.reasoning,
            images=usage.images,
        )
        without = cost(plain, price, insured=False)
        difference = without.total_nano - bill.total_nano
        assert (bill.cache_discount_nano or 0) == difference

    def test_on_an_own_key_it_is_of_the_list_price_and_of_what_is_not_charged_there_is_none(self):
        usage = Usage(cache_read=1_000)
        own = cost(usage, OPUS, byok_fee_bps=500, insured=False)
        assert own.cache_discount_nano == 1_000 * (4_000 - 200)
        assert cost(usage, OPUS, insured=True).cache_discount_nano is None

    def test_factors_multiply_it_like_the_price(self) -> None:
        applied = Applied(factors={"service_tier": Factor(value="priority", millionths=2_000_000)})
        made = cost(Usage(cache_read=1_000), OPUS, insured=False, applied=applied)
        assert made.cache_discount_nano == 2 * 1_000 * (4_000 - 200)
