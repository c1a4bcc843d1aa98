"""A Request to one call of POST /v1/messages."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gwd.core.errors import InvalidRequest
from gwd.core.request import FilePart, Generate, ImagePart, Request, Sampling
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.anthropic_messages import thinking as thinking_rules
from gwd.vendors.anthropic_messages.cache import (
    MARKED_TURNS,
    limit_marks,
    mark_prefixes,
    with_nested,
)
from gwd.vendors.anthropic_messages.content import Block, Blocks
from gwd.vendors.anthropic_messages.format import FORMAT
from gwd.vendors.anthropic_messages.history import CONTINUE, History, Turn
from gwd.vendors.anthropic_messages.thinking import Thinking
from gwd.vendors.anthropic_messages.tools import (
    JSON_ONLY,
    Choice,
    answer_tool,
    choose,
    names_of,
    output_format,
)
from gwd.vendors.call import configured_headers, credential_header, url_for
from gwd.vendors.tool_names import ToolNames

PINNED_VERSION: Final = "2023-06-01"
# From this version on the vendor refuses sampling parameters, documents of the assistant, citations of the user.
STRICT_VERSION: Final = "2026-10-21"

_THINKING_BLOCKS: Final = ("thinking", "redacted_thinking")
# Extras that have been read into the request and are written by their own rules.
_HANDLED: Final = frozenset(("thinking", "output_config", "tools", "metadata"))


def build(request: Request, target: Target) -> UpstreamCall:
    """The call. Raises InvalidRequest for content that this format cannot carry."""
    try:
        draft = _Draft(request, target)
        body = draft.body()
    except RecursionError:
        raise InvalidRequest("the request is nested too deeply") from None
    return UpstreamCall(
        url=url_for(target.base_url, "messages", version_is_last=True),
        headers=_headers(request, target),
        body=msgspec.json.encode(body),
        stream=request.stream,
        dropped=tuple(sorted(draft.dropped)),
        output_cap=body["max_tokens"],
    )


def takes(part: ImagePart | FilePart, request: Request) -> bool:
    """Whether a picture or file has a form here. Raises InvalidRequest for one that has none."""
    own = request.family == "anthropic_messages"
    if own and (part.extras or {}).get("type", "") is None:
        return True  # a piece of a document that goes out whole, in front of it
    return Blocks(ToolNames(()), own=own, thinks=False, no_documents=False).user(part) is not None


class _Draft:
    """One call while it is put together; `dropped` collects the words left out."""

    def __init__(self, request: Request, target: Target) -> None:
        assert isinstance(request.body, Generate)
        self._request = request
        self._target = target
        self._body = request.body
        self._own = request.family == "anthropic_messages"
        self._max_tokens = _max_tokens(request.body, target)
        self.dropped = {word for word in request.sent_parameters if word in FORMAT.no_field_for}

    def body(self) -> dict[str, Any]:
        request, target = self._request, self._target
        names = names_of(request)
        blocks = Blocks(
            names,
            own=self._own,
            thinks=thinking_rules.thinks(target),
            no_documents=_version(request) >= STRICT_VERSION,
        )
        system, turns = self._conversation(blocks)
        choice = choose(request, target, names)
        self._note_tools(choice)
        thinking, choice = self._resolve(choice, turns)
        self._finish_prefill(turns)
        body: dict[str, Any] = {"model": target.upstream_model, "max_tokens": self._max_tokens}
        extras = self._extras()
        # A mark at the top level stands for one on the last block.
        is_marked = limit_marks([*_in_prompt_order(choice.tools, system, turns), extras])
        if self._target.flags.auto_cache and not is_marked:
            self._mark_prefixes(choice, system, turns)
        if system:
            body["system"] = system
        body["messages"] = [turn.as_wire() for turn in turns]
        if choice.tools:
            body["tools"] = choice.tools
        if choice.choice is not None:
            body["tool_choice"] = choice.choice
        if thinking.config is not None:
            body["thinking"] = dict(thinking.config)
        if config := self._output_config(thinking):
            body["output_config"] = config
        body |= self._sampling(thinking)
        body |= extras
        if request.stream:
            body["stream"] = True
        return body

    def _conversation(self, blocks: Blocks) -> tuple[list[Block], list[Turn]]:
        """Leading system messages to `system`; everything after them in order."""
        messages = self._body.messages
        leading = 0
        while leading < len(messages) and messages[leading].role == "system":
            leading += 1
        system = [
            block
            for message in messages[:leading]
            for part in message.parts
            if (block := blocks.system(part)) is not None
        ]
        history = History(blocks, own=self._own, mid_system=self._target.flags.mid_system)
        for message in messages[leading:]:
            history.add(message)
        turns = history.turns(after_system=bool(system) and leading == len(messages))
        output = self._body.output
        if output is not None and output.kind == "json_object":
            system.append({"type": "text", "text": JSON_ONLY})
        if self._own and _version(self._request) >= STRICT_VERSION:
            _drop_user_citations(turns)
        return system, turns

    def _resolve(self, choice: Choice, turns: list[Turn]) -> tuple[Thinking, Choice]:
        """Conflicts between thinking, forced tools, unsigned history and a prefilled answer."""
        request, target = self._request, self._target
        thinking = thinking_rules.plan(request, target, self._max_tokens)
        reasons_asked = "reasoning" in request.sent_parameters
        if reasons_asked and thinking.config is None and not thinking_rules.thinks(target):
            self.dropped.add("reasoning")
        if choice.forces and target.flags.rejects_forced_tools:
            choice = self._unforced(choice)
        if thinking.is_on and choice.forces:
            if not thinking.can_be_off:
                choice = self._unforced(choice)
            else:
                thinking = self._switched_off()
                if thinking.is_on:
                    choice = self._unforced(choice)
        is_budget = thinking_rules.is_budget(thinking.config)
        if is_budget and (_lost_its_thinking(turns) or self._is_prefilled(turns)):
            thinking = self._switched_off()
        return thinking, choice

    def _mark_prefixes(self, choice: Choice, system: list[Block], turns: list[Turn]) -> None:
        """Cache marks for a client that set none. One that did knows better, also where its marks found no place.

        Turns are marked where another request will begin with them: in a conversation, or where the model may call a
        tool. A lone question would pay for a write that nobody reads.
        """
        if not self._body.cache_marks <= {None}:
            return
        goes_on = any(turn.role == "assistant" for turn in turns)
        may_call = bool(choice.tools) and not choice.forces
        asked = [turn for turn in turns if turn.role == "user"] if goes_on or may_call else []
        mark_prefixes(choice.tools, system, [turn.content for turn in asked[-MARKED_TURNS:]])

    def _switched_off(self) -> Thinking:
        self.dropped.add("reasoning")
        return thinking_rules.off(self._request, self._target)

    def _unforced(self, choice: Choice) -> Choice:
        if self._body.tool_choice is not None:
            self.dropped.add("tool_choice")
        assert choice.choice is not None
        rest = {
            name: value for name, value in choice.choice.items() if name not in ("type", "name")
        }
        return Choice(tools=choice.tools, choice={"type": "auto", **rest})

    def _is_prefilled(self, turns: list[Turn]) -> bool:
        return turns[-1].role == "assistant" and self._target.flags.supports_prefill is not False

    def _finish_prefill(self, turns: list[Turn]) -> None:
        """An answer the client has begun: without white space at its end, or with a request to go on."""
        last = turns[-1]
        if last.role != "assistant":
            return
        if not self._is_prefilled(turns):
            going_on = Turn("user")
            going_on.blocks.append({"type": "text", "text": CONTINUE})
            turns.append(going_on)
            return
        block = last.blocks[-1]
        if block["type"] == "text":
            block["text"] = block["text"].rstrip()

    def _note_tools(self, choice: Choice) -> None:
        sent, supported = self._request.sent_parameters, self._target.supported_parameters
        for word in ("tools", "tool_choice", "parallel_tool_calls"):
            if word in sent and (word not in supported or not choice.tools):
                self.dropped.add(word)

    def _output_config(self, thinking: Thinking) -> dict[str, Any]:
        """The client's own output_config with our effort, or a translated format and effort."""
        request = self._request
        own = (request.extras or {}).get("output_config") if self._own else None
        config: dict[str, Any] = dict(own) if isinstance(own, dict) else {}
        config.pop("effort", None)
        if thinking.effort is not None:
            config["effort"] = thinking.effort
        elif "verbosity" in request.sent_parameters:
            self.dropped.add("verbosity")
        format_ = output_format(request, self._target)
        if answer_tool(request, self._target) is not None:
            config.pop("format", None)
        elif "format" not in config and format_ is not None and not self._legacy_format():
            config["format"] = format_
        elif self._body.output is not None and format_ is None:
            config.pop("format", None)
            if self._body.output.kind == "json_schema":
                self.dropped |= {"response_format", "structured_outputs"}
        return {name: value for name, value in config.items() if value is not None}

    def _legacy_format(self) -> bool:
        return self._own and bool((self._request.extras or {}).get("output_format"))

    def _sampling(self, thinking: Thinking) -> dict[str, Any]:
        """What the model takes of temperature, top_p, top_k and stop strings."""
        sampling, supported = self._body.sampling, self._target.supported_parameters
        wanted: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
        }
        if wanted["temperature"] is not None:
            wanted["temperature"] = min(max(wanted["temperature"], 0.0), 1.0)
        kept: dict[str, Any] = {}
        for name, value in wanted.items():
            if value is None:
                continue
            if name in supported and self._may_sample(name, value, sampling, thinking):
                kept[name] = value
            else:
                self.dropped.add(name)
        stop = [text for text in sampling.stop if text.strip()]
        if stop and "stop" in supported:
            kept["stop_sequences"] = stop
        elif sampling.stop and "stop" not in supported:
            self.dropped.add("stop")
        return kept

    def _may_sample(self, name: str, value: float, sampling: Sampling, thinking: Thinking) -> bool:
        if self._target.flags.rejects_sampling or _version(self._request) >= STRICT_VERSION:
            return False
        if thinking.is_on:
            return name == "top_p" and value >= 0.95
        # Newer models refuse both at once; their own clients know, translated ones do not.
        both = name == "top_p" and sampling.temperature is not None
        return self._own or not both

    def _extras(self) -> dict[str, Any]:
        """Unknown fields of a client of this family, and the end user's name in a form that tells nobody who it is."""
        extras = self._request.extras or {}
        if self._own:
            kept = {name: value for name, value in extras.items() if name not in _HANDLED}
            metadata = extras.get("metadata")
            if isinstance(metadata, dict):
                kept["metadata"] = metadata
            return kept
        user = self._request.sender.user_id
        if not user:
            return {}
        return {"metadata": {"user_id": hashlib.sha256(user.encode()).hexdigest()}}


def _max_tokens(body: Generate, target: Target) -> int:
    """The vendor requires a cap: the client's, or the model's default; never above what the endpoint gives."""
    ceiling = target.max_completion_tokens
    wanted = body.max_output_tokens
    if wanted is None:
        wanted = target.default_max_tokens or ceiling
    return min(wanted, ceiling) if ceiling > 0 else wanted


def _version(request: Request) -> str:
    if request.family != "anthropic_messages":
        return PINNED_VERSION
    return request.vendor_headers.get("anthropic-version", PINNED_VERSION)


def _headers(request: Request, target: Target) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        **credential_header(target),
        "anthropic-version": _version(request),
    }
    own: Mapping[str, str] = (
        request.vendor_headers if request.family == "anthropic_messages" else {}
    )
    configured = configured_headers(target)
    betas = [text for text in (configured.get("anthropic-beta"), own.get("anthropic-beta")) if text]
    headers |= configured
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    return headers


def _in_prompt_order(
    tools: list[Block], system: list[Block], turns: list[Turn]
) -> Iterator[dict[str, Any]]:
    yield from tools
    yield from system
    for turn in turns:
        yield from with_nested(turn.content)


def _lost_its_thinking(turns: list[Turn]) -> bool:
    """Whether the open tool turn lacks the signed thinking that it must begin with in the budget form."""
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    if last is None:
        return False
    calls = any(block["type"] == "tool_use" for block in last.blocks)
    return calls and last.blocks[0]["type"] not in _THINKING_BLOCKS


def _drop_user_citations(turns: list[Turn]) -> None:
    for turn in turns:
        for block in turn.blocks if turn.role == "user" else ():
            if block["type"] == "text" and block.get("citations"):
                del block["citations"]
