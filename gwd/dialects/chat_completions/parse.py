"""A chat completions body to a Request."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gwd.core.errors import InvalidValue, MissingParameter, UnsupportedParameter
from gwd.core.request import Generate, OutputFormat, Request
from gwd.dialects import extensions, json_input
from gwd.dialects.chat_completions.common import (
    check_single_choice,
    forwardable,
    output_cap,
    reasoning_of,
    sampling_of,
    sent_words,
)
from gwd.dialects.chat_completions.messages import mark_last, messages_of, ttl_of
from gwd.dialects.chat_completions.tools import tool_choice_of, tools_of, visible
from gwd.dialects.chat_completions.wire import ChatWire, ResponseFormatWire
from gwd.dialects.schemas import modern
from gwd.dialects.sizes import checked_messages

# Metadata is the vendor's as well: it is sent on.
_FIELDS: Final = json_input.field_names(ChatWire) - {"metadata"}


def parse(body: bytes, headers: Mapping[str, str]) -> Request:
    """Raises InvalidRequest subclasses whose `param` names the field."""
    raw = json_input.load(body)
    wire = json_input.typed(raw, ChatWire)
    _refuse_unsupported(wire)
    generate = _generate(wire, raw)
    extras = forwardable(json_input.extras(raw, _FIELDS))
    return Request(
        dialect="chat_completions",
        family="openai_chat",
        models=extensions.models_of(wire.model, wire.models),
        body=generate,
        preferences=extensions.preferences_of(wire.provider),
        stream=wire.stream is True,
        include_cost=extensions.wants_cost(wire.usage),
        include_receipt=extensions.wants_receipt(headers),
        sender=extensions.sender_of(
            headers, session_id=wire.session_id, user=wire.user, metadata=wire.metadata
        ),
        sent_parameters=frozenset(sent_words(wire, extras) | _chat_words(wire, generate)),
        extras=extras,
        body_bytes=len(body),
    )


def _refuse_unsupported(wire: ChatWire) -> None:
    check_single_choice(wire)
    for name in ("functions", "function_call"):
        if getattr(wire, name):
            raise UnsupportedParameter(
                f"`{name}` is legacy function calling: use `tools` and `tool_choice`", param=name
            )
    if any(modality != "text" for modality in wire.modalities or ()):
        raise UnsupportedParameter("`modalities`: only text can be answered", param="modalities")
    if wire.audio:
        raise UnsupportedParameter("`audio`: only text can be answered", param="audio")


def _generate(wire: ChatWire, raw: dict[str, Any]) -> Generate:
    messages = checked_messages(messages_of(wire.messages, raw["messages"]), "messages")
    if wire.cache_control is not None:
        last = messages[-1]
        marked = mark_last(last.parts, ttl_of(wire.cache_control))
        messages = (*messages[:-1], msgspec.structs.replace(last, parts=marked))
    tools = tools_of(wire.tools or ())
    choice = tool_choice_of(wire, tools)
    return Generate(
        messages=messages,
        tools=visible(tools, choice, messages, raw),
        tool_choice=choice,
        sampling=sampling_of(wire),
        reasoning=reasoning_of(wire),
        output=_output(wire.response_format),
        verbosity=wire.verbosity,
        logprobs=_logprobs(wire),
        max_output_tokens=output_cap(wire),
    )


def _output(wire: ResponseFormatWire | None) -> OutputFormat | None:
    if wire is None or wire.type == "text":
        return None
    if wire.type == "json_object":
        return OutputFormat(kind="json_object")
    schema = wire.json_schema
    if schema is None or schema.schema is None:
        at = "response_format.json_schema" + ("" if schema is None else ".schema")
        raise MissingParameter(f"`{at}` is required", param=at)
    return OutputFormat(
        kind="json_schema",
        name=schema.name,
        description=schema.description,
        schema=modern(schema.schema),
        strict=schema.strict,
    )


def _logprobs(wire: ChatWire) -> int | None:
    if wire.logprobs:
        return wire.top_logprobs or 0
    if wire.top_logprobs:
        raise InvalidValue("`top_logprobs` needs `logprobs: true`", param="top_logprobs")
    return None


def _chat_words(wire: ChatWire, generate: Generate) -> set[str]:
    words = set()
    if generate.tools:
        words.add("tools")
        if wire.tool_choice is not None:
            words.add("tool_choice")
        if wire.parallel_tool_calls is not None:
            words.add("parallel_tool_calls")
    if generate.output is not None:
        words.add("response_format")
        if generate.output.kind == "json_schema":
            words.add("structured_outputs")
    if wire.verbosity is not None:
        words.add("verbosity")
    if generate.logprobs is not None:
        words.add("logprobs")
    if generate.logprobs:
        words.add("top_logprobs")
    return words
