"""The real anthropic SDK against the simulated vendor: messages, streams, thinking, tools, cache, counting."""

from typing import Any

import anthropic
import pytest
from anthropic.types import MessageParam

from gwd.demo import Behaviour, SimulatedVendor, tokens
from tests.demo.requests import MESSAGES_TOOL, WEATHER_SCHEMA

ASKED: list[MessageParam] = [{"role": "user", "content": "Tell me about green tea."}]
THINKING: Any = {"type": "enabled", "budget_tokens": 1024}


async def test_whole_message_counts_by_the_rule(anthropic_client: Any):
    message = await anthropic_client.messages.create(
        model="claude-demo", max_tokens=500, messages=ASKED, system="Be brief."
    )
    block = message.content[0]
    assert block.type == "text"
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens == tokens.count(block.text)
    assert message.usage.input_tokens == tokens.PER_MESSAGE + tokens.count(
        "Be brief."
    ) + tokens.count("Tell me about green tea.")
    assert message.usage.cache_creation is not None


async def test_stream_accumulates_to_the_whole_message(anthropic_client: Any):
    whole = await anthropic_client.messages.create(
        model="claude-demo", max_tokens=3000, messages=ASKED, thinking=THINKING
    )
    async with anthropic_client.messages.stream(
        model="claude-demo", max_tokens=3000, messages=ASKED, thinking=THINKING
    ) as stream:
        final = await stream.get_final_message()
    assert [block.model_dump() for block in final.content] == [
        block.model_dump() for block in whole.content
    ]
    assert [block.type for block in final.content] == ["thinking", "text"]
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.usage.input_tokens == whole.usage.input_tokens
    assert final.usage.output_tokens_details is not None
    assert final.usage.output_tokens_details.thinking_tokens == 25


async def test_thinking_may_be_withheld_or_redacted(anthropic_client: Any, vendor: SimulatedVendor):
    omitted: Any = {**THINKING, "display": "omitted"}
    message = await anthropic_client.messages.create(
        model="claude-demo", max_tokens=3000, messages=ASKED, thinking=omitted
    )
    block = message.content[0]
    assert block.type == "thinking"
    assert block.thinking == ""
    assert block.signature
    vendor.script.next(Behaviour(redacted=True))
    message = await anthropic_client.messages.create(
        model="claude-demo", max_tokens=3000, messages=ASKED, thinking=THINKING
    )
    assert message.content[0].type == "redacted_thinking"


async def test_adaptive_thinking_follows_the_effort(anthropic_client: Any):
    async def thought(effort: Any) -> int:
        message = await anthropic_client.messages.create(
            model="claude-demo-next",
            max_tokens=500,
            messages=ASKED,
            thinking={"type": "adaptive"},
            output_config={"effort": effort},
        )
        assert message.usage.output_tokens_details is not None
        return int(message.usage.output_tokens_details.thinking_tokens)

    assert await thought("low") < await thought("max")


async def test_tool_use_with_thinking_makes_a_round_trip(
    anthropic_client: Any,
):
    asked: list[MessageParam] = [{"role": "user", "content": "Get weather for both Rome and Oslo"}]
    first = await anthropic_client.messages.create(
        model="claude-demo",
        max_tokens=3000,
        messages=asked,
        tools=[MESSAGES_TOOL],
        thinking=THINKING,
    )
    assert first.stop_reason == "tool_use"
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [call.input["city"] for call in calls] == ["Rome", "Oslo"]
    second = await anthropic_client.messages.create(
        model="claude-demo",
        max_tokens=3000,
        messages=[
            *asked,
            {"role": "assistant", "content": first.content},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": call.id, "content": f"{index} degrees"}
                    for index, call in enumerate(calls)
                ],
            },
        ],
        tools=[MESSAGES_TOOL],
        thinking=THINKING,
    )
    text = second.content[-1]
    assert text.type == "text"
    assert "0 degrees" in text.text
    assert "1 degrees" in text.text


async def test_streamed_input_without_members_has_one_empty_delta(
    anthropic_client: Any, vendor: SimulatedVendor
):
    tool: Any = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
    async with anthropic_client.messages.stream(
        model="claude-demo",
        max_tokens=100,
        messages=ASKED,
        tools=[tool],
        tool_choice={"type": "tool", "name": "now"},
    ) as stream:
        deltas = [
            event.delta.partial_json
            async for event in stream
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta"
        ]
        final = await stream.get_final_message()
    assert deltas == [""]
    assert final.content[0].type == "tool_use"
    assert final.content[0].input == {}


async def test_cache_marks_are_written_then_read(anthropic_client: Any):
    system: Any = [
        {
            "type": "text",
            "text": "word " * 1500,
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        }
    ]
    asked: Any = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hello " * 20, "cache_control": {"type": "ephemeral"}}
            ],
        }
    ]
    first, second = [
        await anthropic_client.messages.create(
            model="claude-demo", max_tokens=50, messages=asked, system=system
        )
        for _ in range(2)
    ]
    written = first.usage.cache_creation
    assert written is not None
    assert written.ephemeral_1h_input_tokens == tokens.count("word " * 1500)
    assert written.ephemeral_5m_input_tokens == tokens.PER_MESSAGE + tokens.count("hello " * 20)
    assert first.usage.cache_read_input_tokens == 0
    assert second.usage.cache_creation_input_tokens == 0
    assert second.usage.cache_read_input_tokens == first.usage.cache_creation_input_tokens
    assert first.usage.input_tokens == second.usage.input_tokens


async def test_stop_reasons(anthropic_client: Any, vendor: SimulatedVendor):
    capped = await anthropic_client.messages.create(
        model="claude-demo", max_tokens=4, messages=ASKED
    )
    assert (capped.stop_reason, capped.usage.output_tokens) == ("max_tokens", 4)
    stopped = await anthropic_client.messages.create(
        model="claude-demo", max_tokens=400, messages=ASKED, stop_sequences=["green"]
    )
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "green")
    vendor.script.next("refusal")
    refused = await anthropic_client.messages.create(
        model="claude-demo", max_tokens=400, messages=ASKED
    )
    assert refused.stop_reason == "refusal"
    assert refused.stop_details is not None
    assert refused.stop_details.explanation


async def test_structured_output_fits_the_schema(anthropic_client: Any):
    schema = {**WEATHER_SCHEMA, "properties": {"city": {"type": "string"}}, "required": ["city"]}
    message = await anthropic_client.messages.create(
        model="claude-demo",
        max_tokens=400,
        messages=[{"role": "user", "content": "Weather in Oslo?"}],
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    assert message.content[0].type == "text"
    assert message.content[0].text == '{"city":"Oslo"}'


async def test_counted_tokens_equal_the_billed_ones(anthropic_client: Any):
    counted = await anthropic_client.messages.count_tokens(
        model="claude-demo", messages=ASKED, tools=[MESSAGES_TOOL], system="Be brief."
    )
    message = await anthropic_client.messages.create(
        model="claude-demo",
        max_tokens=100,
        messages=ASKED,
        tools=[MESSAGES_TOOL],
        system="Be brief.",
    )
    assert counted.input_tokens == message.usage.input_tokens


async def test_models_are_listed_in_anthropics_shape(anthropic_client: Any):
    listed = await anthropic_client.models.list()
    assert "claude-demo" in [model.id for model in listed.data]
    assert (await anthropic_client.models.retrieve("claude-demo")).max_tokens == 64_000


async def test_errors_arrive_as_the_sdks_own(anthropic_client: Any, vendor: SimulatedVendor):
    with pytest.raises(anthropic.NotFoundError):
        await anthropic_client.messages.create(model="nope", max_tokens=5, messages=ASKED)
    vendor.script.next("overloaded")
    with pytest.raises(anthropic.APIStatusError) as overloaded:
        await anthropic_client.messages.create(model="claude-demo", max_tokens=5, messages=ASKED)
    assert overloaded.value.status_code == 529
    vendor.script.next("overloaded_mid_stream")
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        async with anthropic_client.messages.stream(
            model="claude-demo", max_tokens=500, messages=ASKED
        ) as stream:
            await stream.get_final_message()
