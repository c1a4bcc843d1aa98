"""Which token counts are billed when a vendor counts absurdly, twice, or not at all."""

import pytest

from gwd.demo import Behaviour
from tests.faults.bills import billed
from tests.faults.clients import CHAT, MESSAGES, RESPONSES, Client, received_tokens
from tests.support.node import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONTEXT, LONGEST = 200_000, 32_000


@pytest.mark.parametrize(
    "kind", ["missing", "null", "negative", "string", "float", "boolean", "huge"]
)
async def test_counts_that_cannot_be_believed_are_estimated_and_flagged(
    node: Gateway, client: Client, stream: bool, kind: str
) -> None:
    node.vendor.script.next(f"usage={kind}", model=client.upstream)
    seen, bill = await billed(node, client, stream=stream)
    assert (seen.status, seen.ended_well) == (200, True)
    prompt, completion = client.prompt_estimate(), received_tokens(seen.text)
    assert bill.outcome == ("succeeded", None, True)
    assert bill.tokens == (prompt, completion)
    assert bill.charged_nano == client.cost_nano(prompt, completion)


@pytest.mark.parametrize("kind", ["every_event", "twice", "wrong_total"])
async def test_counts_told_more_than_once_are_not_added_up(
    node: Gateway, client: Client, stream: bool, kind: str
) -> None:
    _, honest = await billed(node, client, stream=stream)
    node.vendor.script.next(f"usage={kind}", model=client.upstream)
    _, bill = await billed(node, client, stream=stream)
    assert bill.outcome == ("succeeded", None, False)
    assert (bill.tokens, bill.charged_nano) == (honest.tokens, honest.charged_nano)


async def test_explicit_zero_is_a_count_not_a_gap(
    node: Gateway, client: Client, stream: bool
) -> None:
    node.vendor.script.next("zero_usage", model=client.upstream)
    seen, bill = await billed(node, client, stream=stream)
    assert (seen.status, seen.ended_well) == (200, True)
    assert bill.outcome == ("succeeded", None, False)
    assert (bill.tokens, bill.charged_nano) == ((0, 0), 0)


def counts(client: Client, prompt: int, completion: int, **inside: int) -> dict[str, object]:
    """A usage object of the client's own format."""
    cached, reasoning = inside.get("cached", 0), inside.get("reasoning", 0)
    if client.name == "messages":
        return {
            "input_tokens": prompt,
            "output_tokens": completion,
            "cache_read_input_tokens": cached,
        }
    names = ("prompt", "completion") if client.model == "demo/chat" else ("input", "output")
    return {
        f"{names[0]}_tokens": prompt,
        f"{names[1]}_tokens": completion,
        "total_tokens": prompt + completion,
        f"{names[0]}_tokens_details": {"cached_tokens": cached},
        f"{names[1]}_tokens_details": {"reasoning_tokens": reasoning},
    }


async def test_a_detail_larger_than_the_count_that_holds_it_is_cut(
    node: Gateway, stream: bool
) -> None:
    """100 x 0.5 + 10 x 8 per million."""
    for client in (CHAT, RESPONSES):
        usage = counts(client, 100, 10, cached=150)
        node.vendor.script.next(Behaviour(usage_object=usage), model=client.upstream)
        _, bill = await billed(node, client, stream=stream)
        assert bill.charged_nano == 130_000
        assert bill.record["native_tokens_cached"] == 100


async def test_reasoning_larger_than_the_completion_is_cut(node: Gateway, stream: bool) -> None:
    for client in (CHAT, RESPONSES):
        usage = counts(client, 100, 10, reasoning=50)
        node.vendor.script.next(Behaviour(usage_object=usage), model=client.upstream)
        _, bill = await billed(node, client, stream=stream)
        assert bill.tokens == (100, 10)
        assert bill.record["native_tokens_reasoning"] == 10
        assert bill.charged_nano == client.cost_nano(100, 10)


@pytest.mark.parametrize(
    ("prompt", "completion", "cap"),
    [
        (CONTEXT, LONGEST, None),
        (CONTEXT, LONGEST + 1, None),
        (CONTEXT + 1, 0, None),
        (10_000_001, 1, None),
        (0, 2**62, None),
        (11, 119, 50),
        (11, 120, 50),
        (11, 7_999, 50),
    ],
)
async def test_a_side_above_what_can_be_is_estimated(
    node: Gateway,
    client: Client,
    stream: bool,
    prompt: int,
    completion: int,
    cap: int | None,
) -> None:
    """The prompt fits the context, the answer the cap that was sent: a tenth and 64 more; or the longest answer."""
    usage = counts(client, prompt, completion)
    node.vendor.script.next(Behaviour(usage_object=usage), model=client.upstream)
    name = "max_output_tokens" if client.name == "responses" else "max_tokens"
    limited = {} if cap is None else {name: cap}
    if client.name == "messages" and cap is None:
        limited = {name: LONGEST}  # this format cannot do without
    seen, bill = await billed(node, client, stream=stream, **limited)
    ceiling = LONGEST if not limited else limited[name] + limited[name] // 10 + 64
    believed = prompt <= CONTEXT, completion <= ceiling
    assert bill.outcome == ("succeeded", None, not all(believed))
    assert bill.record["prompt_above_bound"] is (prompt == CONTEXT)
    prompt = prompt if believed[0] else client.prompt_estimate()
    completion = completion if believed[1] else received_tokens(seen.text)
    assert bill.tokens == (prompt, completion)
    assert bill.charged_nano == client.cost_nano(prompt, completion)


ODD: list[dict[str, object]] = [{"prompt_tokens": None}, {"input_tokens": [1]}, {"x": {}}, {"a": 1}]


@pytest.mark.parametrize("usage", ODD, ids=str)
async def test_usage_of_no_known_shape_is_estimated(
    node: Gateway, client: Client, usage: dict[str, object]
) -> None:
    node.vendor.script.next(Behaviour(usage_object=usage), model=client.upstream)
    seen, bill = await billed(node, client, stream=True)
    assert (seen.status, seen.ended_well) == (200, True)
    assert bill.outcome == ("succeeded", None, True)
    assert bill.tokens == (client.prompt_estimate(), received_tokens(seen.text))


# Insurance: zero completion tokens and a finish that is blank or an error


@pytest.mark.parametrize("client_", [CHAT, MESSAGES], ids=lambda c: c.name)
async def test_empty_answer_with_a_blank_finish_is_insured(
    node: Gateway, client_: Client, stream: bool
) -> None:
    """The responses format has no blank finish: its `completed` says that the answer ended by itself."""
    fault = Behaviour(empty=True, completion_tokens=0)
    node.vendor.script.next(fault, model=client_.upstream)
    headers = {"x-gw-metadata": "enabled"}
    seen, bill = await billed(node, client_, stream=stream, headers=headers)
    assert seen.status == 200
    assert bill.charged_nano == 0
    assert bill.record["insured"] is True
    assert bill.record["tokens_prompt"] > 0


async def test_empty_answer_that_ended_by_itself_costs_its_prompt(
    node: Gateway, client: Client, stream: bool
) -> None:
    fault = Behaviour(empty=True, completion_tokens=0, finish="content_filter")
    node.vendor.script.next(fault, model=client.upstream)
    _, bill = await billed(node, client, stream=stream)
    assert bill.record["insured"] is False
    assert bill.charged_nano == client.cost_nano(bill.tokens[0], 0)
    assert bill.charged_nano > 0
