"""The commands of the node as a shell runs them: processes of their own, with nothing on their standard input."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.support import warm
from tests.support.quick import TRUST
from tests.support.warm import WarmProcess

ROOT = Path(__file__).parents[2]


class Ran(msgspec.Struct, frozen=True):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


Gwd = Callable[..., Ran]
Serve = Callable[..., AbstractContextManager[WarmProcess]]


@pytest.fixture
def gwd(tmp_path: Path) -> Gwd:
    """Run `gwd ARGUMENTS…` in an empty directory, with nothing of the caller's environment but the path."""

    def run(*arguments: str, environ: dict[str, str] | None = None, timeout_s: float = 60) -> Ran:
        given = {"PATH": os.environ["PATH"], **TRUST, **(environ or {})}
        done = warm.run("gwd", list(arguments), given, folder=tmp_path, limit_s=timeout_s)
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def made(gwd: Gwd, tmp_path: Path) -> dict[str, str]:
    made: dict[str, str] = json.loads(gwd("init", "--dir", "node", "--credit", "5", "--json").out)
    return made


@pytest.fixture
def serve(made: dict[str, str], tmp_path: Path) -> Serve:
    @contextmanager
    def serve(port: int, scheme: str = "http", **environ: str) -> Iterator[WarmProcess]:
        log = tmp_path / "log"
        words = ["serve", "--config", made["config"], "--port", str(port)]
        given = {"PATH": os.environ["PATH"], **TRUST, **environ}
        process = WarmProcess("gwd", words, given, out=log, err=log)
        try:
            wait_until_healthy(process, f"{scheme}://127.0.0.1:{port}/healthz")
            yield process
        finally:
            process.end(0)

    return serve


def wait_until_healthy(process: WarmProcess, url: str) -> None:
    for _ in range(200):
        assert process.poll() is None
        try:
            if httpx.get(url, verify=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail("the daemon did not become healthy in ten seconds")
