"""Long computations beside the event loop: what grows with a large body runs on a thread, and the streams go on.

Python code on another thread gives way every few milliseconds; nothing in these computations may be one long call.
Small bodies are dealt with in place: the way to a thread and back costs more than they do. What is done for every
request or every piece of a stream asks for the size itself (`LARGE_BYTES`) and comes here only with a large one.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from gwd.pricing.hold import LARGE_BYTES

THREADS: Final = 2

P = ParamSpec("P")
T = TypeVar("T")


class Offload:
    """One for the node. Its threads start when the first large body comes."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gwd-offload")

    async def run(
        self, size: int, function: Callable[P, T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """`function` with its arguments, on a thread if `size` bytes are many. Raises what it raises."""
        if size <= LARGE_BYTES:
            return function(*arguments, **named)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*arguments, **named))

    def close(self) -> None:
        """Stop the threads; what they still compute has no caller any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
