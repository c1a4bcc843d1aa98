"""What an OpenAI-format server answers, as typed shapes.

Anything a server may get wrong without spoiling the answer (usage, ids, details) is typed loosely on purpose.
"""

from typing import Any

import msgspec


class FunctionWire(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CustomWire(msgspec.Struct, gc=False):
    """A call of a tool that takes free text."""

    name: str | None = None
    input: str | None = None


class ToolCallWire(msgspec.Struct):
    index: int | None = None
    id: Any = None
    function: FunctionWire | None = None
    custom: CustomWire | None = None
    extra_content: Any = None


class DeltaWire(msgspec.Struct):
    """A stream's delta and a whole answer's message: the same fields."""

    content: str | list[Any] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: list[ToolCallWire] | None = None
    function_call: FunctionWire | None = None
    reasoning_details: Any = None
    annotations: Any = None


class ChoiceWire(msgspec.Struct):
    index: Any = 0
    delta: DeltaWire | None = None
    message: DeltaWire | None = None
    finish_reason: Any = None
    logprobs: Any = None
    usage: Any = None
    error: Any = None
    stop_reason: Any = None
    matched_stop: Any = None


class AnswerWire(msgspec.Struct):
    """A whole answer, or one chunk of a stream."""

    choices: list[ChoiceWire] | None = None
    usage: Any = None
    error: Any = None
    id: Any = None
    model: Any = None
    system_fingerprint: Any = None
    service_tier: Any = None
    citations: Any = None
    search_results: Any = None
    related_questions: Any = None
    images: Any = None
    videos: Any = None


class ChunkWire(msgspec.Struct):
    """A later chunk of a stream: the envelope was read from the first one, the tier may still change."""

    choices: list[ChoiceWire] | None = None
    usage: Any = None
    error: Any = None
    service_tier: Any = None
    citations: Any = None
    search_results: Any = None
    related_questions: Any = None
    images: Any = None
    videos: Any = None
