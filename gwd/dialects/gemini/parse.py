"""A body of generateContent to a Request.

Fields that only Google knows go to `extras`, in its own shape, and their paths to `own_fields`: an upstream of this
format is sent them, any other is recorded to have dropped them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gwd.core import tags
from gwd.core.errors import InvalidValue, UnsupportedParameter
from gwd.core.request import (
    EFFORTS,
    Extras,
    Generate,
    OutputFormat,
    Reasoning,
    Request,
    Sampling,
    Sender,
)
from gwd.dialects import extensions, json_input
from gwd.dialects.gemini.casing import normal
from gwd.dialects.gemini.contents import messages_of, system_message
from gwd.dialects.gemini.schemas import json_schema
from gwd.dialects.gemini.tools import choice_of, hosted_of, tools_of
from gwd.dialects.gemini.wire import (
    CountBody,
    GenerateBody,
    GenerationConfigWire,
    ThinkingConfigWire,
)
from gwd.dialects.schemas import modern
from gwd.dialects.sizes import checked_messages, checked_stops

_CONFIG: Final = "generationConfig"
_READ: Final = json_input.field_names(CountBody) - {_CONFIG, "safetySettings", "toolConfig"}
_CONFIG_READ: Final = json_input.field_names(GenerationConfigWire) - {"thinkingConfig"}
_CALLING: Final = "functionCallingConfig"
_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
# What makes no difference to any vendor, or is said by the address.
_SILENT: Final = frozenset(("stream", "transforms", "plugins", "route", "preset", "trace"))
_LEVELS: Final = {effort.upper(): effort for effort in EFFORTS}


def parse(body: bytes, headers: Mapping[str, str], *, model: str | None, stream: bool) -> Request:
    """A request for an answer; `model` is that of the address. Raises InvalidRequest subclasses with the path."""
    raw = normal(json_input.load(body))
    wire = json_input.typed(raw, GenerateBody, strict=False)
    return _request(wire, raw, headers, model=model, stream=stream, body_bytes=len(body))


def parse_count(body: bytes, headers: Mapping[str, str], *, model: str | None) -> Request:
    """A request for a token count: contents, or a whole request inside."""
    raw = normal(json_input.load(body))
    wire = json_input.typed(raw, CountBody, strict=False)
    inner = wire.generate_content_request
    if inner is not None:
        raw = raw["generateContentRequest"]
    return _request(inner or wire, raw, headers, model=model, stream=False, body_bytes=len(body))


def model_name(name: str | None) -> str | None:
    """A model without Google's collection in front of it."""
    return name.removeprefix("models/") if name else name


def _request(
    wire: GenerateBody,
    raw: dict[str, Any],
    headers: Mapping[str, str],
    *,
    model: str | None,
    stream: bool,
    body_bytes: int,
) -> Request:
    config = wire.generation_config or GenerationConfigWire()
    _refuse_unsupported(wire, config)
    generate = _generate(wire, config, raw)
    hosted = hosted_of(wire.tools or ())
    extras = _extras(raw)
    return Request(
        dialect="gemini",
        family="gemini",
        models=extensions.models_of(model_name(model or wire.model), wire.models),
        body=generate,
        preferences=extensions.preferences_of(wire.provider),
        stream=stream,
        include_cost=extensions.wants_cost(wire.usage),
        include_receipt=extensions.wants_receipt(headers),
        sender=_sender(wire, headers),
        sent_parameters=_sent(generate),
        hosted_tools=hosted,
        dropped_tools=tuple(tool["type"] for tool in hosted),
        extras=_with_tier(extras, wire.service_tier) or None,
        own_fields=_paths(extras),
        body_bytes=body_bytes,
    )


def _sender(wire: GenerateBody, headers: Mapping[str, str]) -> Sender:
    """Who asks; labels are the request's tags, `name=value` each, and win over the header."""
    sender = extensions.sender_of(headers, session_id=wire.session_id, user=wire.user)
    if not wire.labels:
        return sender
    words = (f"{name}={value}" if value else name for name, value in wire.labels.items())
    return msgspec.structs.replace(sender, tags=tags.checked(words, param="labels"))


def _refuse_unsupported(wire: GenerateBody, config: GenerationConfigWire) -> None:
    if wire.cached_content is not None:
        raise UnsupportedParameter(
            "`cachedContent`: nothing is kept here by name; send the whole prompt, which vendors cache by themselves",
            param="cachedContent",
        )
    if config.candidate_count is not None and config.candidate_count != 1:
        raise UnsupportedParameter(
            f"`{_CONFIG}.candidateCount` must be 1: send one request for each answer you want",
            param=f"{_CONFIG}.candidateCount",
        )
    if any(modality.upper() != "TEXT" for modality in config.response_modalities or ()):
        raise UnsupportedParameter(
            f"`{_CONFIG}.responseModalities`: only text can be answered",
            param=f"{_CONFIG}.responseModalities",
        )
    if config.speech_config is not None:
        raise UnsupportedParameter(
            f"`{_CONFIG}.speechConfig`: only text can be answered", param=f"{_CONFIG}.speechConfig"
        )


def _generate(wire: GenerateBody, config: GenerationConfigWire, raw: dict[str, Any]) -> Generate:
    if not wire.contents:
        raise InvalidValue("`contents` must hold at least one content", param="contents")
    messages = messages_of(wire.contents, raw["contents"], "contents")
    if wire.system_instruction is not None:
        system = system_message(wire.system_instruction, "systemInstruction")
        messages = (system, *messages) if system is not None else messages
    tools = tools_of(wire.tools or ())
    return Generate(
        messages=checked_messages(messages, "contents"),
        tools=tools,
        tool_choice=choice_of(wire.tool_config, tools),
        sampling=Sampling(
            temperature=config.temperature,
            top_p=config.top_p,
            top_k=config.top_k,
            frequency_penalty=config.frequency_penalty,
            presence_penalty=config.presence_penalty,
            seed=config.seed,
            stop=checked_stops(tuple(config.stop_sequences or ()), f"{_CONFIG}.stopSequences"),
        ),
        reasoning=_reasoning(config.thinking_config),
        output=_output(config),
        logprobs=_logprobs(config),
        max_output_tokens=config.max_output_tokens,
    )


def _reasoning(thinking: ThinkingConfigWire | None) -> Reasoning | None:
    """None leaves it to the model; then no thoughts are shown, as without `includeThoughts`."""
    if thinking is None:
        return None
    budget, exclude = thinking.thinking_budget, thinking.include_thoughts is not True
    level = (thinking.thinking_level or "").upper()
    if level and level != "THINKING_LEVEL_UNSPECIFIED":
        effort = _LEVELS.get(level)
        if effort is None:
            param = f"{_CONFIG}.thinkingConfig.thinkingLevel"
            raise InvalidValue(f"`{param}` must be MINIMAL, LOW, MEDIUM or HIGH", param=param)
        return Reasoning(effort=effort, exclude=exclude)
    if budget is None:
        return None if exclude else Reasoning(enabled=True, adaptive=True)
    if budget == 0:
        return Reasoning(enabled=False)
    if budget < 0:
        return Reasoning(enabled=True, adaptive=True, exclude=exclude)
    return Reasoning(enabled=True, max_tokens=budget, exclude=exclude)


def _output(config: GenerationConfigWire) -> OutputFormat | None:
    media_type = (config.response_mime_type or _TEXT).lower()
    if config.response_schema is not None and config.response_json_schema is not None:
        param = f"{_CONFIG}.responseSchema"
        raise InvalidValue(
            f"`{param}` and `{_CONFIG}.responseJsonSchema` exclude each other: send one",
            param=param,
        )
    schema = json_schema(config.response_schema) or modern(config.response_json_schema)
    if media_type == _JSON:
        if schema is None:
            return OutputFormat(kind="json_object")
        return OutputFormat(kind="json_schema", name="response", schema=schema)
    if schema is not None and media_type == _TEXT:
        param = f"{_CONFIG}.responseMimeType"
        raise InvalidValue(f"`{param}` must be {_JSON} where a schema is given", param=param)
    return None


def _logprobs(config: GenerationConfigWire) -> int | None:
    if config.response_logprobs:
        return config.logprobs or 0
    if config.logprobs:
        param = f"{_CONFIG}.logprobs"
        raise InvalidValue(f"`{param}` needs `{_CONFIG}.responseLogprobs: true`", param=param)
    return None


def _sent(body: Generate) -> frozenset[str]:
    """The words of `supported_parameters` that this body uses. A cap is left out: it is sent to every model."""
    sampling, choice, reasoning, output = (
        body.sampling,
        body.tool_choice,
        body.reasoning,
        body.output,
    )
    wants = {
        "temperature": sampling.temperature is not None,
        "top_p": sampling.top_p is not None,
        "top_k": sampling.top_k is not None,
        "frequency_penalty": sampling.frequency_penalty is not None,
        "presence_penalty": sampling.presence_penalty is not None,
        "seed": sampling.seed is not None,
        "stop": bool(sampling.stop),
        "tools": bool(body.tools),
        "tool_choice": choice is not None,
        "reasoning": reasoning is not None and reasoning.enabled is not False,
        "response_format": output is not None,
        "structured_outputs": output is not None and output.kind == "json_schema",
        "logprobs": body.logprobs is not None,
        "top_logprobs": bool(body.logprobs),
    }
    return frozenset(word for word, used in wants.items() if used)


def _extras(raw: dict[str, Any]) -> Extras:
    """What only an upstream of this format can be sent, where it stands in its body."""
    extras = {
        name: value
        for name, value in raw.items()
        if name not in _READ and name not in _SILENT and value is not None
    }
    config = {
        name: value
        for name, value in (extras.pop(_CONFIG, None) or {}).items()
        if name not in _CONFIG_READ and value is not None
    }
    given = raw.get(_CONFIG) or {}
    if (given.get("responseMimeType") or _TEXT).lower() not in (_TEXT, _JSON):
        # A form of its own, such as one word of a list.
        names = ("responseMimeType", "responseSchema", "responseJsonSchema")
        config |= {name: given[name] for name in names if given.get(name) is not None}
    if config:
        extras[_CONFIG] = config
    calling = extras.pop("toolConfig", None) or {}
    kept = {
        name: value for name, value in calling.items() if name != _CALLING and value is not None
    }
    if ((calling.get(_CALLING) or {}).get("mode") or "").upper() == "VALIDATED":
        kept[_CALLING] = {"mode": "VALIDATED"}
    if kept:
        extras["toolConfig"] = kept
    return extras


def _paths(extras: Extras) -> tuple[str, ...]:
    """The fields of `extras` by their paths, but for those that every vendor is told in its own form."""
    paths = []
    for name, value in extras.items():
        inner = value if name in (_CONFIG, "toolConfig") else None
        paths += [f"{name}.{each}" for each in inner] if inner is not None else [name]
    told = {f"{_CONFIG}.thinkingConfig", f"toolConfig.{_CALLING}"}
    return tuple(sorted(path for path in paths if path not in told))


def _with_tier(extras: Extras, tier: str | None) -> Extras:
    """The tier under the name by which it is priced."""
    word = (tier or "").lower().removeprefix("service_tier_")
    return {**extras, "service_tier": word} if word and word != "unspecified" else extras
