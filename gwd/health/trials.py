"""Trials: at what rests, one call at a time finds out whether it serves again, and the others wait for that.

A trial is held under keys: the pair of an endpoint and a credential, and the credential alone, whichever of them rest.
Whoever waits is woken when a trial ends: all when the rest is over, else the first, whose turn it is. Nobody who waits
holds anything, so whoever leaves while waiting leaves nothing behind. Used from the event loop only.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

Key = tuple[str, str]
"""An endpoint's id and a credential's; the first is empty for the credential alone."""


class Trials:
    """Who holds which trial, and who waits for its end. `holder` is anything that is its call's alone."""

    def __init__(self) -> None:
        self._held: dict[Key, object] = {}
        self._waiting: dict[Key, dict[asyncio.Future[None], None]] = {}

    @property
    def are_any(self) -> bool:
        """Whether any call is on trial."""
        return bool(self._held)

    def is_any_held(self, *keys: Key) -> bool:
        """Whether a call is on trial under one of the keys."""
        return any(key in self._held for key in keys)

    def take(self, keys: Iterable[Key], holder: object) -> None:
        """The trial is this holder's from now on, whoever had it."""
        for key in keys:
            self._held[key] = holder

    def release(self, keys: Iterable[Key], holder: object, *, is_over: bool) -> None:
        """The holder's call has shown what it could; `is_over` says that nothing rests under the keys any more."""
        for key in keys:
            if self._held.get(key) is not holder:
                continue  # somebody who had waited too long has taken it
            del self._held[key]
            for waiter in self._waiting.get(key, ()):
                if not waiter.done():
                    waiter.set_result(None)
                    if not is_over:
                        break

    async def wait(self, keys: Iterable[Key], limit_s: float) -> None:
        """Until a trial under one of the keys has ended, or the time (seconds) is over."""
        waiter = asyncio.get_running_loop().create_future()
        keys = tuple(keys)
        for key in keys:
            self._waiting.setdefault(key, {})[waiter] = None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await waiter
        finally:
            for key in keys:
                queue = self._waiting[key]
                del queue[waiter]
                if not queue:
                    del self._waiting[key]
