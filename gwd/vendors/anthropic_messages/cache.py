"""Cache marks within the vendor's rules: at most four, and no one-hour mark behind a five-minute one.

The marks that `auto_cache` sets for clients that set none. What they rest on, read on 2026-11-29 at
https://platform.claude.com/docs/en/build-with-claude/prompt-caching: a prefix (tools, system, messages, in this order)
is written to the cache up to each mark, and read where it was written before; from each mark the vendor looks back over
at most 20 blocks for what was written. A write costs 1.25 times the price of a token, a read a tenth. A prefix that is
too short (512 to 4,096 tokens, by model) is not cached and nothing is refused, so that no model's minimum is kept here.
Refused is a mark on a thinking block, on an empty text, and on a tool with `defer_loading`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

MAX_MARKS: Final = 4
MARKED_TURNS: Final = 2
_TAKES_MARK: Final = frozenset(("text", "image", "document", "tool_result"))


def mark_prefixes(
    tools: Sequence[dict[str, Any]],
    system: Sequence[dict[str, Any]],
    questions: Sequence[Sequence[dict[str, Any]]],
) -> None:
    """Mark what the next request will begin with; blocks are changed in place.

    The last tool and the last block of the system text, which other conversations begin with too; and the ends of
    `questions`, the contents of the user's last two turns: the last is where this request ends, which is written for
    the next; the one before is where the last request ended, so that what it wrote is found however many blocks lie
    between.
    """
    for blocks in (tools, system, *questions):
        last = next((block for block in reversed(blocks) if _takes_mark(block)), None)
        if last is not None:
            last["cache_control"] = {"type": "ephemeral"}


def _takes_mark(block: dict[str, Any]) -> bool:
    kind = block.get("type")
    if kind == "text":
        return bool(str(block.get("text", "")).strip())
    if "input_schema" in block:  # a tool of the client's
        return not block.get("defer_loading")
    return kind in _TAKES_MARK


def limit_marks(blocks: Iterable[dict[str, Any]]) -> bool:
    """Keep the last four marks in prompt order; blocks are changed in place. Whether there was any.

    A one-hour mark behind a five-minute one is refused by the vendor; it lives five minutes then, which never costs
    more than the client asked for.
    """
    marked = [block for block in blocks if isinstance(block.get("cache_control"), dict)]
    for block in marked[: max(len(marked) - MAX_MARKS, 0)]:
        del block["cache_control"]
    short_seen = False
    for block in marked:
        control = block.get("cache_control")
        if control is None:
            continue
        if control.get("ttl", "5m") != "1h":
            short_seen = True
        elif short_seen:
            block["cache_control"] = {k: v for k, v in control.items() if k != "ttl"}
    return bool(marked)


def with_nested(blocks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Blocks in prompt order; what stands inside a tool result comes before the result's own mark."""
    for block in blocks:
        inner = block.get("content")
        if block.get("type") == "tool_result" and isinstance(inner, list):
            yield from (item for item in inner if isinstance(item, dict))
        yield block
