"""Nothing in the golden tree is stray: every file is an input with a source, or the expected file of one."""

import importlib
import tomllib
from pathlib import Path

from tests.golden import golden

_KINDS = ("requests", "answers", "faults")


def _files() -> list[Path]:
    return [
        path
        for kind in _KINDS
        for path in sorted((golden.ROOT / kind).rglob("*"))
        if path.is_file()
    ]


def _inputs() -> list[Path]:
    return [path for path in _files() if "." not in path.stem]


def _crossed() -> set[str]:
    """What the test modules say they compare beyond requests, events and faults."""
    found: set[str] = set()
    for path in golden.ROOT.glob("test_*.py"):
        if path.stem != "test_tree":
            module = importlib.import_module(f"tests.golden.{path.stem}")
            found.update(getattr(module, "CROSSED", ()))
    return found


def test_every_input_is_a_known_scenario():
    strays = [p.name for p in _inputs() if p.stem.split("__")[0] not in golden.SCENARIOS]
    assert strays == []


def test_every_input_has_exactly_one_source():
    entries = tomllib.loads((golden.ROOT / "sources.toml").read_text())["source"]
    counts = {path.relative_to(golden.ROOT).as_posix(): 0 for path in _inputs()}
    for entry in entries:
        assert entry["kind"] in ("recorded", "transcribed", "written")
        assert entry["date"]
        matched = [name for name in counts if Path(name).match(entry["files"])]
        assert matched, f"{entry['files']} matches no input"
        for name in matched:
            counts[name] += 1
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_every_expected_file_has_an_input_and_a_test():
    expected = set()
    for path in _inputs():
        kind = path.relative_to(golden.ROOT).parts[0]
        if kind == "requests":
            expected.add(path.with_suffix(".request.json"))
        elif kind == "answers":
            expected.add(golden.expected_events(path))
        else:
            expected.add(path.with_suffix(".fault.json"))
    expected |= {golden.ROOT / name for name in _crossed()}
    present = {path for path in _files() if "." in path.stem}
    assert {p.relative_to(golden.ROOT).as_posix() for p in present ^ expected} == set()
