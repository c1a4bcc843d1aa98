"""The conversation as chat messages: order, pairing of calls and results, content parts.

Every call gets exactly one result, directly behind the turn that made it; a call without one is answered that it was
not executed, a result without a call becomes user text. What a tool message cannot hold (images, files) follows in a
user message. Calls that a client spread over neighbouring assistant messages are one turn, and go out as one message.
"""

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, assert_never

from gwd.core.request import (
    FilePart,
    Generate,
    ImagePart,
    Message,
    ReasoningPart,
    RefusalPart,
    Request,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from gwd.core.target import Target
from gwd.vendors.openai_chat.content import ContentBuilder, joined_text
from gwd.vendors.openai_chat.pairs import Pairs, Place, has_tool_parts, joined_turns
from gwd.vendors.openai_chat.replay import ReplayedReasoning
from gwd.vendors.openai_chat.signatures import FIELD, ORIGIN
from gwd.vendors.tool_names import ToolNames, call_id_for

Json = dict[str, Any]
ContentPart = TextPart | ImagePart | FilePart

MAX_ID: Final = 40
SHORT_ID: Final = re.compile(r"[a-zA-Z0-9]{9}", re.ASCII)
NAME: Final = "messages.name"
_NOT_EXECUTED: Final = "This call was not executed."
_FOLLOWS: Final = "The content of this result follows in the next message."


class HistoryBuilder:
    """Builds the `messages` of one call."""

    def __init__(self, request: Request, target: Target, names: ToolNames) -> None:
        assert isinstance(request.body, Generate)
        messages = request.body.messages
        with_tools = has_tool_parts(messages)
        self._messages = joined_turns(messages) if with_tools else messages
        self._same_family = request.family == "openai_chat"
        self._target = target
        self._names = names
        self._content = ContentBuilder(request, target)
        self._pairs = Pairs(self._messages if with_tools else ())
        self._used: set[Place] = set()
        self._carried: list[ContentPart] = []
        self._takes_names = NAME not in target.flags.refused_fields
        self._short_ids = target.flags.short_call_ids
        self._replayed = ReplayedReasoning(self._messages, target, asked=request.replay_reasoning)

    def build(self) -> list[Json]:
        messages: list[Json] = []
        for index, message in enumerate(self._messages):
            match message.role:
                case "system":
                    messages += self._flush()
                    messages += self._system(message)
                case "assistant":
                    messages += self._flush()
                    messages += self._assistant(index, message)
                case "user" | "tool":
                    messages += self._user(index, message)
                case _:
                    assert_never(message.role)
        return messages + self._flush()

    def _system(self, message: Message) -> list[Json]:
        parts = [part for part in message.parts if isinstance(part, TextPart)]
        content = self._content.build(parts)
        if not content:
            return []
        knows_developer = message.developer and self._target.flags.developer_role
        role = "developer" if knows_developer else "system"
        return [self._finished({"role": role, "content": content}, message)]

    def _user(self, index: int, message: Message) -> list[Json]:
        parts: list[ContentPart] = []
        for place, part in enumerate(message.parts):
            match part:
                case ToolResultPart():
                    if (index, place) not in self._used:
                        parts += _orphan(part)
                case TextPart() | ImagePart() | FilePart():
                    parts.append(part)
                case ToolCallPart() | ReasoningPart() | RefusalPart():
                    pass
                case _:
                    assert_never(part)
        if not parts and (message.role == "tool" or message.parts):
            return []
        content = self._content.build([*self._carried, *parts])
        self._carried = []
        return [self._finished({"role": "user", "content": content}, message)]

    def _flush(self) -> list[Json]:
        """What tool results held beside text, where no user message came to take it."""
        if not self._carried:
            return []
        content = self._content.build(self._carried)
        self._carried = []
        return [{"role": "user", "content": content}]

    def _assistant(self, index: int, message: Message) -> list[Json]:
        # Images of an assistant turn are dropped: this format has no place for them.
        texts = [part for part in message.parts if isinstance(part, TextPart) and part.text]
        refusal = "".join(part.text for part in message.parts if isinstance(part, RefusalPart))
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        built: Json = {"role": "assistant"}
        if texts:
            built["content"] = self._content.build(texts)
        if refusal:
            built["refusal"] = refusal
        if len(built) == 1 and not calls:
            return []
        built |= self._replayed.fields(index, message)
        ids = _upstream_ids(calls, short=self._short_ids)
        if calls:
            built["tool_calls"] = [
                self._call(call, upstream_id) for call, upstream_id in zip(calls, ids, strict=True)
            ]
        return [self._finished(built, message), *self._results(index, calls, ids)]

    def _call(self, call: ToolCallPart, upstream_id: str) -> Json:
        function = {"name": self._names.upstream(call.name), "arguments": call.arguments or "{}"}
        built: Json = {"id": upstream_id, "type": "function", "function": function}
        extras = call.extras or {}
        here = self._target.provider
        if extras.get(FIELD) is not None and extras.get(ORIGIN, here) == here:
            built[FIELD] = extras[FIELD]
        return built

    def _results(
        self, index: int, calls: Sequence[ToolCallPart], ids: Sequence[str]
    ) -> Iterator[Json]:
        """The results of a turn's calls, in the client's order; then a stand-in for each that is missing."""
        waiting: defaultdict[str, deque[str]] = defaultdict(deque)
        for call, upstream_id in zip(calls, ids, strict=True):
            waiting[call.call_id].append(upstream_id)
        found = [
            answer
            for call_id, upstream_ids in waiting.items()
            for answer in self._pairs.results(index, call_id, len(upstream_ids))
        ]
        for place, result in sorted(found, key=itemgetter(0)):
            self._used.add(place)
            yield self._result(result, waiting[result.call_id].popleft())
        for upstream_ids in waiting.values():
            for upstream_id in upstream_ids:
                yield {"role": "tool", "tool_call_id": upstream_id, "content": _NOT_EXECUTED}

    def _result(self, result: ToolResultPart, upstream_id: str) -> Json:
        texts = [part for part in result.parts if isinstance(part, TextPart)]
        others = [part for part in result.parts if not isinstance(part, TextPart)]
        self._carried += others
        if result.is_error:
            first = texts[0].text if texts else "the tool failed"
            texts = [TextPart(text=f"Error: {first}"), *texts[1:]]
        content = self._content.build(texts, cache=result.cache)
        if not content and others:
            content = _FOLLOWS
        return {"role": "tool", "tool_call_id": upstream_id, "content": content}

    def _finished(self, built: Json, message: Message) -> Json:
        if self._same_family:
            if message.name and self._takes_names:
                built["name"] = message.name
            for name, value in (message.extras or {}).items():
                if value is not None:
                    built.setdefault(name, value)
        return built


def _upstream_ids(calls: Sequence[ToolCallPart], *, short: bool) -> list[str]:
    """One id per call, of at most 40 characters or `short`; two calls that share an id get different ones."""
    ids: dict[str, None] = {}
    repeats: dict[str, int] = {}
    for call in calls:
        upstream_id = _nine(call.call_id) if short else _fitted(call.call_id)
        repeat = repeats.get(call.call_id, 1)
        while upstream_id in ids:
            repeat += 1
            again = f"{call.call_id}#{repeat}"
            upstream_id = _nine(again) if short else call_id_for(again, length=MAX_ID)
        repeats[call.call_id] = repeat
        ids[upstream_id] = None
    return list(ids)


def _nine(call_id: str) -> str:
    """Nine letters and digits: the id itself where it is that, else the same for call and result."""
    if SHORT_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def _fitted(call_id: str) -> str:
    # This format limits only the length: ids such as `functions.look:0` mean something to some models.
    if 0 < len(call_id) <= MAX_ID and call_id.isascii() and call_id.isprintable():
        return call_id
    return call_id_for(call_id, length=MAX_ID)


def _orphan(result: ToolResultPart) -> list[ContentPart]:
    text = joined_text(part for part in result.parts if isinstance(part, TextPart))
    others = [part for part in result.parts if not isinstance(part, TextPart)]
    return [TextPart(text=f"Result of an earlier tool call: {text}".rstrip()), *others]
