"""constraints.txt holds the tested versions: one for each dependency, inside the range that pyproject.toml allows."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def test_every_dependency_has_a_tested_version_in_its_range() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    wrong = [
        text
        for text in wanted
        for requirement in [Requirement(text)]
        if tested.get(canonicalize_name(requirement.name), "0") not in requirement.specifier
    ]
    assert wrong == []


def test_the_library_of_commands_stays_below_the_version_that_tripled_their_cost() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (typer,) = [r for r in map(Requirement, project["dependencies"]) if r.name == "typer"]
    assert not typer.specifier.contains("0.29.0")


def test_the_checks_install_the_tested_versions() -> None:
    assert "-c constraints.txt '.[test]'" in (ROOT / ".ci" / "run").read_text()
