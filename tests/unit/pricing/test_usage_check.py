"""What is billed of a vendor's counts: each side by itself, never above what the request and the model allow."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwd.core.extras import Sold
from gwd.core.request import Embed, Request
from gwd.core.target import Flags, Target
from gwd.core.usage import MAX_COUNT, Usage
from gwd.pricing.hold import Demand, hold, measure
from gwd.pricing.usage_check import Limits, check_usage, is_plainly_right, limits_of
from gwd.vendors.formats import FORMATS
from tests.unit.pricing.builders import chat, target

LIMITS = Limits(prompt=1_000, output=119, output_beside=500, prompt_bound=300)
PROMPT, ANSWER = 100, (50, 7)


def checked(reported: Usage | None, limits: Limits = LIMITS, **estimates: Any) -> Usage:
    prompt, answer = estimates.get("prompt", PROMPT), estimates.get("answer", ANSWER)
    return check_usage(reported, limits, prompt=lambda: prompt, answer=lambda: answer)


ESTIMATED = Usage(input=100, output=50, reasoning=7, estimated=True)
BILLS: list[tuple[str, Usage | None, Usage]] = [
    ("as reported", Usage(input=120, cache_read=30, output=40), Usage(input=120, cache_read=30, output=40)),
    ("a zero is a count", Usage(), Usage()),
    ("nothing reported", None, ESTIMATED),
    ("prompt unknown", Usage(output=9, unknown=("input",)), Usage(input=100, output=9, estimated=True)),
    ("answer unknown", Usage(input=9, unknown=("output",)),
     Usage(input=9, output=50, reasoning=7, estimated=True)),
    ("nonsense on one side", Usage(output=9, unknown=("input",), refused=True),
     Usage(input=100, output=9, estimated=True, refused=True)),
    ("both sides at their ceilings", Usage(input=1_000, output=119),
     Usage(input=1_000, output=119, above_bound=True)),
    ("prompt at its bound", Usage(input=200, cache_read=100, output=1),
     Usage(input=200, cache_read=100, output=1)),
    ("prompt above the context", Usage(input=900, cache_read=101, output=40),
     Usage(input=100, output=40, estimated=True, refused=True)),
    ("answer above its cap", Usage(input=10, output=100, reasoning=20),
     Usage(input=10, output=50, reasoning=7, estimated=True, refused=True)),
    ("both above", Usage(input=1_001, output=120),
     msgspec.structs.replace(ESTIMATED, refused=True)),
    ("reasoning beside what the cap limits", Usage(input=10, output=100, reasoning=400, reasoning_beside=True),
     Usage(input=10, output=100, reasoning=400, reasoning_beside=True)),
    ("reasoning beside and above the longest answer",
     Usage(input=10, output=101, reasoning=400, reasoning_beside=True),
     Usage(input=10, output=50, reasoning=7, reasoning_beside=True, estimated=True, refused=True)),
]  # fmt: skip


def test_each_side_is_billed_as_reported_or_as_estimated() -> None:
    found = [(name, checked(reported)) for name, reported, _ in BILLS]
    assert found == [(name, expected) for name, _, expected in BILLS]


@pytest.mark.parametrize("wrong", [-1, True, "12", 1.5, float("nan"), None, MAX_COUNT + 1])
def test_a_usage_whose_classes_are_no_counts_is_estimated(wrong: Any) -> None:
    """Whatever a decoder makes of a report, nothing that is no count is multiplied with a price."""
    roomy = Limits(
        prompt=MAX_COUNT, output=MAX_COUNT, output_beside=MAX_COUNT, prompt_bound=MAX_COUNT
    )
    for field in ("input", "cache_read", "cache_write_5m", "cache_write_1h"):
        reported = msgspec.structs.replace(Usage(output=10), **{field: wrong})
        assert checked(reported, roomy) == Usage(input=100, output=10, estimated=True, refused=True)
    for field in ("output", "reasoning"):
        reported = msgspec.structs.replace(Usage(input=10), **{field: wrong})
        assert checked(reported, roomy) == Usage(
            input=10, output=50, reasoning=7, estimated=True, refused=True
        )


def test_the_estimate_is_cut_to_the_same_ceilings() -> None:
    """The text goes before the thoughts: the client has it for certain."""
    usage = checked(None, prompt=5_000, answer=(100, 90))
    assert (usage.input, usage.output, usage.reasoning) == (1_000, 100, 19)
    usage = checked(None, answer=(2_900_000, 5))
    assert (usage.output, usage.reasoning) == (119, 0)


def test_an_unreliable_endpoint_bills_the_smaller_prompt() -> None:
    unreliable = msgspec.structs.replace(LIMITS, is_unreliable=True)
    cut = checked(Usage(input=900, output=60), unreliable)
    assert cut == Usage(input=100, output=60, clamped=True)
    lower = Usage(input=80, output=60)
    assert checked(lower, unreliable) == lower


@given(
    st.builds(
        Usage,
        input=st.integers(0, 500),
        cache_read=st.integers(0, 500),
        cache_write_5m=st.integers(0, 500),
        cache_write_1h=st.integers(0, 500),
        output=st.integers(0, 119),
    ),
    st.integers(0, 2_500),
)
def test_a_cut_prompt_is_exactly_the_smaller_and_no_class_grows(usage: Usage, limit: int) -> None:
    limits = Limits(
        prompt=10_000, output=119, output_beside=119, prompt_bound=10_000, is_unreliable=True
    )
    made = checked(usage, limits, prompt=limit)
    assert made.input_total == min(limit, usage.input_total)
    assert made.output_total == usage.output_total
    for field in ("input", "cache_read", "cache_write_5m", "cache_write_1h"):
        assert 0 <= getattr(made, field) <= getattr(usage, field)


# The limits of a request at a target.


def there(*, sold: Sold | None = None, **flags: Any) -> Target:
    return msgspec.structs.replace(
        target(context_length=10_000, max_completion_tokens=4_000),
        format=FORMATS["openai_chat"],
        flags=Flags(**flags),
        sold=sold or Sold(),
    )


def asked() -> Demand:
    return measure(chat("hello", max_output_tokens=50))


SEARCHES = Sold(searches=3)


def test_an_answer_ends_at_its_cap_with_some_slack() -> None:
    assert limits_of(asked(), there(), output_cap=50).output == 119
    assert limits_of(asked(), there(), output_cap=55).output == 124
    assert limits_of(asked(), there(), output_cap=None).output == 4_000
    assert limits_of(asked(), there(), output_cap=50).output_beside == 4_000
    assert limits_of(asked(), there(), output_cap=50).prompt == 10_000


def sold(extras: Sold) -> Target:
    """A target whose vendor runs tools for the answer."""
    return msgspec.structs.replace(there(), sold=extras)


def test_where_the_cap_does_not_limit_all_the_ceiling_is_the_longest_answer_and_held_for() -> None:
    plain = hold(asked(), there())
    assert plain.output_tokens == 50
    for to in (
        there(reasoning_excluded=True),
        there(sold=SEARCHES),
        there(sold=Sold(values={"mcp_servers": "any"})),
    ):
        limits = limits_of(asked(), to, output_cap=50)
        assert (limits.output, hold(asked(), to).output_tokens) == (4_000, 4_000)
    of_the_client = there(sold=Sold(tools=("bash_20250124",)))
    assert limits_of(asked(), of_the_client, output_cap=50).output == 119


def test_what_a_vendors_own_tools_find_is_no_prompt_above_its_bound() -> None:
    assert limits_of(asked(), there(), output_cap=50).prompt_bound == asked().prompt_bound
    searching = limits_of(asked(), there(sold=SEARCHES), output_cap=50)
    assert searching.prompt_bound == MAX_COUNT


def test_a_batch_of_embeddings_may_exceed_one_context_and_has_no_answer() -> None:
    texts = Request(
        dialect="embeddings",
        family="openai_embeddings",
        models=("test/model",),
        body=Embed(inputs=("a",) * 20),
    )
    limits = limits_of(measure(texts), there(), output_cap=None, inputs=20)
    assert (limits.prompt, limits.output) == (200_000, 0)


def test_a_model_without_a_longest_answer_is_limited_by_its_context() -> None:
    unlimited = msgspec.structs.replace(there(), max_completion_tokens=0)
    assert limits_of(asked(), unlimited, output_cap=None).output == 10_000


odd_counts = st.one_of(
    st.integers(-2, 300), st.just(MAX_COUNT + 1), st.booleans(), st.sampled_from(["12", 1.5, None])
)


@given(
    counts=st.tuples(*(odd_counts for _ in range(6))),
    cap=st.one_of(st.none(), st.integers(1, 200)),
    is_unreliable=st.booleans(),
    reasoning_beside=st.booleans(),
)
def test_what_is_plainly_right_is_what_every_limit_leaves_alone(
    counts: tuple[Any, ...], cap: int | None, is_unreliable: bool, reasoning_beside: bool
) -> None:
    names = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")
    said = Usage(**dict(zip(names, counts, strict=True)), reasoning_beside=reasoning_beside)
    to = msgspec.structs.replace(target(), flags=Flags(usage_unreliable=is_unreliable))
    demand = measure(chat("hello", max_output_tokens=cap))
    if is_plainly_right(said, demand, to, cap):
        assert checked(said, limits_of(demand, to, output_cap=cap)) == said


def test_an_ordinary_answer_is_plainly_right() -> None:
    demand = measure(chat("hello", max_output_tokens=50))
    assert is_plainly_right(
        Usage(input=10, cache_read=5, output=30, reasoning=20), demand, target(), 50
    )
    assert not is_plainly_right(Usage(input=10, output=51), demand, target(), 50)
