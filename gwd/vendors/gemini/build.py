"""A Request to one call of Gemini: only what the target takes, nothing empty, nothing null."""

from typing import Any, Final

import msgspec

from gwd.core.errors import InvalidRequest
from gwd.core.request import Embed, Generate, OutputFormat, Request
from gwd.core.target import Target, UpstreamCall
from gwd.vendors.call import headers_for
from gwd.vendors.gemini import embeddings
from gwd.vendors.gemini.call import method_url
from gwd.vendors.gemini.content import Contents
from gwd.vendors.gemini.history import History
from gwd.vendors.gemini.own import OwnFields
from gwd.vendors.gemini.thinking import WORDS, is_honoured, thinking_config
from gwd.vendors.gemini.tools import (
    calling_config,
    declaration,
    is_unforceable,
    tool_names,
)
from gwd.vendors.schemas import without_draft

Json = dict[str, Any]

MAX_STOPS: Final = 5
MAX_SEED: Final = 2**31 - 1
_CAP_WORDS: Final = frozenset(("max_tokens", "max_completion_tokens"))
_SAMPLING: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
    "seed": "seed",
}
_REJECTABLE: Final = frozenset(("temperature", "top_p", "top_k"))
_JSON_TYPE: Final = "application/json"
_JSON_TEXT: Final = (
    "Whenever you answer with text and not with a function call, the text must be one valid JSON "
    "object and nothing else."
)


def build(request: Request, target: Target) -> UpstreamCall:
    """Raises InvalidRequest for content that this format cannot carry."""
    if isinstance(request.body, Embed):
        return embeddings.build(request, request.body, target)
    try:
        body = _Body(request, request.body, target)
        fields = body.fields()
    except RecursionError:
        raise InvalidRequest("the request is nested too deeply") from None
    method = "streamGenerateContent" if request.stream else "generateContent"
    return UpstreamCall(
        url=method_url(target, method, streams=request.stream),
        headers=headers_for(target),
        body=msgspec.json.encode(fields),
        stream=request.stream,
        dropped=tuple(sorted(request.sent_parameters - body.used)),
        output_cap=body.cap,
    )


class _Body:
    """The fields of the upstream body; `used` collects the parameter words that found a place."""

    def __init__(self, request: Request, body: Generate, target: Target) -> None:
        self._request = request
        self._body = body
        self._target = target
        self._names = tool_names(request)
        self._own = OwnFields(request, target)
        self._config: Json = {}
        self._system: list[Json] = []
        self.used: set[str] = set()
        self.cap: int | None = None

    def fields(self) -> Json:
        history = History(
            self._body, self._names, Contents(self._request, self._target), self._target
        )
        self._system = history.system()
        fields: Json = {"contents": history.turns()}
        fields |= self._tools()
        self._cap()
        self._sampling()
        self._output()
        self._thinking()
        self._logprobs()
        if self._system:
            fields["systemInstruction"] = {"parts": self._system}
        config = {**self._own.config, **self._config}
        if config:
            fields["generationConfig"] = config
        return {**self._own.fields, **fields}

    def _supports(self, *words: str) -> bool:
        return not self._target.supported_parameters.isdisjoint(words)

    def _tools(self) -> Json:
        tools, hosted = self._body.tools_in_sight, self._own.hosted
        if not (tools or hosted) or not self._supports("tools"):
            return {}
        self.used.add("tools")
        declarations = [declaration(tool, self._names, is_own=self._own.is_own) for tool in tools]
        functions = [{"functionDeclarations": declarations}] if declarations else []
        fields: Json = {"tools": [*functions, *hosted]}
        config = calling_config(self._body, self._target, self._names) if tools else None
        tool_config = self._own.tool_config
        if config is not None:
            tool_config["functionCallingConfig"] = self._own.calling(config)
        if tool_config:
            fields["toolConfig"] = tool_config
        choice = self._body.tool_choice
        if choice is not None:
            is_free = choice.mode in ("auto", "none") and choice.allowed is None
            is_taken = is_free or self._supports("tool_choice")
            if is_taken and not is_unforceable(choice, self._target):
                self.used.add("tool_choice")
            if choice.parallel:  # what the vendor does anyway; it can't be told not to
                self.used.add("parallel_tool_calls")
        return fields

    def _cap(self) -> None:
        wanted = self._body.max_output_tokens
        if wanted is None:
            return
        self.used |= _CAP_WORDS
        ceiling = self._target.max_completion_tokens
        self.cap = min(wanted, ceiling) if ceiling > 0 else wanted
        self._config["maxOutputTokens"] = self.cap

    def _sampling(self) -> None:
        sampling = self._body.sampling
        for word, name in _SAMPLING.items():
            value = getattr(sampling, word)
            refused = word in _REJECTABLE and self._target.flags.rejects_sampling
            if value is None or refused or not self._supports(word):
                continue
            self.used.add(word)
            # A seed is a 32-bit number here; a longer one still gives the same seed each time.
            self._config[name] = value & MAX_SEED if word == "seed" else value
        stops = [stop for stop in sampling.stop if stop]
        if stops and self._supports("stop"):
            if len(stops) <= MAX_STOPS:
                self.used.add("stop")
            self._config["stopSequences"] = stops[:MAX_STOPS]

    def _output(self) -> None:
        output = self._body.output
        if output is None or output.kind == "text":
            self.used.add("response_format")  # text is what the vendor answers anyway
            return
        schema = self._schema(output)
        if schema is None and not self._supports("response_format"):
            return
        if self._target.flags.no_json_with_tools and "tools" in self.used:
            # The vendor refuses both at once: an agent needs its tools, so the form is asked for in words.
            schema_text = "" if schema is None else f" Its JSON schema: {_text(schema)}"
            self._system.append({"text": _JSON_TEXT + schema_text})
            return
        self.used.add("response_format")
        self._config["responseMimeType"] = _JSON_TYPE
        if schema is not None:
            self.used.add("structured_outputs")
            self._config["responseJsonSchema"] = schema

    def _schema(self, output: OutputFormat) -> Json | None:
        if output.kind != "json_schema" or not self._supports("structured_outputs"):
            return None
        return without_draft(output.schema or {}) or None

    def _thinking(self) -> None:
        config = self._own.thinking or thinking_config(self._request, self._target)
        if config is not None:
            self._config["thinkingConfig"] = config
        if is_honoured(self._request, config):
            self.used |= WORDS

    def _logprobs(self) -> None:
        wanted = self._body.logprobs
        if wanted is None or not self._supports("logprobs"):
            return
        self.used.add("logprobs")
        self._config["responseLogprobs"] = True
        if wanted and self._supports("top_logprobs"):
            self.used.add("top_logprobs")
            self._config["logprobs"] = wanted


def _text(schema: Json) -> str:
    return msgspec.json.encode(schema).decode()
