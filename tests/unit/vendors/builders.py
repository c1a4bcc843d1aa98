"""Requests and targets for adapter tests: a test names only what matters to it."""

from typing import Any

import msgspec

from gwd.core.events import Event, check_grammar
from gwd.core.request import Request
from gwd.core.sse import Frame
from gwd.core.target import Target
from gwd.dialects.chat_completions import DIALECT
from gwd.vendors.openai_chat import ADAPTER
from tests.golden import golden

HI = {"role": "user", "content": "hi"}


def chat(**body: Any) -> Request:
    """The request of a chat client."""
    full = {"model": "test/model", "messages": [HI], **body}
    return DIALECT.parse(msgspec.json.encode(full), {})


def target(**changes: Any) -> Target:
    return golden.target("openai_chat", **changes)


def sent(request: Request, to: Target | None = None) -> dict[str, Any]:
    """The body that goes upstream."""
    body: dict[str, Any] = msgspec.json.decode(ADAPTER.build(request, to or target()).body)
    return body


def dropped(request: Request, to: Target) -> tuple[str, ...]:
    return ADAPTER.build(request, to).dropped


def streamed(
    *data: object, request: Request | None = None, to: Target | None = None
) -> list[Event]:
    """The events of a stream whose frames hold these values (bytes as they are); the grammar is checked."""
    decoder = ADAPTER.decoder(request or chat(), to or target())
    events: list[Event] = []
    for value in data:
        events += decoder.feed(
            Frame(b"", value if isinstance(value, bytes) else msgspec.json.encode(value))
        )
    events += decoder.close()
    check_grammar(events)
    return events


def chunk(finish: str | None = None, /, **delta: object) -> dict[str, Any]:
    return {"id": "c-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def usage_chunk(prompt: object = 10, completion: object = 2, **more: object) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, **more}
    return {"id": "c-1", "choices": [], "usage": usage}
