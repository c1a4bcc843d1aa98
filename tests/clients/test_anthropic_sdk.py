"""The real Anthropic SDK against the gateway, in front of a vendor of its own format and of another one."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx
import pytest

from gwd.demo import Behaviour
from tests.clients.messages_clients import (
    CLAUDE,
    CLAUDE_NEXT,
    OPEN,
    PLAIN,
    RESPONSES,
    add_open_models,
    base_url,
)
from tests.support.node import Gateway

MODELS = (CLAUDE, PLAIN, RESPONSES)
TOOL: Any = {
    "name": "get_weather",
    "description": "Current weather of a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[anthropic.AsyncAnthropic]:
    await add_open_models(gateway)
    async with anthropic.AsyncAnthropic(
        api_key=gateway.key, base_url=base_url(gateway), max_retries=0, timeout=10
    ) as made:
        yield made


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("model", MODELS)
async def test_a_message(client: anthropic.AsyncAnthropic, model: str):
    message = await client.messages.create(model=model, max_tokens=200, messages=user("hello"))
    assert message.id.startswith("msg_")
    assert message.model == model
    assert message.stop_reason == "end_turn"
    assert message.content[-1].type == "text"
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 0
    assert message.usage.cache_read_input_tokens == 0


@pytest.mark.parametrize("model", MODELS)
async def test_a_stream_accumulates_to_the_whole_message(
    client: anthropic.AsyncAnthropic, model: str
):
    asked: Any = {
        "model": model,
        "max_tokens": 200,
        "messages": user("hello"),
        "system": "Be brief.",
    }
    whole = await client.messages.create(**asked)
    texts = []
    async with client.messages.stream(**asked) as stream:
        async for text in stream.text_stream:
            texts.append(text)
        final = await stream.get_final_message()
    assert "".join(texts) == getattr(whole.content[-1], "text", None)
    assert getattr(final.content[-1], "text", None) == "".join(texts)
    assert final.usage.input_tokens == whole.usage.input_tokens
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.stop_reason == whole.stop_reason


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("model", MODELS)
async def test_a_tool_loop(client: anthropic.AsyncAnthropic, model: str, streamed: bool):
    messages = user("Use both: get_weather in Oslo and in Lima, in parallel.")
    asked: Any = {"model": model, "max_tokens": 400, "tools": [TOOL]}
    first = await _answer(client, streamed=streamed, messages=messages, **asked)
    assert first.stop_reason == "tool_use"
    calls = [block for block in first.content if block.type == "tool_use"]
    assert len(calls) == 2
    assert len({call.id for call in calls}) == 2
    assert all(isinstance(call.input, dict) for call in calls)
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"{place} degrees"}
        for place, call in enumerate(calls)
    ]
    messages = [
        *messages,
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        {"role": "user", "content": results},
    ]
    second = await _answer(client, streamed=streamed, messages=messages, **asked)
    assert second.stop_reason == "end_turn"
    assert "degrees" in "".join(getattr(block, "text", "") for block in second.content)


async def _answer(client: anthropic.AsyncAnthropic, *, streamed: bool, **asked: Any) -> Any:
    if not streamed:
        return await client.messages.create(**asked)
    async with client.messages.stream(**asked) as stream:
        return await stream.get_final_message()


@pytest.mark.parametrize("model", [CLAUDE, CLAUDE_NEXT])
async def test_thinking_comes_with_a_signature_and_can_be_sent_back(
    client: anthropic.AsyncAnthropic, gateway: Gateway, model: str
):
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    messages = user("Think about get_weather in Oslo, then call the tool.")
    asked: Any = {"model": model, "max_tokens": 3000, "thinking": thinking, "tools": [TOOL]}
    async with client.messages.stream(messages=messages, **asked) as stream:
        first = await stream.get_final_message()
    assert first.content[0].type == "thinking"
    assert isinstance(first.content[0].signature, str)
    call = next(block for block in first.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "3 degrees"}
    messages = [
        *messages,
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        {"role": "user", "content": [result]},
    ]
    # A vendor that signs refuses a changed text or a lost signature.
    second = await client.messages.create(messages=messages, **asked)
    assert second.stop_reason == "end_turn"
    assert gateway.vendor.calls.last.status == 200


async def test_another_vendors_unsigned_thinking_is_kept_from_the_one_that_signs(
    client: anthropic.AsyncAnthropic, gateway: Gateway
):
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    asked: Any = {"max_tokens": 3000, "thinking": thinking}
    messages = user("Is this sound?")
    first = await client.messages.create(model=OPEN, messages=messages, **asked)
    assert [block.type for block in first.content] == ["thinking", "text"]
    messages = [
        *messages,
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        *user("And now?"),
    ]
    second = await client.messages.create(model=CLAUDE, messages=messages, **asked)
    assert second.stop_reason == "end_turn"
    upstream = gateway.vendor.calls.last.body
    assert upstream is not None
    assert [block["type"] for block in upstream["messages"][1]["content"]] == ["text"]
    assert upstream["thinking"] == thinking


@pytest.mark.parametrize("model", MODELS)
async def test_structured_output(client: anthropic.AsyncAnthropic, model: str):
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    config: Any = {
        "format": {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}
    }
    message = await client.messages.create(
        model=model, max_tokens=200, messages=user("Ann is 9."), output_config=config
    )
    answer = message.content[-1]
    assert answer.type == "text"
    assert "age" in json.loads(answer.text)


@pytest.mark.parametrize("model", MODELS)
async def test_the_token_limit_is_a_stop_reason(client: anthropic.AsyncAnthropic, model: str):
    message = await client.messages.create(model=model, max_tokens=20, messages=user("hello"))
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 20


async def test_cost_and_receipt_are_added_on_request(client: anthropic.AsyncAnthropic):
    raw = await client.messages.with_raw_response.create(
        model=CLAUDE,
        max_tokens=50,
        messages=user("hello"),
        extra_body={"usage": {"include": True}},
        extra_headers={"X-GW-Metadata": "enabled"},
    )
    message: Any = await raw.parse()
    expected = message.usage.input_tokens * 3_000 + message.usage.output_tokens * 15_000
    assert message.usage.cost == pytest.approx(expected / 1e9, abs=1e-12)
    assert message.gateway_metadata["model"] == CLAUDE
    assert raw.headers["x-gw-model"] == CLAUDE
    assert raw.headers["request-id"] == raw.headers["x-request-id"]


async def test_counting_tokens_is_free_and_close_to_what_the_vendor_counts(
    client: anthropic.AsyncAnthropic, gateway: Gateway
):
    text = "The quick brown fox jumps over the lazy dog. " * 40
    counted = await client.messages.count_tokens(
        model=CLAUDE, messages=user(text), system="Be brief.", tools=[TOOL]
    )
    assert len(gateway.vendor.calls) == 0
    assert 300 < counted.input_tokens < 700


async def test_models_are_listed(client: anthropic.AsyncAnthropic):
    listed = [model.id async for model in client.models.list()]
    assert set(MODELS) <= set(listed)
    one = await client.models.retrieve(CLAUDE)
    assert one.id == CLAUDE


@pytest.mark.parametrize(
    ("fields", "error", "code"),
    [
        ({"model": "demo/none"}, anthropic.NotFoundError, "model_not_found"),
        ({"max_tokens": -1}, anthropic.BadRequestError, "invalid_value"),
        ({"messages": []}, anthropic.BadRequestError, "invalid_value"),
    ],
)
async def test_refusals_are_the_sdks_own_errors(
    client: anthropic.AsyncAnthropic,
    fields: dict[str, Any],
    error: type[anthropic.APIStatusError],
    code: str,
):
    asked: Any = {"model": CLAUDE, "max_tokens": 9, "messages": user("hi"), **fields}
    with pytest.raises(error) as caught:
        await client.messages.create(**asked)
    assert getattr(caught.value, "error_code", None) == code
    assert caught.value.request_id
    assert caught.value.body["type"] == "error"  # type: ignore[index]


async def test_an_unknown_key_is_an_authentication_error(gateway: Gateway):
    async with anthropic.AsyncAnthropic(
        api_key="sk-not-ours-1234567890", base_url=base_url(gateway), max_retries=0
    ) as stranger:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            await stranger.messages.create(model=CLAUDE, max_tokens=9, messages=user("hi"))
        assert "sk-not-ours" not in str(caught.value)
        with pytest.raises(anthropic.AuthenticationError):
            await stranger.messages.count_tokens(model=CLAUDE, messages=user("hi"))


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (Behaviour(status=429, retry_after="3"), anthropic.RateLimitError),
        (Behaviour(status=529), anthropic.APIStatusError),
        (Behaviour(status=500), anthropic.InternalServerError),
    ],
)
@pytest.mark.parametrize("model", MODELS)
async def test_vendor_trouble_is_the_sdks_own_error(
    client: anthropic.AsyncAnthropic,
    gateway: Gateway,
    model: str,
    behaviour: Behaviour,
    error: type[Exception],
):
    gateway.vendor.script.always(behaviour)
    with pytest.raises(error):
        await client.messages.create(model=model, max_tokens=9, messages=user("hi"))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("behaviour", ["cut=end cut_after=4", "error=overloaded error_after=4"])
async def test_a_stream_that_breaks_raises(
    client: anthropic.AsyncAnthropic, gateway: Gateway, model: str, behaviour: str
):
    gateway.vendor.script.next(behaviour)
    asked: Any = {"model": model, "max_tokens": 200, "messages": user("hello")}
    with pytest.raises(anthropic.APIStatusError):
        await _answer(client, streamed=True, **asked)


@pytest.mark.parametrize("model", MODELS)
async def test_a_vendors_odd_framing_does_not_reach_the_client(
    client: anthropic.AsyncAnthropic, gateway: Gateway, model: str
):
    asked: Any = {
        "model": model,
        "max_tokens": 400,
        "tools": [TOOL],
        "messages": user("Use both: get_weather in Oslo and in Lima, in parallel."),
    }
    whole = await client.messages.create(**asked)
    inputs = [block.input for block in whole.content if block.type == "tool_use"]
    for fault in ("one_byte", "crlf", "comments", "bom", "no_space", "interleave"):
        gateway.vendor.script.next(fault)
        streamed = await _answer(client, streamed=True, **asked)
        kinds = [block.type for block in streamed.content]
        assert kinds == [block.type for block in whole.content], fault
        assert [b.input for b in streamed.content if b.type == "tool_use"] == inputs, fault


async def test_every_event_of_the_raw_stream_is_named(gateway: Gateway):
    body = {"model": CLAUDE, "max_tokens": 50, "stream": True, "messages": user("hello")}
    async with httpx.AsyncClient(verify=False) as http:
        answer = await http.post(
            f"{gateway.base_url}/messages?beta=true", json=body, headers={"x-api-key": gateway.key}
        )
    events = [block for block in answer.text.split("\n\n") if block and not block.startswith(":")]
    for event in events:
        name, data = event.split("\n")
        assert name == f"event: {json.loads(data.removeprefix('data: '))['type']}"
    assert "[DONE]" not in answer.text


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_tool_runner_sends_the_whole_conversation(
    gateway: Gateway, client: anthropic.AsyncAnthropic, model: str, streamed: bool
):
    @anthropic.beta_async_tool
    async def get_weather(city: str) -> str:
        """Current weather of a city.

        Args:
            city: the city
        """
        return f"sunny in {city}"

    runner = client.beta.messages.tool_runner(
        model=model,
        max_tokens=300,
        tools=[get_weather],
        messages=user("Use get_weather in Oslo."),
        stream=streamed,
    )
    last = await runner.until_done()
    assert last.stop_reason == "end_turn"
    sent = json.dumps(gateway.vendor.calls.last.body)
    assert "Use get_weather in Oslo." in sent
    assert "sunny in" in sent
