"""Progress on stderr while the gateway works: on a terminal, after half a second."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

DELAY_S = 0.5
_shown = threading.Lock()
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Progress(Protocol):
    """What a caller may report while it waits."""

    def reached(self, done: int, total: int | None) -> None: ...


class _Silent:
    def reached(self, done: int, total: int | None) -> None:
        return None


class _Spinner:
    """A thread that redraws one line until it is told to stop."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label = label
        self.stream = stream
        self.suffix = ""
        self.stopped = threading.Event()
        self.drawn = 0
        self.thread = threading.Thread(target=self._run, daemon=True)

    def reached(self, done: int, total: int | None) -> None:
        if total:
            filled = min(20, done * 20 // total)
            self.suffix = f" {'█' * filled}{'░' * (20 - filled)} {done:,} of {total:,}"
        else:
            self.suffix = f" {done:,}"

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()
        if self.drawn:
            self.stream.write("\r" + " " * self.drawn + "\r")
            self.stream.flush()

    def _run(self) -> None:
        if self.stopped.wait(DELAY_S):
            return
        turn = 0
        while True:
            line = f"{_FRAMES[turn % len(_FRAMES)]} {self.label}{self.suffix}"
            self.stream.write("\r" + line.ljust(self.drawn))
            self.stream.flush()
            self.drawn = max(self.drawn, len(line))
            turn += 1
            if self.stopped.wait(0.1):
                return


@contextmanager
def waiting(label: str, *, show: bool = True, stream: TextIO | None = None) -> Iterator[Progress]:
    """Show a spinner, or a bar once a total is known, around a slow step."""
    target = stream or sys.stderr
    # A step inside a step leaves the line to the outer one.
    if not show or _shown.locked() or not target.isatty():
        yield _Silent()
        return
    with _shown:
        spinner = _Spinner(label, target)
        spinner.thread.start()
        try:
            yield spinner
        finally:
            spinner.stop()
