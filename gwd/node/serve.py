"""`gwd serve`: the process around a running node: its signals, its log, its memory."""

import asyncio
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import uvloop

from gwd.settings import Settings
from gwd.wiring import RunningNode

OPEN_FILES: Final = 65_536

LOGGED_IDS: Final = ("generation_id", "request_id")

log = logging.getLogger("gwd")


def serve(settings: Settings, environment: Mapping[str, str]) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    configure_logging(settings.logging.level)
    _raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, environment))


def obey_signals(running: RunningNode) -> None:
    """SIGTERM and SIGINT end the node, also while it starts; SIGHUP has it look again at what it read from files."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.end)
    loop.add_signal_handler(signal.SIGHUP, running.reload)


class _LogLine(logging.Formatter):
    """Behind the message stand the ids of the request it is about, as they are in the client's headers."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        line = super().formatMessage(record)
        ids = [f"{name}={record.__dict__[name]}" for name in LOGGED_IDS if name in record.__dict__]
        return " ".join([line, *ids])


def configure_logging(level: str) -> None:
    """One line an event on stderr. `level` is gwd's own: a library that tells more could tell a secret."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("gwd").setLevel(level.upper())


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
