"""What is installed with the product: its own code, and the libraries that it imports, no more and no fewer."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGES = ("gwd", "gwctl")
EXTRA = "gwd/telemetry"
FOR_TESTS = frozenset(("tests", "tools", "pytest", "_pytest", "hypothesis", "unittest", "doctest"))


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def imported(source: str) -> Iterator[str]:
    """The first part of every name that is imported, wherever in the file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def homes_of(paths: list[Path]) -> list[set[str]]:
    """For each library that these files import, the distributions that bring it."""
    used = {name for path in paths for name in imported(path.read_text("utf-8"))}
    homes = packages_distributions()
    foreign = used - sys.stdlib_module_names - set(PACKAGES)
    return [{name_of(home) for home in homes.get(name, [f"no home: {name}"])} for name in foreign]


def test_every_dependency_is_imported_and_every_import_is_a_dependency():
    needed = homes_of([path for path in sources() if not path.is_relative_to(ROOT / EXTRA)])
    assert set().union(*needed) == {name_of(requirement) for requirement in PROJECT["dependencies"]}


def test_what_a_room_needs_beside_them_is_its_extra():
    extra = {name_of(one) for one in PROJECT["optional-dependencies"]["otel"]}
    # Many distributions share the first part of a name.
    needed = homes_of(sorted((ROOT / EXTRA).rglob("*.py")))
    assert all(homes & extra for homes in needed)
    assert extra - set().union(*needed) == set()


def test_no_library_is_pinned_that_nothing_needs():
    """Each line of constraints.txt is wanted by the product or its tests, by itself or below another."""
    from importlib.metadata import PackageNotFoundError, requires

    wanted: set[str] = set()
    waiting = [name_of(one) for one in PROJECT["dependencies"]]
    waiting += [name_of(one) for one in PROJECT["optional-dependencies"]["test"]]
    while waiting:
        name = waiting.pop()
        if name in wanted:
            continue
        wanted.add(name)
        try:
            below = requires(name) or []
        except PackageNotFoundError:
            continue
        waiting += [name_of(one) for one in below if "extra ==" not in one]
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {name_of(line) for line in lines if line and not line.startswith("#")}
    assert pinned - wanted == set()


def test_the_wheel_holds_the_product_and_no_test_code(tmp_path: Path):
    pytest.importorskip(
        "hatchling", reason="the wheel is built with hatchling, of the extra `test`"
    )
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = [name for name in opened.namelist() if name.endswith(".py")]
        texts = {name: opened.read(name).decode() for name in names}
    assert sorted(names) == sorted(path.relative_to(ROOT).as_posix() for path in sources())
    assert [name for name in names if re.search(r"(^|/)(test_|conftest|tests/)", name)] == []
    wrong = {name: FOR_TESTS & set(imported(text)) for name, text in texts.items()}
    assert {name: found for name, found in wrong.items() if found} == {}
