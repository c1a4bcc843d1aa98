"""A real daemon that can kill itself at a named point: `python -m tests.faults.killed_node CONFIG PORT [POINT COUNT]`.

The points are put in here, around the functions that pass them; the daemon's own code knows nothing of them.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gwd import ledger, settings
from gwd.node.serve import serve
from gwd.pipeline import inference
from gwd.pipeline.client.side import ClientSide
from gwd.pipeline.dispatch.dispatch import Dispatch
from gwd.pipeline.inference import Generation
from gwd.pipeline.settle import settle_wait
from gwd.pipeline.settle.settle_wait import SettleWait
from gwd.store import Store

POINTS = (
    "inside the hold's transaction",
    "after the hold's commit",
    "before dispatch",
    "at the first output",
    "after a checkpoint",
    "when the vendor has finished",
    "inside the settlement's transaction",
    "after the settlement's commit",
)
UNSETTLED = "never settles"
"""Not a point to die at: a daemon that tells its clients of settlements it has not made."""


class _Fuse:
    """Kills the process when it is reached for the n-th time."""

    def __init__(self, count: int) -> None:
        self._left = count

    def reach(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def lay(point: str, count: int) -> None:
    """Arrange that the process dies there."""
    reach = _Fuse(count).reach
    match point:
        case "inside the hold's transaction":
            after(inference, "admit", reach)
        case "after the hold's commit":
            _after_write(lambda fn: fn.__name__ == "admit", reach)
        case "before dispatch":
            _before(Dispatch, "run", reach)
        case "at the first output":
            _before(ClientSide, "begin", reach)
        case "after a checkpoint":
            _after_write(lambda fn: fn is ledger.checkpoint, reach)
        case "when the vendor has finished":
            _before(Generation, "_finish", reach)
        case "inside the settlement's transaction":
            after(settle_wait, "settle", reach)
        case "after the settlement's commit":
            _before(ClientSide, "close", reach)
        case "never settles":
            _never_settle()
        case _:
            raise SystemExit(f"no such point: {point}")


def _before(owner: Any, name: str, reach: Callable[[], None]) -> None:
    original = getattr(owner, name)

    def reached(*args: Any, **kwargs: Any) -> Any:
        reach()
        return original(*args, **kwargs)

    setattr(owner, name, reached)


def after(owner: Any, name: str, reach: Callable[[], None]) -> None:
    """Whenever the function has returned, `reach` is called."""
    original = getattr(owner, name)

    def reached(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        reach()
        return found

    reached.__name__ = original.__name__
    setattr(owner, name, reached)


def _after_write(chosen: Callable[[Any], bool], reach: Callable[[], None]) -> None:
    write = Store.write

    async def reached(store: Store, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        found = await write(store, fn, *args, **kwargs)
        if chosen(fn):
            reach()
        return found

    Store.write = reached  # type: ignore[method-assign]


def _never_settle() -> None:
    async def lie(self: SettleWait, limit_s: float) -> bool:
        return True

    SettleWait.settle = lie  # type: ignore[method-assign]


def main() -> int:
    config, port, *point = sys.argv[1:]
    if point:
        lay(point[0], int(point[1]))
    read = settings.load(Path(config), os.environ, "127.0.0.1", int(port))
    return serve(read, os.environ)


if __name__ == "__main__":
    raise SystemExit(main())
