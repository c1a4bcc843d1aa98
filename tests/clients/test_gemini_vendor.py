"""Clients of every dialect at a running gateway whose vendor speaks Gemini's format."""

from decimal import Decimal
from typing import Any

import msgspec
import openai
import pytest
from msgspec.structs import replace

from gwd.demo import Behaviour, PlannedCall
from gwd.demo.signatures import sign
from tests.support.node import PRICES, Gateway

MODEL = "demo/gemini"
EMBED = "demo/gemini-embed"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {"type": "function", "function": {"name": "get weather", "parameters": PARAMETERS}}
CALL = PlannedCall(name="get_weather", arguments='{"city":"Oslo"}')
COUNTED = Behaviour(prompt_tokens=100, cached_tokens=40, completion_tokens=50, reasoning_tokens=30)
TOOL_TURN = replace(COUNTED, reasoning="A look would help.", calls=(CALL, CALL))
ANSWER = replace(COUNTED, text="3 degrees in both.")


def signature_of(*calls: PlannedCall) -> str:
    """What the vendor signs these calls with."""
    parts = [{"name": call.name, "args": msgspec.json.decode(call.arguments)} for call in calls]
    return sign(msgspec.json.encode(parts).decode())


@pytest.fixture(autouse=True)
async def gemini(gateway: Gateway) -> None:
    await gateway.add_provider("google", "gemini", f"{gateway.vendor.gemini_url}/")
    await gateway.add_model(MODEL, pricing=PRICES)
    flags = {"thinking_form": "adaptive"}
    await gateway.add_endpoint(MODEL, "google", "gemini-demo", flags=flags)
    await gateway.add_model(EMBED, pricing={"prompt": "0.0000001"}, embeddings=True)
    await gateway.add_endpoint(EMBED, "google", "gemini-embed-demo")


async def test_a_tool_loop_of_a_chat_client_keeps_names_signatures_and_the_bill(
    gateway: Gateway,
):
    gateway.vendor.script.next(TOOL_TURN, ANSWER)
    before = await gateway.balance()
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]
    async with openai.AsyncOpenAI(
        api_key=gateway.key, base_url=gateway.base_url, max_retries=0
    ) as sdk:
        details: list[Any] = []
        async with sdk.chat.completions.stream(
            model=MODEL, messages=messages, tools=[WEATHER], reasoning_effort="low"
        ) as stream:
            async for event in stream:
                if event.type == "chunk":
                    for piece in event.chunk.choices:
                        details += (piece.delta.model_extra or {}).get("reasoning_details", [])
            choice = (await stream.get_final_completion()).choices[0]
        calls = choice.message.tool_calls or []
        assert choice.finish_reason == "tool_calls"
        assert [call.function.name for call in calls] == ["get weather"] * 2
        assert len({call.id for call in calls}) == 2
        turn: Any = {
            "role": "assistant",
            "tool_calls": [call.to_dict() for call in calls],
            "reasoning_details": details,
        }
        results: Any = [{"role": "tool", "tool_call_id": call.id, "content": "3"} for call in calls]
        answer = await sdk.chat.completions.create(
            model=MODEL, messages=[*messages, turn, *reversed(results)], tools=[WEATHER]
        )
    assert answer.choices[0].message.content == "3 degrees in both."
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (100, 50)
    await gateway.at_rest()
    # Twice 60 fresh and 40 cached tokens of input, 50 tokens of output with the thoughts among them.
    once = 60 * Decimal("0.000002") + 40 * Decimal("0.0000005") + 50 * Decimal("0.000008")
    assert before - await gateway.balance() == 2 * once
    first, second = bodies(gateway)
    replayed = second["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in replayed] == [signature_of(CALL, CALL), None]
    assert gateway.vendor.calls[0].query == {"alt": "sse"}
    assert first["generationConfig"]["thinkingConfig"] == {
        "thinkingLevel": "LOW",
        "includeThoughts": True,
    }


async def test_a_client_that_loses_the_signature_has_it_put_back(
    gateway: Gateway,
):
    gateway.vendor.script.next(Behaviour(calls=(CALL,)), ANSWER)
    tools = [{"name": "get_weather", "input_schema": PARAMETERS}]
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]
    body = {"model": MODEL, "max_tokens": 5000, "tools": tools}
    first = await gateway.client.post("/messages", json={**body, "messages": messages})
    content = first.json()["content"]
    assert first.json()["stop_reason"] == "tool_use"
    messages.append({"role": "assistant", "content": content})
    messages.append(
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "3"}],
        }
    )
    second = await gateway.client.post("/messages", json={**body, "messages": messages})
    assert second.json()["content"][0]["text"] == "3 degrees in both."
    part = bodies(gateway)[1]["contents"][1]["parts"][0]
    assert part["thoughtSignature"] == signature_of(CALL)


async def test_a_responses_client_gets_its_items(gateway: Gateway):
    gateway.vendor.script.next(TOOL_TURN)
    async with openai.AsyncOpenAI(
        api_key=gateway.key, base_url=gateway.base_url, max_retries=0
    ) as sdk:
        tool: Any = {"type": "function", "name": "get_weather", "parameters": PARAMETERS}
        async with sdk.responses.stream(
            model=MODEL, input="Weather?", tools=[tool], reasoning={"effort": "low"}
        ) as stream:
            async for _ in stream:
                pass
            response = await stream.get_final_response()
    assert [item.type for item in response.output] == [
        "reasoning",
        "function_call",
        "function_call",
    ]
    assert response.usage is not None
    assert response.usage.output_tokens_details.reasoning_tokens == 30


async def test_a_stream_that_breaks_off_is_never_a_whole_answer(
    gateway: Gateway,
):
    gateway.vendor.script.next(replace(COUNTED, text="Once", finish="none"))
    reply = await gateway.chat(model=MODEL, stream=True)
    assert '"finish_reason":"error"' in reply.text
    assert '"finish_reason":"stop"' not in reply.text
    found = await gateway.generation(reply)
    assert found["status"] == "incomplete"


async def test_a_minutes_limit_tells_the_client_when_to_come_back(
    gateway: Gateway,
):
    message = "You exceeded your current quota, please check your plan and billing details."
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}]
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    scripted = Behaviour(status=429, body=msgspec.json.encode({"error": error}).decode())
    gateway.vendor.script.next(scripted)
    reply = await gateway.chat(model=MODEL)
    assert reply.status_code == 429
    assert reply.headers["retry-after"] == "37"


async def test_embeddings_come_in_the_order_of_the_texts_and_are_billed(
    gateway: Gateway,
):
    texts = ["green tea", "black tea"]
    one, both = [
        (await gateway.client.post("/embeddings", json={"model": EMBED, "input": given})).json()
        for given in (texts[1], texts)
    ]
    assert both["data"][1]["embedding"] == one["data"][0]["embedding"]
    assert both["data"][0]["embedding"] != one["data"][0]["embedding"]
    assert both["usage"]["prompt_tokens"] == 2 * one["usage"]["prompt_tokens"] == 4
    path = "/v1beta/models/gemini-embed-demo:batchEmbedContents"
    assert [call.path for call in gateway.vendor.calls] == [path, path]


def bodies(gateway: Gateway) -> list[dict[str, Any]]:
    """What the vendor got, call by call."""
    return [call.body or {} for call in gateway.vendor.calls]
