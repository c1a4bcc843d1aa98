"""`gwd` and `gwctl` forked from a process that has imported everything: still processes of their own.

Importing is most of what a command costs and of what a daemon's start costs, and the tests run thousands.
"""

import ctypes
import gc
import importlib
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.spawn
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop
from sanic.touchup.service import TouchUp

from tests.cases.caserunner.ports import free_port
from tests.support.quick import be_quick

PROJECT = Path(__file__).resolve().parents[2]
NOTHING = Path(os.devnull)
COMMAND_LIMIT_S = 120
PROGRAMS = {"gwd": "gwd.__main__:main", "gwctl": "gwctl.app:main"}
CLOCK = "WARM_CLOCK"
"""Names a file in the environment: by how many seconds the wall clock is ahead, read at every look."""
_PR_SET_PDEATHSIG = 1

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])


def _without_main(name: str) -> dict[str, Any]:
    """A fork has no use for the program that runs the tests; it would import it."""
    data = _preparation_data(name)
    return {k: v for k, v in data.items() if not k.startswith("init_main")}


_preparation_data = multiprocessing.spawn.get_preparation_data
multiprocessing.spawn.get_preparation_data = _without_main


class WarmProcess:
    """A running command, with what tests need of a `Popen`.

    `program` is one of PROGRAMS, or a function of the project as `module:name`.
    """

    def __init__(
        self,
        program: str,
        words: list[str],
        environment: Mapping[str, str],
        *,
        out: Path,
        err: Path,
        stdin: Path = NOTHING,
        folder: Path = PROJECT,
    ) -> None:
        files = (str(stdin), str(out), str(err))
        given = (program, words, dict(environment), files, str(folder))
        self._process = _context.Process(target=_run, args=given, daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid
        self.err = err

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """How it ended."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("gwd", timeout or 0)
        return code

    def processor_s(self) -> float:
        """The processor time that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def end(self, limit_s: float = 20) -> int:
        """Ask it to end; end it when it does not, and whatever it started. How it ended."""
        self.terminate()
        try:
            self.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self.wait()


def run(
    program: str,
    words: list[str],
    environment: Mapping[str, str],
    *,
    stdin: str = "",
    folder: Path = PROJECT,
    limit_s: float = COMMAND_LIMIT_S,
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    with tempfile.TemporaryDirectory(prefix="warm-") as place:
        given, out, err = Path(place, "in"), Path(place, "out"), Path(place, "err")
        given.write_text(stdin, "utf-8")
        process = WarmProcess(
            program, words, environment, out=out, err=err, stdin=given, folder=folder
        )
        try:
            code = process.wait(limit_s)
        finally:
            if process.returncode is None:
                process.end(0)
        return subprocess.CompletedProcess(
            [program, *words], code, out.read_text("utf-8"), err.read_text("utf-8")
        )


def _run(
    program: str,
    words: list[str],
    environment: dict[str, str],
    files: tuple[str, str, str],
    folder: str,
) -> None:
    _die_with_the_tests()
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    if CLOCK in os.environ:
        _set_clock(Path(os.environ.pop(CLOCK)))
    os.chdir(folder)
    tempfile.tempdir = None  # it is found anew
    for number, file in enumerate(files):
        opened = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOCTTY, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    # What the streams know of their files, they learned when they were made.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", 1 if os.isatty(1) else -1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = [program, *words]
    module, _, name = PROGRAMS.get(program, program).partition(":")
    sys.exit(getattr(importlib.import_module(module), name)())


def _set_clock(file: Path) -> None:
    """Every way in which Python code asks for the time of day; the monotonic clock runs on."""
    time_ns, localtime, gmtime = time.time_ns, time.localtime, time.gmtime

    def set_ns() -> int:
        return time_ns() + int(float(file.read_text()) * 1e9)

    time.time_ns = set_ns
    time.time = lambda: set_ns() / 1e9
    time.localtime = lambda at_s=None: localtime(time.time() if at_s is None else at_s)
    time.gmtime = lambda at_s=None: gmtime(time.time() if at_s is None else at_s)


def _die_with_the_tests() -> None:
    """Whatever becomes of the tests' process: the one that forks ends with it, and its forks with that one."""
    server: Any = multiprocessing.forkserver._forkserver
    os.close(server._forkserver_alive_fd)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _import_all(package: str) -> None:
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if module.name != "gwctl.__main__":  # that one runs when it is imported
            importlib.import_module(module.name)


def _rehearse() -> None:
    """Serve once: the routes are compiled now, and the framework has written its own functions anew."""
    from gwd import settings
    from gwd.core.clock import SystemClock
    from gwd.management.setup import NewNode
    from gwd.node.init import initialize
    from gwd.wiring import RunningNode

    async def serve(directory: Path) -> None:
        initialize(directory, NewNode(organization="Rehearsal"), SystemClock())
        read = settings.load(directory / "gwd.toml", {}, "127.0.0.1", free_port())
        async with RunningNode(read, {}, alone=True):
            pass

    with tempfile.TemporaryDirectory(prefix="warm-") as place:
        uvloop.run(serve(Path(place, "node")))
    assert threading.active_count() == 1, threading.enumerate()
    TouchUp.run = classmethod(lambda cls, app: None)  # type: ignore[method-assign, assignment]


if multiprocessing.current_process().name == "MainProcess" and "pytest" not in sys.modules:
    be_quick()
    for _package in ("gwd", "gwctl"):
        _import_all(_package)
    _rehearse()
    gc.collect()
    gc.freeze()  # a fork that looks for garbage would copy every page it looks at
