"""The hold covers every usage within its bounds; the bound covers every count."""

import base64
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwd.core.cost import Price
from gwd.core.request import (
    Embed,
    FilePart,
    Generate,
    ImagePart,
    InlineSource,
    Message,
    OutputFormat,
    Part,
    ReasoningPart,
    Request,
    TextPart,
    Tool,
    ToolCallPart,
    ToolResultPart,
    UrlSource,
)
from gwd.core.usage import Usage
from gwd.pricing.bound import IMAGE_BOUND, UNKNOWN_SIZE, bound_prompt, bound_text
from gwd.pricing.cost import cost
from gwd.pricing.estimate import count_images, estimate_prompt
from gwd.pricing.hold import bound_output, hold, hold_nano, measure
from gwd.vendors.formats import FORMATS
from tests.unit.pricing.builders import OPUS, TIERED, chat, target
from tests.unit.pricing.test_cost import prices
from tests.unit.pricing.test_tokens import CLASSES, REFERENCE, text_of

PICTURE = ImagePart(source=InlineSource(media_type="image/png", data="aGVsbG8="))


@st.composite
def bounded_usages(draw: st.DrawFn) -> tuple[Usage, int, int]:
    prompt, output = draw(st.integers(0, 1_500_000)), draw(st.integers(0, 200_000))
    cuts = sorted(draw(st.lists(st.integers(0, prompt), min_size=4, max_size=4)))
    shown = draw(st.integers(0, output))
    usage = Usage(
        input=cuts[0],
        cache_read=cuts[1] - cuts[0],
        cache_write_5m=cuts[2] - cuts[1],
        cache_write_1h=cuts[3] - cuts[2],
        output=shown,
        reasoning=draw(st.integers(0, output - shown)),
        images=draw(st.integers(0, 5)),
    )
    return usage, prompt, output


@settings(max_examples=300)
@given(bounded_usages(), prices())
def test_no_usage_within_the_bounds_costs_more_than_the_hold(
    drawn: tuple[Usage, int, int], price: Price
) -> None:
    usage, prompt, output = drawn
    held = hold_nano(price, prompt_tokens=prompt, output_tokens=output, images=5, writes_1h=True)
    assert cost(usage, price, insured=False).total_nano <= held


@given(bounded_usages(), prices(), st.integers(0, 10_000))
def test_no_fee_exceeds_the_hold_on_the_owners_key(
    drawn: tuple[Usage, int, int], price: Price, fee_bps: int
) -> None:
    usage, prompt, output = drawn
    official = hold_nano(
        price, prompt_tokens=prompt, output_tokens=output, images=5, writes_1h=True
    )
    fee = cost(usage, price, byok_fee_bps=fee_bps, insured=False).total_nano
    assert fee <= official * fee_bps // 10_000


@given(prices(), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**5))
def test_a_hold_never_shrinks_with_the_prompt(
    price: Price, prompt: int, more: int, output: int
) -> None:
    def held(tokens: int) -> int:
        return hold_nano(
            price, prompt_tokens=tokens, output_tokens=output, images=0, writes_1h=False
        )

    assert held(prompt) <= held(prompt + more)


def test_an_hour_of_cache_is_held_for_only_when_it_is_asked_for() -> None:
    plain, marked = chat("x" * 1_000), chat(TextPart(text="x" * 1_000, cache="1h"))
    assert (measure(plain).writes_1h, measure(marked).writes_1h) == (False, True)
    without = hold_nano(OPUS, prompt_tokens=1_000, output_tokens=0, images=0, writes_1h=False)
    with_it = hold_nano(OPUS, prompt_tokens=1_000, output_tokens=0, images=0, writes_1h=True)
    assert without == 1_000 * 5_000 + 5
    assert with_it == 1_000 * 8_000 + 5


@pytest.mark.parametrize(
    "request_",
    [
        chat("hi", tools=(Tool(name="look", cache="1h"),)),
        chat(ToolResultPart(call_id="1", parts=(TextPart(text="x", cache="1h"),))),
    ],
    ids=["on a tool", "inside a tool result"],
)
def test_a_one_hour_mark_is_found_wherever_it_sits(request_: Request) -> None:
    assert measure(request_).writes_1h


def test_a_prompt_that_may_reach_a_tier_is_held_for_at_the_tiers_price() -> None:
    below = hold_nano(TIERED, prompt_tokens=100_000, output_tokens=0, images=0, writes_1h=False)
    above = hold_nano(TIERED, prompt_tokens=100_001, output_tokens=0, images=0, writes_1h=False)
    assert below == 100_000 * 125 + 5
    assert above == 100_001 * 625 + 5


def test_the_clients_cap_bounds_the_output_up_to_the_models_maximum() -> None:
    here = target(max_completion_tokens=4_000)
    for cap, bound in ((100, 100), (9_999, 4_000)):
        demand = measure(chat("hi", max_output_tokens=cap))
        assert bound_output(demand, here, default_output_bound=32_768) == bound


def test_without_a_cap_the_smallest_of_three_limits_holds() -> None:
    """The model's maximum, the room left in the context, the configured default."""
    demand = measure(chat("hi"))
    assert bound_output(demand, target(), default_output_bound=32_768) == 32_768
    small = target(max_completion_tokens=2_000)
    assert bound_output(demand, small, default_output_bound=32_768) == 2_000
    narrow = target(context_length=1_000)
    room = 1_000 - demand.prompt_estimate
    assert bound_output(demand, narrow, default_output_bound=32_768) == room


def test_a_cap_below_what_the_format_takes_is_held_as_it_is_sent() -> None:
    """The responses format takes no cap under 16."""
    demand = msgspec.structs.replace(measure(chat("hi")), output_cap=1)
    responses = msgspec.structs.replace(target(), format=FORMATS["openai_responses"])
    assert bound_output(demand, target(), default_output_bound=32_768) == 1
    assert bound_output(demand, responses, default_output_bound=32_768) == 16


def test_embeddings_produce_no_output_and_may_exceed_one_context() -> None:
    request = Request(
        dialect="embeddings",
        family="openai_embeddings",
        models=("test/model",),
        body=Embed(inputs=("word " * 2_000, tuple(range(300)))),
    )
    demand = measure(request)
    made = hold(demand, target(context_length=1_000))
    assert made.output_tokens == 0
    assert made.prompt_tokens == demand.prompt_bound >= 10_300
    assert abs(demand.prompt_estimate - 2_300) <= 200


def test_a_prompt_is_held_for_at_most_the_context() -> None:
    demand = measure(chat("x" * 500_000))
    assert hold(demand, target(context_length=200_000)).prompt_tokens == 200_000


def test_on_the_owners_key_only_the_fee_is_held() -> None:
    demand = measure(chat("hello", max_output_tokens=10))
    official = hold(demand, target()).amount_nano
    assert hold(demand, target(byok_fee_bps=500)).amount_nano == official * 500 // 10_000


@pytest.mark.parametrize("vocabulary", ["o200k_base", "cl100k_base"])
@pytest.mark.parametrize("name", CLASSES)
def test_a_request_is_bounded_above_its_real_count(name: str, vocabulary: str) -> None:
    text = text_of(name)
    real = REFERENCE[name][vocabulary]
    schema = {"type": "object", "properties": {"note": {"type": "string", "description": text}}}
    for request in (
        chat(text),
        chat(ToolCallPart(call_id="c", name="n", arguments=json.dumps({"text": text}))),
        chat(ReasoningPart(text=text)),
        chat("hi", tools=(Tool(name="t", description=text),)),
        chat("hi", tools=(Tool(name="t", parameters=schema),)),
        chat("hi", output=OutputFormat(kind="json_schema", schema=schema)),
        chat(FilePart(source=text_file(text))),
    ):
        assert bound_prompt(request) >= real + 256


def text_file(text: str) -> InlineSource:
    return InlineSource(media_type="text/plain", data=base64.b64encode(text.encode()).decode())


@given(st.lists(st.text(max_size=200), max_size=5))
def test_the_bound_is_never_under_the_bytes_nor_under_the_estimate(texts: list[str]) -> None:
    request = chat(*texts)
    assert bound_prompt(request) >= sum(len(text.encode()) for text in texts)
    assert bound_prompt(request) >= estimate_prompt(request)


def test_pictures_are_bounded_each() -> None:
    two = chat(PICTURE, ToolResultPart(call_id="1", parts=(PICTURE,)))
    assert count_images(two) == measure(two).images == 2
    assert bound_prompt(two) >= 2 * IMAGE_BOUND


@pytest.mark.parametrize(
    "part",
    [
        FilePart(source=InlineSource(media_type="application/pdf", data="JVBERi0=")),
        FilePart(source=UrlSource(url="https://example.org/a.pdf")),
        FilePart(source=InlineSource(media_type="text/plain", data="not base64!!!")),
    ],
    ids=["pdf", "url", "broken text"],
)
def test_a_document_that_cannot_be_measured_is_bounded_by_the_context(part: Part) -> None:
    demand = measure(chat(part))
    assert demand.prompt_bound >= UNKNOWN_SIZE
    assert hold(demand, target(context_length=128_000)).prompt_tokens == 128_000


def test_a_text_document_is_measured() -> None:
    request = chat(FilePart(source=text_file("word " * 1_000)))
    assert 5_000 <= bound_prompt(request) < 6_000
    assert 900 <= estimate_prompt(request) <= 1_100


def test_unknown_fields_that_travel_along_are_bounded_too() -> None:
    extras = {"context_management": {"edits": ["x" * 5_000]}}
    plain = chat("hi")
    message = Message(role="user", parts=(TextPart(text="hi", extras=extras),), extras=extras)
    laden = Request(
        dialect="messages",
        family="anthropic_messages",
        models=("test/model",),
        body=Generate(messages=(message,), tools=(Tool(name="t", extras=extras),)),
        extras=extras,
    )
    assert bound_prompt(laden) >= bound_prompt(plain) + 4 * 5_000


def test_an_estimated_request_is_close_to_the_text_it_carries() -> None:
    for name in CLASSES:
        real = REFERENCE[name]["o200k_base"]
        assert abs(estimate_prompt(chat(text_of(name))) - real) <= real * 0.10 + 10


def test_a_text_of_full_width_signs_is_bounded_by_its_bytes() -> None:
    assert bound_text("，" * 100) == 300
