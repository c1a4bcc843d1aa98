"""The real openai SDK on POST /responses, against every adapter."""

import base64
from decimal import Decimal
from typing import Any

import openai
import pydantic
import pytest

from tests.support.node import MODELS as CATALOG
from tests.support.node import Gateway

CHAT, MESSAGES, RESPONSES = MODELS = ("demo/chat", "demo/claude", "demo/responses")
ASK = "Tell me about green tea."
WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "Current weather of a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": False,
}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Person(pydantic.BaseModel):
    name: str
    age: int


def client(gateway: Gateway, headers: dict[str, str] | None = None) -> openai.AsyncOpenAI:
    """The SDK, pointed at the gateway."""
    return openai.AsyncOpenAI(
        api_key=gateway.key,
        base_url=gateway.base_url,
        max_retries=0,
        timeout=10,
        default_headers=headers,
    )


def list_price(model: str, usage: Any) -> float:
    """What these tokens cost at the catalog's prices."""
    prices = {name: Decimal(price) for name, price in CATALOG[model]["pricing"].items()}
    cached = usage.input_tokens_details.cached_tokens
    prompt = (usage.input_tokens - cached) * prices["prompt"] + cached * prices["input_cache_read"]
    return float(prompt + usage.output_tokens * prices["completion"])


async def record_of(gateway: Gateway, response_id: str) -> Any:
    """The record of a generation, found by the id that the client holds."""
    return (await gateway.manage("GET", f"/generation?id={response_id}"))["data"]


async def charged(gateway: Gateway) -> Any:
    return (await gateway.manage("GET", "/credits"))["data"]["total_usage"]


@pytest.mark.parametrize("model", MODELS)
async def test_a_whole_response_is_complete_and_billed(gateway: Gateway, model: str):
    async with client(gateway) as sdk:
        response = await sdk.responses.create(
            model=model,
            input=ASK,
            instructions="Be brief.",
            extra_body={"usage": {"include": True}},
        )
    assert response.status == "completed"
    assert response.id.startswith("resp_")
    assert response.model == model
    assert "green tea" in response.output_text
    assert response.instructions == "Be brief."
    assert response.usage is not None
    assert response.usage.to_dict()["cost"] == list_price(model, response.usage)
    record = await record_of(gateway, response.id)
    assert (record["status"], record["dialect"]) == ("succeeded", "responses")
    assert record["total_cost"] == list_price(model, response.usage)
    assert await charged(gateway) == list_price(model, response.usage)


@pytest.mark.parametrize("model", MODELS)
async def test_a_stream_says_what_the_whole_response_says(gateway: Gateway, model: str):
    async with client(gateway) as sdk:
        whole = await sdk.responses.create(model=model, input=ASK)
        events = [
            event async for event in await sdk.responses.create(model=model, input=ASK, stream=True)
        ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == whole.output_text
    assert last.response.usage == whole.usage
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == whole.output_text


@pytest.mark.parametrize("model", MODELS)
async def test_the_stream_helper_and_the_parse_helper_work(gateway: Gateway, model: str):
    async with client(gateway) as sdk:
        parsed = await sdk.responses.parse(model=model, input="A person.", text_format=Person)
        assert isinstance(parsed.output_parsed, Person)
        async with sdk.responses.stream(
            model=model, input="A person.", text_format=Person
        ) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()
    assert isinstance(final.output_parsed, Person)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_loop_comes_to_its_end(gateway: Gateway, model: str, streamed: bool):
    question = {"role": "user", "content": "Please get weather for both Paris and Rome"}
    async with client(gateway) as sdk:
        first = await answer(sdk, streamed, model=model, input=[question], tools=[WEATHER])
        calls = [item for item in first.output if item.type == "function_call"]
        assert [call.name for call in calls] == ["get_weather", "get_weather"]
        assert len({call.call_id for call in calls}) == 2
        results = [
            {"type": "function_call_output", "call_id": call.call_id, "output": f"{place} degrees"}
            for place, call in enumerate(calls, 21)
        ]
        replayed = [item.to_dict() for item in first.output]
        second = await answer(
            sdk, streamed, model=model, input=[question, *replayed, *results], tools=[WEATHER]
        )
    assert "21 degrees" in second.output_text
    assert "22 degrees" in second.output_text


async def answer(sdk: openai.AsyncOpenAI, streamed: bool, **request: Any) -> Any:
    """The response, asked for whole or as a stream."""
    if not streamed:
        return await sdk.responses.create(**request)
    async with sdk.responses.stream(**request) as stream:
        async for _ in stream:
            pass
        return await stream.get_final_response()


@pytest.mark.parametrize("model", MODELS)
async def test_a_custom_tool_gets_free_text(gateway: Gateway, model: str):
    async with client(gateway) as sdk:
        response = await sdk.responses.create(
            model=model,
            input=ASK,
            tools=[{"type": "custom", "name": "note", "description": "Takes a note"}],
            tool_choice={"type": "custom", "name": "note"},
        )
        call = response.output[-1]
        assert call.type == "custom_tool_call"
        assert call.name == "note"
        assert call.input
        assert '{"input"' not in call.input
        history: Any = [
            {"role": "user", "content": ASK},
            *[item.to_dict() for item in response.output],
            {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "noted down"},
        ]
        after = await sdk.responses.create(
            model=model, input=history, tools=[{"type": "custom", "name": "note"}]
        )
    assert "noted down" in after.output_text


@pytest.mark.parametrize("model", MODELS)
async def test_truncation_ends_incomplete_and_is_billed_exactly(gateway: Gateway, model: str):
    """An answer that was cut is `incomplete`, and its stream says so."""
    async with client(gateway) as sdk:
        stream = await sdk.responses.create(
            model=model, input=ASK, max_output_tokens=16, stream=True
        )
        last = [event async for event in stream][-1]
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details is not None
    assert last.response.incomplete_details.reason == "max_output_tokens"
    assert last.response.usage is not None
    assert last.response.usage.output_tokens == 16
    record = await record_of(gateway, last.response.id)
    assert record["total_cost"] == list_price(model, last.response.usage)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", ["error_mid_stream", "cut cut_after=6"])
async def test_a_fault_in_mid_stream_fails_and_bills_what_came(
    gateway: Gateway, model: str, fault: str
):
    """Partial output that reached the client is billed, the stream ends in response.failed."""
    gateway.vendor.script.next(fault)
    async with client(gateway) as sdk:
        stream = await sdk.responses.create(model=model, input=ASK, stream=True)
        events = [event async for event in stream]
    last = events[-1]
    assert last.type == "response.failed"
    assert [event.type for event in events].count("response.failed") == 1
    assert last.response.error is not None
    assert last.response.error.code in ("server_error", "server_is_overloaded")
    assert last.response.usage is not None
    record = await record_of(gateway, last.response.id)
    assert record["status"] == "incomplete"
    # An answer that broke off before its first token costs nothing: the insurance of empty completions.
    came = any(event.type.endswith(".delta") for event in events)
    assert came == (last.response.usage.output_tokens > 0)
    assert record["total_cost"] == (list_price(model, last.response.usage) if came else 0)


async def test_a_fault_before_any_output_is_an_http_error_and_costs_nothing(gateway: Gateway):
    gateway.vendor.script.next("status=500 times=10")
    async with client(gateway) as sdk:
        with pytest.raises(openai.InternalServerError) as caught:
            await sdk.responses.create(model=RESPONSES, input=ASK, stream=True)
    assert caught.value.code in ("upstream_error", "upstream_unavailable")
    assert await charged(gateway) == 0


async def test_reasoning_comes_back_to_the_vendor_that_made_it(gateway: Gateway):
    """An encrypted item survives the round trip through client and gateway, id and all."""
    question: Any = {"role": "user", "content": "Please get weather in Rome"}
    async with client(gateway) as sdk:
        first = await sdk.responses.create(
            model=RESPONSES, input=[question], tools=[WEATHER], reasoning={"effort": "low"}
        )
        assert [item.type for item in first.output] == ["reasoning", "function_call"]
        call = first.output[1]
        assert call.type == "function_call"
        history: Any = [
            question,
            *[item.to_dict() for item in first.output],
            {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"},
        ]
        second = await sdk.responses.create(model=RESPONSES, input=history, tools=[WEATHER])
    assert "21 degrees" in second.output_text
    sent = gateway.vendor.calls.last.body
    assert sent is not None
    replayed = next(item for item in sent["input"] if item["type"] == "reasoning")
    assert replayed["encrypted_content"]


async def test_signed_thinking_comes_back_through_this_dialect(gateway: Gateway):
    """The Messages vendor checks the signature of the turn that called the tool."""
    question: Any = {"role": "user", "content": "Please get weather in Rome"}
    thinking: Any = {"effort": "low"}
    async with client(gateway) as sdk:
        first = await sdk.responses.create(
            model=MESSAGES, input=[question], tools=[WEATHER], reasoning=thinking
        )
        assert [item.type for item in first.output] == ["reasoning", "function_call"]
        call = first.output[1]
        assert call.type == "function_call"
        history: Any = [
            question,
            *[item.to_dict() for item in first.output],
            {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"},
        ]
        second = await sdk.responses.create(
            model=MESSAGES, input=history, tools=[WEATHER], reasoning=thinking
        )
    assert "21 degrees" in second.output_text
    sent = gateway.vendor.calls.last.body
    assert sent is not None
    blocks = [block["type"] for block in sent["messages"][1]["content"]]
    assert blocks == ["thinking", "tool_use"]


async def test_an_item_reference_is_resolved_for_the_key_that_got_the_item(gateway: Gateway):
    """Some SDKs refer to reasoning and messages instead of sending them again."""
    question: Any = {"role": "user", "content": "Please get weather in Rome"}
    async with client(gateway) as sdk:
        first = await sdk.responses.create(model=RESPONSES, input=[question], tools=[WEATHER])
        reasoning, call = first.output
        assert call.type == "function_call"
        history: Any = [
            question,
            {"type": "item_reference", "id": getattr(reasoning, "id", None)},
            {"type": "item_reference", "id": "msg_never_emitted"},
            call.to_dict(),
            {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"},
        ]
        second = await sdk.responses.create(model=RESPONSES, input=history, tools=[WEATHER])
    assert "21 degrees" in second.output_text
    sent = gateway.vendor.calls.last.body
    assert sent is not None
    kinds = [item["type"] for item in sent["input"]]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output"]


@pytest.mark.parametrize("model", MODELS)
async def test_an_image_reaches_every_vendor(gateway: Gateway, model: str):
    url = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
    content: Any = [
        {"type": "input_text", "text": "What is this picture of tea?"},
        {"type": "input_image", "image_url": url, "detail": "auto"},
    ]
    async with client(gateway) as sdk:
        response = await sdk.responses.create(
            model=model, input=[{"role": "user", "content": content}]
        )
    assert response.status == "completed"
    assert base64.b64encode(PIXEL).decode() in gateway.vendor.calls.last.raw.decode()


async def test_the_receipt_comes_on_the_terminal_object_when_asked_for(gateway: Gateway):
    async with client(gateway, {"X-GW-Metadata": "enabled"}) as sdk:
        stream = await sdk.responses.create(model=CHAT, input=ASK, stream=True)
        events = [event async for event in stream]
    shown: list[Any] = [event.to_dict() for event in events]
    receipts = [event["type"] for event in shown if "gateway_metadata" in event.get("response", {})]
    assert receipts == ["response.completed"]
    assert shown[-1]["response"]["gateway_metadata"]["model"] == CHAT


async def test_refusals_have_the_chat_envelope(gateway: Gateway):
    async with client(gateway) as sdk:
        with pytest.raises(openai.BadRequestError) as wrong:
            await sdk.responses.create(model=CHAT, input=ASK, previous_response_id="resp_1")
        with pytest.raises(openai.NotFoundError) as unknown:
            await sdk.responses.create(model="demo/nothing", input=ASK)
    assert (wrong.value.code, wrong.value.param) == (
        "unsupported_parameter",
        "previous_response_id",
    )
    assert unknown.value.code == "model_not_found"
    assert gateway.vendor.calls == []
