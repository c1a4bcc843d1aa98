"""A Request to one call of a responses server."""

import re
from typing import Any, Final, assert_never

import msgspec

from gwd.core.errors import InvalidRequest
from gwd.core.request import (
    Generate,
    OutputFormat,
    Request,
    Tool,
    ToolChoice,
)
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.call import headers_for, url_for
from gwd.vendors.openai_chat.effort import effort_for
from gwd.vendors.openai_chat.user import user_for
from gwd.vendors.openai_responses.content import FAMILY, Contents
from gwd.vendors.openai_responses.format import FORMAT
from gwd.vendors.openai_responses.history import History, Item
from gwd.vendors.schemas import object_root, without_draft
from gwd.vendors.tool_names import ToolNames

ENCRYPTED: Final = "reasoning.encrypted_content"
_LOGPROBS: Final = "message.output_text.logprobs"
# Ours, a router's, or written by other means.
_NEVER_FORWARDED: Final = frozenset(
    (
        "reasoning",
        "transforms",
        "plugins",
        "route",
        "preset",
        "debug",
        "trace",
        "fallbacks",
    )
)
_SHARED_EXTRAS: Final = ("prompt_cache_key", "safety_identifier", "service_tier")
_CAP_WORDS: Final = frozenset(("max_tokens", "max_completion_tokens"))
_REASONING_WORDS: Final = frozenset(("reasoning", "reasoning_effort", "include_reasoning"))
_FORMAT_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
_ENCODE: Final = msgspec.json.Encoder().encode


def build(request: Request, target: Target) -> UpstreamCall:
    """Raises InvalidRequest for content that this format cannot carry."""
    if not isinstance(request.body, Generate):
        raise InvalidRequest("a responses endpoint serves no embeddings")
    body = _Body(request, request.body, target)
    return UpstreamCall(
        url=url_for(target.base_url, "responses"),
        headers=headers_for(target),
        body=_ENCODE(body.fields()),
        stream=request.stream,
        dropped=tuple(sorted(request.sent_parameters - body.used)),
        output_cap=body.cap,
    )


def tool_names(request: Request) -> ToolNames:
    """The bijection of this request's tool names; decode turns it round."""
    tools = request.body.tools if isinstance(request.body, Generate) else ()
    return ToolNames(tool.name for tool in tools)


class _Body:
    """The fields of the upstream body; `used` collects the parameter words that found a place."""

    def __init__(self, request: Request, body: Generate, target: Target) -> None:
        self._request = request
        self._body = body
        self._target = target
        self._names = tool_names(request)
        self._extras = _known_extras(request)
        self._fields: dict[str, Any] = {}
        self.used: set[str] = set()
        self.cap: int | None = None

    def fields(self) -> dict[str, Any]:
        self._fields = {"model": self._target.upstream_model}
        self._add_conversation()
        self._add_tools()
        self._add_cap()
        self._add_sampling()
        self._add_reasoning()
        self._add_text()
        self._add_logprobs()
        self._add_extras()
        self._fields["store"] = False
        if self._request.stream:
            self._fields["stream"] = True
        return self._fields

    def _supports(self, *words: str) -> bool:
        return not self._target.supported_parameters.isdisjoint(words)

    def _add_conversation(self) -> None:
        flags = self._target.flags
        history = History(self._body, self._names, Contents(self._request, flags), flags)
        instructions = history.instructions()
        items = history.items()
        if not items and all(message.role == "system" for message in self._body.messages):
            # The vendor wants an input: what is to be answered is the instructions themselves.
            items, instructions = history.as_items(instructions), None
        if instructions is not None:
            self._fields["instructions"] = instructions
        if not items:
            raise InvalidRequest(
                "the conversation holds nothing to answer: send a message with text"
            )
        self._fields["input"] = items

    def _add_tools(self) -> None:
        tools, choice = self._body.tools_in_sight, self._body.tool_choice
        sold = self._target.sold.tools
        hosted = [tool for tool in self._request.hosted_tools if tool.get("type") in sold]
        if not (tools or hosted) or not self._supports("tools"):
            return
        self.used.add("tools")
        self._fields["tools"] = [*(self._tool(tool) for tool in tools), *hosted]
        if choice is None:
            return
        if self._supports("tool_choice"):
            self.used.add("tool_choice")
            self._fields["tool_choice"] = self._choice(choice)
        elif choice == ToolChoice(parallel=choice.parallel):
            self.used.add("tool_choice")
        if choice.parallel is not None and self._supports("parallel_tool_calls"):
            self.used.add("parallel_tool_calls")
            self._fields["parallel_tool_calls"] = choice.parallel

    def _tool(self, tool: Tool) -> Item:
        extras = (tool.extras or {}) if self._request.family == FAMILY else {}
        head: Item = {**extras, "type": "custom" if tool.custom else "function"}
        head["name"] = self._names.upstream(tool.name)
        if tool.description is not None:
            head["description"] = tool.description
        if tool.custom:
            return {**head, "format": tool.grammar} if tool.grammar else head
        # Older documentation gave `strict` the default true: it is always written.
        return {**head, "parameters": _parameters(tool), "strict": tool.strict is True}

    def _choice(self, choice: ToolChoice) -> str | Item:
        if self._target.flags.rejects_forced_tools and choice.mode in ("required", "named"):
            self.used.discard("tool_choice")
            return "auto"
        match choice.mode:
            case "named":
                return self._named(choice.name or "")
            case "auto" | "required" if choice.allowed:
                allowed = [self._named(name) for name in choice.allowed]
                return {"type": "allowed_tools", "mode": choice.mode, "tools": allowed}
            case "auto" | "required" | "none":
                return choice.mode
            case _:
                assert_never(choice.mode)

    def _named(self, name: str) -> Item:
        is_custom = any(tool.custom and tool.name == name for tool in self._body.tools)
        return {
            "type": "custom" if is_custom else "function",
            "name": self._names.upstream(name),
        }

    def _add_cap(self) -> None:
        wanted = self._body.max_output_tokens
        if wanted is None:
            return
        self.used |= _CAP_WORDS
        ceiling = self._target.max_completion_tokens or wanted
        self.cap = max(min(wanted, ceiling), FORMAT.least_output)
        self._fields["max_output_tokens"] = self.cap

    def _add_sampling(self) -> None:
        if self._target.flags.rejects_sampling:
            return
        sampling = self._body.sampling
        for word, value in (("temperature", sampling.temperature), ("top_p", sampling.top_p)):
            if value is not None and self._supports(word):
                self.used.add(word)
                self._fields[word] = value

    def _add_reasoning(self) -> None:
        if not self._supports(*_REASONING_WORDS):
            return
        self._fields["include"] = [ENCRYPTED]
        reasoning = self._body.reasoning
        if reasoning is None:
            return
        self.used |= _REASONING_WORDS
        effort = effort_for(self._body, self._request, self._target)
        own = self._extras.get("reasoning")
        fields: Item = dict(own) if isinstance(own, dict) else {}
        if effort is not None:
            fields["effort"] = effort
        if reasoning.exclude:
            fields.pop("summary", None)
        elif effort != "none":
            fields["summary"] = fields.get("summary") or "auto"
        if fields:
            self._fields["reasoning"] = fields

    def _add_text(self) -> None:
        text: Item = {}
        if self._body.output is not None:
            form = self._format(self._body.output)
            if form is not None:
                text["format"] = form
        if self._body.verbosity is not None and self._supports("verbosity"):
            self.used.add("verbosity")
            text["verbosity"] = self._body.verbosity
        if text:
            self._fields["text"] = text

    def _add_logprobs(self) -> None:
        wanted = self._body.logprobs
        if wanted is None or not self._supports("logprobs", "top_logprobs"):
            return
        self.used.add("logprobs")
        self._fields.setdefault("include", []).append(_LOGPROBS)
        if wanted and self._supports("top_logprobs"):
            self.used.add("top_logprobs")
            self._fields["top_logprobs"] = wanted

    def _format(self, output: OutputFormat) -> Item | None:
        if output.kind == "text":
            return None
        if output.kind == "json_schema" and self._supports("structured_outputs"):
            self.used |= {"response_format", "structured_outputs"}
            form: Item = {
                "type": "json_schema",
                "name": _FORMAT_NAME.sub("_", output.name or "")[:64] or "response",
                "schema": output.schema or {},
            }
            if output.description is not None:
                form["description"] = output.description
            if output.strict is not None:
                form["strict"] = output.strict
            return form
        if not self._supports("response_format"):
            return None
        self.used.add("response_format")
        self._say_json()
        return {"type": "json_object"}

    def _say_json(self) -> None:
        """The vendor refuses plain JSON mode unless the word stands somewhere in the input."""
        if any(_mentions_json(item) for item in self._fields["input"]):
            return
        content = [{"type": "input_text", "text": "Answer with JSON only."}]
        self._fields["input"].insert(
            0, {"type": "message", "role": "developer", "content": content}
        )

    def _add_user(self) -> None:
        if "safety_identifier" in self._fields:
            return
        user = user_for(self._request.sender)
        if user is not None:
            self._fields["safety_identifier"] = user

    def _add_extras(self) -> None:
        for name, value in self._extras.items():
            if name not in self._fields and name not in _NEVER_FORWARDED:
                self._fields[name] = value
                self.used.add(name)
        self._add_user()


def _known_extras(request: Request) -> dict[str, Any]:
    """What this format's own clients sent beside the known fields, and what the chat format shares with it."""
    extras = request.extras or {}
    if request.family == FAMILY:
        return extras
    if request.family == "openai_chat":
        return {name: extras[name] for name in _SHARED_EXTRAS if extras.get(name) is not None}
    return {}


def _mentions_json(item: Item) -> bool:
    content = item.get("content")
    return isinstance(content, list) and any(
        "json" in str(block.get("text", "")).lower() for block in content
    )


def _parameters(tool: Tool) -> Item:
    """The parameters with an object at the root, which has properties even if there are none."""
    schema = without_draft(object_root(tool.parameters))
    return schema if "properties" in schema else {**schema, "properties": {}}
