"""What the vendor refuses at generateContent and batchEmbedContents.

Vendor facts (Gemini API reference, guides on function calling and thought signatures, error texts, read 2026-11):
fields have one name and a type; turns are of user and model; results stand in the turn right behind their calls, one
for each and in their order; the models whose thinking has levels want the signature of each step's first call back
while the turn is open, and take a fixed word for a call they have not made; text must not be empty.
"""

import base64
import binascii
import re
from itertools import pairwise

from gwd.demo.refusals import RefusedError
from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object, is_whole_number
from tests.vendor.schema_shape import misshapen
from tests.vendor.signatures import is_own_signature

NO_SIGNATURE = "skip_thought_signature_validator"
_FIELDS = frozenset(
    [
        "cachedContent",
        "contents",
        "generationConfig",
        "labels",
        "safetySettings",
        "systemInstruction",
        "toolConfig",
        "tools",
        # These two stand in the path.
        "model",
        "stream",
    ]
)
_CONFIG_FIELDS = frozenset(
    [
        "candidateCount",
        "enableEnhancedCivicAnswers",
        "frequencyPenalty",
        "imageConfig",
        "logprobs",
        "maxOutputTokens",
        "mediaResolution",
        "presencePenalty",
        "responseJsonSchema",
        "responseLogprobs",
        "responseMimeType",
        "responseModalities",
        "responseSchema",
        "seed",
        "speechConfig",
        "stopSequences",
        "temperature",
        "thinkingConfig",
        "topK",
        "topP",
    ]
)
_DATA = ("text", "inlineData", "fileData", "functionCall", "functionResponse")
_PART_FIELDS = frozenset(
    [*_DATA, "thought", "thoughtSignature", "mediaResolution", "videoMetadata"]
)
_FUNCTION_FIELDS = frozenset(
    [
        *("name", "description", "parameters", "parametersJsonSchema", "behavior"),
        *("response", "responseJsonSchema"),
    ]
)
_EMBED_FIELDS = frozenset(["model", "content", "outputDimensionality", "taskType", "title"])
_LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_MAX_STOPS = 5
_MAX_BUDGET = 32_768
_MAX_BATCH = 100


def check_gemini(body: Json, traits: ModelTraits) -> None:
    if traits.kind != "chat":
        raise _unsupported(traits, "generateContent")
    _known(body, _FIELDS, "")
    _check_config(as_object(body.get("generationConfig")), traits)
    _check_tools(body)
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise RefusedError("* GenerateContentRequest.contents: contents is not specified")
    for index, turn in enumerate(contents):
        _check_turn(turn, f"contents[{index}]")
    if "systemInstruction" in body:
        _check_turn({"role": "user", **as_object(body["systemInstruction"])}, "system_instruction")
    _check_pairs(contents)
    if traits.thinking in ("adaptive", "both"):
        _check_signatures(contents)


def check_gemini_embeddings(body: Json, traits: ModelTraits) -> None:
    if traits.kind != "embedding":
        raise _unsupported(traits, "batchEmbedContents")
    _known(body, frozenset({"requests", "model", "stream"}), "")
    requests = as_list(body.get("requests"))
    if not requests:
        raise RefusedError("* BatchEmbedContentsRequest.requests: requests is not specified")
    if len(requests) > _MAX_BATCH:
        raise RefusedError(
            f"* BatchEmbedContentsRequest.requests: at most {_MAX_BATCH} requests can be in one batch"
        )
    for index, one in enumerate(requests):
        path = f"requests[{index}]"
        _known(as_object(one), _EMBED_FIELDS, path)
        if one.get("model") != f"models/{traits.name}":
            raise RefusedError(f"* {path}.model: must be the model of the path")
        parts = as_list(as_object(one.get("content")).get("parts"))
        if not parts or not all(as_object(part).get("text") for part in parts):
            raise RefusedError(f"* {path}.content: content is empty")
        wanted = one.get("outputDimensionality", 1)
        if not is_whole_number(wanted) or not 1 <= wanted <= traits.dimensions:
            raise RefusedError(f"* {path}.output_dimensionality: must be in 1..{traits.dimensions}")


def _known(value: Json, fields: frozenset[str], path: str) -> None:
    for name in value:
        if name not in fields:
            where = f" at '{path}'" if path else ""
            raise RefusedError(
                f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
            )


def _unsupported(traits: ModelTraits, method: str) -> RefusedError:
    return RefusedError(
        f"models/{traits.name} is not found for API version v1beta, or is not supported for {method}.",
        status=404,
    )


def _check_config(config: Json, traits: ModelTraits) -> None:
    path = "generation_config"
    _known(config, _CONFIG_FIELDS, path)
    for name, low, high in (("temperature", 0, 2), ("topP", 0, 1)):
        value = config.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RefusedError(f"Invalid value at '{path}.{name}' (TYPE_FLOAT)")
        if not low <= value <= high:
            raise RefusedError(f"{name} must be in the range [{low}, {high}], got {value}")
    for name in ("maxOutputTokens", "seed", "topK"):
        value = config.get(name, 1)
        if not is_whole_number(value) or not -(2**31) <= value < 2**31:
            raise RefusedError(f"Invalid value at '{path}.{name}' (TYPE_INT32)")
    if config.get("maxOutputTokens", 1) < 1:
        raise RefusedError("max_output_tokens must be positive")
    if len(as_list(config.get("stopSequences"))) > _MAX_STOPS:
        raise RefusedError(f"* {path}.stop_sequences: at most {_MAX_STOPS} are allowed")
    if not all(as_list(config.get("stopSequences"))):
        raise RefusedError(f"* {path}.stop_sequences: must not be empty")
    schema = config.get("responseJsonSchema")
    if schema is not None:
        if config.get("responseMimeType") != "application/json":
            raise RefusedError("response_json_schema needs the response_mime_type application/json")
        _check_schema(schema, f"{path}.response_json_schema")
    _check_thinking(as_object(config.get("thinkingConfig")), traits)


def _check_thinking(thinking: Json, traits: ModelTraits) -> None:
    path = "generation_config.thinking_config"
    _known(thinking, frozenset({"thinkingBudget", "thinkingLevel", "includeThoughts"}), path)
    if not thinking:
        return
    if traits.thinking == "none":
        raise RefusedError("Thinking is not enabled for this model.")
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    if level is not None and budget is not None:
        raise RefusedError("You can only set only one of thinking budget and thinking level.")
    if level is not None:
        if level not in _LEVELS:
            raise RefusedError(f"Invalid value at '{path}.thinking_level' ({level})")
        if traits.thinking == "budget":
            raise RefusedError("Thinking level is not supported for this model.")
    if budget is not None and (not is_whole_number(budget) or not -1 <= budget <= _MAX_BUDGET):
        raise RefusedError(f"The thinking budget {budget} is invalid.")


def _check_tools(body: Json) -> None:
    names = []
    for index, tool in enumerate(as_list(body.get("tools"))):
        for place, one in enumerate(as_list(as_object(tool).get("functionDeclarations"))):
            path = f"tools[{index}].function_declarations[{place}]"
            _known(as_object(one), _FUNCTION_FIELDS, path)
            if not isinstance(one.get("name"), str) or not _NAME.fullmatch(one["name"]):
                raise RefusedError(f"* {path}.name: Invalid function name.")
            if one["name"] in names:
                raise RefusedError(f"Duplicate function declaration found: {one['name']}")
            if "parametersJsonSchema" in one:
                _check_schema(one["parametersJsonSchema"], f"{path}.parameters_json_schema")
            names.append(one["name"])
    calling = as_object(as_object(body.get("toolConfig")).get("functionCallingConfig"))
    if calling and calling.get("mode") not in _MODES:
        raise RefusedError("Invalid value at 'tool_config.function_calling_config.mode'")
    allowed = as_list(calling.get("allowedFunctionNames"))
    if allowed and calling.get("mode") not in ("ANY", "VALIDATED"):
        raise RefusedError("allowed_function_names takes the modes ANY and VALIDATED only")
    for name in allowed:
        if name not in names:
            raise RefusedError(f"allowed_function_names names a function nobody declared: {name}")
    if calling.get("mode") == "ANY" and not names:
        raise RefusedError("Function calling config is set without function_declarations.")


def _check_schema(schema: object, path: str) -> None:
    if not isinstance(schema, dict):
        raise RefusedError(f"Invalid value at '{path}' (an object is wanted)")
    if (wrong := misshapen(schema)) is not None:
        raise RefusedError(f"* {path}: {wrong}")


def _check_turn(turn: object, path: str) -> None:
    _known(as_object(turn), frozenset({"role", "parts"}), path)
    if as_object(turn).get("role") not in ("user", "model"):
        raise RefusedError("Please use a valid role: user, model.")
    parts = as_list(as_object(turn).get("parts"))
    if not parts:
        raise RefusedError(f"* {path}.parts: contents.parts must not be empty.")
    for index, part in enumerate(parts):
        _check_part(as_object(part), as_object(turn)["role"], f"{path}.parts[{index}]")


def _check_part(part: Json, role: str, path: str) -> None:
    _known(part, _PART_FIELDS, path)
    given = [name for name in _DATA if name in part]
    if len(given) != 1:
        raise RefusedError(
            f"* {path}.data: required oneof field 'data' must have one initialized field"
        )
    if part.get("text") == "" and "thoughtSignature" not in part:
        raise RefusedError("Unable to submit request because it must have a text parameter.")
    if ("functionCall" in part and role != "model") or (
        "functionResponse" in part and role != "user"
    ):
        raise RefusedError(f"* {path}: a {given[0]} has no place in a turn of the role {role}")
    match given[0]:
        case "functionCall":
            call = as_object(part["functionCall"])
            _known(call, frozenset({"id", "name", "args"}), f"{path}.function_call")
            if not isinstance(call.get("args", {}), dict) or not call.get("name"):
                raise RefusedError(f"* {path}.function_call: wants a name and an object of args")
        case "functionResponse":
            response = as_object(part["functionResponse"])
            fields = frozenset({"id", "name", "response", "parts"})
            _known(response, fields, f"{path}.function_response")
            if not isinstance(response.get("response"), dict) or not response.get("name"):
                raise RefusedError(
                    f"* {path}.function_response: wants a name and an object as response"
                )
        case "inlineData":
            _check_data(as_object(part["inlineData"]), path)
        case _:
            pass


def _check_data(data: Json, path: str) -> None:
    if not data.get("mimeType"):
        raise RefusedError(f"* {path}.inline_data: mime_type is missing")
    try:
        base64.b64decode(data.get("data", "!"), validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise RefusedError(f"Invalid value at '{path}.inline_data.data' (TYPE_BYTES)") from None


def _names(turn: Json, kind: str) -> list[str]:
    return [part[kind]["name"] for part in turn["parts"] if kind in part]


def _check_pairs(turns: list[Json]) -> None:
    """Results stand right behind their calls, and only there."""
    last = {"role": "user", "parts": []}
    for turn, following in pairwise([{"role": "user", "parts": []}, *turns, last]):
        if _names(turn, "functionCall") != _names(following, "functionResponse"):
            raise RefusedError(
                "Please ensure that the number of function response parts is equal to the number of "
                "function call parts of the function call turn."
            )


def _check_signatures(turns: list[Json]) -> None:
    """Of the open turn: everything behind the last thing the user said."""
    start = 0
    for index, turn in enumerate(turns):
        if turn["role"] == "user" and not _names(turn, "functionResponse"):
            start = index
    for turn in turns[start:]:
        calls = [part for part in turn["parts"] if "functionCall" in part]
        if calls and "thoughtSignature" not in calls[0]:
            name = calls[0]["functionCall"]["name"]
            raise RefusedError(
                f"Function call is missing a thought_signature in functionCall parts: `{name}`."
            )
    for turn in turns:
        for part in turn["parts"]:
            signature = part.get("thoughtSignature", NO_SIGNATURE)
            if signature != NO_SIGNATURE and not is_own_signature(signature):
                raise RefusedError("Corrupted thought signature.")
