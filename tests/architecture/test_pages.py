"""Pages are fresh, their commands and flags exist, their links lead somewhere; what they are made of is complete."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gwctl.session import COMMON_HELP
from gwd.core.errors import GatewayError
from tools.pages import commands
from tools.pages.errors import classes, codes

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "tests").rglob("*.md"),
    ]
)
COMMANDS = {
    command.path: command
    for command in (
        *commands.gwd(),
        *(c for section in commands.gwctl() for noun in section.nouns for c in noun.commands),
    )
}
EVERYWHERE = {*re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", COMMON_HELP), "-h", "--help", "--version"}
FENCE = re.compile(r"^```(\w*)$(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = ("", "sh", "bash", "console")
INLINE = re.compile(r"`((?:gwctl|gwd) [^`]+)`")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_generated_page_is_fresh():
    """In a process of its own: what other tests have put in the place of code is on no page."""
    made = subprocess.run(
        [sys.executable, "-m", "tools.pages", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stdout + made.stderr == ""
    assert made.returncode == 0


def test_every_command_of_every_page_exists_with_its_flags():
    wrong = []
    for path, text in texts():
        blocks = [
            block.replace("\\\n", " ") for kind, block in FENCE.findall(text) if kind in SHELL
        ]
        lines = [line for block in blocks for line in block.splitlines()]
        for line in [*lines, *INLINE.findall(text)]:
            wrong += [(name(path), line, why) for why in faults(line)]
    assert wrong == []


def texts() -> Iterator[tuple[Path, str]]:
    for path in PAGES:
        yield path, path.read_text("utf-8")


def faults(line: str) -> Iterator[str]:
    """What is wrong with the command lines of gwd and gwctl inside a line of shell."""
    for part in re.split(r"\$\(|\)|\||&&|;|>", line):
        words = started(part)
        if not words:
            continue
        path = next((p for p in beginnings(words) if p in COMMANDS), None)
        if path is None:
            if len(words) > 1 and re.fullmatch(r"[a-z][a-z-]*", words[1]) and not is_noun(words):
                yield f"no command {' '.join(words[:3])}"
            continue
        own = {option for word in COMMANDS[path].options for option in word.names}
        rest = words[len(path.split()) :]
        given = rest[: rest.index("--")] if "--" in rest else rest
        for word in given:
            option = word.partition("=")[0]
            if option == "-":
                continue  # standard input
            if option.startswith("-") and option not in own and option not in EVERYWHERE:
                yield f"{path} has no {option}"


def started(part: str) -> list[str]:
    """The words of a program of ours that this starts; a user or a unit of that name is none."""
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        words = part.split()
    while words:
        word = words.pop(0)
        program = word.rpartition("/")[2]
        if program in ("gwd", "gwctl"):
            return [program, *words]
        if word == "-u":
            words = words[1:]
        elif word not in ("sudo", "nohup", "exec", "$") and not re.match(r"[A-Z_]+=", word):
            return []
    return []


def beginnings(words: list[str]) -> list[str]:
    return [" ".join(words[:count]) for count in (4, 3, 2)]


def is_noun(words: list[str]) -> bool:
    return any(path.startswith(f"{' '.join(words[:2])} ") for path in COMMANDS) and len(words) == 2


def test_wrong_commands_would_be_found():
    assert list(faults("KEY=$(gwctl key create ci --limt 5 -q)")) == [
        "gwctl key create has no --limt"
    ]
    assert list(faults("sudo -u gwd /opt/gwd/bin/gwd inti --dir x")) == [
        "no command gwd inti --dir"
    ]
    assert list(faults("sudo systemctl reload gwd")) == []
    assert list(faults("gwctl key frobnicate ci")) == ["no command gwctl key frobnicate"]


def test_every_link_leads_to_a_file_and_a_heading():
    wrong = []
    for path, text in texts():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            file, _, anchor = target.partition("#")
            place = (path.parent / file).resolve() if file else path
            is_there = place.exists() and (not anchor or anchor in anchors(place))
            if "://" not in target and not is_there:
                wrong.append((name(path), target))
    assert wrong == []


def anchors(path: Path) -> set[str]:
    """The anchors that a code host gives to headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


def test_no_page_names_a_registry_of_packages():
    hosts = r"pypi\.org|pythonhosted|npmjs|registry\.|crates\.io|proxy\.golang|conda\.io"
    found = [
        (name(path), host) for path, text in texts() for host in re.findall(hosts, text.lower())
    ]
    assert found == []


def test_every_error_says_its_cause_and_its_remedy():
    """A class with a code of its own says a remedy of its own; nobody is told that of another code."""
    silent = [
        kind.__name__
        for kind in classes()
        if not vars(kind).get("__doc__") or ("code" in vars(kind) and kind.code not in said())
    ]
    assert silent == []


def said() -> set[str]:
    return {code for code, _, kind in codes() if vars(kind).get("remedy")}


def test_every_code_of_an_error_is_on_the_page():
    """Also those of refusals that a room defines for itself: they may say more, but under a known code."""

    def all_below(kind: type[GatewayError]) -> Iterator[type[GatewayError]]:
        for child in kind.__subclasses__():
            yield child
            yield from all_below(child)

    known = {code for code, _, _ in codes()}
    assert {kind.code for kind in all_below(GatewayError)} <= known
    written = {
        match
        for path in (ROOT / "gwd").rglob("*.py")
        for match in re.findall(r"\.code = \"(\w+)\"|\"code\":\"(\w+)\"", path.read_text("utf-8"))
    }
    assert {code for pair in written for code in pair if code} <= known | {"invalid_value"}


def test_the_man_pages_are_installed_and_can_be_shown():
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared == {"docs/man": "share/man/man1"}
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    for path in (ROOT / "docs" / "man").glob("*.1"):
        done = subprocess.run(
            [groff, "-man", "-ww", "-Tutf8", str(path)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), path.name


def test_the_picture_is_whole_small_and_loads_nothing():
    picture = ROOT / "docs" / "session.svg"
    text = picture.read_text("utf-8")
    ElementTree.fromstring(text)
    assert len(text) < 60_000
    assert not re.findall(r"@import|@font-face|url\(http|href=|<image|<script", text)
    assert not re.findall(r"gw[im]_\w{40,}", text)


def test_every_place_that_contributing_names_exists():
    """Also those that are only written as code; capitals stand for a name to choose."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`((?:gwd|gwctl|tests|tools|docs|examples)/[\w./-]+)`", text)
    fixed = [re.sub(r"/[A-Z]+$", "", place) for place in named]
    assert len(fixed) > 10
    assert [place for place in fixed if not (ROOT / place).exists()] == []
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([\w-]+)", text)) <= targets


def test_contributing_names_every_file_that_a_field_of_a_key_touches():
    """Shown by a field that decides nothing: where it stands is where the next one will have to stand."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    part = text.split("## Add a field on a key", 1)[1].split("\n## ", 1)[0]
    places = [
        ROOT / "gwd" / "keys",
        ROOT / "gwctl",
    ]
    touched = [
        name(path)
        for place in places
        for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))
        if "external_user" in path.read_text("utf-8")
    ]
    # The activity of requests has a field of that name, too.
    touched = [path for path in touched if path != "gwctl/usage_fold.py"]
    assert [path for path in touched if path not in part] == []
    assert len(touched) == 4  # beside the migration
