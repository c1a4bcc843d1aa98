"""Comments and docstrings can be understood from the repository alone: they refer to nothing that is not in it."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("gwd", "gwctl", "tests", "tools", "examples")
PAGE = re.compile(r"[\w./-]*\w\.md\b")
ELSEWHERE = re.compile(
    r"\b(?:spec|specification|design|decision|reliability|issue|ticket|report)s? (?:section |row |no\. |#)?\d"
    r"|\.md,? (?:section |row )?\d"
    r"|\bthe spec(?:'s|ification|\b)"
    r"|^[\"\s]*P\d+[.:)]",
    re.IGNORECASE,
)
RULE = re.compile(r"\bI\d{1,2}\b")
CANDIDATE = re.compile(rf"{PAGE.pattern}|{ELSEWHERE.pattern}", re.IGNORECASE | re.MULTILINE)


def prose(text: str) -> Iterator[str]:
    """Every comment and docstring of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def sources() -> Iterator[tuple[Path, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path != Path(__file__):
                yield path, path.read_text("utf-8")


def wrong_in(said: str, folder: Path) -> list[str]:
    """What a comment of a file in `folder` names that a reader of the repository cannot find."""
    pages = [
        page
        for page in PAGE.findall(said)
        if not (ROOT / page).is_file() and not (folder / page).is_file()
    ]
    return pages + [found.group() for found in ELSEWHERE.finditer(said)]


def test_comments_name_only_pages_that_are_in_the_repository():
    """A page by its path from the root or beside the file; never a numbered section of a page that is elsewhere."""
    wrong = [
        (path.relative_to(ROOT).as_posix(), what)
        for path, text in sources()
        if CANDIDATE.search(text)  # reading comments takes long, and few files name anything
        for said in prose(text)
        for what in wrong_in(said, path.parent)
    ]
    assert wrong == []


def test_the_search_sees_what_it_is_for():
    folder = ROOT / "gwd"
    for said in (
        "Kept for a day (api.md 5.9).",
        "As docs/nowhere.md says.",
        "P16.",
        "Spec 8: 600 a minute.",
        "Derived at every look (spec 3: a missed timer).",
        "design decision 17",
        "One of the spec's reasons.",
        "docs/money.md 3",
    ):
        assert wrong_in(said, folder), said
    for said in ("See docs/money.md.", "RFC 9110, section 5", "a decision of the writer", "I7"):
        assert not wrong_in(said, folder), said


def test_every_rule_that_is_named_by_number_is_listed_with_a_test_that_exists():
    page = (ROOT / "docs" / "invariants.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| (I\d+) \|.*\| `([\w./]+)` \|$", page, re.MULTILINE))
    named = {
        rule
        for path, text in sources()
        if path.is_relative_to(ROOT / "gwd") or path.is_relative_to(ROOT / "tests")
        for rule in RULE.findall(text)
    }
    assert named <= set(listed)
    assert sorted(listed, key=lambda rule: int(rule[1:])) == [f"I{n}" for n in range(1, 19)]
    assert [test for test in listed.values() if not (ROOT / test).is_file()] == []
