"""examples/install.sh with a systemctl that starts and stops the real daemon: install, update, back, remove."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cases.caserunner.ports import free_port

ROOT = Path(__file__).parents[2]
SOURCE = (
    "pyproject.toml",
    "constraints.txt",
    "README.md",
    "LICENSE",
    "gwd",
    "gwctl",
    "docs",
    "examples",
)
MIGRATION = '''"""What the next version adds."""


def up(connection):
    connection.execute("CREATE TABLE coming (id TEXT PRIMARY KEY) STRICT")
'''
SYSTEMCTL = """#!/bin/sh
echo "$*" >>{place}/systemctl.log
case "$*" in
    "start gwd")
        [ ! -e {place}/pid ] || exit 0
        if [ -e {place}/fails-once ]; then rm {place}/fails-once; exit 1; fi
        {place}/root/opt/gwd/bin/gwd serve --config {place}/root/var/lib/gwd --port {port} >{place}/log 2>&1 &
        echo $! >{place}/pid
        for _ in $(seq 300); do
            {python} -c 'import urllib.request as r; r.urlopen("http://127.0.0.1:{port}/readyz")' 2>/dev/null && exit 0
            kill -0 $(cat {place}/pid) 2>/dev/null || {{ rm {place}/pid; exit 1; }}
            sleep 0.1
        done
        exit 1 ;;
    "stop gwd" | "disable --now gwd")
        [ -e {place}/pid ] || exit 0
        kill $(cat {place}/pid); while kill -0 $(cat {place}/pid) 2>/dev/null; do sleep 0.05; done
        rm {place}/pid ;;
esac
"""


class Machine:
    """A machine below a folder: its systemctl, its copy of the source, and what the script said last."""

    def __init__(self, place: Path) -> None:
        self.place, self.root, self.source = place, place / "root", place / "source"
        self.port = free_port()
        (place / "bin").mkdir()
        systemctl = place / "bin" / "systemctl"
        systemctl.write_text(SYSTEMCTL.format(place=place, port=self.port, python=sys.executable))
        systemctl.chmod(0o755)
        self.source.mkdir()
        for name in SOURCE:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.source / name)

    def install(self, *options: str, wanted: int = 0) -> str:
        done = subprocess.run(
            [
                *(self.source / "examples" / "install.sh", "--root", self.root, "--user", "root"),
                *("--python", sys.executable, *options),
            ],
            check=False,
            env={
                **os.environ,
                "PIP_NO_COMPILE": "1",
                "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}",
            },
            text=True,
            capture_output=True,
            timeout=280,
        )
        assert done.returncode == wanted, done.stdout + done.stderr
        return done.stdout + done.stderr

    @property
    def release(self) -> str:
        return (self.root / "opt" / "gwd").resolve().name

    @property
    def is_ready(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def content(self) -> list[str]:
        """All files but programs, and the reserve that a node makes a second after its start."""
        found = (str(path) for path in self.root.rglob("*") if path.suffix != ".ballast")
        return sorted(path for path in found if "/bin/" not in path)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    if (tmp_path / "pid").exists():
        subprocess.run([tmp_path / "bin" / "systemctl", "stop", "gwd"], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="the script is for root")
def test_a_node_is_installed_updated_taken_back_and_removed(machine: Machine) -> None:
    missing = machine.install(wanted=2)
    assert "needs --org and --email" in missing
    new_node = ("--org", "Acme", "--email", "ops@acme.example", "--credit", "5")
    assert "would" not in machine.install(*new_node)
    first = machine.release
    assert machine.is_ready
    ring = machine.root / "etc" / "gwd" / "keyring.json"
    assert ring.stat().st_mode & 0o777 == 0o600
    assert not (machine.root / "var" / "lib" / "gwd" / "keyring.json").exists()

    before = machine.content()
    assert "installed already" in machine.install()
    assert (machine.release, machine.content()) == (first, before)

    migrations = machine.source / "gwd" / "store" / "migrations"
    (migrations / "9001_what_comes.py").write_text(MIGRATION)
    machine.install("--dry-run")
    assert (machine.release, machine.content()) == (first, before)
    (machine.place / "fails-once").touch()
    assert "does not start" in machine.install(wanted=1)
    assert machine.release == first
    assert machine.is_ready

    machine.install()
    second = machine.release
    assert second != first
    assert machine.is_ready
    assert "--yes puts" in machine.install("--rollback", wanted=1)
    assert machine.release == second
    assert machine.is_ready
    machine.install("--rollback", "--yes")
    assert machine.release == first
    assert machine.is_ready

    assert "add --yes" in machine.install("--uninstall", "--purge", wanted=1)
    machine.install("--uninstall")
    assert not machine.is_ready
    assert ring.exists()
    machine.install("--uninstall", "--purge", "--yes")
    assert not (machine.root / "var" / "lib" / "gwd").exists()
    assert not ring.exists()


def test_the_script_is_without_findings() -> None:
    tool = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run(
        [tool, ROOT / "examples" / "install.sh", ROOT / ".ci" / "run"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
