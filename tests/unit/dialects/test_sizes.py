"""How much one request may hold: the field and the limit are named."""

import json
from typing import Any

from gwd.core.errors import InvalidRequest
from gwd.dialects import chat_completions, messages, responses
from gwd.dialects.base import Dialect
from gwd.dialects.sizes import MAX_PARTS, MAX_STOPS

A_TEXT = {"type": "text", "text": "a"}
MANY = [A_TEXT] * (MAX_PARTS + 1)
LONG_HEAD = "data:image/png;" + "a=b;" * 1_000 + "base64,iVBORw0KGgo="


def _user(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 5}


ROWS: list[tuple[str, Dialect, dict[str, Any], str | None]] = [
    ("parts", chat_completions.DIALECT, _user(MANY), "messages"),
    ("parts", messages.DIALECT, _user(MANY), "messages"),
    ("parts", responses.DIALECT, {"input": [{"role": "user", "content": MANY}]}, "input"),
    (
        "parts of a result",
        messages.DIALECT,
        _user([{"type": "tool_result", "tool_use_id": "c", "content": MANY}]),
        "messages",
    ),
    (
        "messages",
        messages.DIALECT,
        {"max_tokens": 5, "messages": _user("a")["messages"] * 50_001},
        "messages",
    ),
    ("items", responses.DIALECT, {"input": [{"role": "user", "content": "a"}] * 50_001}, "input"),
    ("stops", chat_completions.DIALECT, _user("a") | {"stop": ["a"] * (MAX_STOPS + 1)}, "stop"),
    (
        "stops",
        messages.DIALECT,
        _user("a") | {"stop_sequences": ["a"] * (MAX_STOPS + 1)},
        "stop_sequences",
    ),
    (
        "stops at the limit",
        chat_completions.DIALECT,
        _user("a") | {"stop": ["a"] * MAX_STOPS},
        None,
    ),
    (
        "providers",
        chat_completions.DIALECT,
        _user("a") | {"provider": {"order": ["a"] * 101}},
        "provider.order",
    ),
    ("a model's name", chat_completions.DIALECT, _user("a") | {"model": "a" * 300}, "model"),
    (
        "parameters of a data URL",
        chat_completions.DIALECT,
        _user([{"type": "image_url", "image_url": {"url": LONG_HEAD}}]),
        "messages[0].content[0].image_url.url",
    ),
    (
        "parameters of a data URL",
        responses.DIALECT,
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": LONG_HEAD}]}]},
        "input[0].content[0].image_url",
    ),
    (
        "parameters of a data URL",
        messages.DIALECT,
        _user([{"type": "image", "source": {"type": "url", "url": LONG_HEAD}}]),
        "messages[0].content[0].source.url",
    ),
]


def test_what_is_too_many_is_refused_and_named() -> None:
    wrong = []
    for name, dialect, body, param in ROWS:
        try:
            dialect.parse(json.dumps({"model": "a/b", **body}).encode(), {})
            found: str | None = None
        except InvalidRequest as error:
            found = error.param
        if found != param:
            wrong.append((name, dialect.name, found, param))
    assert wrong == []
