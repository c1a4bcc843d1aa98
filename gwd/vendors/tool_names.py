"""Tool names that a vendor accepts: a per-request bijection, and call ids within a vendor's alphabet and length."""

import hashlib
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

NAME_LENGTH: Final = 64


class NameRule(NamedTuple):
    """What a vendor takes as a tool's name: its length, what it must not hold, and what it must not begin with."""

    length: int = NAME_LENGTH
    forbidden: re.Pattern[str] = re.compile(r"[^a-zA-Z0-9_-]")
    bad_start: re.Pattern[str] | None = None


PLAIN_NAMES: Final = NameRule()
_NOT_ID: Final = re.compile(r"[^a-zA-Z0-9_-]")


class ToolNames:
    """Maps the client's tool names to upstream names and back.

    A name the vendor takes stays as it is; any other is cleaned, shortened with a hash, and made unique.
    """

    def __init__(self, names: Iterable[str], *, rule: NameRule = PLAIN_NAMES) -> None:
        wanted = list(dict.fromkeys(names))
        self._rule = rule
        self._upstream: dict[str, str] = {}
        self._client: dict[str, str] = {}
        if not wanted:
            return
        self._upstream = {name: name for name in wanted if self._fits(name)}
        taken = set(self._upstream.values())
        for name in wanted:
            if name not in self._upstream:
                renamed = self._rename(name, taken)
                self._upstream[name] = renamed
                taken.add(renamed)
        self._client = {upstream: name for name, upstream in self._upstream.items()}

    def upstream(self, name: str) -> str:
        """The name to send for a client's tool (history may name tools that are no longer offered)."""
        found = self._upstream.get(name)
        if found is not None:
            return found
        return name if self._fits(name) else self._rename(name, set(self._client))

    def client(self, name: str) -> str:
        """The client's own name for what the vendor called."""
        return self._client.get(name, name)

    def offers(self, name: str) -> bool:
        """Whether the vendor was offered a tool of this name."""
        return name in self._client

    def _fits(self, name: str) -> bool:
        rule = self._rule
        return 0 < len(name) <= rule.length and not (
            rule.forbidden.search(name) or (rule.bad_start and rule.bad_start.match(name))
        )

    def _rename(self, name: str, taken: set[str]) -> str:
        rule = self._rule
        clean = rule.forbidden.sub("_", name) or "tool"
        if rule.bad_start and rule.bad_start.match(clean):
            clean = f"_{clean}"
        if len(clean) <= rule.length and clean not in taken:
            return clean
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return f"{clean[: rule.length - 9]}_{digest}"


def call_id_for(call_id: str, *, length: int) -> str:
    """The id to send upstream for a client's tool call id; call and result map to the same one."""
    if 0 < len(call_id) <= length and not _NOT_ID.search(call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[: min(32, length - 5)]}"


class UniqueIds:
    """Ids of one request told apart: one that occurs again gets a number."""

    def __init__(self, *, length: int) -> None:
        self._length = length
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def add(self, call_id: str) -> str:
        """The id itself, or the next free one that begins like it."""
        unique, stem = call_id, call_id[: self._length - 6]
        count = self._counts.get(stem, 1)
        while unique in self._used:
            count += 1
            unique = f"{stem}_{count}"
        self._counts[stem] = count
        self._used.add(unique)
        return unique
