"""POST /completions: the legacy text shape over any model."""

import json
from typing import Any

import httpx
import pytest

from tests.support.node import Gateway

MODELS = ("demo/chat", "demo/claude", "demo/responses")


async def send(gateway: Gateway, **fields: Any) -> httpx.Response:
    body = {"model": "demo/chat", "prompt": "Once upon a time", "max_tokens": 30, **fields}
    return await gateway.client.post("/completions", json=body)


@pytest.mark.parametrize("model", MODELS)
async def test_whole_answer_is_a_text_completion(gateway: Gateway, model: str) -> None:
    reply = await send(gateway, model=model)
    body = reply.json()
    assert (body["object"], body["model"]) == ("text_completion", model)
    assert body["id"] == reply.headers["x-gw-generation-id"]
    (choice,) = body["choices"]
    assert choice["text"]
    assert choice["finish_reason"] in ("stop", "length")
    assert body["usage"]["total_tokens"] > 0


@pytest.mark.parametrize("model", MODELS)
async def test_stream_has_the_same_object_and_ends_with_done(gateway: Gateway, model: str) -> None:
    whole = (await send(gateway, model=model)).json()
    text = (await send(gateway, model=model, stream=True)).text
    assert text.endswith("data: [DONE]\n\n")
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    streamed = "".join(c["choices"][0]["text"] for c in chunks if c["choices"])
    assert streamed == whole["choices"][0]["text"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]


async def test_a_list_of_prompts_is_one_user_message(gateway: Gateway) -> None:
    assert (await send(gateway, prompt=["First.", "Second."])).status_code == 200
    (call,) = gateway.vendor.calls.on("/v1/chat/completions")
    assert call.body
    (message,) = call.body["messages"]
    assert message["role"] == "user"
    assert json.dumps(message["content"]).index("First.") < json.dumps(message["content"]).index(
        "Second."
    )


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1, 2]], [], None, 5])
async def test_a_prompt_that_is_no_text_is_refused(gateway: Gateway, prompt: Any) -> None:
    reply = await send(gateway, prompt=prompt)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "prompt"


async def test_what_only_this_dialect_knows_is_dropped(gateway: Gateway) -> None:
    reply = await send(gateway, suffix="!", echo=True, best_of=2, logprobs=1)
    assert reply.status_code == 200
    (call,) = gateway.vendor.calls.on("/v1/chat/completions")
    assert call.body
    assert not {"suffix", "echo", "best_of", "logprobs", "prompt"} & call.body.keys()
