"""What an OpenAI-format answer says of the priced extras: the tier that served, and the searches its server ran."""

from typing import Final

from gwd.core.extras import Given
from gwd.core.usage import count_of

# Perplexity's count stands beside the tokens; OpenRouter's stands where Anthropic's does.
_COUNTS: Final = ("num_search_queries", "web_search_requests")


def given_of(before: Given | None, tier: object, usage: object) -> Given | None:
    """What is known when a chunk has said this; the last word of each counts."""
    word = tier.lower() if isinstance(tier, str) and tier else None
    searches = None if usage is None else _searches(usage)
    if word is None and searches is None:
        return before
    known = before or Given()
    return Given(
        values=known.values if word is None else {"service_tier": word},
        searches=known.searches if searches is None else searches,
    )


def _searches(usage: object) -> int | None:
    if not isinstance(usage, dict):
        return None
    tools = usage.get("server_tool_use")
    for counts in (usage, tools) if isinstance(tools, dict) else (usage,):
        for name in _COUNTS:
            if name in counts and (number := count_of(counts[name])) is not None:
                return number
    return None
