"""The real daemon as a process, and gwctl against it."""

import json
import os
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cases.caserunner.ports import free_port
from tests.support import warm


@dataclass
class Daemon:
    """A running node and a gwctl that talks to it with the operator's key."""

    url: str
    environment: dict[str, str]
    folder: Path

    def __call__(self, *words: str, code: int | None = 0, **more: str) -> str:
        done = warm.run("gwctl", list(words), {**self.environment, **more})
        assert code in (None, done.returncode), (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@contextmanager
def serving(folder: Path, **environment: str) -> Iterator[Daemon]:
    """A fresh node, served by a process of its own, to which more of its environment can be given."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("GWCTL_", "GWD_"))}
    words = ["--dir", str(folder / "node"), "--org", "Acme", "--email", "ada@example.com"]
    made = warm.run("gwd", ["init", *words, "--credit", "100", "--json"], kept)
    assert made.returncode == 0, made.stderr
    node = json.loads(made.stdout)
    port, log = free_port(), folder / "log"
    words = ["serve", "--config", node["config"], "--port", str(port)]
    process = warm.WarmProcess(
        "gwd", words, {**kept, "ACME_KEY": "sk-acme", **environment}, out=log, err=log
    )
    try:
        _wait(f"http://127.0.0.1:{port}/readyz", process)
        url = f"http://127.0.0.1:{port}/api/v1"
        mine = {"GWCTL_URL": url, "GWCTL_KEY": node["management_key"], "NO_COLOR": "1"}
        yield Daemon(url, {**kept, **mine, "XDG_CONFIG_HOME": str(folder)}, folder)
    finally:
        process.end()


def _wait(address: str, process: warm.WarmProcess) -> None:
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the daemon did not become ready")
