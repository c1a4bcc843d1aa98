"""The commands of the node as a shell runs them: real processes with a closed standard input."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[2]


class Ran(msgspec.Struct, frozen=True):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


Gwd = Callable[..., Ran]


@pytest.fixture
def gwd(tmp_path: Path) -> Gwd:
    """Run `gwd ARGUMENTS…` in an empty directory, with nothing of the caller's environment but the path."""

    def run(*arguments: str, environ: dict[str, str] | None = None, timeout_s: float = 60) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "gwd", *arguments],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run
