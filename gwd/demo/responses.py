"""The Responses API as OpenAI sends it, whole and streamed.

Vendor facts (OpenAI API reference and recorded streams, read 2026-11): every event has an `event:` line and a
`sequence_number` rising by one from 0; deltas are padded by `obfuscation`; the whole object is repeated at the start
and the end; there is no [DONE]; encrypted reasoning comes on request, a summary only when one was asked for.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gwd.demo.answer import REASONING_TOKENS, Answer, Ask, ToolOutcome, ToolSpec
from gwd.demo.behaviour import Behaviour
from gwd.demo.counts import Counts, reported
from gwd.demo.formats import FormatName, Reply
from gwd.demo.frames import Frame
from gwd.demo.interleave import in_order
from gwd.demo.openai_common import answer_headers, check_bearer, unknown_model
from gwd.demo.prompt_cache import PromptCache
from gwd.demo.prompt_sizes import responses_pieces, text_in, total
from gwd.demo.refusals import RefusedError, openai_body, openai_scripted
from gwd.demo.responses_items import Item, Step, items_of
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object, as_text, mint, seed_of

_MAX_PADDING = 16


class ResponsesFormat:
    """POST /v1/responses."""

    name: FormatName = "responses"

    def check_caller(self, headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
        check_bearer(headers, keys)

    def check_size(self, body: Json, traits: ModelTraits) -> None:
        size = total(responses_pieces(body))
        if size > traits.context_length:
            raise RefusedError(
                "Your input exceeds the context window of this model. Please adjust your input and try "
                "again.",
                code="context_length_exceeded",
                param="input",
            )

    def user_text(self, body: Json) -> str:
        given = body.get("input")
        if isinstance(given, str):
            return given
        for item in reversed(as_list(given)):
            if as_object(item).get("role") == "user":
                return text_in(as_object(item).get("content"))
        return ""

    def ask(self, body: Json, traits: ModelTraits, cache: PromptCache) -> Ask:
        pieces = responses_pieces(body)
        choice = body.get("tool_choice")
        wanted = as_object(as_object(body.get("text")).get("format"))
        effort = as_object(body.get("reasoning")).get("effort") or "medium"
        mode: Any = choice if isinstance(choice, str) else "auto"
        if isinstance(choice, dict):
            mode = choice.get("mode", "required")
        return Ask(
            seed=seed_of(body),
            user_text=self.user_text(body),
            prompt=Counts(
                prompt=total(pieces),
                completion=0,
                cached=cache.look_up(traits.name, pieces).read,
            ),
            outcomes=_outcomes(body["input"]),
            tools=_tools(body, choice),
            tool_mode=mode,
            forced_tool=as_object(choice).get("name"),
            parallel=body.get("parallel_tool_calls") is not False,
            json_schema=wanted.get("schema"),
            json_object=wanted.get("type") == "json_object",
            reasoning_tokens=REASONING_TOKENS[effort] if traits.reasoning else 0,
            max_tokens=body.get("max_output_tokens"),
        )

    def whole(self, reply: Reply) -> Json:
        return _response(reply, output=[item.whole for item in items_of(reply)], ended=True)

    def frames(self, reply: Reply) -> Iterator[Frame]:
        numbers = _Numbers(reply)
        opened = _response(reply, output=[], ended=False)
        yield numbers.event("response.created", {"response": opened})
        yield numbers.event("response.in_progress", {"response": opened})
        for step in _steps(reply):
            yield numbers.event(step.kind, step.fields, tokens=step.tokens, padded=step.padded)
        ending = _response(reply, output=[item.whole for item in items_of(reply)], ended=True)
        if reply.behaviour.done and reply.behaviour.finish != "none":
            kind = {"incomplete": "response.incomplete", "failed": "response.failed"}
            name = kind.get(str(ending["status"]), "response.completed")
            for _ in range(2 if reply.behaviour.usage == "twice" else 1):
                yield numbers.event(name, {"response": ending})

    def error_frames(self, reply: Reply) -> Iterator[Frame]:
        """The bare error event, then the failed response."""
        refused = self.scripted(reply.behaviour)
        code = _stream_code(refused)
        numbers = _Numbers(reply, start=reply.behaviour.error_after)
        flat = {"code": code, "message": refused.message, "param": None}
        yield numbers.event("error", flat)
        failed = _response(reply, output=[], ended=False)
        failed |= {"status": "failed", "error": {"code": code, "message": refused.message}}
        yield numbers.event("response.failed", {"response": failed})

    def refusal(self, refused: RefusedError, request_id: str) -> Json:
        return openai_body(refused)

    def scripted(self, behaviour: Behaviour, status: int | None = None) -> RefusedError:
        return openai_scripted(behaviour, status)

    def unknown_model(self, name: str) -> RefusedError:
        return unknown_model(name)

    def headers(self, request_id: str) -> dict[str, str]:
        return answer_headers(request_id)


class _Numbers:
    """Gives each event its number, and the deltas their padding."""

    def __init__(self, reply: Reply, start: int = 0) -> None:
        options = as_object(reply.body.get("stream_options"))
        self._padded = options.get("include_obfuscation") is not False
        self._letters = mint("", seed=reply.call_seed, length=40)
        self._next = start

    def event(self, kind: str, fields: Json, *, tokens: int = 0, padded: bool = False) -> Frame:
        data: Json = {"type": kind, "sequence_number": self._next, **fields}
        if padded and self._padded:
            length = 1 + self._next * 7 % _MAX_PADDING
            data["obfuscation"] = self._letters[:length]
        self._next += 1
        return Frame(event=kind, data=data, tokens=tokens)


def _steps(reply: Reply) -> Iterator[Step]:
    items = items_of(reply)
    first_call = len(items) - len(reply.answer.calls)
    rows = [_steps_of(item, index, reply) for index, item in enumerate(items)]
    yield from in_order(rows[:first_call], interleave=False)
    yield from in_order(rows[first_call:], interleave=reply.behaviour.interleave)


def _steps_of(item: Item, index: int, reply: Reply) -> list[Step]:
    position = 0 if reply.behaviour.index_zero else index
    inner = [
        Step(
            kind=step.kind,
            fields={"item_id": item.whole["id"], "output_index": position, **step.fields},
            tokens=step.tokens,
            padded=step.padded,
        )
        for step in item.steps
    ]
    added = {"output_index": position, "item": item.start}
    done = {"output_index": position, "item": item.whole}
    return [
        Step(kind="response.output_item.added", fields=added),
        *inner,
        Step(kind="response.output_item.done", fields=done),
    ]


def _response(reply: Reply, *, output: list[Json], ended: bool) -> Json:
    body, answer = reply.body, reply.answer
    status, incomplete = _status(answer, reply.behaviour) if ended else ("in_progress", None)
    text = as_object(body.get("text"))
    reasoning = as_object(body.get("reasoning"))
    effort = (reasoning.get("effort") or "medium") if reply.traits.reasoning else None
    response: Json = {
        "id": mint("resp_", seed=reply.call_seed, length=48),
        "object": "response",
        "created_at": reply.created_s,
        "status": status,
        "background": False,
        "completed_at": reply.created_s if ended and status == "completed" else None,
        "error": None,
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "model": reply.traits.snapshot or reply.traits.name,
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": {"effort": effort, "summary": reasoning.get("summary")},
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": "default" if ended else "auto",
        "store": body.get("store") is not False,
        "temperature": body.get("temperature") or 1.0,
        "text": {
            "format": text.get("format") or {"type": "text"},
            "verbosity": text.get("verbosity") or "medium",
        },
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": as_list(body.get("tools")),
        "top_logprobs": body.get("top_logprobs") or 0,
        "top_p": body.get("top_p") or 1.0,
        "truncation": body.get("truncation") or "disabled",
        "usage": None,
        "user": body.get("user"),
        "metadata": body.get("metadata") or {},
    }
    if ended or reply.behaviour.usage == "every_event":
        response["usage"] = reported(_usage(answer.counts), reply.behaviour)
    if reply.behaviour.usage == "missing":
        del response["usage"]
    return response


def _status(answer: Answer, behaviour: Behaviour) -> tuple[str | None, str | None]:
    """Status and the reason why the answer is incomplete."""
    match behaviour.finish:
        case "honest" | "content_filter" | "refusal":
            if answer.finish == "length":
                return "incomplete", "max_output_tokens"
            if answer.finish == "content_filter":
                return "incomplete", "content_filter"
            return "completed", None
        case "blank":
            return "", None
        case "none" | "null":
            return None, None
        case "length":
            return "incomplete", "max_output_tokens"
        case "stop" | "tool_calls":
            return "completed", None
        case word:
            return word, None


def _usage(counts: Counts) -> Json:
    return {
        "input_tokens": counts.prompt,
        "input_tokens_details": {
            "cached_tokens": counts.cached,
            "cache_write_tokens": counts.write_5m + counts.write_1h,
        },
        "output_tokens": counts.completion,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.prompt + counts.completion,
    }


def _stream_code(refused: RefusedError) -> str:
    if refused.code in ("rate_limit_exceeded", "insufficient_quota", "server_is_overloaded"):
        return refused.code
    return "invalid_prompt" if refused.status == 400 else "server_error"


def _tools(body: Json, choice: object) -> tuple[ToolSpec, ...]:
    allowed = [as_object(one).get("name") for one in as_list(as_object(choice).get("tools"))]
    return tuple(
        ToolSpec(
            name=as_text(tool["name"]),
            parameters=as_object(tool.get("parameters")) or {"type": "object", "properties": {}},
            free_text=tool["type"] == "custom",
        )
        for tool in as_list(body.get("tools"))
        if tool["type"] in ("function", "custom") and (not allowed or tool["name"] in allowed)
    )


def _outcomes(given: object) -> tuple[ToolOutcome, ...]:
    items = [as_object(item) for item in as_list(given)]
    names = {item["call_id"]: item["name"] for item in items if "name" in item}
    tail: list[Json] = []
    for item in reversed(items):
        if not as_text(item.get("type")).endswith("_output"):
            break
        tail.insert(0, item)
    return tuple(
        ToolOutcome(name=names[item["call_id"]], text=text_in(item["output"])) for item in tail
    )
