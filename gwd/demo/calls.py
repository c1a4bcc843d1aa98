"""The record of what a caller sent, for tests to look at."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from gwd.demo.behaviour import HONEST, Behaviour
from gwd.demo.wire import Json


@dataclass
class Call:
    """One request as it arrived, and what became of it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case; a header sent twice is joined with a comma."""

    raw: bytes
    body: Json | None
    """The JSON body, or None where there was none (or none that is an object)."""

    model: str = ""
    status: int | None = None
    """Status of the answer; None while there is none, and after a cut before the headers."""

    behaviour: Behaviour = HONEST
    closed_early: bool = False
    """The caller closed the connection before the answer was complete."""

    finished: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the vendor has nothing more to do with this call."""


class Calls(list[Call]):
    """All calls in order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self._arrived = asyncio.Condition()

    @property
    def last(self) -> Call:
        return self[-1]

    def of(self, model: str) -> list[Call]:
        return [call for call in self if call.model == model]

    def on(self, path: str) -> list[Call]:
        return [call for call in self if call.path == path]

    async def add(self, call: Call) -> None:
        async with self._arrived:
            self.append(call)
            self._arrived.notify_all()

    async def wait_for(self, count: int, *, timeout_s: float = 5.0) -> Call:
        """Until that many calls have arrived; gives the last of them. Raises TimeoutError."""
        await self._wait(lambda: len(self) >= count, timeout_s)
        return self[count - 1]

    async def all_finished(self, *, timeout_s: float = 5.0) -> None:
        """Until no call is under way. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            for call in tuple(self):
                await call.finished.wait()

    async def _wait(self, reached: Callable[[], bool], timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s), self._arrived:
            await self._arrived.wait_for(reached)
