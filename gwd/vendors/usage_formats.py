"""How each format writes a usage report: its fields in common words, and its customs."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from gwd.core.usage import MAX_COUNT, Usage, count_of

Json = dict[str, Any]


class Said(NamedTuple):
    """One report in common words; what it leaves out is None.

    Of the prompt: `count`, `cached`, `written` (with its parts `written_5m` and `written_1h`), and `tools`, what the
    vendor's own tools put in. Of the answer: `count` and `reasoning`.
    """

    prompt: Mapping[str, object]
    answer: Mapping[str, object]
    total: object = None


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """How one format reports: `beside` are the details that stand outside their count by custom.

    `plain` reads what nearly every whole report is, in one step and to the same end; None for all others.
    `leaves_out_zeros`: an answer without a count is what the total leaves for it. `own` names fields of the usage
    object that are no token counts; they are kept as they come.
    """

    read: Callable[[Json], Said]
    plain: Callable[[Json], Usage | None] | None = None
    beside: frozenset[str] = frozenset()
    leaves_out_zeros: bool = False
    own: tuple[str, ...] = ()


def _openai(reported: Json) -> Said:
    """Chat completions and responses, with the spellings of their relatives."""
    inside = _details(reported, "prompt_tokens_details", "input_tokens_details")
    made = _details(reported, "completion_tokens_details", "output_tokens_details")
    creation = _details(reported, "cache_creation")
    hit, miss = reported.get("prompt_cache_hit_tokens"), reported.get("prompt_cache_miss_tokens")
    prompt = {
        "count": _first(reported.get("prompt_tokens"), reported.get("input_tokens")),
        "cached": _first(
            inside.get("cached_tokens"),
            hit,
            reported.get("cached_tokens"),
            reported.get("cache_read_input_tokens"),
        ),
        "written": _first(
            inside.get("cache_write_tokens"),
            inside.get("cache_creation_tokens"),
            inside.get("cached_creation_tokens"),
            inside.get("cache_creation_input_tokens"),
            reported.get("cache_creation_input_tokens"),
        ),
        "written_5m": creation.get("ephemeral_5m_input_tokens"),
        "written_1h": creation.get("ephemeral_1h_input_tokens"),
    }
    if prompt["count"] is None and miss is not None:
        parts = (count_of(miss), count_of(hit or 0))
        prompt["count"] = miss if None in parts else sum(part or 0 for part in parts)
    answer = {
        "count": _first(reported.get("completion_tokens"), reported.get("output_tokens")),
        "reasoning": _first(made.get("reasoning_tokens"), reported.get("reasoning_tokens")),
    }
    return Said(prompt, answer, reported.get("total_tokens"))


# What a report may hold besides the usual names that would have a say in its meaning.
_RARE: Final = frozenset(
    (
        *("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"),
        *("cached_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
        *("cache_creation", "prompt_cache_hit_tokens", "prompt_cache_miss_tokens"),
        "reasoning_tokens",
    )
)
_RARE_INSIDE: Final = frozenset(
    (
        *("cache_write_tokens", "cache_creation_tokens", "cached_creation_tokens"),
        "cache_creation_input_tokens",
    )
)
_NO_DETAILS: Final[Json] = {}


def _plain_openai(reported: Json) -> Usage | None:
    """Counts under the usual names that add up, each detail inside its count."""
    prompt, answer = reported.get("prompt_tokens"), reported.get("completion_tokens")
    inside = reported.get("prompt_tokens_details")
    if inside is None:
        inside = _NO_DETAILS
    made = reported.get("completion_tokens_details")
    if made is None:
        made = _NO_DETAILS
    if not (
        type(prompt) is int
        and type(answer) is int
        and type(inside) is dict
        and type(made) is dict
        and _RARE.isdisjoint(reported)
        and _RARE_INSIDE.isdisjoint(inside)
    ):
        return None
    cached, reasoning = inside.get("cached_tokens"), made.get("reasoning_tokens")
    if cached is None:
        cached = 0
    if reasoning is None:
        reasoning = 0
    if not (
        type(cached) is int
        and type(reasoning) is int
        and 0 <= cached <= prompt
        and 0 <= reasoning <= answer
        and reported.get("total_tokens") == prompt + answer <= MAX_COUNT
    ):
        return None
    return Usage(
        input=prompt - cached, cache_read=cached, output=answer - reasoning, reasoning=reasoning
    )


def _anthropic(reported: Json) -> Said:
    creation = _details(reported, "cache_creation")
    prompt = {
        "count": reported.get("input_tokens"),
        "cached": reported.get("cache_read_input_tokens"),
        "written": reported.get("cache_creation_input_tokens"),
        "written_5m": creation.get("ephemeral_5m_input_tokens"),
        "written_1h": creation.get("ephemeral_1h_input_tokens"),
    }
    answer = {
        "count": reported.get("output_tokens"),
        "reasoning": _details(reported, "output_tokens_details").get("thinking_tokens"),
    }
    return Said(prompt, answer, reported.get("total_tokens"))


def _gemini(reported: Json) -> Said:
    prompt = {
        "count": reported.get("promptTokenCount"),
        "cached": reported.get("cachedContentTokenCount"),
        "tools": reported.get("toolUsePromptTokenCount"),
    }
    answer = {
        "count": reported.get("candidatesTokenCount"),
        "reasoning": reported.get("thoughtsTokenCount"),
    }
    return Said(prompt, answer, reported.get("totalTokenCount"))


def _embeddings(reported: Json) -> Said:
    """Vectors cost their prompt only; some servers give just the total."""
    names = ("prompt_tokens", "input_tokens", "promptTokenCount", "total_tokens", "totalTokenCount")
    count = _first(*map(reported.get, names))
    return Said({"count": count}, {"count": None if count is None else 0})


def _details(reported: Json, *names: str) -> Json:
    """The first of these objects that is there."""
    for name in names:
        found = reported.get(name)
        if isinstance(found, dict):
            return found
    return {}


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)


OPENAI: Final = Format(read=_openai, plain=_plain_openai)
ANTHROPIC: Final = Format(
    read=_anthropic,
    beside=frozenset({"cached", "written"}),
    own=("server_tool_use", "service_tier", "inference_geo", "speed"),
)
GEMINI: Final = Format(
    read=_gemini, beside=frozenset({"tools", "reasoning"}), leaves_out_zeros=True
)
EMBEDDINGS: Final = Format(read=_embeddings)
