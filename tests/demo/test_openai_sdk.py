"""The real openai SDK against the simulated vendor: chat, streams, tools, structured output, embeddings, models."""

from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from gwd.demo import Behaviour, SimulatedVendor, tokens
from tests.demo.requests import CHAT_TOOL, WEATHER_SCHEMA

ASKED: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Tell me about green tea."},
]


async def test_whole_answer_reports_the_tokens_of_the_rule(openai_client: Any):
    answer = await openai_client.chat.completions.create(model="gpt-demo", messages=ASKED)
    text = answer.choices[0].message.content
    assert text
    assert "green tea" in text
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == tokens.count(text)
    assert answer.usage.prompt_tokens == 2 * tokens.PER_MESSAGE + tokens.count(
        "Be brief."
    ) + tokens.count("Tell me about green tea.")
    assert answer.model == "gpt-demo-2026-08-06"


async def test_stream_says_the_same_and_reports_usage_only_when_asked(
    openai_client: Any,
):
    whole = await openai_client.chat.completions.create(model="gpt-demo", messages=ASKED)
    bare = await openai_client.chat.completions.create(
        model="gpt-demo", messages=ASKED, stream=True
    )
    chunks = [chunk async for chunk in bare]
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == whole.choices[0].message.content
    assert all("usage" not in chunk.model_fields_set for chunk in chunks)

    counted = await openai_client.chat.completions.create(
        model="gpt-demo", messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in counted]
    assert all(chunk.usage is None and "usage" in chunk.model_fields_set for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert chunks[0].choices[0].delta.role == "assistant"
    assert {chunk.obfuscation is not None for chunk in chunks} == {True}


async def test_obfuscation_can_be_switched_off(openai_client: Any):
    stream = await openai_client.chat.completions.create(
        model="gpt-demo",
        messages=ASKED,
        stream=True,
        stream_options={"include_obfuscation": False},
    )
    assert all([chunk.obfuscation is None async for chunk in stream])


async def test_tool_call_and_result_make_a_round_trip(openai_client: Any):
    asked: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": "Please get weather in Paris."}
    ]
    first = await openai_client.chat.completions.create(
        model="gpt-demo", messages=asked, tools=[CHAT_TOOL]
    )
    assert first.choices[0].finish_reason == "tool_calls"
    message = first.choices[0].message
    assert message.content is None
    assert message.tool_calls is not None
    call = message.tool_calls[0]
    assert call.type == "function"
    assert '"city":"Paris"' in call.function.arguments
    second = await openai_client.chat.completions.create(
        model="gpt-demo",
        messages=[
            *asked,
            message.to_dict(),
            {"role": "tool", "tool_call_id": call.id, "content": "18 degrees, clear"},
        ],
        tools=[CHAT_TOOL],
    )
    assert second.choices[0].finish_reason == "stop"
    assert "18 degrees, clear" in (second.choices[0].message.content or "")


async def test_streamed_calls_in_parallel_have_their_own_index(openai_client: Any):
    async with openai_client.chat.completions.stream(
        model="gpt-demo",
        messages=[{"role": "user", "content": "Get weather for both Paris and Rome"}],
        tools=[CHAT_TOOL],
    ) as stream:
        final = await stream.get_final_completion()
    calls = final.choices[0].message.tool_calls
    assert calls is not None
    arguments = [call.function.arguments for call in calls]
    assert len(arguments) == 2
    assert '"city":"Paris"' in arguments[0]
    assert '"city":"Rome"' in arguments[1]
    assert calls[0].id != calls[1].id


async def test_parallel_calls_off_gives_one_call(openai_client: Any):
    answer = await openai_client.chat.completions.create(
        model="gpt-demo",
        messages=[{"role": "user", "content": "Get weather for both Paris and Rome"}],
        tools=[CHAT_TOOL],
        parallel_tool_calls=False,
    )
    assert len(answer.choices[0].message.tool_calls or []) == 1


async def test_forced_tool_is_called_whatever_the_message_says(openai_client: Any):
    answer = await openai_client.chat.completions.create(
        model="gpt-demo", messages=ASKED, tools=[CHAT_TOOL], tool_choice="required"
    )
    assert answer.choices[0].finish_reason == "tool_calls"
    quiet = await openai_client.chat.completions.create(
        model="gpt-demo",
        messages=[{"role": "user", "content": "Use the tool get_weather"}],
        tools=[CHAT_TOOL],
        tool_choice="none",
    )
    assert quiet.choices[0].finish_reason == "stop"


async def test_structured_output_fits_the_schema(openai_client: Any):
    answer = await openai_client.chat.completions.create(
        model="gpt-demo",
        messages=[{"role": "user", "content": "Weather in Oslo?"}],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "weather", "schema": WEATHER_SCHEMA, "strict": True},
        },
    )
    text = answer.choices[0].message.content or ""
    assert text.startswith('{"city":"Oslo","days":')


async def test_reasoning_is_counted_but_hidden(openai_client: Any):
    answer = await openai_client.chat.completions.create(
        model="o-demo", messages=ASKED, reasoning_effort="high"
    )
    assert answer.usage is not None
    details = answer.usage.completion_tokens_details
    assert details is not None
    assert details.reasoning_tokens == 48
    text = answer.choices[0].message.content or ""
    assert answer.usage.completion_tokens == 48 + tokens.count(text)


async def test_compatible_server_shows_its_reasoning(openai_client: Any):
    stream = await openai_client.chat.completions.create(
        model="open-demo", messages=ASKED, stream=True
    )
    shown = [
        chunk.choices[0].delta.to_dict().get("reasoning_content", "") async for chunk in stream
    ]
    assert tokens.count("".join(str(one) for one in shown)) == 24


async def test_cap_and_stop_string_end_the_answer(openai_client: Any):
    capped = await openai_client.chat.completions.create(
        model="gpt-demo", messages=ASKED, max_tokens=5
    )
    assert capped.choices[0].finish_reason == "length"
    assert capped.usage is not None
    assert capped.usage.completion_tokens == 5
    stopped = await openai_client.chat.completions.create(
        model="gpt-demo", messages=ASKED, stop=["green"]
    )
    assert stopped.choices[0].finish_reason == "stop"
    assert "green" not in (stopped.choices[0].message.content or "")


async def test_images_and_files_are_counted(openai_client: Any):
    async def prompt_tokens(*parts: object) -> int:
        content = [{"type": "text", "text": "Look"}, *parts]
        answer = await openai_client.chat.completions.create(
            model="gpt-demo",
            messages=[{"role": "user", "content": content}],
        )
        assert answer.usage is not None
        return int(answer.usage.prompt_tokens)

    bare = await prompt_tokens()
    image = {"url": "https://example.com/a.png"}
    assert await prompt_tokens({"type": "image_url", "image_url": image}) == bare + tokens.IMAGE
    low = {"type": "image_url", "image_url": {**image, "detail": "low"}}
    assert await prompt_tokens(low) == bare + tokens.IMAGE_LOW_DETAIL
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + "QUJD" * 100}
    assert await prompt_tokens({"type": "file", "file": file}) == bare + 75


async def test_embeddings_are_unit_vectors_in_both_encodings(openai_client: Any):
    as_base64 = await openai_client.embeddings.create(
        model="embed-demo", input=["tea", "coffee"], dimensions=8
    )
    plain = await openai_client.embeddings.create(
        model="embed-demo", input=["tea", "coffee"], dimensions=8, encoding_format="float"
    )
    for one, other in zip(as_base64.data, plain.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
        assert sum(value * value for value in other.embedding) == pytest.approx(1)
    assert plain.data[0].embedding != plain.data[1].embedding
    assert plain.usage.prompt_tokens == 2
    numbers = await openai_client.embeddings.create(model="embed-demo", input=[1, 2, 3])
    assert numbers.usage.prompt_tokens == 3
    assert len(numbers.data[0].embedding) == 1536


async def test_models_are_listed_and_looked_up(openai_client: Any):
    listed = await openai_client.models.list()
    assert "gpt-demo" in [model.id for model in listed.data]
    assert (await openai_client.models.retrieve("o-demo")).id == "o-demo"
    with pytest.raises(openai.NotFoundError):
        await openai_client.models.retrieve("nope")


async def test_errors_arrive_as_the_sdks_own(openai_client: Any, vendor: SimulatedVendor):
    with pytest.raises(openai.NotFoundError) as unknown:
        await openai_client.chat.completions.create(model="nope", messages=ASKED)
    assert unknown.value.code == "model_not_found"
    vendor.script.next(Behaviour(status=429, retry_after="3"))
    with pytest.raises(openai.RateLimitError) as limited:
        await openai_client.chat.completions.create(model="gpt-demo", messages=ASKED)
    assert limited.value.response.headers["retry-after"] == "3"
    assert limited.value.code == "rate_limit_exceeded"
    vendor.script.next("error=overloaded error_after=3")
    stream = await openai_client.chat.completions.create(
        model="gpt-demo", messages=ASKED, stream=True
    )
    with pytest.raises(openai.APIError, match="overloaded"):
        _ = [chunk async for chunk in stream]


async def test_long_prompt_is_cached_the_second_time(openai_client: Any):
    long: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "word " * 1500},
        {"role": "user", "content": "hello"},
    ]
    seen = []
    for _ in range(2):
        answer = await openai_client.chat.completions.create(model="gpt-demo", messages=long)
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        seen.append(answer.usage.prompt_tokens_details.cached_tokens)
    assert seen[0] == 0
    assert seen[1]
    assert seen[1] % 128 == 0
