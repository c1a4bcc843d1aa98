"""`gwd serve`: the process around a running node: its signals, its log, its memory."""

import asyncio
import gc
import logging
import os
import resource
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import uvloop

from gwd.node import log as log_lines
from gwd.settings import Settings
from gwd.wiring import RunningNode

OPEN_FILES: Final = 65_536

log = logging.getLogger("gwd")


def serve(settings: Settings, environment: Mapping[str, str]) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    log_lines.configure(settings.logging.level, settings.logging.format)
    _raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, environment))


def obey_signals(running: RunningNode) -> None:
    """SIGTERM and SIGINT end the node, also while it starts; SIGHUP has it look again at what it read from files."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.end)
    loop.add_signal_handler(signal.SIGHUP, running.reload)


async def _serve(settings: Settings, environment: Mapping[str, str]) -> int:
    running = RunningNode(settings, environment, alone=True)
    obey_signals(running)
    async with running:
        _settle_memory()
        log.info("gwd serves %s (pid %d)", settings.server.base_url, os.getpid())
        await running.ended()
    return 1 if running.failure is not None else 0


def _raise_file_limit() -> None:
    """A shell's default of 1,024 open files is less than the connections this node may hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # a service manager may forbid it, and has set its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _settle_memory() -> None:
    """Freeze the objects of start-up, so that the garbage collector skips them, and have it run less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
