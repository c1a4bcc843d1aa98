"""What the line of a request needs of the node, and how it begins its answer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from gwd.core.counters import Counters
from gwd.core.errors import GatewayError
from gwd.core.node_clock import NodeClock
from gwd.pipeline.beside import Beside
from gwd.pipeline.dispatch import Dispatcher
from gwd.pipeline.routing import Planned
from gwd.pipeline.state import PlanningState
from gwd.store import Store

if TYPE_CHECKING:
    from gwd.pipeline.inference import Generation


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer begins: an error, a whole body, or (both None) a stream in the outlet.

    `served` is the target that serves or is being tried; None when routing chose none.
    """

    served: Planned | None
    body: bytes | None = None
    error: GatewayError | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What the line needs; one for the node. `spawn` starts a supervised task.

    `in_quarantine` tells that the ledger was found not to add up: then no vendor is called any more.
    """

    store: Store
    state: PlanningState
    dispatcher: Dispatcher
    clock: NodeClock
    boot_id: str
    in_flight_cap: int
    app_url: str
    spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
    counters: Counters
    beside: Beside
    live: dict[str, "Generation"]
    in_quarantine: Callable[[], bool]
