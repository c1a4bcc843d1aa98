"""The machine under the bench: processes on their cores, what they used, whether anybody else is at work."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

WORK = Path(os.environ.get("GWBENCH_WORK") or Path(tempfile.gettempdir()) / "gwbench")
GATEWAY_CORE, LOAD_CORE = "0", "1"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CALM_CORES = 0.2
LOOK_S = 0.4


class Skip(Exception):
    """This peer cannot be measured here; the text says why."""


def log(*words: object) -> None:
    print("#", time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


def run(command: Sequence[str], log_name: str, *, cwd: Path | None = None) -> bool:
    """Whether a command of the set-up ended well; its output goes to a file of the work folder."""
    with (WORK / log_name).open("ab") as out:
        done = subprocess.run(command, stdout=out, stderr=out, cwd=cwd, check=False)
    return done.returncode == 0


def spawn(
    command: Sequence[str],
    core: str,
    log_name: str,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """A server on one core, in a session of its own."""
    with (WORK / log_name).open("wb") as out:
        return subprocess.Popen(
            ["taskset", "-c", core, *command],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
            cwd=cwd,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server and everything it started, by id; those that do not listen are killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            for pid in tree(process.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
            time.sleep(0.2)
            return


def tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def used(pid: int) -> tuple[float, float]:
    """CPU seconds used so far by a process tree, and its resident memory in MB."""
    stats = [fields for each in tree(pid) if (fields := _stat(each))]
    cpu_ticks = sum(int(fields[11]) + int(fields[12]) for fields in stats)
    pages = sum(int(fields[21]) for fields in stats)
    return cpu_ticks / TICKS, pages * PAGE_BYTES / 1e6


def busy_s() -> float:
    """CPU seconds that the whole machine has worked so far."""
    user, nice, system = Path("/proc/stat").read_text().split(maxsplit=4)[1:4]
    return (int(user) + int(nice) + int(system)) / TICKS


def wait_for_calm(limit_s: float) -> None:
    """Until nothing else uses more than a fifth of a core, at most so long."""
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        before_s = busy_s()
        time.sleep(LOOK_S)
        if (busy_s() - before_s) / LOOK_S < CALM_CORES:
            return


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name, empty if the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()
