"""Implausible usage is replaced by the estimate, unreliable prompts are cut (reliability.md 1.3, spec 8.2)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.usage import MAX_COUNT, Usage, from_exclusive, from_inclusive
from gwd.pricing.usage_check import Ceiling, check_usage, usage_ceiling

ESTIMATED = Usage(input=100, output=50, estimated=True)
CEILING = usage_ceiling(context_length=1_000, max_completion_tokens=500)


def test_what_the_vendor_reports_is_billed() -> None:
    reported = Usage(input=120, cache_read=30, output=40)
    made = check_usage(reported, ESTIMATED, ceiling=CEILING)
    assert (made.usage, made.verdict) == (reported, "reported")


def test_a_reported_zero_is_a_count_and_not_a_gap() -> None:
    assert check_usage(Usage(), ESTIMATED, ceiling=CEILING).usage == Usage()


def test_missing_usage_is_estimated_and_marked() -> None:
    made = check_usage(None, Usage(input=7), ceiling=CEILING)
    assert (made.usage, made.verdict) == (Usage(input=7, estimated=True), "estimated")


def test_usage_at_the_ceiling_is_believed_and_above_it_is_not() -> None:
    assert check_usage(Usage(input=1_500), ESTIMATED, ceiling=CEILING).verdict == "reported"
    made = check_usage(Usage(input=1_000, output=501), ESTIMATED, ceiling=CEILING)
    assert (made.usage, made.verdict) == (ESTIMATED, "rejected")


def test_more_than_ten_million_is_rejected_whatever_the_ceiling() -> None:
    made = check_usage(Usage(input=MAX_COUNT + 1), ESTIMATED, ceiling=Ceiling(total=10**9))
    assert made.verdict == "rejected"


@pytest.mark.parametrize("wrong", [-1, True, "12", 1.5, float("nan"), None, MAX_COUNT + 1])
@pytest.mark.parametrize("field", ["input", "cache_read", "output", "reasoning", "images"])
def test_one_unbelievable_count_rejects_the_whole_object(field: str, wrong: Any) -> None:
    reported = msgspec.structs.replace(Usage(input=10, output=10), **{field: wrong})
    assert check_usage(reported, ESTIMATED, ceiling=Ceiling(total=10**9)).verdict == "rejected"


@pytest.mark.parametrize("wrong", [-1, True, "12", 1.5, float("nan"), MAX_COUNT + 1])
def test_an_unbelievable_field_on_the_wire_ends_in_the_estimate(wrong: object) -> None:
    for reported in (
        from_inclusive(prompt=wrong, completion=5),
        from_inclusive(prompt=5, completion=5, cached=wrong),
        from_exclusive(input_=5, output=5, cache_write_1h=wrong),
    ):
        assert check_usage(reported, ESTIMATED, ceiling=CEILING).usage == ESTIMATED


def test_details_above_their_whole_are_clamped_and_flagged() -> None:
    reported = from_inclusive(prompt=100, completion=10, cached=150, reasoning=12)
    made = check_usage(reported, ESTIMATED, ceiling=CEILING)
    assert made.usage == Usage(cache_read=100, reasoning=10, clamped=True)


def test_an_unreliable_endpoint_bills_the_smaller_prompt() -> None:
    """Spec 8.2: the smaller of reported and estimated prompt tokens."""
    reported = Usage(input=900, output=60)
    made = check_usage(reported, ESTIMATED, ceiling=CEILING, unreliable=True)
    assert (made.usage, made.verdict) == (Usage(input=100, output=60, clamped=True), "reduced")
    lower = Usage(input=80, output=60)
    assert check_usage(lower, ESTIMATED, ceiling=CEILING, unreliable=True).usage == lower


@given(
    st.builds(
        Usage,
        input=st.integers(0, 500),
        cache_read=st.integers(0, 500),
        cache_write_5m=st.integers(0, 500),
        cache_write_1h=st.integers(0, 500),
        output=st.integers(0, 500),
    ),
    st.integers(0, 2_500),
)
def test_a_cut_prompt_is_exactly_the_smaller_and_no_class_grows(usage: Usage, limit: int) -> None:
    made = check_usage(
        usage, Usage(input=limit), ceiling=Ceiling(total=10_000), unreliable=True
    ).usage
    assert made.input_total == min(limit, usage.input_total)
    assert made.output_total == usage.output_total
    for field in ("input", "cache_read", "cache_write_5m", "cache_write_1h"):
        assert 0 <= getattr(made, field) <= getattr(usage, field)


def test_a_batch_of_embeddings_may_exceed_one_context() -> None:
    ceiling = usage_ceiling(context_length=8_192, max_completion_tokens=0, inputs=20)
    assert check_usage(Usage(input=100_000), ESTIMATED, ceiling=ceiling).verdict == "reported"


@pytest.mark.parametrize(("cap", "most"), [(10, 75), (0, 64), (1_000, 1_164), (32_000, 35_264)])
def test_an_answer_may_overshoot_its_cap_a_little_and_no_more(cap: int, most: int) -> None:
    """Hidden reasoning counts: it is inside the cap, however little text comes of it."""
    ceiling = usage_ceiling(context_length=200_000, max_completion_tokens=64_000, most_output=cap)
    for hidden in (0, most):
        believed = Usage(input=10, output=most - hidden, reasoning=hidden)
        assert check_usage(believed, ESTIMATED, ceiling=ceiling).verdict == "reported"
        more = msgspec.structs.replace(believed, output=believed.output + 1)
        made = check_usage(more, ESTIMATED, ceiling=ceiling)
        assert (made.usage, made.verdict) == (ESTIMATED, "rejected")


def test_reasoning_that_a_vendor_counts_apart_comes_on_top_of_the_cap() -> None:
    ceiling = usage_ceiling(
        context_length=1_000, max_completion_tokens=500, most_output=10, reasoning_apart=True
    )
    apart = Usage(input=10, output=75, reasoning=400)
    assert check_usage(apart, ESTIMATED, ceiling=ceiling).verdict == "reported"
    more = msgspec.structs.replace(apart, output=76)
    assert check_usage(more, ESTIMATED, ceiling=ceiling).verdict == "rejected"
    beyond = msgspec.structs.replace(apart, reasoning=1_500)
    assert check_usage(beyond, ESTIMATED, ceiling=ceiling).verdict == "rejected"
