"""Chat completions as OpenAI sends them, whole and streamed.

Vendor facts (OpenAI API reference and recorded streams, read 2026-11): every chunk repeats id, created, model,
service_tier and system_fingerprint; with `include_usage` every chunk but the last carries `usage: null` and the last
has no choices; each chunk is padded by a random `obfuscation` unless that is switched off; the reasoning of
reasoning models is counted but not shown.
"""

from collections.abc import Iterator, Mapping

from gwd.demo.answer import REASONING_TOKENS, Answer, Ask, Call, ToolMode, ToolOutcome, ToolSpec
from gwd.demo.behaviour import Behaviour
from gwd.demo.counts import Counts, reported
from gwd.demo.formats import FormatName, Reply
from gwd.demo.frames import Frame
from gwd.demo.interleave import in_order
from gwd.demo.openai_common import answer_headers, check_bearer, unknown_model
from gwd.demo.prompt_cache import Piece, PromptCache
from gwd.demo.prompt_sizes import chat_pieces, text_in, total
from gwd.demo.refusals import RefusedError, openai_body, openai_scripted
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object, as_text, mint, seed_of

_FINGERPRINT = "fp_demo44709d"
_MAX_PADDING = 16


class ChatFormat:
    """POST /v1/chat/completions."""

    name: FormatName = "chat"

    def check_caller(self, headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
        check_bearer(headers, keys)

    def check_size(self, body: Json, traits: ModelTraits) -> None:
        size = total(chat_pieces(body))
        if size > traits.context_length:
            raise RefusedError(
                f"This model's maximum context length is {traits.context_length} tokens. However, your "
                f"messages resulted in {size} tokens. Please reduce the length of the messages.",
                code="context_length_exceeded",
                param="messages",
            )

    def user_text(self, body: Json) -> str:
        for message in reversed(as_list(body.get("messages"))):
            if as_object(message).get("role") == "user":
                return text_in(as_object(message).get("content"))
        return ""

    def ask(self, body: Json, traits: ModelTraits, cache: PromptCache) -> Ask:
        pieces = chat_pieces(body)
        choice = body.get("tool_choice")
        wanted = as_object(body.get("response_format"))
        stop = body.get("stop")
        effort = body.get("reasoning_effort") or "medium"
        shows = traits.reasoning or traits.open_server
        return Ask(
            seed=seed_of(body),
            user_text=self.user_text(body),
            prompt=_prompt(pieces, cache.look_up(traits.name, pieces).read),
            outcomes=_outcomes(body["messages"]),
            tools=_tools(body, choice),
            tool_mode=_mode(choice),
            forced_tool=as_object(as_object(choice).get("function")).get("name"),
            parallel=body.get("parallel_tool_calls") is not False,
            json_schema=as_object(wanted.get("json_schema")).get("schema"),
            json_object=wanted.get("type") == "json_object",
            reasoning_tokens=REASONING_TOKENS[effort] if shows else 0,
            stops=tuple([stop] if isinstance(stop, str) else as_list(stop)),
            max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        )

    def whole(self, reply: Reply) -> Json:
        answer = reply.answer
        message: Json = {"role": "assistant", "content": "".join(answer.text), "refusal": None}
        if answer.reasoning and reply.traits.open_server:
            message[reply.traits.shown_reasoning] = "".join(answer.reasoning)
        if answer.calls:
            message["content"] = "".join(answer.text) or None
            message["tool_calls"] = [
                {
                    "id": _call_id(reply, index),
                    "type": "function",
                    "function": {"name": call.name, "arguments": "".join(call.arguments)},
                }
                for index, call in enumerate(answer.calls)
            ]
        if answer.refusal:
            message |= {"content": None, "refusal": answer.refusal}
        message["annotations"] = []
        choice: Json = {"index": 0, "message": message, "logprobs": _logprobs(reply, answer.text)}
        finish = _finish(answer, reply.behaviour)
        if reply.behaviour.finish != "none":
            choice["finish_reason"] = finish
        body = {**_base(reply, "chat.completion"), "choices": [choice]}
        usage = reported(_usage(answer.counts), reply.behaviour)
        if usage is not None or reply.behaviour.usage == "null":
            body["usage"] = usage
        return body

    def frames(self, reply: Reply) -> Iterator[Frame]:
        padding = _Padding(reply)
        options = as_object(reply.body.get("stream_options"))
        wants_usage = options.get("include_usage") is True
        usage = reported(_usage(reply.answer.counts), reply.behaviour)
        every = reply.behaviour.usage == "every_event"
        base = _base(reply, "chat.completion.chunk")

        def chunk(choices: list[Json], tokens: int = 0) -> Frame:
            data = {**base, "choices": choices}
            if wants_usage:
                data["usage"] = usage if every else None
            return Frame(data=padding.added_to(data), tokens=tokens)

        for delta, finish, tokens in _deltas(reply):
            choice: Json = {"index": 0, "delta": delta}
            if not reply.traits.reasoning:
                said = [delta["content"]] if delta.get("content") else []
                choice["logprobs"] = _logprobs(reply, said)
            choice["finish_reason"] = finish
            yield chunk([choice], tokens)
        if wants_usage and usage is not None:
            for _ in range(2 if reply.behaviour.usage == "twice" else 1):
                yield Frame(data=padding.added_to({**base, "choices": [], "usage": usage}))
        if reply.behaviour.done:
            yield Frame(data="[DONE]")

    def error_frames(self, reply: Reply) -> Iterator[Frame]:
        yield Frame(data=openai_body(self.scripted(reply.behaviour)))

    def refusal(self, refused: RefusedError, request_id: str) -> Json:
        return openai_body(refused)

    def scripted(self, behaviour: Behaviour, status: int | None = None) -> RefusedError:
        return openai_scripted(behaviour, status)

    def unknown_model(self, name: str) -> RefusedError:
        return unknown_model(name)

    def headers(self, request_id: str) -> dict[str, str]:
        return answer_headers(request_id)


class _Padding:
    """The `obfuscation` field that hides the length of a chunk."""

    def __init__(self, reply: Reply) -> None:
        options = as_object(reply.body.get("stream_options"))
        self._on = options.get("include_obfuscation") is not False
        self._letters = mint("", seed=reply.call_seed, length=40)
        self._turn = 0

    def added_to(self, data: Json) -> Json:
        if not self._on:
            return data
        self._turn += 7
        start = self._turn % (len(self._letters) - _MAX_PADDING)
        return {**data, "obfuscation": self._letters[start : start + self._turn % _MAX_PADDING]}


def _deltas(reply: Reply) -> Iterator[tuple[Json, str | None, int]]:
    """Delta, finish reason and tokens of each chunk that has a choice."""
    answer = reply.answer
    only_calls = bool(answer.calls) and not answer.text
    first: Json = {"role": "assistant", "content": None if only_calls else "", "refusal": None}
    starts = [_call_start(reply, index, call) for index, call in enumerate(answer.calls)]
    if only_calls and len(starts) == 1:
        # A single call is opened together with the role; several are opened one by one.
        yield {**first, "tool_calls": [starts.pop()]}, None, 1
    else:
        yield first, None, 0
    field = reply.traits.shown_reasoning
    if field != "none":
        for piece in answer.reasoning:
            yield {field: piece}, None, 1
    for piece in answer.text:
        yield {"content": piece}, None, 1
    if answer.refusal:
        yield {"refusal": answer.refusal}, None, 1
    rows = []
    for index, call in enumerate(answer.calls):
        row: list[Json] = [starts[index]] if starts else []
        row += [
            {"index": _index(reply, index), "function": {"arguments": piece}}
            for piece in call.arguments
        ]
        rows.append(row)
    for part in in_order(rows, interleave=reply.behaviour.interleave):
        yield {"tool_calls": [part]}, None, 1
    if reply.behaviour.finish != "none":
        yield {}, _finish(answer, reply.behaviour), 0


def _call_start(reply: Reply, index: int, call: Call) -> Json:
    return {
        "index": _index(reply, index),
        "id": _call_id(reply, index),
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }


def _index(reply: Reply, index: int) -> int:
    return 0 if reply.behaviour.index_zero else index


def _call_id(reply: Reply, index: int) -> str:
    return mint("call_", seed=reply.call_seed + bytes([index % 256]))


def _finish(answer: Answer, behaviour: Behaviour) -> str | None:
    match behaviour.finish:
        case "honest" | "content_filter":
            if behaviour.empty and behaviour.finish == "honest":
                return ""
            return answer.finish
        case "refusal":
            return "stop"
        case "blank":
            return ""
        case "null" | "none":
            return None
        case word:
            return word


def _base(reply: Reply, kind: str) -> Json:
    return {
        "id": mint("chatcmpl-", seed=reply.call_seed, length=29),
        "object": kind,
        "created": reply.created_s,
        "model": reply.traits.snapshot or reply.traits.name,
        "service_tier": "default",
        "system_fingerprint": None if reply.traits.reasoning else _FINGERPRINT,
    }


def _usage(counts: Counts) -> Json:
    return {
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.completion,
        "total_tokens": counts.prompt + counts.completion,
        "prompt_tokens_details": {
            "cached_tokens": counts.cached,
            "cache_write_tokens": counts.write_5m + counts.write_1h,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": counts.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _logprobs(reply: Reply, pieces: tuple[str, ...] | list[str]) -> Json | None:
    if reply.body.get("logprobs") is not True:
        return None
    return {
        "content": [
            {"token": one, "logprob": -0.25, "bytes": list(one.encode()), "top_logprobs": []}
            for one in pieces
        ],
        "refusal": None,
    }


def _prompt(pieces: list[Piece], cached: int) -> Counts:
    return Counts(prompt=total(pieces), completion=0, cached=cached)


def _outcomes(messages: list[Json]) -> tuple[ToolOutcome, ...]:
    """Results at the end of the conversation, in order, with the names of their calls."""
    tail: list[Json] = []
    for message in reversed(messages):
        if message["role"] != "tool":
            break
        tail.insert(0, message)
    names = {
        call["id"]: call["function"]["name"]
        for message in messages
        for call in as_list(message.get("tool_calls"))
    }
    return tuple(
        ToolOutcome(name=names[one["tool_call_id"]], text=text_in(one["content"])) for one in tail
    )


def _tools(body: Json, choice: object) -> tuple[ToolSpec, ...]:
    allowed = as_object(as_object(choice).get("allowed_tools"))
    names = [as_object(one.get("function")).get("name") for one in as_list(allowed.get("tools"))]
    specs = [as_object(tool["function"]) for tool in as_list(body.get("tools"))]
    return tuple(
        ToolSpec(
            name=as_text(spec["name"]),
            parameters=as_object(spec.get("parameters")) or {"type": "object", "properties": {}},
        )
        for spec in specs
        if not names or spec["name"] in names
    )


def _mode(choice: object) -> ToolMode:
    if isinstance(choice, dict):
        mode = as_object(choice.get("allowed_tools")).get("mode", "required")
        return "required" if mode == "required" else "auto"
    return "none" if choice == "none" else "required" if choice == "required" else "auto"
