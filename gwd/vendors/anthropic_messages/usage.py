"""Usage of an answer as the vendor reports it, in pieces, to disjoint classes.

`message_start` states the input, `message_delta` the output, cumulative; some servers repeat both. Every field takes
the largest value seen; nothing is added up.
"""

from typing import Any, Final

from gwd.core.usage import Usage, from_exclusive
from gwd.vendors.anthropic_messages.wire import UsageWire

_OWN_FIELDS: Final = ("server_tool_use", "service_tier", "inference_geo", "speed")


class UsageTracker:
    """Collects what was reported; `usage()` is the sum of it so far."""

    def __init__(self) -> None:
        self._counts: dict[str, Any] = {}
        self.own: dict[str, Any] = {}

    def add(self, wire: UsageWire | None, *, final: bool) -> None:
        """`final` False: the output count of an answer that has only begun is a placeholder and does not count."""
        if wire is None:
            return
        creation = wire.cache_creation if isinstance(wire.cache_creation, dict) else {}
        details = wire.output_tokens_details
        details = details if isinstance(details, dict) else {}
        self._take("input", wire.input_tokens)
        self._take("read", wire.cache_read_input_tokens)
        self._take("written", wire.cache_creation_input_tokens)
        self._take("written_5m", creation.get("ephemeral_5m_input_tokens"))
        self._take("written_1h", creation.get("ephemeral_1h_input_tokens"))
        self._take("reasoning", details.get("thinking_tokens"))
        if final:
            self._take("output", wire.output_tokens)
        for name in _OWN_FIELDS:
            value = getattr(wire, name)
            if value is not None:
                self.own[name] = value

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
        total = counts.get("written", 0)
        if not all(type(count) is int and count >= 0 for count in (total, written_5m, written_1h)):
            return None
        # Writes the vendor did not split by time to live are short-lived ones.
        written_5m += max(0, total - written_5m - written_1h)
        return from_exclusive(
            input_=counts.get("input"),
            output=counts.get("output"),
            cache_read=counts.get("read"),
            cache_write_5m=written_5m,
            cache_write_1h=written_1h,
            reasoning=counts.get("reasoning"),
        )

    def _take(self, name: str, value: Any) -> None:
        if value is None:
            return
        held = self._counts.get(name)
        if type(value) is int and type(held) is int:
            value = max(held, value)
        self._counts[name] = value
