"""The OpenAI SDK against a running gateway: chat, legacy completions, embeddings, and its exception classes."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionChunk
from pydantic import BaseModel

from gwd.demo import Behaviour
from tests.support.node import Gateway

CHAT = "demo/chat"
MESSAGES = "demo/claude"
RESPONSES = "demo/responses"
EMBED = "demo/embed"
OPEN = "demo/open"

EVERY_UPSTREAM = (CHAT, MESSAGES, RESPONSES)
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}


def _asks(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def _read(stream: Any, texts: list[str]) -> None:
    """Collect the text of a stream as far as it goes."""
    async for chunk in stream:
        texts += [choice.delta.content or "" for choice in chunk.choices]


def _sdk(gateway: Gateway, key: str | None = None, **headers: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        api_key=key or gateway.key,
        base_url=gateway.base_url,
        max_retries=0,
        timeout=10,
        default_headers=headers,
    )


async def _open_model(gateway: Gateway) -> None:
    """A model of an open server that shows its reasoning."""
    await gateway.add_provider("open", "openai_chat", gateway.vendor.openai_url)
    await gateway.add_model(OPEN, pricing={"prompt": "0.000002", "completion": "0.000008"})
    await gateway.add_endpoint(OPEN, "open", "open-demo")


@pytest.fixture
async def sdk(gateway: Gateway) -> AsyncIterator[openai.AsyncOpenAI]:
    async with _sdk(gateway) as client:
        yield client


# --- chat


@pytest.mark.parametrize("model", EVERY_UPSTREAM)
async def test_a_whole_answer_carries_text_usage_and_names(sdk: openai.AsyncOpenAI, model: str):
    answer = await sdk.chat.completions.create(model=model, messages=_asks("Tell me about tea."))
    assert answer.id.startswith("gen-")
    assert answer.model == model
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.completion_tokens > 0


@pytest.mark.parametrize("model", EVERY_UPSTREAM)
async def test_a_stream_adds_up_to_the_whole_answer(sdk: openai.AsyncOpenAI, model: str):
    messages = _asks("Tell me about tea.")
    whole = await sdk.chat.completions.create(model=model, messages=messages)
    stream = await sdk.chat.completions.create(model=model, messages=messages, stream=True)
    chunks: list[ChatCompletionChunk] = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert [c.usage is not None for c in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert {c.id for c in chunks} == {chunks[0].id}


async def test_cost_and_receipt_come_when_asked_for(gateway: Gateway):
    async with _sdk(gateway, **{"X-GW-Metadata": "enabled"}) as sdk:
        answer = await sdk.chat.completions.create(
            model=CHAT, messages=_asks("Hi"), extra_body={"usage": {"include": True}}
        )
    usage: Any = answer.usage
    receipt: Any = answer.model_extra
    assert usage.cost > 0
    assert receipt["gateway_metadata"]["cost"]["total"] == usage.cost
    assert receipt["gateway_metadata"]["routing"]["attempt"] == 1


async def test_the_headers_name_generation_vendor_and_model(sdk: openai.AsyncOpenAI):
    raw = await sdk.chat.completions.with_raw_response.create(model=CHAT, messages=_asks("Hi"))
    assert raw.headers["x-gw-generation-id"] == raw.parse().id
    assert raw.headers["x-gw-model"] == CHAT
    assert raw.headers["x-gw-provider"] == "Demo"
    assert raw.headers["x-request-id"]


@pytest.mark.parametrize("model", EVERY_UPSTREAM)
async def test_a_tool_loop_runs_to_its_end(sdk: openai.AsyncOpenAI, model: str):
    messages = _asks("What is the weather in Oslo and Rome, both?")
    first = await sdk.chat.completions.create(
        model=model, messages=messages, tools=[WEATHER], tool_choice="required"
    )
    assert first.choices[0].finish_reason == "tool_calls"
    calls = first.choices[0].message.tool_calls
    assert calls
    messages.append(first.choices[0].message.model_dump(exclude_none=True))
    for call in calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "3 degrees"})
    second = await sdk.chat.completions.create(model=model, messages=messages, tools=[WEATHER])
    assert second.choices[0].finish_reason == "stop"
    assert second.choices[0].message.content


@pytest.mark.parametrize("model", EVERY_UPSTREAM)
async def test_the_stream_helper_puts_tool_calls_together(sdk: openai.AsyncOpenAI, model: str):
    async with sdk.chat.completions.stream(
        model=model,
        messages=_asks("Weather in both Oslo and Rome, please."),
        tools=[WEATHER],
        tool_choice="required",
    ) as stream:
        kinds = {event.type async for event in stream}
        final = await stream.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds
    calls = final.choices[0].message.tool_calls
    assert calls
    assert all(isinstance(call.function.parsed_arguments, dict) for call in calls)
    assert len({call.id for call in calls}) == len(calls)
    assert final.choices[0].finish_reason == "tool_calls"


class Person(BaseModel):
    name: str
    age: int


@pytest.mark.parametrize("model", EVERY_UPSTREAM)
async def test_a_structured_answer_parses_into_its_model(sdk: openai.AsyncOpenAI, model: str):
    answer = await sdk.chat.completions.parse(
        model=model, messages=_asks("Make up a person."), response_format=Person
    )
    assert isinstance(answer.choices[0].message.parsed, Person)


async def test_reasoning_is_shown_in_both_spellings(gateway: Gateway, sdk: openai.AsyncOpenAI):
    await _open_model(gateway)
    answer = await sdk.chat.completions.create(
        model=OPEN, messages=_asks("Think hard."), reasoning_effort="high"
    )
    message: Any = answer.choices[0].message
    assert message.reasoning == message.reasoning_content
    assert message.reasoning
    assert message.reasoning_details[0]["type"] == "reasoning.text"


async def test_a_reasoning_tool_loop_gives_the_server_its_own_reasoning_back(
    gateway: Gateway, sdk: openai.AsyncOpenAI
):
    await _open_model(gateway)
    messages = _asks("What is the weather in Oslo?")
    first = await sdk.chat.completions.create(
        model=OPEN, messages=messages, tools=[WEATHER], tool_choice="required"
    )
    shown: Any = first.choices[0].message
    assert shown.tool_calls
    messages.append(shown.model_dump(exclude_none=True))
    call_id = shown.tool_calls[0].id
    messages.append({"role": "tool", "tool_call_id": call_id, "content": "3 degrees"})
    await sdk.chat.completions.create(model=OPEN, messages=messages, tools=[WEATHER])
    body: Any = gateway.vendor.calls.last.body
    replayed = body["messages"][1]
    assert replayed["reasoning_content"] == shown.reasoning
    assert "reasoning_details" not in replayed


# --- errors


async def test_a_wrong_key_is_an_authentication_error(gateway: Gateway):
    async with _sdk(gateway, "gwi_wrong") as sdk:
        with pytest.raises(openai.AuthenticationError) as caught:
            await sdk.chat.completions.create(model=CHAT, messages=_asks("Hi"))
    assert caught.value.code == "invalid_api_key"
    assert "gwi_wrong" not in str(caught.value)


async def test_an_unknown_model_is_not_found(sdk: openai.AsyncOpenAI):
    with pytest.raises(openai.NotFoundError) as caught:
        await sdk.chat.completions.create(model="demo/none", messages=_asks("Hi"))
    assert (caught.value.code, caught.value.type) == ("model_not_found", "not_found_error")
    assert caught.value.request_id


async def test_a_bad_field_is_a_bad_request_that_names_it(sdk: openai.AsyncOpenAI):
    with pytest.raises(openai.BadRequestError) as caught:
        await sdk.chat.completions.create(model=CHAT, messages=_asks("Hi"), n=2)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "n")


async def test_a_model_outside_the_keys_list_is_forbidden(gateway: Gateway):
    key, _ = await gateway.new_key(allowed_models=[MESSAGES])
    async with _sdk(gateway, key) as sdk:
        with pytest.raises(openai.PermissionDeniedError) as caught:
            await sdk.chat.completions.create(model=CHAT, messages=_asks("Hi"))
    assert caught.value.code == "model_not_allowed"


async def test_a_spent_key_is_a_402(gateway: Gateway):
    key, _ = await gateway.new_key(limit=0)
    async with _sdk(gateway, key) as sdk:
        with pytest.raises(openai.APIStatusError) as caught:
            await sdk.chat.completions.create(model=CHAT, messages=_asks("Hi"))
    assert (caught.value.status_code, caught.value.code) == (402, "key_limit_exceeded")


async def test_throttled_vendors_are_a_rate_limit_error_with_a_wait(
    gateway: Gateway, sdk: openai.AsyncOpenAI
):
    gateway.vendor.script.always(Behaviour(status=429, retry_after="7"))
    with pytest.raises(openai.RateLimitError) as caught:
        await sdk.chat.completions.create(model=CHAT, messages=_asks("Hi"))
    assert caught.value.code == "endpoints_throttled"
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 7


async def test_a_broken_vendor_is_a_server_error(gateway: Gateway, sdk: openai.AsyncOpenAI):
    gateway.vendor.script.always(Behaviour(status=500))
    with pytest.raises(openai.InternalServerError) as caught:
        await sdk.chat.completions.create(model=CHAT, messages=_asks("Hi"))
    assert caught.value.status_code == 502
    body: Any = caught.value.body
    assert body["metadata"]["previous_errors"]


async def test_a_stream_that_breaks_raises_after_its_text(
    gateway: Gateway, sdk: openai.AsyncOpenAI
):
    gateway.vendor.script.always(Behaviour(error="server_error", error_after=4))
    stream = await sdk.chat.completions.create(
        model=CHAT, messages=_asks("Tell me about tea."), stream=True
    )
    texts: list[str] = []
    with pytest.raises(openai.APIError) as caught:
        await _read(stream, texts)
    assert "".join(texts)
    assert caught.value.code == "upstream_error"


@pytest.mark.parametrize("fault", ["crlf", "one_byte", "comments", "json_for_stream", "multi_line"])
async def test_a_vendors_odd_framing_stays_behind_the_gateway(
    gateway: Gateway, sdk: openai.AsyncOpenAI, fault: str
):
    messages = _asks("Tell me about tea.")
    whole = await sdk.chat.completions.create(model=CHAT, messages=messages)
    gateway.vendor.script.always(fault)
    texts: list[str] = []
    await _read(
        await sdk.chat.completions.create(model=CHAT, messages=messages, stream=True), texts
    )
    assert "".join(texts) == whole.choices[0].message.content


# --- legacy completions and embeddings


async def test_legacy_completions_answer_whole_and_streamed(sdk: openai.AsyncOpenAI):
    whole = await sdk.completions.create(model=CHAT, prompt=["Tell me", "about tea."])
    assert whole.object == "text_completion"
    assert whole.choices[0].text
    stream = await sdk.completions.create(model=CHAT, prompt=["Tell me", "about tea."], stream=True)
    chunks = [chunk async for chunk in stream]
    assert "".join(c.choices[0].text for c in chunks if c.choices) == whole.choices[0].text
    assert chunks[-1].usage == whole.usage


async def test_embeddings_are_the_same_as_numbers_and_as_base64(sdk: openai.AsyncOpenAI):
    as_base64 = await sdk.embeddings.create(model=EMBED, input=["tea", "coffee"])
    plain = await sdk.embeddings.create(
        model=EMBED, input=["tea", "coffee"], encoding_format="float"
    )
    assert [item.index for item in as_base64.data] == [0, 1]
    for one, other in zip(as_base64.data, plain.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding)
    assert as_base64.usage.prompt_tokens > 0


async def test_a_chat_model_cannot_embed(sdk: openai.AsyncOpenAI):
    with pytest.raises(openai.BadRequestError) as caught:
        await sdk.embeddings.create(model=CHAT, input="tea")
    assert caught.value.code == "wrong_endpoint"
