"""Gemini's generateContent as Google sends it, whole and streamed.

Vendor facts (Gemini API reference, guides on thinking and function calling, read 2026-11): the model and the method
stand in the path; a stream has neither event names nor an end mark; counts and lists of zero are left out; thoughts are
counted beside the answer and shown as summaries on request; a call comes whole; the models whose thinking has levels
sign the first call of a turn, and put the signature of a text on an empty part at its end.
"""

from collections.abc import Iterator, Mapping

from gwd.demo.answer import REASONING_TOKENS, Answer, Ask, Call, ToolMode, ToolOutcome, ToolSpec
from gwd.demo.behaviour import Behaviour
from gwd.demo.counts import Counts, reported
from gwd.demo.formats import FormatName, Reply
from gwd.demo.frames import Frame
from gwd.demo.messages_blocks import object_of
from gwd.demo.prompt_cache import PromptCache
from gwd.demo.prompt_sizes import gemini_pieces, total
from gwd.demo.refusals import RefusedError, gemini_body, gemini_scripted
from gwd.demo.signatures import sign
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object, as_text, compact, mint, seed_of

_BUDGET_SHARE = 40
_AUTOMATIC = -1
_FINISHES = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "refusal": "PROHIBITED_CONTENT"}
_MODES: dict[str, ToolMode] = {"ANY": "required", "NONE": "none"}


class GeminiFormat:
    """POST /v1beta/models/…:generateContent and :streamGenerateContent."""

    name: FormatName = "gemini"

    def check_caller(self, headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
        check_key(headers, keys)

    def check_size(self, body: Json, traits: ModelTraits) -> None:
        size = total(gemini_pieces(body))
        if size > traits.context_length:
            raise RefusedError(
                f"The input token count ({size}) exceeds the maximum number of tokens allowed "
                f"({traits.context_length})."
            )

    def user_text(self, body: Json) -> str:
        for turn in reversed(as_list(body.get("contents"))):
            said = [as_text(part.get("text")) for part in _parts(turn) if "text" in part]
            if as_object(turn).get("role") != "model" and said:
                return "\n".join(said)
        return ""

    def ask(self, body: Json, traits: ModelTraits, cache: PromptCache) -> Ask:
        pieces = gemini_pieces(body)
        config = as_object(body.get("generationConfig"))
        calling = as_object(as_object(body.get("toolConfig")).get("functionCallingConfig"))
        allowed = as_list(calling.get("allowedFunctionNames"))
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        forced = calling.get("mode") == "ANY" and len(allowed) == 1
        return Ask(
            seed=seed_of(body),
            user_text=self.user_text(body),
            prompt=Counts(
                prompt=total(pieces),
                completion=0,
                cached=cache.look_up(traits.name, pieces).read,
            ),
            outcomes=_outcomes(body["contents"]),
            tools=_tools(body, allowed),
            tool_mode=_MODES.get(as_text(calling.get("mode")), "auto"),
            forced_tool=allowed[0] if forced else None,
            json_schema=schema,
            json_object=schema is None and config.get("responseMimeType") == "application/json",
            reasoning_tokens=_thinking_tokens(config, traits),
            stops=tuple(as_list(config.get("stopSequences"))),
            max_tokens=config.get("maxOutputTokens"),
        )

    def whole(self, reply: Reply) -> Json:
        answer = reply.answer
        parts: list[Json] = []
        if answer.reasoning and _shows_thoughts(reply):
            parts.append({"text": "".join(answer.reasoning), "thought": True})
        if answer.text:
            parts.append({"text": "".join(answer.text), **_signature(reply, of_text=True)})
        parts += _calls(reply)
        return _chunk(reply, parts, ended=True)

    def frames(self, reply: Reply) -> Iterator[Frame]:
        answer = reply.answer
        if _shows_thoughts(reply):
            for piece in answer.reasoning:
                yield _frame(reply, {"text": piece, "thought": True}, tokens=1)
        for piece in answer.text:
            yield _frame(reply, {"text": piece}, tokens=1)
        for part, call in zip(_calls(reply), answer.calls, strict=True):
            yield _frame(reply, part, tokens=len(call.arguments) + 1)
        ending: list[Json] = []
        if answer.text and (signature := _signature(reply, of_text=True)):
            ending.append({"text": "", **signature})
        for _ in range(2 if reply.behaviour.usage == "twice" else 1):
            yield Frame(data=_chunk(reply, ending, ended=True))

    def error_frames(self, reply: Reply) -> Iterator[Frame]:
        yield Frame(data=gemini_body(self.scripted(reply.behaviour)))

    def refusal(self, refused: RefusedError, request_id: str) -> Json:
        return gemini_body(refused)

    def scripted(self, behaviour: Behaviour, status: int | None = None) -> RefusedError:
        return gemini_scripted(behaviour, status)

    def unknown_model(self, name: str) -> RefusedError:
        return unknown_model(name)

    def headers(self, request_id: str) -> dict[str, str]:
        return {"server-timing": "gfet4t7; dur=12", "vary": "Origin, X-Origin, Referer"}


def check_key(headers: Mapping[str, str], keys: frozenset[str] | None) -> None:
    key = headers.get("x-goog-api-key", "")
    if not key:
        raise RefusedError(
            "Method doesn't allow unregistered callers (callers without established identity).",
            status=403,
        )
    if keys is not None and key not in keys:
        # The vendor answers a wrong key with 400, not with 401.
        raise RefusedError("API key not valid. Please pass a valid API key.")


def unknown_model(name: str) -> RefusedError:
    return RefusedError(
        f"models/{name} is not found for API version v1beta, or is not supported for this method.",
        status=404,
    )


def _parts(turn: object) -> list[Json]:
    return [as_object(part) for part in as_list(as_object(turn).get("parts"))]


def _frame(reply: Reply, part: Json, *, tokens: int) -> Frame:
    return Frame(data=_chunk(reply, [part], ended=False), tokens=tokens)


def _chunk(reply: Reply, parts: list[Json], *, ended: bool) -> Json:
    content: Json = {"role": "model"}
    if parts:
        content["parts"] = parts
    candidate: Json = {"content": content, "index": 0}
    if ended and (word := _finish(reply.answer, reply.behaviour)) is not None:
        candidate["finishReason"] = word
    elif ended and reply.behaviour.finish == "null":
        candidate["finishReason"] = None
    chunk: Json = {"candidates": [candidate]}
    counts = reply.answer.counts
    every = ended or reply.behaviour.usage == "every_event"
    usage = reported(_usage(counts, with_output=every), reply.behaviour)
    if usage is not None or reply.behaviour.usage == "null":
        chunk["usageMetadata"] = usage
    chunk["modelVersion"] = reply.traits.snapshot or reply.traits.name
    chunk["responseId"] = mint("", seed=reply.call_seed)
    return chunk


def _calls(reply: Reply) -> list[Json]:
    """The calls as parts; the first one carries the signature of them all."""
    return [
        {"functionCall": _call(call), **({} if index else _signature(reply, of_text=False))}
        for index, call in enumerate(reply.answer.calls)
    ]


def _call(call: Call) -> Json:
    return {"name": call.name, "args": object_of("".join(call.arguments))}


def _signature(reply: Reply, *, of_text: bool) -> Json:
    if reply.traits.thinking not in ("adaptive", "both") or not reply.answer.reasoning:
        return {}
    calls = reply.answer.calls
    if of_text == bool(calls):
        return {}
    said = "".join(reply.answer.text) if of_text else compact([_call(call) for call in calls])
    return {"thoughtSignature": sign(said)}


def _finish(answer: Answer, behaviour: Behaviour) -> str | None:
    match behaviour.finish:
        case "honest" | "content_filter" | "refusal":
            return _FINISHES.get(answer.finish, "STOP")
        case "blank":
            return ""
        case "null" | "none":
            return None
        case "stop" | "tool_calls":
            return "STOP"
        case word:
            return _FINISHES.get(word, word)


def _usage(counts: Counts, *, with_output: bool) -> Json:
    """Zeros are left out; an answer under way has no output yet."""
    answered = max(counts.completion - counts.reasoning, 0) if with_output else 0
    thought = counts.reasoning if with_output else 0
    usage = {
        "promptTokenCount": counts.prompt,
        "candidatesTokenCount": answered,
        "thoughtsTokenCount": thought,
        "cachedContentTokenCount": counts.cached,
        "totalTokenCount": counts.prompt + answered + thought,
    }
    return {name: count for name, count in usage.items() if count}


def _shows_thoughts(reply: Reply) -> bool:
    config = as_object(reply.body.get("generationConfig"))
    return as_object(config.get("thinkingConfig")).get("includeThoughts") is True


def _thinking_tokens(config: Json, traits: ModelTraits) -> int:
    if traits.thinking == "none":
        return 0
    thinking = as_object(config.get("thinkingConfig"))
    budget = thinking.get("thinkingBudget")
    if budget is not None and budget != _AUTOMATIC:
        return min(int(budget) // _BUDGET_SHARE, REASONING_TOKENS["max"])
    return REASONING_TOKENS[as_text(thinking.get("thinkingLevel")).lower() or "medium"]


def _tools(body: Json, allowed: list[str]) -> tuple[ToolSpec, ...]:
    declared = [
        as_object(declaration)
        for tool in as_list(body.get("tools"))
        for declaration in as_list(as_object(tool).get("functionDeclarations"))
    ]
    return tuple(
        ToolSpec(
            name=as_text(one["name"]),
            parameters=as_object(one.get("parametersJsonSchema") or one.get("parameters"))
            or {"type": "object", "properties": {}},
        )
        for one in declared
        if not allowed or one["name"] in allowed
    )


def _outcomes(turns: list[Json]) -> tuple[ToolOutcome, ...]:
    """The results in the last turn."""
    responses = [
        as_object(part["functionResponse"])
        for part in _parts(turns[-1])
        if "functionResponse" in part
    ]
    return tuple(ToolOutcome(name=one["name"], text=_said(one)) for one in responses)


def _said(response: Json) -> str:
    answered = as_object(response.get("response"))
    for word in ("output", "result", "error"):
        if isinstance(text := answered.get(word), str):
            return text
    return compact(answered)
