"""Output items by id, held for an hour for each key, so that an item_reference can be resolved."""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final, Protocol

import msgspec

from gwd.core.clock import Clock
from gwd.core.errors import InvalidValue

HELD_S: Final = 3_600.0
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_ITEM_BYTES: Final = 1024 * 1024
MAX_RECALLED_BYTES: Final = 32 * 1024 * 1024


class ItemMemory(Protocol):
    """Where emitted items are kept between the requests of one key."""

    def remember(self, key_id: str, items: Mapping[str, bytes]) -> None:
        """Keep items, JSON by id, as the renderer emitted them."""
        ...

    def recall(self, key_id: str, item_id: str) -> bytes | None:
        """The item, if this key was sent it within the last hour and it is still held."""
        ...


class KeyItems:
    """The memory as one request of a key sees it."""

    def __init__(self, memory: ItemMemory, key_id: str) -> None:
        self._memory = memory
        self._key_id = key_id
        self._recalled = 0

    def remember(self, items: Mapping[str, bytes]) -> None:
        self._memory.remember(self._key_id, items)

    def recall(self, item_id: str) -> dict[str, Any] | None:
        """The item. Raises InvalidValue when those of one request are more than a request may hold."""
        item = self._memory.recall(self._key_id, item_id)
        if item is None:
            return None
        self._recalled += len(item)
        if self._recalled > MAX_RECALLED_BYTES:
            raise InvalidValue(
                "the items that `input` refers to are too large together; refer to fewer",
                param="input",
            )
        return msgspec.json.decode(item, type=dict[str, Any])


class _Held(msgspec.Struct, frozen=True):
    item: bytes
    until_s: float


class InMemoryItems:
    """Items of this process, oldest forgotten first. A restart forgets them all: references are then skipped.

    Large requests are parsed on another thread, so a lock stands around every look.
    """

    def __init__(self, clock: Clock, *, held_s: float = HELD_S, max_bytes: int = MAX_BYTES) -> None:
        self._clock = clock
        self._held_s = held_s
        self._max_bytes = max_bytes
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def remember(self, key_id: str, items: Mapping[str, bytes]) -> None:
        until_s = self._clock.monotonic_s() + self._held_s
        with self._lock:
            for item_id, item in items.items():
                if len(item) > MAX_ITEM_BYTES:
                    continue
                self._forget((key_id, item_id))
                self._held[key_id, item_id] = _Held(item, until_s)
                self._bytes += len(item)
            self._trim()

    def recall(self, key_id: str, item_id: str) -> bytes | None:
        with self._lock:
            held = self._held.get((key_id, item_id))
            if held is None:
                return None
            if held.until_s <= self._clock.monotonic_s():
                self._forget((key_id, item_id))
                return None
            return held.item

    def _trim(self) -> None:
        now_s = self._clock.monotonic_s()
        while self._held:
            oldest = next(iter(self._held))
            if self._bytes <= self._max_bytes and self._held[oldest].until_s > now_s:
                return
            self._forget(oldest)

    def _forget(self, key: tuple[str, str]) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= len(held.item)
