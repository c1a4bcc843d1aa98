"""A Request to one call of an OpenAI-format server: only what the target takes, nothing empty, nothing null."""

from typing import Any, Final

import msgspec

from gwd.core.request import Generate, OutputFormat, Request, Sampling, Tool, ToolChoice
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.call import headers_for, url_for
from gwd.vendors.openai_chat.effort import effort_for
from gwd.vendors.openai_chat.history import HistoryBuilder
from gwd.vendors.openai_chat.user import user_for
from gwd.vendors.schemas import FREE_TEXT, object_root, without_draft
from gwd.vendors.tool_names import ToolNames

Json = dict[str, Any]

MAX_STOPS: Final = 4
_SAMPLING: Final = tuple(f.name for f in msgspec.structs.fields(Sampling) if f.name != "stop")
_REJECTABLE: Final = frozenset(("temperature", "top_p", "top_k"))
# Fields that the responses format shares with this one, under the same names and with the same meaning.
_SHARED_EXTRAS: Final = ("prompt_cache_key", "safety_identifier", "service_tier")
_NOT_NAME: Final = str.maketrans(dict.fromkeys(" .:/\\\"'", "_"))
_JSON_LINE: Final = "Answer with JSON only."


def build(request: Request, target: Target) -> UpstreamCall:
    """Raises UnsupportedContent for content that this format cannot carry."""
    builder = _Builder(request, target)
    body = builder.body()
    return UpstreamCall(
        url=url_for(target.base_url, "chat/completions"),
        headers=headers_for(target),
        body=msgspec.json.encode(body),
        stream=request.stream,
        dropped=tuple(dict.fromkeys(builder.dropped)),
        output_cap=builder.cap,
    )


class _Builder:
    def __init__(self, request: Request, target: Target) -> None:
        assert isinstance(request.body, Generate)
        self.dropped: list[str] = []
        self.cap: int | None = None
        self._request = request
        self._generate = request.body
        self._target = target
        self._names = ToolNames(tool.name for tool in request.body.tools)

    def body(self) -> Json:
        body: Json = {
            "model": self._target.upstream_model,
            "messages": HistoryBuilder(self._request, self._target, self._names).build(),
        }
        if self._request.stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        self._cap(body)
        self._sampling(body)
        self._tools(body)
        self._output(body)
        self._reasoning(body)
        self._logprobs(body)
        self._extras(body)
        user = user_for(self._request.sender)
        if user:
            body["user"] = user
        self._refused(body)
        return body

    def _refused(self, body: Json) -> None:
        """Takes out what the server answers an error to. That a stream reports its usage it does unasked."""
        for name in self._target.flags.refused_fields:
            if body.pop(name, None) is not None and name != "stream_options":
                self.dropped.append(name)

    def _takes(self, word: str) -> bool:
        """Whether the target takes a parameter; if not, it is noted as dropped."""
        if word in self._target.supported_parameters:
            return True
        self.dropped.append(word)
        return False

    def _cap(self, body: Json) -> None:
        cap = self._generate.max_output_tokens
        if cap is None:
            return
        ceiling = self._target.max_completion_tokens
        words = self._target.supported_parameters
        newer = "max_completion_tokens" in words and "max_tokens" not in words
        name = "max_completion_tokens" if newer else "max_tokens"
        self.cap = body[name] = min(cap, ceiling) if ceiling > 0 else cap

    def _sampling(self, body: Json) -> None:
        sampling = self._generate.sampling
        for name in _SAMPLING:
            value = getattr(sampling, name)
            if value is None:
                continue
            if name in _REJECTABLE and self._target.flags.rejects_sampling:
                self.dropped.append(name)
            elif self._takes(name):
                body[name] = value
        stops = [stop for stop in sampling.stop if stop]
        if stops and self._takes("stop"):
            if len(stops) > MAX_STOPS:
                self.dropped.append("stop")
            body["stop"] = stops[:MAX_STOPS]

    def _tools(self, body: Json) -> None:
        tools = self._generate.tools_in_sight
        if not tools or not self._takes("tools"):
            return
        body["tools"] = [self._tool(tool) for tool in tools]
        choice = self._generate.tool_choice
        if choice is None:
            return
        asked = choice.mode != "auto" or choice.allowed is not None
        if (asked or "tool_choice" in self._request.sent_parameters) and self._takes("tool_choice"):
            body["tool_choice"] = self._tool_choice(choice)
        if choice.parallel is not None and self._takes("parallel_tool_calls"):
            body["parallel_tool_calls"] = choice.parallel

    def _tool(self, tool: Tool) -> Json:
        function: Json = {"name": self._names.upstream(tool.name)}
        description = tool.description
        parameters = tool.parameters
        if tool.custom:
            description = _with_grammar(description, tool.grammar)
            parameters = FREE_TEXT
        if description:
            function["description"] = description
        if parameters is not None:
            function["parameters"] = self._schema(object_root(parameters))
        if tool.strict is not None:
            function["strict"] = tool.strict
        built: Json = {"type": "function", "function": function}
        if self._request.family == "openai_chat":
            for name, value in (tool.extras or {}).items():
                if name == "function" and isinstance(value, dict):
                    built["function"] = {**value, **function}
                elif name != "custom":
                    built.setdefault(name, value)
        return built

    def _schema(self, schema: Json) -> Json:
        """Schemas of other families' clients name their draft."""
        return schema if self._request.family == "openai_chat" else without_draft(schema)

    def _tool_choice(self, choice: ToolChoice) -> str | Json:
        forces = choice.mode in ("required", "named")
        if forces and self._target.flags.rejects_forced_tools:
            self.dropped.append("tool_choice")
            return "auto"
        if choice.allowed is not None:
            allowed = [_function(self._names.upstream(name)) for name in choice.allowed]
            mode = "required" if choice.mode == "required" else "auto"
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}}
        if choice.mode == "named":
            return _function(self._names.upstream(choice.name or ""))
        return choice.mode

    def _output(self, body: Json) -> None:
        output = self._generate.output
        if output is not None and output.kind != "text":
            self._response_format(body, output)
        if self._generate.verbosity is not None and self._takes("verbosity"):
            body["verbosity"] = self._generate.verbosity

    def _response_format(self, body: Json, output: OutputFormat) -> None:
        if output.kind == "json_object":
            if self._takes("response_format"):
                body["response_format"] = {"type": "json_object"}
                _name_json(body["messages"])
            return
        if not self._takes("structured_outputs"):
            return
        schema: Json = {"name": (output.name or "response").translate(_NOT_NAME)[:64]}
        if output.description:
            schema["description"] = output.description
        schema["schema"] = self._schema(output.schema or {})
        if output.strict is not None:
            schema["strict"] = output.strict
        body["response_format"] = {"type": "json_schema", "json_schema": schema}

    def _reasoning(self, body: Json) -> None:
        reasoning = self._generate.reasoning
        if reasoning is None:
            return
        words = self._target.supported_parameters
        effort = effort_for(self._generate, self._request, self._target)
        if effort is None:
            return
        if "reasoning" in words or "reasoning_effort" in words:
            body["reasoning_effort"] = effort
        elif reasoning.effort != "none" and reasoning.enabled is not False:
            self.dropped.append("reasoning")

    def _logprobs(self, body: Json) -> None:
        wanted = self._generate.logprobs
        if wanted is not None and self._takes("logprobs"):
            body["logprobs"] = True
            if wanted and self._takes("top_logprobs"):
                body["top_logprobs"] = wanted

    def _extras(self, body: Json) -> None:
        """Unknown fields of the same family; known words only where the target lists them."""
        extras = self._request.extras or {}
        if self._request.family == "openai_chat":
            for name, value in extras.items():
                if value is None or (name == "logit_bias" and not self._takes(name)):
                    continue
                body.setdefault(name, value)
        elif self._request.family == "openai_responses":
            for name in _SHARED_EXTRAS:
                if extras.get(name) is not None:
                    body[name] = extras[name]


def _function(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


def _with_grammar(description: str | None, grammar: Json | None) -> str | None:
    """A custom tool is offered as a function here; what its input must look like is told in words."""
    if not grammar:
        return description
    shape = msgspec.json.encode(grammar).decode()
    return f"{description or ''}\nThe input must follow this format: {shape}".strip()


def _name_json(messages: list[Json]) -> None:
    """OpenAI refuses json_object unless the conversation holds the word JSON."""
    if b"json" in msgspec.json.encode(messages).lower():
        return
    leading = 0
    while leading < len(messages) and messages[leading]["role"] in ("system", "developer"):
        leading += 1
    messages.insert(leading, {"role": "system", "content": _JSON_LINE})
