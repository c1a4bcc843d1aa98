"""Fixtures of the command line's tests: a gateway to talk to and a way to run gwctl."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gwctl.app import main
from tests.cli.gateway import KEY, FakeGateway

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Result:
    code: int
    out: str
    err: str

    def __iter__(self) -> Iterator[Any]:
        return iter((self.code, self.out, self.err))


Run = Callable[..., Result]


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    fake = FakeGateway()
    fake.start()
    yield fake
    fake.stop()
    if fake.faults:
        pytest.fail("not as the API is written:\n" + "\n".join(fake.faults), pytrace=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home: no profile, no variables of whoever runs the tests."""
    for name in [
        n for n in os.environ if n.startswith(("GWCTL_", "NO_COLOR", "CLICOLOR")) or n == "CI"
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PAGER", "cat")
    return tmp_path


@pytest.fixture
def run(
    gateway: FakeGateway,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run gwctl in this process against the gateway, without a terminal."""
    monkeypatch.setenv("GWCTL_URL", gateway.url)
    monkeypatch.setenv("GWCTL_KEY", KEY)

    def call(*words: str, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = main(list(words))
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture
def shell(gateway: FakeGateway, home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command with gwctl as a program on the PATH."""
    folder = home / "bin"
    folder.mkdir()
    program = folder / "gwctl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gwctl "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GWCTL_URL": gateway.url,
        "GWCTL_KEY": KEY,
    }

    def call(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            env={**environment, **more},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
            cwd=home,
        )

    return call
