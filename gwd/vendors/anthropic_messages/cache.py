"""Cache marks within the vendor's rules: at most four, and no one-hour mark behind a five-minute one."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

MAX_MARKS: Final = 4


def limit_marks(blocks: Iterable[dict[str, Any]]) -> None:
    """Keep the last four marks in prompt order; blocks are changed in place.

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


def with_nested(blocks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Blocks in prompt order; what stands inside a tool result comes before the result's own mark."""
    for block in blocks:
        inner = block.get("content")
        if block.get("type") == "tool_result" and isinstance(inner, list):
            yield from (item for item in inner if isinstance(item, dict))
        yield block
