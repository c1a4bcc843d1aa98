"""Token counts become disjoint classes once, and nothing unbelievable gets through (reliability.md section 3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.usage import MAX_COUNT, Usage, from_exclusive, from_inclusive

counts = st.integers(min_value=0, max_value=MAX_COUNT)
maybe = st.none() | counts
nonsense = st.one_of(
    st.integers(max_value=-1),
    st.integers(min_value=MAX_COUNT + 1),
    st.floats(),
    st.booleans(),
    st.text(),
    st.lists(st.integers()),
)


@given(counts, counts, maybe, maybe, maybe)
def test_inclusive_totals_are_the_vendors_totals(
    prompt: int, completion: int, cached: int | None, written: int | None, reasoning: int | None
):
    usage = from_inclusive(
        prompt=prompt, completion=completion, cached=cached, written=written, reasoning=reasoning
    )
    assert usage is not None
    assert usage.input_total == prompt
    assert usage.output_total == completion
    assert usage.total == prompt + completion
    assert min(usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning) >= 0


@given(counts, counts, maybe, maybe, maybe, maybe)
def test_exclusive_totals_add_the_cache_to_the_input(
    given_input: int,
    output: int,
    read: int | None,
    write_5m: int | None,
    write_1h: int | None,
    reasoning: int | None,
):
    usage = from_exclusive(
        input_=given_input,
        output=output,
        cache_read=read,
        cache_write_5m=write_5m,
        cache_write_1h=write_1h,
        reasoning=reasoning,
    )
    assert usage is not None
    assert usage.input_total == given_input + (read or 0) + (write_5m or 0) + (write_1h or 0)
    assert usage.output_total == output


@given(nonsense)
def test_one_unbelievable_count_rejects_the_whole_report(value: object):
    assert from_inclusive(prompt=value, completion=1) is None
    assert from_inclusive(prompt=1, completion=1, cached=value) is None
    assert from_exclusive(input_=1, output=value) is None


@pytest.mark.parametrize(("cached", "written", "reasoning"), [(101, 0, 0), (60, 60, 0), (0, 0, 11)])
def test_a_detail_beyond_its_total_is_cut_and_flagged(cached: int, written: int, reasoning: int):
    usage = from_inclusive(
        prompt=100, completion=10, cached=cached, written=written, reasoning=reasoning
    )
    assert usage is not None
    assert usage.clamped
    assert usage.total == 110


def test_zero_is_a_count_and_not_missing():
    assert from_inclusive(prompt=0, completion=0) == Usage()
