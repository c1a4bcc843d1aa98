"""The Messages API as Anthropic sends it, whole and streamed, and its count of tokens.

Vendor facts (Anthropic streaming guide and recorded streams, read 2026-11): every event has an `event:` line; a ping
follows the first content block's start; message_start carries the input's usage with the split of cache writes and
`output_tokens` so far; message_delta repeats all counts, cumulative; a tool's input starts with one empty delta and,
for an empty object, ends there; the signature of a thinking block comes whole, as its last delta.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gwd.demo.answer import REASONING_TOKENS, REFUSAL_TEXT, Answer, Ask, ToolOutcome, ToolSpec
from gwd.demo.behaviour import Behaviour
from gwd.demo.counts import Counts, reported
from gwd.demo.formats import FormatName, Reply
from gwd.demo.frames import Frame
from gwd.demo.interleave import in_order
from gwd.demo.messages_blocks import Block, blocks_of
from gwd.demo.prompt_cache import PromptCache
from gwd.demo.prompt_sizes import messages_pieces, text_in, total
from gwd.demo.refusals import RefusedError, anthropic_body, anthropic_scripted
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object, as_text, mint, seed_of

_BUDGET_SHARE = 40
_STOP_REASONS = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "refusal": "refusal",
}


class MessagesFormat:
    """POST /v1/messages; with `counts_only` POST /v1/messages/count_tokens."""

    def __init__(self, *, counts_only: bool = False) -> None:
        self._counts_only = counts_only
        self.name: FormatName = "count_tokens" if counts_only else "messages"

    def check_caller(self, headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
        key = headers.get("x-api-key")
        if key is None:
            scheme, _, bearer = headers.get("authorization", "").partition(" ")
            key = bearer.strip() if scheme.lower() == "bearer" else ""
        if not key:
            raise RefusedError("x-api-key header is required", status=401)
        if keys is not None and key not in keys:
            raise RefusedError("invalid x-api-key", status=401)

    def check_size(self, body: Json, traits: ModelTraits) -> None:
        size = total(messages_pieces(body))
        if size > traits.context_length:
            raise RefusedError(
                f"prompt is too long: {size} tokens > {traits.context_length} maximum"
            )

    def user_text(self, body: Json) -> str:
        for message in reversed(as_list(body.get("messages"))):
            content = as_object(message).get("content")
            if as_object(message).get("role") == "user" and (said := _said(content)):
                return said
        return ""

    def ask(self, body: Json, traits: ModelTraits, cache: PromptCache) -> Ask:
        pieces = messages_pieces(body)
        cached = cache.look_up_marked(traits.name, pieces)
        choice = as_object(body.get("tool_choice"))
        wanted = as_object(as_object(body.get("output_config")).get("format"))
        kind = choice.get("type", "auto")
        mode: Any = {"any": "required", "tool": "required"}.get(kind, kind)
        return Ask(
            seed=seed_of(body),
            user_text=self.user_text(body),
            prompt=Counts(
                prompt=total(pieces),
                completion=0,
                cached=cached.read,
                write_5m=cached.write_5m,
                write_1h=cached.write_1h,
            ),
            outcomes=_outcomes(body["messages"]),
            tools=tuple(
                ToolSpec(name=tool["name"], parameters=tool["input_schema"])
                for tool in as_list(body.get("tools"))
            ),
            tool_mode=mode,
            forced_tool=choice.get("name"),
            parallel=choice.get("disable_parallel_tool_use") is not True,
            json_schema=wanted.get("schema"),
            reasoning_tokens=_thinking_tokens(body),
            stops=tuple(as_list(body.get("stop_sequences"))),
            max_tokens=body.get("max_tokens"),
        )

    def whole(self, reply: Reply) -> Json:
        if self._counts_only:
            return {"input_tokens": reply.answer.counts.prompt}
        message = self._message(reply)
        message["content"] = [block.whole for block in blocks_of(reply)]
        message |= _ending(reply)
        usage = reported(_usage(reply.answer.counts), reply.behaviour)
        if usage is not None or reply.behaviour.usage == "null":
            message["usage"] = usage
        return message

    def frames(self, reply: Reply) -> Iterator[Frame]:
        behaviour = reply.behaviour
        opening = _usage(reply.answer.counts, output=min(1, reply.answer.counts.completion))
        usage = reported(opening, behaviour)
        message = {**self._message(reply), "content": [], "stop_reason": None}
        message |= {"stop_sequence": None, "stop_details": None}
        if usage is not None or behaviour.usage == "null":
            message["usage"] = usage
        yield _event("message_start", message=message)
        yield from self._block_frames(reply)
        ending = _ending(reply)
        final = reported(_delta_usage(reply.answer.counts), behaviour)
        closing: Json = {"delta": ending}
        if final is not None or behaviour.usage == "null":
            closing["usage"] = final
        if behaviour.finish != "none":
            for _ in range(2 if behaviour.usage == "twice" else 1):
                yield _event("message_delta", **closing)
        if behaviour.done:
            yield _event("message_stop")

    def error_frames(self, reply: Reply) -> Iterator[Frame]:
        body = self.refusal(self.scripted(reply.behaviour), mint("req_", seed=reply.call_seed))
        yield Frame(event="error", data=body)

    def refusal(self, refused: RefusedError, request_id: str) -> Json:
        return anthropic_body(refused, request_id)

    def scripted(self, behaviour: Behaviour, status: int | None = None) -> RefusedError:
        return anthropic_scripted(behaviour, status)

    def unknown_model(self, name: str) -> RefusedError:
        return RefusedError(f"model: {name}", status=404, kind="not_found_error")

    def headers(self, request_id: str) -> dict[str, str]:
        return {"request-id": request_id, "anthropic-organization-id": "org-demo"}

    def _message(self, reply: Reply) -> Json:
        return {
            "model": reply.traits.snapshot or reply.traits.name,
            "id": mint("msg_01", seed=reply.call_seed, length=22),
            "type": "message",
            "role": "assistant",
        }

    def _block_frames(self, reply: Reply) -> Iterator[Frame]:
        """All blocks in order; tool blocks of a vendor that interleaves are open at the same time."""
        blocks = blocks_of(reply)
        plain = [block for block in blocks if block.whole["type"] != "tool_use"]
        calls = [block for block in blocks if block.whole["type"] == "tool_use"]
        rows = [list(_frames_of(block, index, reply)) for index, block in enumerate(plain)]
        call_rows = [
            list(_frames_of(block, len(plain) + index, reply)) for index, block in enumerate(calls)
        ]
        pinged = False
        for frame in [
            *in_order(rows, interleave=False),
            *in_order(call_rows, interleave=reply.behaviour.interleave),
        ]:
            yield frame
            if not pinged:
                pinged = True
                yield _event("ping")


def _event(kind: str, *, tokens: int = 0, **fields: Any) -> Frame:
    return Frame(event=kind, data={"type": kind, **fields}, tokens=tokens)


def _frames_of(block: Block, index: int, reply: Reply) -> Iterator[Frame]:
    if reply.behaviour.index_zero:
        index = 0
    yield _event("content_block_start", index=index, content_block=block.start)
    for delta, tokens in block.deltas:
        extra: Json = {}
        if reply.behaviour.usage == "every_event":
            extra["usage"] = _delta_usage(reply.answer.counts)
        yield _event("content_block_delta", tokens=tokens, index=index, delta=delta, **extra)
    yield _event("content_block_stop", index=index)


def _ending(reply: Reply) -> Json:
    answer, finish = reply.answer, reply.behaviour.finish
    reason = _stop_reason(answer, reply.behaviour)
    ending: Json = {}
    if finish != "none":
        ending["stop_reason"] = reason
    ending["stop_sequence"] = answer.stop if reason == "stop_sequence" else None
    ending["stop_details"] = None
    if reason == "refusal":
        ending["stop_details"] = {
            "type": "refusal",
            "category": None,
            "explanation": answer.refusal or REFUSAL_TEXT,
        }
    return ending


def _stop_reason(answer: Answer, behaviour: Behaviour) -> str | None:
    match behaviour.finish:
        case "honest" | "content_filter" | "refusal":
            if behaviour.empty and behaviour.finish == "honest":
                return None
            if answer.stop is not None:
                return "stop_sequence"
            return _STOP_REASONS.get(answer.finish, "end_turn")
        case "blank":
            return ""
        case "null" | "none":
            return None
        case "stop":
            return "end_turn"
        case word:
            return _STOP_REASONS.get(word, word)


def _usage(counts: Counts, *, output: int | None = None) -> Json:
    usage: Json = {
        "input_tokens": counts.uncached,
        "cache_creation_input_tokens": counts.write_5m + counts.write_1h,
        "cache_read_input_tokens": counts.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": counts.write_5m,
            "ephemeral_1h_input_tokens": counts.write_1h,
        },
        "output_tokens": counts.completion if output is None else output,
    }
    if output is None:
        usage["output_tokens_details"] = {"thinking_tokens": counts.reasoning}
    return {**usage, "service_tier": "standard", "inference_geo": "not_available"}


def _delta_usage(counts: Counts) -> Json:
    return {
        "input_tokens": counts.uncached,
        "cache_creation_input_tokens": counts.write_5m + counts.write_1h,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": counts.completion,
        "output_tokens_details": {"thinking_tokens": counts.reasoning},
    }


def _thinking_tokens(body: Json) -> int:
    thinking = as_object(body.get("thinking"))
    match thinking.get("type"):
        case "enabled":
            return min(int(thinking["budget_tokens"]) // _BUDGET_SHARE, REASONING_TOKENS["max"])
        case "adaptive":
            effort = as_object(body.get("output_config")).get("effort") or "high"
            return REASONING_TOKENS[effort]
        case _:
            return 0


def _said(content: object) -> str:
    """The text of a user message without what its tool results hold."""
    if isinstance(content, str):
        return content
    return "\n".join(
        as_text(block.get("text"))
        for block in map(as_object, as_list(content))
        if block.get("type") == "text"
    )


def _outcomes(messages: list[Json]) -> tuple[ToolOutcome, ...]:
    names = {
        block["id"]: block["name"]
        for message in messages
        for block in as_list(message["content"])
        if block.get("type") == "tool_use"
    }
    tail: list[Json] = []
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        tail = [*as_list(message["content"]), *tail]
    return tuple(
        ToolOutcome(name=names[block["tool_use_id"]], text=text_in(block.get("content")))
        for block in tail
        if block.get("type") == "tool_result"
    )
