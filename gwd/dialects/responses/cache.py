"""Prompt-cache marks: this format's own breakpoint, or the mark of the other dialects."""

from typing import Any

from gwd.core.errors import InvalidValue
from gwd.core.request import CacheTtl


def cache_of(path: str, marked: dict[str, Any]) -> CacheTtl | None:
    """The mark on a piece of content or on a tool. Raises InvalidValue for one that cannot be read."""
    mark = marked.get("cache_control")
    if mark is None:
        return "5m" if marked.get("prompt_cache_breakpoint") else None
    ttl = mark.get("ttl", "5m") if isinstance(mark, dict) else None
    if ttl not in ("5m", "1h"):
        raise InvalidValue(
            f'`{path}.cache_control` must be {{"type": "ephemeral"}} with ttl 5m or 1h',
            param=f"{path}.cache_control",
        )
    return "1h" if ttl == "1h" else "5m"
