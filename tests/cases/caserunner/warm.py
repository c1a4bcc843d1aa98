"""`gwd serve` forked from a process that has imported everything: still a process, a file and a port of its own.

Importing is most of what a fresh daemon's start costs, and hundreds of cases start one each.
"""

import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import gwd.__main__ as commands
import gwd.wiring as _wiring  # the commands import it only when they run

assert _wiring
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])


class WarmProcess:
    """A running command of gwd, with what the runner needs of a process."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> None:
        self._process = _context.Process(
            target=_run, args=(arguments, dict(environment), str(log)), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    async def wait(self) -> int | None:
        await asyncio.to_thread(self._process.join)
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _run(arguments: list[str], environment: dict[str, str], log: str) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    with Path(log).open("ab") as written, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(written.fileno(), 1)
        os.dup2(written.fileno(), 2)
    sys.argv = ["gwd", *arguments]
    commands.main()
