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
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["test"], *extras["otel"]]
    wrong = [
        text
        for text in wanted
        for requirement in [Requirement(text)]
        if tested.get(canonicalize_name(requirement.name), "0") not in requirement.specifier
    ]
    assert wrong == []


def test_what_the_extra_brings_is_there_for_the_tests() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(extras["otel"]) <= set(extras["test"])


def test_the_library_of_commands_stays_below_the_version_that_tripled_their_cost() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (typer,) = [r for r in map(Requirement, project["dependencies"]) if r.name == "typer"]
    assert not typer.specifier.contains("0.29.0")


def test_the_checks_install_the_tested_versions() -> None:
    assert "-c constraints.txt '.[test]'" in (ROOT / ".ci" / "run").read_text()
