"""The real openai SDK against the responses API: items, events in order, reasoning that can be replayed."""

from typing import Any

from gwd.demo import SimulatedVendor, tokens
from tests.demo.requests import RESPONSES_TOOL, WEATHER_SCHEMA

ASK = "Tell me about green tea."


async def test_whole_response_counts_by_the_rule(openai_client: Any):
    response = await openai_client.responses.create(model="gpt-demo", input=ASK)
    assert response.status == "completed"
    assert "green tea" in response.output_text
    assert response.usage is not None
    assert response.usage.output_tokens == tokens.count(response.output_text)
    assert response.usage.input_tokens == tokens.PER_MESSAGE + tokens.count(ASK)


async def test_stream_is_numbered_and_ends_with_the_whole_object(openai_client: Any):
    whole = await openai_client.responses.create(
        model="o-demo", input=ASK, reasoning={"effort": "low", "summary": "auto"}
    )
    stream = await openai_client.responses.create(
        model="o-demo", input=ASK, reasoning={"effort": "low", "summary": "auto"}, stream=True
    )
    events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == whole.output_text
    assert last.response.usage == whole.usage
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text
    thought = [
        event.delta for event in events if event.type == "response.reasoning_summary_text.delta"
    ]
    assert whole.usage is not None
    assert len(thought) == whole.usage.output_tokens_details.reasoning_tokens == 12
    assert [item.type for item in last.response.output] == ["reasoning", "message"]


async def test_encrypted_reasoning_comes_when_asked_for_and_can_be_replayed(
    openai_client: Any,
):
    bare = await openai_client.responses.create(model="o-demo", input=ASK)
    assert bare.output[0].type == "reasoning"
    assert bare.output[0].encrypted_content is None
    first = await openai_client.responses.create(
        model="o-demo",
        input="Please get weather in Rome",
        tools=[RESPONSES_TOOL],
        include=["reasoning.encrypted_content"],
        store=False,
    )
    assert [item.type for item in first.output] == ["reasoning", "function_call"]
    call = first.output[1]
    assert call.type == "function_call"
    replay: Any = [
        {"role": "user", "content": "Please get weather in Rome"},
        *[item.to_dict() for item in first.output],
        {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"},
    ]
    second = await openai_client.responses.create(
        model="o-demo",
        input=replay,
        tools=[RESPONSES_TOOL],
        store=False,
    )
    assert "21 degrees" in second.output_text


async def test_streamed_function_call_has_arguments_in_deltas(openai_client: Any):
    stream = await openai_client.responses.create(
        model="gpt-demo",
        input="Get weather for both Paris and Rome",
        tools=[RESPONSES_TOOL],
        stream=True,
    )
    parts: dict[int, str] = {}
    done = []
    async for event in stream:
        if event.type == "response.function_call_arguments.delta":
            parts[event.output_index] = parts.get(event.output_index, "") + event.delta
        elif event.type == "response.function_call_arguments.done":
            done.append(event.arguments)
    assert list(parts.values()) == done
    assert '"city":"Rome"' in done[1]


async def test_custom_tool_takes_free_text(openai_client: Any):
    response = await openai_client.responses.create(
        model="gpt-demo",
        input=ASK,
        tools=[{"type": "custom", "name": "note"}],
        tool_choice={"type": "custom", "name": "note"},
    )
    assert response.output[0].type == "custom_tool_call"
    assert "green tea" in response.output[0].input


async def test_incomplete_and_refused_responses(openai_client: Any, vendor: SimulatedVendor):
    short = await openai_client.responses.create(model="gpt-demo", input=ASK, max_output_tokens=16)
    assert short.status == "incomplete"
    assert short.incomplete_details is not None
    assert short.incomplete_details.reason == "max_output_tokens"
    assert short.usage is not None
    assert short.usage.output_tokens == 16
    vendor.script.next("content_filter")
    filtered = await openai_client.responses.create(model="gpt-demo", input=ASK)
    assert filtered.incomplete_details is not None
    assert filtered.incomplete_details.reason == "content_filter"
    vendor.script.next("refusal")
    refused = await openai_client.responses.create(model="gpt-demo", input=ASK)
    message = refused.output[0]
    assert message.type == "message"
    assert message.content[0].type == "refusal"


async def test_structured_output_fits_the_schema(openai_client: Any):
    response = await openai_client.responses.create(
        model="gpt-demo",
        input="Weather in Oslo?",
        text={
            "format": {
                "type": "json_schema",
                "name": "weather",
                "schema": WEATHER_SCHEMA,
                "strict": True,
            }
        },
    )
    assert response.output_text.startswith('{"city":"Oslo","days":')


async def test_failure_in_the_stream_is_an_error_event_and_a_failed_response(
    openai_client: Any, vendor: SimulatedVendor
):
    vendor.script.next("error=rate_limit error_after=5")
    stream = await openai_client.responses.create(model="gpt-demo", input=ASK, stream=True)
    events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[-2:]] == ["error", "response.failed"]
    assert events[-2].code == "rate_limit_exceeded"
    assert events[-1].response.error.code == "rate_limit_exceeded"
