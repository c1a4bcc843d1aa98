"""A real daemon that tells how long its loop was held up: `python -m tests.lag.measured_node CONFIG PORT`.

It answers each line on stdin with one on stdout: the most processor time, in seconds, that passed since the line before
between two moments at which the loop was free, and how many frames of the paced stream went out meanwhile. Processor
time, not the clock's: a busy machine makes everybody wait.
"""

import asyncio
import sys
from pathlib import Path
from time import process_time
from typing import Any

from gwd import settings
from gwd.node.serve import serve
from gwd.pipeline.client.frame_queue import FrameQueue
from gwd.wiring import RunningNode

TICK = b"tick"
PROBE_S = 0.005


class _Gaps:
    """Between the moments at which the loop is seen to be free."""

    def __init__(self) -> None:
        self._last_s = process_time()
        self._longest_s = 0.0
        self._frames = 0

    def see(self) -> None:
        now_s = process_time()
        self._longest_s = max(self._longest_s, now_s - self._last_s)
        self._last_s = now_s

    def see_frames(self, frames: bytes) -> None:
        if TICK in frames[:1_000]:
            self.see()
            self._frames += 1

    def reported(self) -> str:
        self.see()
        reported = f"{self._longest_s:.4f} {self._frames}"
        self._longest_s, self._frames = 0.0, 0
        return reported


def main() -> int:
    """Serve, and answer on stdout."""
    gaps = _Gaps()
    push, start = FrameQueue.push, RunningNode._start

    def watched(frame_queue: FrameQueue, frames: bytes) -> None:
        gaps.see_frames(frames)
        push(frame_queue, frames)

    async def started(node: RunningNode) -> None:
        loop = asyncio.get_running_loop()

        def probe() -> None:
            gaps.see()
            loop.call_later(PROBE_S, probe)

        await start(node)
        loop.add_reader(sys.stdin, lambda: _answer(gaps))
        probe()

    setattr(FrameQueue, "push", watched)  # noqa: B010 - a method in a method's place
    setattr(RunningNode, "_start", started)  # noqa: B010
    config, port = Path(sys.argv[1]), int(sys.argv[2])
    environment: dict[str, str] = {}
    return serve(settings.load(config, environment, "127.0.0.1", port), environment)


def _answer(gaps: _Gaps) -> None:
    line: Any = sys.stdin.readline()
    if not line:
        asyncio.get_running_loop().remove_reader(sys.stdin)
        return
    sys.stdout.write(gaps.reported() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
