"""What the vendor answers, before any format has touched it.

A tool is called when the caller forces one, or when the last message speaks of it: names it, says its name in plain
words, or says "tool". After tool results the answer quotes them. Everything else is answered with sentences, or with
JSON that fits the schema asked for.
"""

from typing import Literal

import msgspec

from gwd.demo import schema, sentences, tokens
from gwd.demo.behaviour import Behaviour, PlannedCall
from gwd.demo.counts import Counts, overridden
from gwd.demo.wire import Json, compact

Finish = Literal["stop", "length", "tool_calls", "content_filter", "refusal"]
ToolMode = Literal["auto", "none", "required"]

REASONING_TOKENS: dict[str, int] = {
    "none": 0,
    "minimal": 6,
    "low": 12,
    "medium": 24,
    "high": 48,
    "xhigh": 72,
    "max": 96,
}
REFUSAL_TEXT = "I'm sorry, but I can't help with that."
_SEVERAL = ("parallel", "both", "each", "twice", "two ")


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    parameters: Json
    free_text: bool = False
    """The tool takes one text instead of JSON arguments."""


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    text: str


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A request in the vendor's own words, the same for all formats."""

    seed: bytes
    user_text: str
    prompt: Counts
    outcomes: tuple[ToolOutcome, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_mode: ToolMode = "auto"
    forced_tool: str | None = None
    parallel: bool = True
    json_schema: Json | None = None
    json_object: bool = False
    reasoning_tokens: int = 0
    stops: tuple[str, ...] = ()
    max_tokens: int | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    arguments: tuple[str, ...]
    """Tokens of the arguments' text."""

    free_text: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of everything that is said, why it ended, and what it counts for."""

    finish: Finish
    counts: Counts
    reasoning: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    stop: str | None = None
    refusal: str | None = None


def answer(ask: Ask, behaviour: Behaviour) -> Answer:
    reasoning = _reasoning(ask, behaviour)
    text: list[str] = []
    calls: list[Call] = []
    finish: Finish = "stop"
    stop: str | None = None
    refusal: str | None = None
    if behaviour.empty:
        reasoning = []
    elif behaviour.finish == "refusal":
        finish, refusal = "refusal", REFUSAL_TEXT
    elif planned := _planned_calls(ask, behaviour):
        calls, finish = planned, "tool_calls"
        text = tokens.split(behaviour.text or "")
    else:
        text, stop = _cut_at_stop(_text(ask, behaviour), ask.stops)
    if behaviour.finish == "content_filter":
        text, finish = text[: max(1, len(text) // 2)], "content_filter"
    fits = _Limit(ask.max_tokens)
    reasoning, text = fits.take(reasoning), fits.take(text)
    calls = fits.take_calls(calls)
    if fits.reached:
        finish, stop = "length", None
    said = len(reasoning) + len(text) + sum(len(call.arguments) + 1 for call in calls)
    counts = msgspec.structs.replace(
        ask.prompt,
        completion=said + (tokens.count(refusal) if refusal else 0),
        reasoning=len(reasoning),
    )
    return Answer(
        finish=finish,
        counts=overridden(counts, behaviour),
        reasoning=tuple(reasoning),
        text=tuple(text),
        calls=tuple(calls),
        stop=stop,
        refusal=refusal,
    )


class _Limit:
    """The caller's cap on output tokens, used up in the order the output is made."""

    def __init__(self, left: int | None) -> None:
        self._left = left
        self.reached = False

    def take(self, pieces: list[str]) -> list[str]:
        if self._left is None:
            return pieces
        if len(pieces) > self._left:
            self.reached = True
        kept = pieces[: self._left]
        self._left -= len(kept)
        return kept

    def take_calls(self, calls: list[Call]) -> list[Call]:
        """A call costs one token for its name; a call that got no name is not made."""
        kept: list[Call] = []
        for call in calls:
            if self.reached or self._left == 0:
                self.reached = True
                break
            if self._left is not None:
                self._left -= 1
            kept.append(
                msgspec.structs.replace(call, arguments=tuple(self.take(list(call.arguments))))
            )
        return kept


def _reasoning(ask: Ask, behaviour: Behaviour) -> list[str]:
    if not ask.reasoning_tokens:
        return []
    if behaviour.reasoning is not None:
        return tokens.split(behaviour.reasoning)
    topic = sentences.topic_of(ask.user_text)
    return sentences.thoughts_of_length(ask.seed, topic, ask.reasoning_tokens)


def _text(ask: Ask, behaviour: Behaviour) -> list[str]:
    topic = sentences.topic_of(ask.user_text)
    if behaviour.text is not None:
        return tokens.split(behaviour.text)
    if behaviour.tokens is not None:
        return sentences.answer_of_length(ask.seed, topic, behaviour.tokens)
    if ask.json_schema is not None:
        made = schema.example(ask.json_schema, seed=ask.seed, hint=ask.user_text)
        return tokens.split(compact(made))
    if ask.json_object:
        return tokens.split(compact({"answer": sentences.answer(ask.seed, topic)}))
    if ask.outcomes:
        quoted = " ".join(f"The tool {one.name} returned: {one.text}" for one in ask.outcomes)
        return tokens.split(f"{quoted} That is what the answer rests on.")
    return tokens.split(sentences.answer(ask.seed, topic))


def _cut_at_stop(pieces: list[str], stops: tuple[str, ...]) -> tuple[list[str], str | None]:
    """The text before the first stop string, and which one it was."""
    text = "".join(pieces)
    hits = [(text.index(stop), stop) for stop in stops if stop in text]
    if not hits:
        return pieces, None
    at, stop = min(hits)
    return tokens.split(text[:at]), stop


def _planned_calls(ask: Ask, behaviour: Behaviour) -> list[Call]:
    if behaviour.calls is not None:
        return [_as_planned(one) for one in behaviour.calls]
    if not ask.tools or ask.tool_mode == "none":
        return []
    if ask.forced_tool is not None:
        chosen = [one for one in ask.tools if one.name == ask.forced_tool]
    else:
        chosen = [] if ask.outcomes else [one for one in ask.tools if _spoken_of(one, ask)]
        if not chosen and (ask.tool_mode == "required" or _says_tool(ask)):
            chosen = [ask.tools[0]]
    if chosen and not ask.parallel:
        chosen = chosen[:1]
    elif len(chosen) == 1 and any(word in ask.user_text.lower() for word in _SEVERAL):
        chosen = chosen * 2
    return [_made_call(ask, tool, turn) for turn, tool in enumerate(chosen)]


def _spoken_of(tool: ToolSpec, ask: Ask) -> bool:
    said = ask.user_text.lower()
    name = tool.name.lower()
    return name in said or name.replace("_", " ").replace("-", " ") in said


def _says_tool(ask: Ask) -> bool:
    return not ask.outcomes and "tool" in ask.user_text.lower()


def _made_call(ask: Ask, tool: ToolSpec, turn: int) -> Call:
    if tool.free_text:
        said = sentences.answer(ask.seed, sentences.topic_of(ask.user_text))
        return Call(name=tool.name, arguments=tuple(tokens.split(said)), free_text=True)
    seed = ask.seed + bytes([turn % 256])
    made = schema.example(tool.parameters, seed=seed, hint=ask.user_text, turn=turn)
    return Call(name=tool.name, arguments=tuple(tokens.split(compact(made))))


def _as_planned(one: PlannedCall) -> Call:
    return Call(name=one.name, arguments=tuple(tokens.split(one.arguments)))
