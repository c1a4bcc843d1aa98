"""The page of promises: each has a proof and teeth that exist, and every target that it names is in the Makefile."""

import re
from pathlib import Path

from tests.faults.broken import BREAKAGES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| P")
]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def exists(file: str, name: str) -> bool:
    path = ROOT / file
    return path.is_file() and f"def {name}(" in path.read_text("utf-8")


def test_all_promises_are_on_the_page_in_order() -> None:
    assert [row[0] for row in ROWS] == [f"P{number}" for number in range(1, 25)]
    assert {len(row) for row in ROWS} == {6}


def test_every_promise_has_a_proof_and_teeth_that_exist() -> None:
    wrong = []
    for number, _, proof, teeth, _, _ in ROWS:
        wrong += [
            f"{number}: no {file}::{name}"
            for file, name in TEST.findall(proof + teeth)
            if not exists(file, name)
        ]
        if not TEST.findall(proof):
            wrong.append(f"{number} has no proof")
        if not TEST.findall(teeth):
            wrong += [
                f"{number}: nothing is broken by {name!r}"
                for name in teeth.split("; ")
                if name not in BREAKAGES or BREAKAGES[name].promise != number
            ]
    assert wrong == []


def test_every_breakage_is_on_the_page() -> None:
    assert [name for name in BREAKAGES if name not in PAGE] == []


def test_every_long_form_is_a_target() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = re.findall(r"`make ([\w-]+)`", PAGE)
    assert [name for name in named if f"\n{name}:" not in makefile] == []
