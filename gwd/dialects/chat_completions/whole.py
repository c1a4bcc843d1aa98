"""A completion as one chat completion body."""

from typing import Any, assert_never

import msgspec

from gwd.core.events import Completion, Settled
from gwd.core.request import (
    Generate,
    ReasoningPart,
    RefusalPart,
    Request,
    TextPart,
    ToolCallPart,
)
from gwd.dialects.base import Reply
from gwd.dialects.chat_completions import reasoning
from gwd.dialects.chat_completions.usage import usage_object
from gwd.dialects.envelope import choice_error
from gwd.dialects.free_text import free_text

Json = dict[str, Any]


def whole_body(request: Request, reply: Reply, completion: Completion, settled: Settled) -> bytes:
    finished = completion.finished
    choice: Json = {
        "index": 0,
        "message": _message(request, completion),
        "finish_reason": finished.reason,
        "native_finish_reason": finished.upstream_reason,
        "logprobs": _logprobs(completion),
    }
    if finished.reason == "error":
        choice["error"] = choice_error(finished)
    body: Json = {
        "id": reply.generation_id,
        "object": "chat.completion",
        "created": reply.created_s,
        "model": reply.model,
        "provider": reply.vendor,
        "system_fingerprint": None,
        **(completion.started.extras or {}),
        **(finished.extras or {}).get("envelope", {}),
        "choices": [choice],
        "usage": usage_object(settled, include_cost=request.include_cost),
    }
    if settled.receipt is not None:
        body["gateway_metadata"] = settled.receipt
    return msgspec.json.encode(body)


def _message(request: Request, completion: Completion) -> Json:
    assert isinstance(request.body, Generate)
    asked = request.body.reasoning
    custom_tools = {tool.name for tool in request.body.tools if tool.custom}
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    details: list[reasoning.Detail] = []
    calls: list[Json] = []
    for part in completion.parts:
        match part:
            case TextPart():
                texts.append(part.text)
                _add_signature(part, None, details)
            case RefusalPart():
                refusals.append(part.text)
            case ReasoningPart():
                thoughts.append(part.text)
                _add_details(part, details)
            case ToolCallPart():
                calls.append(_call(part, custom_tools))
                _add_signature(part, part.call_id, details)
            case _:
                assert_never(part)
    if completion.finished.reason == "content_filter" and completion.finished.explanation:
        refusals.append(completion.finished.explanation)
    message: Json = {
        "role": "assistant",
        "content": "".join(texts) or (None if calls else ""),
        "refusal": "".join(refusals) if refusals else None,
    }
    if not (asked is not None and asked.exclude):
        thought = "".join(thoughts)
        if thought:
            message["reasoning"] = message["reasoning_content"] = thought
        if details:
            message["reasoning_details"] = details
    if calls:
        message["tool_calls"] = calls
    annotations = _annotations(completion)
    if annotations:
        message["annotations"] = annotations
    return message


def _add_details(part: ReasoningPart, details: list[reasoning.Detail]) -> None:
    if part.redacted is not None:
        details.append(
            reasoning.encrypted_detail(
                part.redacted, part_format=part.format, item_id=part.item_id, index=len(details)
            )
        )
        return
    if part.text or part.signature is None:
        details.append(reasoning.text_detail(part, index=len(details), text=part.text))
    if part.signature is None:
        return
    if reasoning.has_own_detail(part) or not part.text:
        closing = reasoning.closing_detail(part, index=len(details), signature=part.signature)
        details.append(closing)
    else:
        details[-1]["signature"] = part.signature


def _add_signature(
    part: TextPart | ToolCallPart, call_id: str | None, details: list[reasoning.Detail]
) -> None:
    """A vendor's signature on a call or on text (core.events.collect keeps it in the extras)."""
    extras = part.extras or {}
    if "signature" in extras:
        details.append(
            reasoning.encrypted_detail(
                extras["signature"],
                part_format=extras.get("format", "unknown"),
                item_id=call_id,
                index=len(details),
            )
        )


def _call(part: ToolCallPart, custom_tools: set[str]) -> Json:
    more = extra_content(part.extras)
    if part.name in custom_tools:
        custom = {"name": part.name, "input": free_text(part.arguments)}
        return {"id": part.call_id, "type": "custom", "custom": custom, **more}
    arguments = part.arguments if part.arguments.strip() else "{}"
    function = {"name": part.name, "arguments": arguments}
    return {"id": part.call_id, "type": "function", "function": function, **more}


def extra_content(extras: Json | None) -> Json:
    """What a vendor of this family put on a call and wants to see again."""
    if extras and "extra_content" in extras:
        return {"extra_content": extras["extra_content"]}
    return {}


def _annotations(completion: Completion) -> list[Any]:
    return [
        annotation
        for extras in completion.part_extras.values()
        for extra in extras
        for annotation in extra.get("annotations") or ()
    ]


def _logprobs(completion: Completion) -> Json | None:
    """The pieces of a stream put together: one list of tokens for text, one for a refusal."""
    merged: Json = {}
    for extras in completion.part_extras.values():
        for extra in extras:
            for name, tokens in (extra.get("logprobs") or {}).items():
                if isinstance(tokens, list):
                    merged[name] = merged.get(name, []) + tokens
    return {"content": None, "refusal": None, **merged} if merged else None
