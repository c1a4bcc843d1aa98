"""The container's files: linted, every path and setting in them is real, and what its last stage runs, runs.

No image is built: that needs a daemon. What a build would do is done without one as far as that goes.
"""

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from shutil import copy2, copytree
from typing import Any

import msgspec
import pytest
import yaml  # type: ignore[import-untyped]

from gwd import settings
from gwd.settings.sections import Timeouts
from tests.cases.caserunner.ports import free_port
from tests.commands.conftest import wait_until_healthy
from tests.support.quick import TRUST
from tests.support.warm import WarmProcess

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "container"
CONTAINERFILE = FOLDER / "Containerfile"
COMPOSE = FOLDER / "compose.yaml"
HOME = "/var/lib/gwd"
# What the composition of services may say, of the words of https://compose-spec.io that this one has use for.
SERVICE_WORDS = {
    *("image", "build", "ports", "environment", "volumes", "read_only", "tmpfs", "cap_drop", "security_opt"),
    *("init", "restart", "stop_grace_period", "mem_limit", "pids_limit", "ulimits"),
}  # fmt: skip


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, as (word, rest); continued lines are one."""
    text = re.sub(r"\\\n\s*", "", CONTAINERFILE.read_text("utf-8"))
    found: list[list[tuple[str, str]]] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def last(word: str) -> str:
    """What the last stage says with this word."""
    return next(rest for each, rest in reversed(stages()[-1]) if each == word)


def listed(text: str) -> list[str]:
    words: list[str] = msgspec.json.decode(text, type=list[str])
    return words


def service() -> dict[str, Any]:
    read = yaml.safe_load(COMPOSE.read_text("utf-8"))
    assert set(read) == {"name", "services", "volumes"}
    (name, only), *others = read["services"].items()
    assert (name, others) == ("gwd", [])
    return dict(only)


def environment() -> dict[str, str]:
    """What the image and the composition say together."""
    image = dict(re.findall(r"(\w+)=(\S+)", last("ENV")))
    return {**image, **service()["environment"]}


def test_the_linter_has_nothing_to_say() -> None:
    tool = Path(sys.executable).with_name("hadolint")
    if not tool.exists():
        pytest.skip("hadolint is of the extra `test`")
    done = subprocess.run(
        [tool, CONTAINERFILE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    wrong = CONTAINERFILE.read_text("utf-8").replace("3.11-slim-bookworm", "latest")
    done = subprocess.run(
        [tool, "-"], input=wrong, capture_output=True, text=True, timeout=60, check=False
    )
    assert "DL3007" in done.stdout  # it can see


def test_what_is_copied_is_what_a_wheel_is_made_of(tmp_path: Path) -> None:
    """The first stage without its network: the wheel of the copied files has everything that it installs."""
    source = tmp_path / "src"
    for word, rest in stages()[0]:
        if word != "COPY":
            continue
        *names, target = rest.split()
        for name in names:
            into = source / target
            if (ROOT / name).is_dir():
                copytree(ROOT / name, into, ignore=lambda *_: {"__pycache__"})
            else:
                into.mkdir(parents=True, exist_ok=True)
                copy2(ROOT / name, into / Path(name).name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "out"],
        cwd=source, capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    [wheel] = (tmp_path / "out").iterdir()
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("gwd/__main__.py", "gwd/pricing/__init__.py", "gwctl/catalog.toml"):
        assert wanted in names
    assert any(name.endswith("share/man/man1/gwd.1") for name in names)
    here = {
        path.relative_to(ROOT).as_posix()
        for package in ("gwd", "gwctl")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert here - set(names) == set()


def test_the_last_stage_is_nobody_s_root_and_has_no_source() -> None:
    last_stage = stages()[-1]
    copied = [rest for word, rest in last_stage if word in ("COPY", "ADD")]
    assert copied == ["--from=build /opt/gwd /opt/gwd"]
    identity = last("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", identity)
    made = last("RUN")
    user, group = identity.split(":")
    assert f"--uid {user}" in made
    assert f"--gid {group}" in made
    assert f"-m 0700 {HOME}" in made
    assert last("VOLUME") == last("WORKDIR") == HOME
    words = [word for word, _ in last_stage]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert words.index("RUN") < words.index("USER")


def test_the_composition_says_what_there_is() -> None:
    one = service()
    assert set(one) <= SERVICE_WORDS
    build = one["build"]
    assert (COMPOSE.parent / build["context"]).resolve() == ROOT
    assert ROOT / build["dockerfile"] == CONTAINERFILE
    assert one["volumes"] == [f"data:{HOME}"]
    assert (one["read_only"], one["cap_drop"]) == (True, ["ALL"])
    grace_s = int(one["stop_grace_period"].removesuffix("s"))
    assert grace_s > Timeouts().drain_s + 20  # the last settlements
    host, outside, inside = one["ports"][0].split(":")
    assert (host, outside, inside) == ("127.0.0.1", "8080", last("EXPOSE"))
    commands = re.findall(r"compose\.yaml run --rm gwd (.*)", COMPOSE.read_text("utf-8"))
    assert commands == [f"init --dir {HOME} --org Acme --credit 25"]


@pytest.fixture
def node(gwd: Any, tmp_path: Path) -> Path:
    """What the first command makes in the volume, which is there and empty."""
    folder = tmp_path / "volume"
    folder.mkdir(mode=0o700)
    done = gwd("init", "--dir", str(folder), "--org", "Acme", "--credit", "25")
    assert done.code == 0, done.err
    return folder


def test_every_setting_is_one_and_the_node_listens_for_its_port(node: Path) -> None:
    given = {name: value for name, value in environment().items() if name.startswith("GWD_")}
    read = settings.load(node / "gwd.toml", given)
    assert (read.server.host, read.server.port) == ("0.0.0.0", int(last("EXPOSE")))
    assert read.server.allow_plain_http
    assert read.server.base_url == f"http://127.0.0.1:{last('EXPOSE')}/api/v1"


def test_it_serves_is_healthy_and_ends_when_it_is_asked_to(node: Path, tmp_path: Path) -> None:
    port = free_port()
    program, *more = listed(last("ENTRYPOINT"))
    assert (program, more) == ("gwd", [])
    words = [word.replace(HOME, str(node)) for word in listed(last("CMD"))]
    given = {
        **environment(),
        **TRUST,
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GWD_SERVER_PORT": str(port),
        "GWD_SERVER_BASE_URL": "",
    }
    there = {path.name for path in tmp_path.iterdir()}
    log = tmp_path / "log"
    process = WarmProcess("gwd", words, given, out=log, err=log, folder=node)
    try:
        wait_until_healthy(process, f"http://127.0.0.1:{port}/healthz")
        assert looked_at(port) == 0
        process.send_signal(getattr(signal, last("STOPSIGNAL")))
        assert process.wait(timeout=30) == 0
        assert looked_at(port) != 0
    finally:
        process.kill()
        process.wait()
    assert {path.name for path in tmp_path.iterdir()} == {*there, "log"}


def looked_at(port: int) -> int:
    """How the health check ends, by the image's own command."""
    options, _, command = last("HEALTHCHECK").partition("CMD ")
    assert "--timeout=3s" in options
    words = [word.replace(f":{last('EXPOSE')}/", f":{port}/") for word in listed(command)]
    words[0] = sys.executable
    return subprocess.run(words, capture_output=True, timeout=60, check=False).returncode
