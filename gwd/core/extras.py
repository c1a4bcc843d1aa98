"""Priced extras: what a request may ask for that makes the vendor's call dearer than its tokens at the list price.

A tier, a speed or a region multiplies the price of the tokens; a search that the vendor runs is billed by the piece.
Each is sent on only where the endpoint has a price for it, and is billed by what the vendor says it gave.

Where the vendors say so, read 2026-11-28 (fields from the official SDKs openai 3.57.0 and anthropic 2.14.0):

  OpenAI      `service_tier` of the answer is the tier that served, which may be another one than was asked for; a
              request for `fast` is answered as `priority`. A search is an item `web_search_call` whose action is
              `search` (opening a page is free); `tool_usage.web_search.num_requests` counts the billable ones
  Anthropic   `usage.service_tier`, `usage.speed`, `usage.inference_geo`, `usage.server_tool_use.web_search_requests`
              (platform.claude.com/docs/en/build-with-claude/fast-mode, /api/service-tiers); these factors stack, and
              apply to input, output and cache alike. Fetching a page and searching among tools costs tokens only
  relatives   OpenRouter counts searches as Anthropic does, Perplexity in `usage.num_search_queries`
"""

import re
from typing import Any, Final

import msgspec

from gwd.core.money import MILLIONTHS
from gwd.core.request import Family, Generate, Part, Request, TextPart
from gwd.core.vendor_format import VendorFormat

ONE: Final = MILLIONTHS
"""A factor of 1: factors are whole millionths."""
ANY: Final = "*"
"""In a price: every value of a field that has no price of its own."""
TOOLS: Final = "tools"
"""The field of a price that names kinds of tools the vendor runs, web search aside."""
FIELDS: Final = ("service_tier", "speed", "inference_geo", "container", "mcp_servers", TOOLS)
"""What a price may hold factors for; the first three are words, a container and MCP servers have no value to name."""
AT_LIST_PRICE: Final[dict[str, frozenset[str]]] = {
    "service_tier": frozenset(("auto", "default", "standard", "standard_only")),
    "speed": frozenset(("standard",)),
    "inference_geo": frozenset(("global", "not_available")),
}
"""Values that cost what the tokens cost; the last is the answer of models that know no regions."""
SEARCH_FIELDS: Final = ("web_search_options", "search_parameters", "enable_search", "web_search")
"""Fields by which servers of OpenAI's formats are told to search the web."""
SEARCH: Final = "web_search"
SEARCHES: Final = 10
"""How many searches a request may lead to where its client sets no bound; where the format has one, it is sent."""

_DATED: Final = re.compile(r"_\d{8}$|_\d{4}_\d{2}_\d{2}$")
# Tools of Anthropic's making that the client runs itself, or that only look among the request's own tools.
_OF_THE_CLIENT: Final = re.compile(
    r"bash|text_editor|computer|computer_toolset|browser_toolset|memory|tool_search\w*"
)
_INLINE: Final = "inline-tools"
_SEARCHES: Final = frozenset(("web_search_preview", "google_search", "google_search_retrieval"))


class Given(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a vendor says it gave: its word per field, and how many searches it ran (None: it speaks of none)."""

    values: dict[str, str] = {}
    searches: int | None = None


class Sold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which of a request's priced extras an endpoint is sent.

    `values` are the fields that are sent on, `tools` the types of tools the vendor is to run, `searches` the most
    searches that may be billed. `refused` names what is left out for want of a price, `refused_tools` the tools among
    it by their type.
    """

    values: dict[str, str] = {}
    tools: tuple[str, ...] = ()
    searches: int = 0
    refused: tuple[str, ...] = ()
    refused_tools: tuple[str, ...] = ()


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """A value that multiplies the price of all tokens, by so many millionths."""

    value: str
    millionths: int


class Applied(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a bill adds to the list price: a factor per field, and searches."""

    factors: dict[str, Factor] = {}
    searches: int = 0


def tool_kind(type_: str) -> str:
    """The kind of a tool the vendor runs, without the date of its version (`web_search_20250305`: web_search)."""
    kind = _DATED.sub("", type_)
    return SEARCH if kind in _SEARCHES else kind


def is_free(kind: str) -> bool:
    """Whether a tool of the vendor's making costs nothing beside its tokens."""
    return kind == "web_fetch" or _OF_THE_CLIENT.fullmatch(kind) is not None


def fills_prompt(sold: Sold) -> bool:
    """Whether the vendor runs tools whose results it counts as prompt, so that only the context bounds it."""
    if not (sold.values or sold.tools or sold.searches):  # nearly always
        return False
    runs = (_OF_THE_CLIENT.fullmatch(tool_kind(type_)) is None for type_ in sold.tools)
    return bool(sold.searches) or "mcp_servers" in sold.values or any(runs)


def is_hosted(tool: dict[str, Any]) -> bool:
    """Whether an entry of a messages client's tools is of the vendor's making."""
    return tool.get("type") not in (None, "custom", "function")


def hosted_tools(request: Request) -> list[dict[str, Any]]:
    """The tools of the vendor's making that a request names, in the form of its client's dialect."""
    found = list(request.hosted_tools)
    if request.family == "anthropic_messages":
        listed = (request.extras or {}).get(TOOLS)
        found += filter(is_hosted, listed if isinstance(listed, list) else ())
        if isinstance(request.body, Generate) and defines_inline(request):
            parts = (part for message in request.body.messages for part in message.parts)
            found += (tool for part in parts if (tool := inline_tool(part)) is not None)
    return found


def defines_inline(request: Request) -> bool:
    """Whether a messages client may define tools inside its messages: only its vendor's beta allows that."""
    return _INLINE in request.vendor_headers.get("anthropic-beta", "")


def inline_tool(part: Part) -> dict[str, Any] | None:
    """The tool of the vendor's making that a part of a message defines, if it defines one."""
    block = part.extras if isinstance(part, TextPart) else None
    if not block or block.get("type") != "tool_addition":
        return None
    change = block.get("tool")
    tool = change.get("definition") if isinstance(change, dict) else None
    return tool if isinstance(tool, dict) and is_hosted(tool) else None


def carries(format_: VendorFormat, family: Family, field: str) -> bool:
    """Whether a vendor format has a place for a field of a client's family."""
    return format_.family == family or (field == "service_tier" and family in format_.tiers_of)


def given_words(reported: object, fields: tuple[str, ...] = FIELDS[:3]) -> dict[str, str]:
    """The words of an object for tier, speed and region; what is no word says nothing."""
    if not isinstance(reported, dict):
        return {}
    return {
        name: value.lower()
        for name in fields
        if isinstance(value := reported.get(name), str) and value
    }


def said(values: dict[str, str], searches: int) -> Given | None:
    """What a format that counts its searches has said; None while that is nothing."""
    return Given(values=values, searches=searches or None) if values or searches else None
