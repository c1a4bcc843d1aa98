"""What OpenAPI says of inference is so: its examples are taken; answers, streams and errors are as it writes them."""

import copy
from typing import Any

import httpx
import msgspec
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from gwd.api.openapi import document
from gwd.api.openapi.inference import SHAPES, Shape
from gwd.api.openapi.statuses import GeminiErrorEnvelope
from gwd.demo.behaviour import Behaviour, PlannedCall
from tests.support.node import Gateway

MODELS = {
    "/messages": "demo/claude",
    "/messages/count_tokens": "demo/claude",
    "/embeddings": "demo/embed",
    "/models/{model}:embedContent": "demo/embed",
    "/models/{model}:batchEmbedContents": "demo/embed",
}
ARRAY = "/models/{model}:streamGenerateContent"
WRITTEN = document()["components"]
TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}


def body(shape: Shape, **more: Any) -> dict[str, Any]:
    model = MODELS.get(shape.path, "demo/chat")
    return {**copy.deepcopy(shape.example), "model": model, **more}


def address(shape: Shape, sent: dict[str, Any], *, stream: bool = False) -> str:
    """Where a body goes; one dialect names the model and the stream there."""
    query = "?alt=sse" if stream and shape.path == ARRAY else ""
    return shape.path.format(model=sent.get("model", "demo/chat")) + query


def strictly(value: str | bytes, kind: type, *, closed: bool = True) -> None:
    """`value` is what the document says of `kind`, and has no field beside."""
    read = msgspec.json.decode(value)
    schema = WRITTEN["schemas"][kind.__name__]
    Draft202012Validator({**schema, "components": WRITTEN}).validate(read)
    if closed:
        assert set(read) <= set(schema["properties"]), (kind, set(read))


def events(text: str) -> list[str]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [line for line in lines if line != "[DONE]"]


async def post(gateway: Gateway, shape: Shape, **more: Any) -> httpx.Response:
    headers = {"x-gw-metadata": "enabled"}
    sent = body(shape, **more)
    path = address(shape, sent, stream=sent.get("stream", False))
    return await gateway.client.post(path, json=sent, headers=headers)


def elements(shape: Shape, content: bytes) -> list[bytes]:
    """The objects of an answer or error: one dialect has arrays of them."""
    if shape.path != ARRAY:
        return [content]
    return [msgspec.json.encode(each) for each in msgspec.json.decode(content)]


async def test_examples_are_taken_and_answers_are_as_written(gateway: Gateway) -> None:
    for shape in SHAPES:
        for more in ({}, {"usage": {"include": True}}):
            reply = await post(gateway, shape, **more)
            assert reply.status_code == 200, (shape.path, reply.text)
            for each in elements(shape, reply.content):
                strictly(each, shape.event if shape.path == ARRAY else shape.answer)
            if shape.event is None:
                continue
            streamed = await post(gateway, shape, stream=True, **more)
            assert streamed.headers["content-type"].startswith("text/event-stream")
            for event in events(streamed.text):
                # Events of responses have fields of their own by their type.
                if shape.path == "/responses":
                    strictly(event, shape.event, closed=False)
                else:
                    strictly(event, shape.event)


async def test_calls_and_reasoning_are_as_written(gateway: Gateway) -> None:
    shape = next(each for each in SHAPES if each.path == "/chat/completions")
    calls = (PlannedCall(name="look", arguments="{}"),)
    gateway.vendor.script.next(Behaviour(calls=calls), Behaviour(calls=calls))
    for stream in (False, True):
        reply = await post(gateway, shape, tools=[TOOL], stream=stream)
        assert reply.status_code == 200, reply.text
        if stream:
            for event in events(reply.text):
                strictly(event, shape.event)
        else:
            strictly(reply.content, shape.answer)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.path)
async def test_errors_have_the_envelope_and_the_header_that_are_written(
    gateway: Gateway, shape: Shape
) -> None:
    for sent, key, status in (
        ({}, gateway.key, 400),
        (body(shape), "gwi_none", 401),
        (body(shape, model="no/such"), gateway.key, 404),
    ):
        reply = await gateway.client.post(
            address(shape, sent), json=sent, headers={"authorization": f"Bearer {key}"}
        )
        assert reply.status_code == status, reply.text
        for each in elements(shape, reply.content):
            kind = GeminiErrorEnvelope if shape.path == ARRAY else shape.envelope
            strictly(each, kind)
        assert reply.headers["x-request-id"].startswith("req_")
