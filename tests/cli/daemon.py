"""The real daemon as a process, and gwctl against it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cases.caserunner.ports import free_port
from tests.cli.conftest import ROOT


@dataclass
class Daemon:
    """A running node and a gwctl that talks to it with the operator's key."""

    url: str
    environment: dict[str, str]
    folder: Path

    def __call__(self, *words: str, code: int | None = 0, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "gwctl", *words],
            cwd=ROOT,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert code in (None, done.returncode), (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@contextmanager
def serving(folder: Path) -> Iterator[Daemon]:
    """A fresh node, served by a process of its own."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("GWCTL_", "GWD_"))}
    made = subprocess.run(
        [sys.executable, "-m", "gwd", "init", "--dir", str(folder / "node"), "--org", "Acme",
         "--email", "ada@example.com", "--credit", "100", "--json"],
        cwd=ROOT, env=kept, capture_output=True, text=True, check=True,
    )  # fmt: skip
    node = json.loads(made.stdout)
    port = free_port()
    log = (folder / "log").open("w")
    with log, subprocess.Popen(
        [sys.executable, "-m", "gwd", "serve", "--config", node["config"], "--port", str(port)],
        cwd=ROOT, env={**kept, "ACME_KEY": "sk-acme"}, stdout=log, stderr=log,
    ) as process:  # fmt: skip
        try:
            _wait(f"http://127.0.0.1:{port}/readyz", process)
            url = f"http://127.0.0.1:{port}/api/v1"
            mine = {"GWCTL_URL": url, "GWCTL_KEY": node["management_key"], "NO_COLOR": "1"}
            yield Daemon(url, {**kept, **mine, "XDG_CONFIG_HOME": str(folder)}, folder)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)


def _wait(address: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the daemon did not become ready")
