"""The commands of the node as a shell runs them: real processes with a closed standard input."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

ROOT = Path(__file__).parents[2]


class Ran(msgspec.Struct, frozen=True):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


Gwd = Callable[..., Ran]
Serve = Callable[..., AbstractContextManager[subprocess.Popen[str]]]


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


@pytest.fixture
def made(gwd: Gwd, tmp_path: Path) -> dict[str, str]:
    made: dict[str, str] = json.loads(gwd("init", "--dir", "node", "--credit", "5", "--json").out)
    return made


@pytest.fixture
def serve(made: dict[str, str]) -> Serve:
    @contextmanager
    def serve(port: int, scheme: str = "http", **environ: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "gwd", "serve", "--config", made["config"], "--port", str(port)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environ},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_until_healthy(process, f"{scheme}://127.0.0.1:{port}/healthz")
            yield process
        finally:
            process.kill()
            process.wait()
            assert process.stderr is not None
            process.stderr.close()

    return serve


def wait_until_healthy(process: subprocess.Popen[str], url: str) -> None:
    for _ in range(200):
        assert process.poll() is None
        try:
            if httpx.get(url, verify=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail("the daemon did not become healthy in ten seconds")
