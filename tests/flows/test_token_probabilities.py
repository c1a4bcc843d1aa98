"""Token probabilities in both OpenAI formats, whatever format the vendor speaks."""

import json
from typing import Any

import pytest

from tests.flows.frames import frames_of
from tests.support.node import Gateway

MODELS = ("demo/chat", "demo/responses")
PROBABILITIES = "message.output_text.logprobs"


async def post(gateway: Gateway, path: str, **body: Any) -> Any:
    reply = await gateway.client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply


@pytest.mark.parametrize("model", MODELS)
async def test_a_chat_client_gets_one_for_each_token(gateway: Gateway, model: str) -> None:
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": "hello"}],
        "logprobs": True,
        "top_logprobs": 2,
    }
    whole = (await post(gateway, "/chat/completions", **asked)).json()["choices"][0]
    tokens = [one["token"] for one in whole["logprobs"]["content"]]
    assert "".join(tokens) == whole["message"]["content"]
    reply = await post(gateway, "/chat/completions", **asked, stream=True)
    streamed = [
        one["token"]
        for frame in frames_of(reply.text)
        for choice in frame["choices"]
        for one in (choice.get("logprobs") or {}).get("content") or ()
    ]
    assert streamed == tokens
    record = await gateway.generation(reply)
    assert record["dropped_parameters"] == []


@pytest.mark.parametrize("model", MODELS)
async def test_a_responses_client_gets_one_for_each_token(gateway: Gateway, model: str) -> None:
    asked = {"model": model, "input": "hello", "include": [PROBABILITIES], "top_logprobs": 2}
    whole = (await post(gateway, "/responses", **asked)).json()
    part = next(item for item in whole["output"] if item["type"] == "message")["content"][0]
    tokens = [one["token"] for one in part["logprobs"]]
    assert "".join(tokens) == part["text"]
    reply = await post(gateway, "/responses", **asked, stream=True)
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line[:6] == "data: "]
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert [one["token"] for event in deltas for one in event["logprobs"]] == tokens
    assert (await gateway.generation(reply))["dropped_parameters"] == []


@pytest.mark.parametrize("model", MODELS)
async def test_nobody_gets_what_nobody_asked_for(gateway: Gateway, model: str) -> None:
    messages = [{"role": "user", "content": "hello"}]
    body = (await post(gateway, "/chat/completions", model=model, messages=messages)).json()
    assert body["choices"][0]["logprobs"] is None
    whole = (await post(gateway, "/responses", model=model, input="hello", top_logprobs=2)).json()
    part = next(item for item in whole["output"] if item["type"] == "message")["content"][0]
    assert part["logprobs"] == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": "yes"}, "logprobs"),
    ],
)
async def test_a_wish_that_makes_no_sense_is_refused(
    gateway: Gateway, fields: dict[str, Any], param: str
) -> None:
    reply = await gateway.chat(**fields)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def test_a_format_without_the_field_is_left_out_where_every_parameter_counts(
    gateway: Gateway,
) -> None:
    reply = await gateway.chat(
        model="demo/claude", logprobs=True, seed=1, provider={"require_parameters": True}
    )
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (404, "no_eligible_endpoints")
    assert error["metadata"]["unsupported_parameters"] == ["logprobs", "seed"]
