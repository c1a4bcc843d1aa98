"""What the vendor refuses at messages, beside the conversation itself: fields, sampling, thinking, tools, output.

Vendor facts (Anthropic API reference, error texts and SDK 2.14 models, read 2026-11). Sampling parameters are 400 at
any value under version 2026-10-21; thinking takes no other temperature than 1 and no forced tool; stop sequences need
a visible character; extra inputs are not permitted.
"""

from collections.abc import Mapping

from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object, compact, is_whole_number
from tests.vendor.messages_conversation import check_conversation
from tests.vendor.messages_errors import extra_input, refuse, required
from tests.vendor.messages_tools import check_output, check_tools

VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
SAMPLING = ("temperature", "top_p", "top_k")
_FIELDS = frozenset(
    [
        "cache_control",
        "container",
        "diagnostics",
        "inference_geo",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
        "user_profile_id",
        "workspace_id",
    ]
)
_COUNT_FIELDS = frozenset(
    [
        "cache_control",
        "messages",
        "model",
        "output_config",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
        "user_profile_id",
        "workspace_id",
    ]
)
# Fields of features in beta: known once the caller names the feature.
_BETA_FIELDS = {
    "context_management": "context-management",
    "mcp_servers": "mcp-client",
    "fallbacks": "fallbacks",
}
_MIN_BUDGET = 1024
_MIN_TOP_P = 0.95
_MAX_MARKS = 4


def check_messages_request(
    body: Json, headers: Mapping[str, str], traits: ModelTraits, *, counts_only: bool
) -> None:
    version = _checked_version(headers)
    _check_fields(body, headers, counts_only=counts_only)
    if traits.kind != "chat":
        raise refuse(f"model: {traits.name} does not support the Messages API")
    if not counts_only:
        _check_max_tokens(body, traits)
    _check_sampling(body, traits, version)
    check_tools(body, traits)
    _check_thinking(body, traits)
    _check_stops(body)
    check_output(body)
    _check_marks(body)
    check_conversation(body, traits, version)


def _checked_version(headers: Mapping[str, str]) -> str:
    version = headers.get("anthropic-version")
    if version is None:
        raise refuse("anthropic-version: header is required")
    if version not in VERSIONS:
        raise refuse(f'anthropic-version: "{version}" is not a valid version')
    return version


def _check_fields(body: Json, headers: Mapping[str, str], *, counts_only: bool) -> None:
    betas = headers.get("anthropic-beta", "")
    for name in body:
        known = name in (_COUNT_FIELDS if counts_only else _FIELDS)
        if not known and not (name in _BETA_FIELDS and _BETA_FIELDS[name] in betas):
            raise extra_input(name)
    for name in as_object(body.get("metadata")):
        if name != "user_id":
            raise extra_input(f"metadata.{name}")
    if body.get("stream") is not None and not isinstance(body["stream"], bool):
        raise refuse("stream: Input should be a valid boolean")


def _check_max_tokens(body: Json, traits: ModelTraits) -> None:
    if "max_tokens" not in body:
        raise required("max_tokens")
    limit = body["max_tokens"]
    if not is_whole_number(limit):
        raise refuse("max_tokens: Input should be a valid integer")
    if limit < 1:
        raise refuse("max_tokens: Input should be greater than or equal to 1")
    if limit > traits.max_output:
        raise refuse(
            f"max_tokens: {limit} > {traits.max_output}, which is the maximum allowed number of output "
            f"tokens for {traits.name}"
        )


def _check_sampling(body: Json, traits: ModelTraits, version: str) -> None:
    given = [name for name in SAMPLING if body.get(name) is not None]
    for name in given:
        value = body[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refuse(f"{name}: Input should be a valid number")
        if version == VERSIONS[-1]:
            raise refuse(f"{name}: not supported in API version {version}")
        if traits.sampling == "none":
            raise refuse(f"`{name}` is not supported for this model.")
    if traits.sampling == "one" and "temperature" in given and "top_p" in given:
        raise refuse(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        )
    for name in ("temperature", "top_p"):
        if name in given and not 0 <= body[name] <= 1:
            raise refuse(f"{name}: range: 0..1")


def _check_thinking(body: Json, traits: ModelTraits) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    if not isinstance(thinking, dict):
        raise refuse("thinking: Input should be an object")
    match thinking.get("type"):
        case "disabled":
            return
        case "enabled":
            _check_budget(thinking, body, traits)
        case "adaptive":
            if traits.thinking not in ("adaptive", "both"):
                raise refuse("adaptive thinking is not supported on this model")
        case other:
            raise refuse(
                f"thinking: Input tag '{other}' found using 'type' does not match any of the expected "
                "tags: 'adaptive', 'disabled', 'enabled'"
            )
    if body.get("temperature") not in (None, 1):
        raise refuse("`temperature` may only be set to 1 when thinking is enabled.")
    if body.get("top_k") is not None:
        raise refuse("`top_k` must be unset when thinking is enabled.")
    if body.get("top_p") is not None and body["top_p"] < _MIN_TOP_P:
        raise refuse(
            "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."
        )
    if as_object(body.get("tool_choice")).get("type") in ("any", "tool"):
        raise refuse("Thinking may not be enabled when tool_choice forces tool use.")


def _check_budget(thinking: Json, body: Json, traits: ModelTraits) -> None:
    if traits.thinking not in ("budget", "both"):
        raise refuse(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.'
        )
    budget = thinking.get("budget_tokens")
    if budget is None:
        raise required("thinking.enabled.budget_tokens")
    if not is_whole_number(budget) or budget < _MIN_BUDGET:
        raise refuse(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        )
    if "max_tokens" in body and budget >= body["max_tokens"]:
        raise refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _check_stops(body: Json) -> None:
    stops = body.get("stop_sequences")
    if stops is None:
        return
    if not isinstance(stops, list):
        raise refuse("stop_sequences: Input should be a valid list")
    for index, stop in enumerate(stops):
        if not isinstance(stop, str):
            raise refuse(f"stop_sequences.{index}: Input should be a valid string")
        if not stop.strip():
            raise refuse("stop_sequences: each stop sequence must contain non-whitespace")


def _check_marks(body: Json) -> None:
    """At most four cache marks; a longer one never after a shorter one, in the order tools, system, messages."""
    marks = [mark for mark in _marks_in_order(body) if mark is not None]
    if len(marks) > _MAX_MARKS:
        raise refuse(
            f"A maximum of {_MAX_MARKS} blocks with cache_control may be provided. Found {len(marks)}."
        )
    seen_short = False
    for mark in marks:
        if not isinstance(mark, dict) or mark.get("type") != "ephemeral":
            raise refuse(f"cache_control.type: Input should be 'ephemeral', got {compact(mark)}")
        ttl = mark.get("ttl") or "5m"
        if ttl not in ("5m", "1h"):
            raise refuse("cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
        if ttl == "1h" and seen_short:
            raise refuse(
                "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, "
                "`system`, `messages`."
            )
        seen_short = seen_short or ttl == "5m"


def _marks_in_order(body: Json) -> list[object]:
    blocks = [*as_list(body.get("tools")), *as_list(body.get("system"))]
    for message in as_list(body.get("messages")):
        for block in as_list(as_object(message).get("content")):
            # Blocks inside a tool result come before the mark on the result itself.
            blocks += [*as_list(as_object(block).get("content")), block]
    marks = [as_object(block).get("cache_control") for block in blocks]
    return [*marks, body.get("cache_control")]
