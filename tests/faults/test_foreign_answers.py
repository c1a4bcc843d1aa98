"""Another format answers than the provider names: the error, the test and the doctor say which, and nothing of it."""

import itertools
import json
from typing import Any

import pytest

from tests.flows.frames import error_of
from tests.support.node import PRICES, Gateway
from tests.support.recorder import Recorder, answer

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = itertools.count(1)

SECRET = "private-words-0001"
CHAT = {"object": "chat.completion", "choices": [{"message": {"content": SECRET}}]}
MESSAGE = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": SECRET}]}
RESPONSE = {"object": "response", "output": [], "status": "completed", "note": SECRET}
GEMINI = {"candidates": [{"content": {"parts": [{"text": SECRET}]}}]}
VECTORS = {"object": "list", "data": [{"embedding": [0.1], "index": 0}], "model": SECRET}
OLLAMA = {"model": "m", "message": {"role": "assistant", "content": SECRET}, "done": True}
PAGE = f"<!DOCTYPE html><html>{SECRET}</html>".encode()
BEGUN = {"type": "message_start", "message": {"id": SECRET, "content": []}}


def events(*values: Any) -> bytes:
    body = b"".join(b"event: x\ndata: %s\n\n" % json.dumps(value).encode() for value in values)
    return answer(body, kind="text/event-stream")


def whole(value: Any) -> bytes:
    return answer(json.dumps(value).encode())


# the provider's adapter, whether the client streams, the answer, words that name it
TABLE: list[tuple[str, bool, bytes, str]] = [
    ("openai_chat", False, whole(MESSAGE), "the format of anthropic_messages"),
    ("openai_chat", False, whole(GEMINI), "the format of gemini"),
    ("openai_chat", False, whole(RESPONSE), "the format of openai_responses"),
    ("openai_chat", False, whole(VECTORS), "the format of openai_embeddings"),
    ("openai_chat", False, whole(OLLAMA), "Ollama's own format"),
    ("openai_chat", False, answer(PAGE, kind="text/html"), "a web page"),
    ("openai_chat", False, answer(PAGE), "a web page"),
    ("openai_chat", True, answer(PAGE, kind="text/html"), "a web page"),
    ("openai_chat", True, whole(MESSAGE), "the format of anthropic_messages"),
    ("openai_chat", True, events(BEGUN, {"type": "message_stop"}), "the format of anthropic_messages"),
    ("openai_chat", True, events(GEMINI), "the format of gemini"),
    ("openai_chat", True, answer(json.dumps(OLLAMA).encode() + b"\n" + json.dumps(OLLAMA).encode(),
        kind="application/x-ndjson"), "Ollama's own format"),
    ("anthropic_messages", False, whole(CHAT), "the format of openai_chat"),
    ("anthropic_messages", True, events(CHAT), "the format of openai_chat"),
    ("anthropic_messages", False, whole(GEMINI), "the format of gemini"),
    ("gemini", False, whole(CHAT), "the format of openai_chat"),
    ("gemini", True, events(CHAT), "the format of openai_chat"),
    ("gemini", False, whole(MESSAGE), "the format of anthropic_messages"),
    ("openai_responses", False, whole(CHAT), "the format of openai_chat"),
    ("openai_responses", True, events(CHAT), "the format of openai_chat"),
]  # fmt: skip


async def test_what_answers_instead_is_named(node: Gateway) -> None:
    wrong = []
    async with Recorder().running() as server:
        for adapter, stream, says, words in TABLE:
            slug = f"foreign-{next(_numbers)}"
            await node.add_provider(slug, adapter, server.url)
            await node.add_model(f"demo/{slug}", pricing=PRICES)
            await node.add_endpoint(f"demo/{slug}", slug, "m")
            server.says = lambda head, says=says: says  # type: ignore[misc]
            reply = await node.chat(model=f"demo/{slug}", stream=stream)
            error = error_of(reply)
            [previous] = error["metadata"]["previous_errors"]
            path = f"/catalog/providers/{slug}/test"
            tested = await node.operator.post(path)
            doctor = (await node.manage("GET", "/operator/doctor"))["data"]["checks"]
            [rests] = [check for check in doctor if check["name"] == "rests"]
            told = [
                reply.status_code == 502,
                words in error["message"],
                words in previous.get("message", ""),
                stream or words in tested.json()["error"]["message"],
                words in rests["message"],
                "--adapter" in rests["do"],
                SECRET not in reply.text + tested.text + str(doctor),
            ]
            if not all(told):
                wrong.append((adapter, stream, words, told, reply.text))
            await node.manage("PATCH", f"/catalog/providers/{slug}", {"disabled": True})
    assert wrong == []


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (answer(PAGE, status="404 No", kind="text/html"), "nothing at this address (status 404)"),
        (answer(b"404 page not found", status="404 No", kind="text/plain"), "page not found"),
        (answer(PAGE, status="405 No", kind="text/html"), "nothing at this address (status 405)"),
    ],
    ids=["404 page", "404 text", "405 page"],
)
async def test_an_address_that_leads_nowhere_is_named_to_the_operator(
    node: Gateway, says: bytes, words: str
) -> None:
    async with Recorder(lambda head: says).running() as server:
        slug = f"foreign-{next(_numbers)}"
        await node.add_provider(slug, "openai_chat", server.url)
        await node.add_model(f"demo/{slug}", pricing=PRICES)
        await node.add_endpoint(f"demo/{slug}", slug, "m")
        reply = await node.chat(model=f"demo/{slug}")
        assert reply.status_code == 502
        assert SECRET not in reply.text
        tested = await node.manage("POST", f"/catalog/providers/{slug}/test", status=502)
        assert words in tested["error"]["message"]
        doctor = (await node.manage("GET", "/operator/doctor"))["data"]["checks"]
        [rests] = [check for check in doctor if check["name"] == "rests"]
        assert words in rests["message"]
        assert "base" in rests["do"]
        await node.manage("PATCH", f"/catalog/providers/{slug}", {"disabled": True})
