"""The table of vendors' words: rows that are complete, sources that exist, and a row that somebody adds decides."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gwd.vendors import fault_words
from gwd.vendors.fault_words import Table, reason_by_words, table

ROOT = Path(__file__).parents[3]
WITHOUT_SOURCE = 43
"""Rows from before sources were kept; each that is met again gets one, and no new row may be without."""


@pytest.fixture
def words() -> Table:
    return table()


def test_every_row_is_one_phrase_or_pattern_in_lower_case_with_its_vendor(words: Table) -> None:
    wrong = [
        (rule.name, row)
        for rule in words.rules
        for row in rule.rows
        if (row.phrase is None) == (row.pattern is None)
        or not row.vendor.strip()
        or (row.phrase is not None and (row.phrase != row.phrase.lower() or row.at_start))
    ]
    assert wrong == []
    for rule in words.rules:
        for row in rule.rows:
            re.compile(row.pattern or "")


def test_every_row_has_a_source_that_is_there_and_every_source_a_row(words: Table) -> None:
    named = [row.source for rule in words.rules for row in rule.rows]
    unknown = {
        name
        for name in named
        if name not in words.sources and not (name.startswith("tests/") and (ROOT / name).is_file())
    }
    assert unknown == set()
    assert set(words.sources) - set(named) == set()
    assert named.count("before") <= WITHOUT_SOURCE
    pages = [page for name, page in words.sources.items() if name != "before"]
    assert [page for page in pages if urlsplit(page).scheme != "https"] == []
    assert len(pages) == len(set(pages))


def test_no_row_stands_twice_and_every_rule_has_a_name_of_its_own(words: Table) -> None:
    names = [rule.name for rule in words.rules]
    assert len(names) == len(set(names))
    for rule in words.rules:
        rows = [(row.phrase, row.pattern, row.status, row.look) for row in rule.rows]
        assert len(rows) == len(set(rows)), rule.name
        statuses = [*rule.status, *(s for row in rule.rows for s in row.status or ())]
        assert all(isinstance(s, str) or 400 <= s <= 599 for s in statuses), rule.name


def test_every_phrase_decides_by_its_rule_where_it_stands_alone(words: Table) -> None:
    """Each phrase under each of its statuses gives a verdict; a rule further up may be the one that gives it."""
    silent = []
    for rule in words.rules:
        for row in rule.rows:
            if row.phrase is None:
                continue
            code = row.phrase if (row.look or rule.look) == "code" else ""
            for status in row.status or rule.status:
                given = None if status == "none" else 502 if status == "5xx" else status
                if reason_by_words(given, code, "" if code else row.phrase, "") is None:
                    silent.append((rule.name, row.phrase, status))
    assert silent == []


def test_a_row_that_a_person_adds_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "the tank of this tenant is dry"
    assert reason_by_words(400, "", said, "") is None
    text = fault_words.TABLE.read_text("utf-8")
    row = '  { phrase = "tank of this tenant is dry", vendor = "X", source = "openai-quota" },\n'
    changed = tmp_path / "words.toml"
    changed.write_text(text.replace("rows = [\n", f"rows = [\n{row}", 1))
    monkeypatch.setattr(fault_words, "TABLE", changed)
    table.cache_clear()
    try:
        assert reason_by_words(400, "", said, "") == ("quota_exhausted", None)
    finally:
        table.cache_clear()
