"""The body of POST /responses to a Request."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gwd.core.errors import InvalidValue, MissingParameter, UnsupportedParameter
from gwd.core.request import (
    Generate,
    Message,
    OutputFormat,
    Reasoning,
    Request,
    Sampling,
    Sender,
    TextPart,
)
from gwd.dialects import extensions, json_input
from gwd.dialects.declarations import in_sight
from gwd.dialects.responses.items import ItemResolver, messages_of
from gwd.dialects.responses.namespaces import Member
from gwd.dialects.responses.tools import Offer, choice_of, offer_of
from gwd.dialects.responses.wire import BodyWire, ReasoningWire, TextWire
from gwd.dialects.schemas import modern
from gwd.dialects.sizes import checked_messages

MAX_METADATA: Final = 16
MAX_METADATA_NAME: Final = 64
MAX_METADATA_VALUE: Final = 512

# Fields that mean something only to the service that stores responses, or to its own clients; never sent on.
_IGNORED: Final = frozenset(("client_metadata", "truncation", "background", "store"))
_KNOWN: Final = (json_input.field_names(BodyWire) - {"metadata"}) | _IGNORED
_REASONING_FIELDS: Final = json_input.field_names(ReasoningWire)
_LOGPROBS: Final = "message.output_text.logprobs"


class Echo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the response object repeats of the request, in the client's own words."""

    instructions: str | None = None
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str | dict[str, Any] = "auto"
    parallel_tool_calls: bool = True
    metadata: dict[str, str] | None = None
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    format: dict[str, Any] | None = None
    verbosity: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    user: str | None = None


class ResponsesRequest(Request, frozen=True, kw_only=True, omit_defaults=True):
    """A Request with what only this dialect's renderer needs: the echo, and the tools behind the flat names."""

    echo: Echo = Echo()
    namespaces: dict[str, Member] = msgspec.field(default_factory=dict)


def parse(
    body: bytes, headers: Mapping[str, str], resolve: ItemResolver | None = None
) -> ResponsesRequest:
    """Raises InvalidRequest subclasses with `param` naming the field."""
    fields = json_input.load(body)
    wire = json_input.typed(fields, BodyWire)
    _refuse_stored_state(wire)
    _check_metadata(wire.metadata)
    models = extensions.models_of(wire.model, wire.models)
    preferences = extensions.preferences_of(wire.provider)
    offer = offer_of(wire.tools, wire.input)
    choice = choice_of(wire.tool_choice, parallel=wire.parallel_tool_calls, offer=offer)
    text = wire.text or TextWire()
    messages = _messages(wire, offer, resolve)
    return ResponsesRequest(
        dialect="responses",
        family="openai_responses",
        models=models,
        preferences=preferences,
        body=Generate(
            messages=messages,
            tools=in_sight(
                offer.tools,
                kinds=[tool["type"] for tool in offer.hosted],
                choice=choice,
                messages=messages,
                conversation=wire.input,
            ),
            tool_choice=choice,
            sampling=Sampling(temperature=wire.temperature, top_p=wire.top_p),
            reasoning=_reasoning(wire.reasoning),
            output=_output(text),
            verbosity=text.verbosity,
            logprobs=_logprobs(wire),
            max_output_tokens=_positive(wire.max_output_tokens),
        ),
        stream=wire.stream is True,
        include_cost=extensions.wants_cost(wire.usage),
        include_receipt=extensions.wants_receipt(headers),
        sender=_sender(wire, headers),
        sent_parameters=_sent_parameters(wire, offer),
        hosted_tools=offer.hosted,
        dropped_tools=tuple(tool["type"] for tool in offer.hosted),
        extras=_extras(fields),
        body_bytes=len(body),
        echo=_echo(wire, offer, fields),
        namespaces=offer.namespaces.by_flat_name(),
    )


def _refuse_stored_state(wire: BodyWire) -> None:
    refused = {
        "previous_response_id": wire.previous_response_id,
        "conversation": wire.conversation,
        "prompt": wire.prompt,
        "background": wire.background or None,
    }
    for name, value in refused.items():
        if value is not None:
            raise UnsupportedParameter(
                f"`{name}` is not supported: nothing is stored here, send the whole conversation in `input`",
                param=name,
            )


def _check_metadata(metadata: dict[str, str] | None) -> None:
    if metadata is None:
        return
    too_long = any(
        len(name) > MAX_METADATA_NAME or len(value) > MAX_METADATA_VALUE
        for name, value in metadata.items()
    )
    if len(metadata) > MAX_METADATA or too_long:
        raise InvalidValue(
            f"`metadata`: at most {MAX_METADATA} pairs of {MAX_METADATA_NAME} and {MAX_METADATA_VALUE} characters",
            param="metadata",
        )


def _messages(wire: BodyWire, offer: Offer, resolve: ItemResolver | None) -> tuple[Message, ...]:
    if wire.input is None:
        raise MissingParameter("`input` is required: a text or a list of items", param="input")
    messages = messages_of(wire.input, namespaces=offer.namespaces, resolve=resolve)
    checked_messages(messages, "input")
    if not wire.instructions:
        return messages
    return (Message(role="system", parts=(TextPart(text=wire.instructions),)), *messages)


def _reasoning(wire: ReasoningWire | None) -> Reasoning | None:
    if wire is None:
        return None
    if wire.max_tokens is not None and wire.max_tokens < 1:
        raise InvalidValue(
            "`reasoning.max_tokens` must be at least 1", param="reasoning.max_tokens"
        )
    return Reasoning(
        enabled=wire.enabled,
        effort=wire.effort,
        max_tokens=wire.max_tokens,
        exclude=wire.exclude is True,
    )


def _output(text: TextWire) -> OutputFormat | None:
    if text.format is None:
        return None
    if text.format.type == "json_schema" and text.format.schema is None:
        raise MissingParameter("`text.format.schema` is required", param="text.format.schema")
    return OutputFormat(
        kind=text.format.type,
        name=text.format.name,
        description=text.format.description,
        schema=modern(text.format.schema),
        strict=text.format.strict,
    )


def _logprobs(wire: BodyWire) -> int | None:
    """Token probabilities come only with the text whose `include` asks for them."""
    return wire.top_logprobs or 0 if _LOGPROBS in (wire.include or ()) else None


def _positive(max_output_tokens: int | None) -> int | None:
    if max_output_tokens is not None and max_output_tokens < 1:
        raise InvalidValue("`max_output_tokens` must be at least 1", param="max_output_tokens")
    return max_output_tokens


def _sender(wire: BodyWire, headers: Mapping[str, str]) -> Sender:
    sender = extensions.sender_of(
        headers, session_id=wire.session_id, user=wire.user, metadata=wire.metadata
    )
    fallback = headers.get("session-id")
    if sender.session_id is None and fallback:
        # Codex names its conversation in this header.
        return msgspec.structs.replace(sender, session_id=extensions.clean_text(fallback) or None)
    return sender


def _sent_parameters(wire: BodyWire, offer: Offer) -> frozenset[str]:
    output = wire.text.format if wire.text is not None else None
    used = {
        "max_tokens": wire.max_output_tokens is not None,
        "temperature": wire.temperature is not None,
        "top_p": wire.top_p is not None,
        "tools": bool(offer.tools),
        "tool_choice": bool(offer.tools) and wire.tool_choice not in (None, "auto"),
        "parallel_tool_calls": bool(offer.tools) and wire.parallel_tool_calls is not None,
        "reasoning": _asks_to_reason(wire.reasoning),
        "response_format": output is not None and output.type != "text",
        "structured_outputs": output is not None and output.type == "json_schema",
        "verbosity": wire.text is not None and wire.text.verbosity is not None,
        "logprobs": _logprobs(wire) is not None,
        "top_logprobs": bool(_logprobs(wire)),
    }
    return frozenset(word for word, is_used in used.items() if is_used)


def _asks_to_reason(wire: ReasoningWire | None) -> bool:
    """A wish about summaries alone, which Codex always sends, asks nothing of a model."""
    return wire is not None and (wire.effort, wire.enabled, wire.max_tokens) != (None, None, None)


def _extras(fields: dict[str, Any]) -> dict[str, Any] | None:
    extras = {
        name: value for name, value in fields.items() if name not in _KNOWN and value is not None
    }
    reasoning = fields.get("reasoning")
    if isinstance(reasoning, dict) and (unknown := json_input.extras(reasoning, _REASONING_FIELDS)):
        extras["reasoning"] = unknown
    return extras or None


def _echo(wire: BodyWire, offer: Offer, fields: dict[str, Any]) -> Echo:
    reasoning = fields.get("reasoning") or {}
    text = fields.get("text") or {}
    return Echo(
        instructions=wire.instructions,
        tools=offer.echo,
        tool_choice=wire.tool_choice if wire.tool_choice is not None else "auto",
        parallel_tool_calls=wire.parallel_tool_calls is not False,
        metadata=wire.metadata,
        reasoning_effort=wire.reasoning.effort if wire.reasoning is not None else None,
        reasoning_summary=_text(reasoning, "summary"),
        format=text.get("format"),
        verbosity=_text(text, "verbosity"),
        prompt_cache_key=_text(fields, "prompt_cache_key"),
        safety_identifier=_text(fields, "safety_identifier"),
        service_tier=_text(fields, "service_tier"),
        user=wire.user,
    )


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None
