"""Usage of an answer as the vendor reports it, in pieces, to disjoint classes.

`message_start` states the input, `message_delta` the output, cumulative; some servers repeat both. Every field takes
the largest value seen; nothing is added up. An object with a count that cannot be believed says nothing at all, and
takes nothing back of what was said before.
"""

from typing import Any, Final

import msgspec

from gwd.core.extras import Given, given_words, said
from gwd.core.usage import Usage, from_exclusive, is_count
from gwd.vendors.anthropic_messages.wire import UsageWire

_OWN_FIELDS: Final = ("server_tool_use", "service_tier", "inference_geo", "speed")


class UsageTracker:
    """Collects what was reported; `usage()` is the sum of it so far."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._searches: int | None = None
        self.own: dict[str, Any] = {}

    def add(self, wire: UsageWire | None, *, final: bool) -> None:
        """`final` False: the output count of an answer that has only begun is a placeholder and does not count."""
        if wire is None:
            return
        creation = wire.cache_creation if isinstance(wire.cache_creation, dict) else {}
        details = wire.output_tokens_details
        details = details if isinstance(details, dict) else {}
        said = {
            "input": wire.input_tokens,
            "read": wire.cache_read_input_tokens,
            "written": wire.cache_creation_input_tokens,
            "written_5m": creation.get("ephemeral_5m_input_tokens"),
            "written_1h": creation.get("ephemeral_1h_input_tokens"),
            "reasoning": details.get("thinking_tokens"),
            "output": wire.output_tokens if final else None,
        }
        said = {name: value for name, value in said.items() if value is not None}
        if all(is_count(value) for value in said.values()):
            for name, value in said.items():
                self._counts[name] = max(value, self._counts.get(name, 0))
        for name in _OWN_FIELDS:
            value = getattr(wire, name)
            if value is not None:
                self.own[name] = value
        tools = wire.server_tool_use
        if final and isinstance(tools, dict) and is_count(tools.get("web_search_requests")):
            self._searches = tools["web_search_requests"]

    def given(self, *, searches_begun: int) -> Given | None:
        """What the vendor says of the priced extras; of an answer that broke off, the searches that were seen."""
        searches = searches_begun if self._searches is None else self._searches
        return said(given_words(self.own), searches)

    @property
    def is_whole(self) -> bool:
        """Whether both prompt and answer were counted: a count that is missing is not zero."""
        return {"input", "output"} <= self._counts.keys()

    def usage(self) -> Usage | None:
        """None while the prompt was not counted, and for counts that cannot be believed."""
        counts = self._counts
        if "input" not in counts:
            return None
        written_5m, written_1h = counts.get("written_5m", 0), counts.get("written_1h", 0)
        total = counts.get("written", written_5m + written_1h)
        # No part exceeds the whole; writes the vendor did not split by time to live are short-lived ones.
        cut_5m = min(written_5m, total)
        cut_1h = min(written_1h, total - cut_5m)
        usage = from_exclusive(
            input_=counts["input"],
            output=counts.get("output"),
            cache_read=counts.get("read"),
            cache_write_5m=total - cut_1h,
            cache_write_1h=cut_1h,
            reasoning=counts.get("reasoning"),
        )
        if usage is None or (cut_5m, cut_1h) == (written_5m, written_1h):
            return usage
        return msgspec.structs.replace(usage, clamped=True)
