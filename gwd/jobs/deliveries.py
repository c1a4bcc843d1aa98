"""Deliveries by the clock: every addressee that something waits for is told, one message at a time, beside the others.

A slow or dead receiver holds up nobody else. People are told many alerts of a kind together: the first at once, what
follows within a minute as one message.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any, Final

from gwd.alerts import queue
from gwd.alerts.queue import Message
from gwd.channels import ChannelSender
from gwd.core.clock import Clock
from gwd.store import Store

DELIVERIES_S: Final = 1.0
AT_ONCE: Final = 256
TOGETHER_S: Final = 60.0
PACE_S: Final = 0.05
EXPIRE_S: Final = 60.0

log = logging.getLogger(__name__)


class DeliveryJob:
    """One for the node; `spawn` supervises the task of an addressee."""

    def __init__(
        self,
        store: Store,
        sender: ChannelSender,
        clock: Clock,
        *,
        app_url: str,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._store = store
        self._sender = sender
        self._clock = clock
        self._app_url = app_url
        self._spawn = spawn
        self._rng = random.Random()  # noqa: S311 - jitter, not a secret
        self._busy: set[str] = set()
        self._told: dict[tuple[str, str], float] = {}
        self._expires_s = 0.0

    async def run(self) -> None:
        """Close what is too old, then begin to serve every addressee that is not served already."""
        now_us, now_s = self._clock.now_us(), self._clock.monotonic_s()
        if now_s >= self._expires_s:
            self._expires_s = now_s + EXPIRE_S
            while await self._store.write(queue.expire, now_us=now_us) == queue.EXPIRED_AT_ONCE:
                pass
        self._told = {key: at_s for key, at_s in self._told.items() if at_s > now_s - TOGETHER_S}
        found = await self._store.read(queue.due, now_us=now_us)
        self._rng.shuffle(
            found
        )  # where there are more than can be served at once, each has its turn
        for addressee in found:
            if len(self._busy) >= AT_ONCE:
                return
            if addressee not in self._busy:
                self._busy.add(addressee)
                self._spawn(self._serve(addressee))

    async def _serve(self, addressee: str) -> None:
        """Tell one addressee everything that waits for it, until an attempt fails."""
        try:
            while (message := await self._next(addressee)) is not None:
                if not await self._attempt(message):
                    return
                await asyncio.sleep(PACE_S)
        finally:
            self._busy.discard(addressee)

    async def _next(self, addressee: str) -> Message | None:
        now_s = self._clock.monotonic_s()
        held = [
            type_
            for (to, type_), at_s in self._told.items()
            if to == addressee and at_s > now_s - TOGETHER_S
        ]
        return await self._store.read(
            queue.next_message, addressee, held=held, now_us=self._clock.now_us()
        )

    async def _attempt(self, message: Message) -> bool:
        """Whether it arrived."""
        outcome = await self._sender.send(message)
        await self._store.write(
            queue.note,
            message,
            outcome,
            jitter=self._rng.uniform(-1, 1),
            app_url=self._app_url,
            now_us=self._clock.now_us(),
        )
        to = message.addressee
        if outcome.error is not None:
            log.warning(
                "a delivery to %s failed: %s", to.destination_id or "a person", outcome.error
            )
            return False
        if to.kind != "webhook":
            self._told[to.destination_id or to.address, message.type] = self._clock.monotonic_s()
        return True
