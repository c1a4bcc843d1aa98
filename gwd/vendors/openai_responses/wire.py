"""What a responses server sends. Fields are loose where only their presence matters: odd values must not cost the
answer, and servers of this format differ in everything but the text."""

from typing import Any

import msgspec


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """response.output_text.delta, the frame that streams are made of."""

    delta: str
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    logprobs: Any = None


class EventWire(msgspec.Struct, frozen=True):
    """Any other event; `item`, `part` and `response` are read when their type asks for it."""

    type: str = ""
    delta: Any = None
    item_id: Any = None
    output_index: Any = None
    content_index: Any = None
    summary_index: Any = None
    logprobs: Any = None
    text: Any = None
    refusal: Any = None
    arguments: Any = None
    input: Any = None
    annotation: Any = None
    item: Any = None
    part: Any = None
    response: Any = None
    error: Any = None
    code: Any = None
    message: Any = None
