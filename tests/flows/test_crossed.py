"""One conversation through every dialect at every vendor format: what arrives, what comes back, and what it costs.

The conversation has a system text, a picture, a PDF, reasoning that is shown and sent back, two calls at once with
their results, a JSON schema, a stop string and a cached prefix. The vendors are the strict ones: a signature, an id or
a result that is not as it was given out is refused. What came of it is the table of docs/dialects.md: `make crossed`
writes it.
"""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest_asyncio
from msgspec.structs import replace

from gwd.demo import Behaviour, PlannedCall
from tests.support.node import PRICES, Gateway, open_gateway, with_catalog

PAGE: Final = Path(__file__).parents[2] / "docs" / "dialects.md"
BEGIN, END = "<!-- crossed -->\n", "<!-- /crossed -->\n"
Json = dict[str, Any]

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
PDF: Final = "JVBERi0xLjQKMSAwIG9iajw8Pj5lbmRvYmoKJSVFT0YK"
SYSTEM, ASK = "Be brief.", "What is in these, and how is the weather in Oslo and Rome?"
PARAMETERS: Final[Json] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
FORM: Final[Json] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
WEATHER: Final[Json] = {
    "name": "get_weather",
    "description": "The weather.",
    "parameters": PARAMETERS,
}
CALLS: Final = (("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"}))
TEXT: Final = '{"answer": "3 and 20 degrees"}'
COUNTED: Final = Behaviour(
    prompt_tokens=1_000, cached_tokens=400, completion_tokens=50, reasoning_tokens=30
)
FIRST: Final = replace(
    COUNTED,
    reasoning="A look would help.",
    calls=tuple(
        PlannedCall(name=name, arguments=msgspec.json.encode(arguments).decode())
        for name, arguments in CALLS
    ),
)
SECOND: Final = replace(COUNTED, reasoning="Now I know.", text=TEXT)
CAP, BUDGET, STOP = 8_000, 2_048, "STOP HERE"

MODELS: Final = {
    "openai_chat": "demo/open",
    "anthropic_messages": "demo/claude",
    "openai_responses": "demo/responses",
    "gemini": "demo/gemini",
    "openai_embeddings": "demo/embed",
}
VECTORS: Final = {"gemini": "demo/vectors", "openai_embeddings": "demo/embed"}


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in the words that all dialects share; `turn` is what its client sends back."""

    text: str
    thought: str
    calls: tuple[tuple[str, Json], ...]
    ids: tuple[str, ...]
    finish: str
    usage: tuple[int, int, int]
    cost: float
    turn: list[Json]


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """How a client of one dialect asks, reads, and goes on. `stops` tells that it has a field for stop strings."""

    path: Callable[[str], str]
    ask: Callable[[], Json]
    read: Callable[[Json], Told]
    go_on: Callable[[Json, Told], Json]
    stops: bool = True


# chat completions


def _chat_ask() -> Json:
    mark = {"cache_control": {"type": "ephemeral"}}
    return {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": SYSTEM, **mark}]},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                    {
                        "type": "file",
                        "file": {
                            "filename": "a.pdf",
                            "file_data": f"data:application/pdf;base64,{PDF}",
                        },
                    },
                    {"type": "text", "text": ASK},
                ],
            },
        ],
        "tools": [{"type": "function", "function": WEATHER}],
        "reasoning": {"max_tokens": BUDGET},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": FORM, "strict": True},
        },
        "stop": [STOP],
        "max_tokens": CAP,
    }


def _chat_read(body: Json) -> Told:
    choice, used = body["choices"][0], body["usage"]
    message = choice["message"]
    calls = message.get("tool_calls", ())
    return Told(
        text=message["content"] or "",
        thought=message.get("reasoning", ""),
        calls=tuple((c["function"]["name"], _decoded(c["function"]["arguments"])) for c in calls),
        ids=tuple(call["id"] for call in calls),
        finish=choice["finish_reason"],
        usage=(
            used["prompt_tokens"],
            used["prompt_tokens_details"]["cached_tokens"],
            used["completion_tokens"],
        ),
        cost=used["cost"],
        turn=[message],
    )


def _chat_go_on(body: Json, told: Told) -> Json:
    results = [
        {"role": "tool", "tool_call_id": call_id, "content": text}
        for call_id, text in zip(told.ids, ("3", "20"), strict=True)
    ]
    return {**body, "messages": [*body["messages"], *told.turn, *reversed(results)]}


# messages


def _messages_ask() -> Json:
    mark = {"cache_control": {"type": "ephemeral"}}
    return {
        "system": [{"type": "text", "text": SYSTEM, **mark}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    },
                    {
                        "type": "document",
                        "title": "a.pdf",
                        "source": {
                            "type": "base64",
                            "media_type": "application/pdf",
                            "data": PDF,
                        },
                    },
                    {"type": "text", "text": ASK},
                ],
            }
        ],
        "tools": [
            {
                "name": WEATHER["name"],
                "description": WEATHER["description"],
                "input_schema": PARAMETERS,
            }
        ],
        "thinking": {"type": "enabled", "budget_tokens": BUDGET},
        "output_config": {"format": {"type": "json_schema", "schema": FORM}},
        "stop_sequences": [STOP],
        "max_tokens": CAP,
    }


def _messages_read(body: Json) -> Told:
    blocks, used = body["content"], body["usage"]
    calls = [block for block in blocks if block["type"] == "tool_use"]
    cached = used["cache_read_input_tokens"]
    words = {"end_turn": "stop", "tool_use": "tool_calls"}
    return Told(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        thought="".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        calls=tuple((call["name"], call["input"]) for call in calls),
        ids=tuple(call["id"] for call in calls),
        finish=words[body["stop_reason"]],
        usage=(
            used["input_tokens"] + cached + used["cache_creation_input_tokens"],
            cached,
            used["output_tokens"],
        ),
        cost=used["cost"],
        turn=[{"role": "assistant", "content": blocks}],
    )


def _messages_go_on(body: Json, told: Told) -> Json:
    results = [
        {"type": "tool_result", "tool_use_id": call_id, "content": text}
        for call_id, text in zip(told.ids, ("3", "20"), strict=True)
    ]
    turn = {"role": "user", "content": [*reversed(results)]}
    return {**body, "messages": [*body["messages"], *told.turn, turn]}


# responses


def _responses_ask() -> Json:
    return {
        "instructions": SYSTEM,
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                    {
                        "type": "input_file",
                        "filename": "a.pdf",
                        "file_data": f"data:application/pdf;base64,{PDF}",
                    },
                    {"type": "input_text", "text": ASK},
                ],
            }
        ],
        "tools": [{"type": "function", **WEATHER}],
        "reasoning": {"max_tokens": BUDGET, "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": FORM}},
        "max_output_tokens": CAP,
    }


def _responses_read(body: Json) -> Told:
    items, used = body["output"], body["usage"]
    calls = [item for item in items if item["type"] == "function_call"]
    pieces = [
        piece
        for item in items
        if item["type"] == "reasoning"
        for piece in (*item["summary"], *item.get("content", ()))
    ]
    assert body["status"] == "completed"
    return Told(
        text=body["output_text"],
        thought="".join(piece["text"] for piece in pieces),
        calls=tuple((call["name"], _decoded(call["arguments"])) for call in calls),
        ids=tuple(call["call_id"] for call in calls),
        finish="tool_calls" if calls else "stop",
        usage=(
            used["input_tokens"],
            used["input_tokens_details"]["cached_tokens"],
            used["output_tokens"],
        ),
        cost=used["cost"],
        turn=items,
    )


def _responses_go_on(body: Json, told: Told) -> Json:
    results = [
        {"type": "function_call_output", "call_id": call_id, "output": text}
        for call_id, text in zip(told.ids, ("3", "20"), strict=True)
    ]
    return {**body, "input": [*body["input"], *told.turn, *reversed(results)]}


# gemini


def _gemini_ask() -> Json:
    return {
        "systemInstruction": {"parts": [{"text": SYSTEM}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": PNG}},
                    {
                        "inlineData": {
                            "mimeType": "application/pdf",
                            "data": PDF,
                            "displayName": "a.pdf",
                        }
                    },
                    {"text": ASK},
                ],
            }
        ],
        "tools": [{"functionDeclarations": [WEATHER]}],
        "generationConfig": {
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": BUDGET},
            "responseMimeType": "application/json",
            "responseJsonSchema": FORM,
            "stopSequences": [STOP],
            "maxOutputTokens": CAP,
        },
    }


def _gemini_read(body: Json) -> Told:
    candidate, used = body["candidates"][0], body["usageMetadata"]
    parts = candidate["content"]["parts"]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    texts = [part for part in parts if "text" in part]
    assert candidate["finishReason"] == "STOP"
    return Told(
        text="".join(part["text"] for part in texts if not part.get("thought")),
        thought="".join(part["text"] for part in texts if part.get("thought")),
        calls=tuple((call["name"], call["args"]) for call in calls),
        ids=tuple(call["id"] for call in calls),
        finish="tool_calls" if calls else "stop",
        usage=(
            used["promptTokenCount"],
            used.get("cachedContentTokenCount", 0),
            used["candidatesTokenCount"] + used.get("thoughtsTokenCount", 0),
        ),
        cost=used["cost"],
        turn=[candidate["content"]],
    )


def _gemini_go_on(body: Json, told: Told) -> Json:
    results = [
        {"functionResponse": {"id": call_id, "name": "get_weather", "response": {"output": text}}}
        for call_id, text in zip(told.ids, ("3", "20"), strict=True)
    ]
    turn = {"role": "user", "parts": [*reversed(results)]}
    return {**body, "contents": [*body["contents"], *told.turn, turn]}


SPEAKERS: Final = {
    "chat_completions": Speaker(
        path=lambda _: "/chat/completions", ask=_chat_ask, read=_chat_read, go_on=_chat_go_on
    ),
    "messages": Speaker(
        path=lambda _: "/messages", ask=_messages_ask, read=_messages_read, go_on=_messages_go_on
    ),
    "responses": Speaker(
        path=lambda _: "/responses",
        ask=_responses_ask,
        read=_responses_read,
        go_on=_responses_go_on,
        stops=False,
    ),
    "gemini": Speaker(
        path=lambda model: f"/models/{model}:generateContent",
        ask=_gemini_ask,
        read=_gemini_read,
        go_on=_gemini_go_on,
    ),
}
DIALECTS: Final = (*SPEAKERS, "completions", "embeddings")


async def _begin(gateway: Gateway) -> None:
    await with_catalog(gateway)
    await gateway.add_provider("google", "gemini", f"{gateway.vendor.gemini_url}/")
    await gateway.add_model("demo/gemini", pricing=PRICES)
    flags = {"thinking_form": "adaptive"}
    await gateway.add_endpoint("demo/gemini", "google", "gemini-demo", flags=flags)
    await gateway.add_model("demo/vectors", pricing={"prompt": "0.0000001"}, embeddings=True)
    await gateway.add_endpoint("demo/vectors", "google", "gemini-embed-demo")
    await gateway.add_model("demo/open", pricing=PRICES)
    await gateway.add_endpoint("demo/open", "openai-chat", "open-demo")


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with open_gateway(tmp_path, begin=_begin) as made:
        yield made


async def test_every_dialect_at_every_format_is_as_the_page_says(gateway: Gateway) -> None:
    rows: dict[tuple[str, str], str] = {}
    for format_ in MODELS:
        answers = {}
        for dialect in DIALECTS:
            if dialect in SPEAKERS and format_ != "openai_embeddings":
                told, left_out = await _conversation(gateway, SPEAKERS[dialect], MODELS[format_])
                answers[dialect] = [replace(each, ids=(), turn=[]) for each in told]
                rows[dialect, format_] = f"all of it | {left_out}"
            elif dialect == "completions" and format_ != "openai_embeddings":
                rows[dialect, format_] = await _prompt(gateway, MODELS[format_])
            elif dialect in ("embeddings", "gemini") and format_ in VECTORS:
                rows[dialect, format_] = await _vectors(gateway, dialect, VECTORS[format_])
            else:
                rows[dialect, format_] = await _refused(gateway, dialect, MODELS[format_])
        # Whoever asked, it is the same answer at the same price.
        assert len({msgspec.json.encode(each) for each in answers.values()}) <= 1, answers
    assert len(rows) == 30
    _compare(rows)


async def _conversation(
    gateway: Gateway, speaker: Speaker, model: str
) -> tuple[tuple[Told, Told], str]:
    """Both answers, and which parameters had no place at the vendor."""
    gateway.vendor.script.next(FIRST, SECOND)
    body = {"model": model, "usage": {"include": True}, **speaker.ask()}
    first = await gateway.client.post(speaker.path(model), json=body)
    assert first.status_code == 200, (model, first.text)
    told = speaker.read(first.json())
    assert (told.calls, told.finish) == (CALLS, "tool_calls"), (model, told)
    assert told.thought == "A look would help."
    assert len(set(told.ids)) == 2
    second = await gateway.client.post(speaker.path(model), json=speaker.go_on(body, told))
    assert second.status_code == 200, (model, second.text)
    end = speaker.read(second.json())
    assert (end.text, end.thought, end.finish) == (TEXT, "Now I know.", "stop"), (model, end)
    assert told.usage == end.usage == (1_000, 400, 50)
    sent = msgspec.json.encode(gateway.vendor.calls[-1].body).decode()
    for piece in (SYSTEM, ASK, PNG, PDF, "get_weather", "additionalProperties"):
        assert piece in sent, (model, piece)
    dropped = (await gateway.generation(second))["dropped_parameters"]
    assert (STOP in sent) == (speaker.stops and "stop" not in dropped)
    return (told, end), ", ".join(dropped) or "–"


async def _prompt(gateway: Gateway, model: str) -> str:
    gateway.vendor.script.next(replace(COUNTED, text="Fine."))
    asked = {"model": model, "prompt": ASK, "max_tokens": CAP, "stop": STOP}
    reply = await gateway.client.post("/completions", json=asked)
    assert reply.json()["choices"][0]["text"] == "Fine.", reply.text
    dropped = (await gateway.generation(reply))["dropped_parameters"]
    return f"a prompt and its text | {', '.join(dropped) or '–'}"


async def _vectors(gateway: Gateway, dialect: str, model: str) -> str:
    if dialect == "embeddings":
        asked: Json = {"model": model, "input": ["green tea", "black tea"]}
        reply = await gateway.client.post("/embeddings", json=asked)
        found = [each["embedding"] for each in reply.json()["data"]]
    else:
        texts = ("green tea", "black tea")
        asked = {"requests": [{"content": {"parts": [{"text": text}]}} for text in texts]}
        reply = await gateway.client.post(f"/models/{model}:batchEmbedContents", json=asked)
        found = [each["values"] for each in reply.json()["embeddings"]]
    assert len(found) == 2
    assert found[0] != found[1]
    return "vectors of texts | –"


async def _refused(gateway: Gateway, dialect: str, model: str) -> str:
    if dialect in SPEAKERS:
        path, body = SPEAKERS[dialect].path(model), SPEAKERS[dialect].ask()
    elif dialect == "completions":
        path, body = "/completions", {"prompt": ASK}
    else:
        path, body = "/embeddings", {"input": ASK}
    reply = await gateway.client.post(path, json={"model": model, **body})
    assert reply.status_code == 400, (dialect, model, reply.text)
    return f"refused: `{reply.json()['error'].get('code', 'wrong_endpoint')}` | –"


def _compare(rows: dict[tuple[str, str], str]) -> None:
    lines = [
        f"| {dialect} | {format_} | {rows[dialect, format_]} |\n"
        for dialect in DIALECTS
        for format_ in MODELS
    ]
    head = "| dialect | vendor format | what goes through | left out, and recorded so |\n|---|---|---|---|\n"
    table = head + "".join(lines)
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    written, _, after = rest.partition(END)
    if os.environ.get("WRITE_CROSSED"):
        PAGE.write_text(before + BEGIN + table + END + after, "utf-8")
        return
    assert written == table, "run make crossed"


def _decoded(text: str) -> Any:
    return msgspec.json.decode(text)
