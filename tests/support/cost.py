"""`--cost`: what each file of tests costs in processor time, and the table of those that cost most.

Wall time tells about the machine; processor time, with that of every process a test started, tells about the test.
What a module's fixture costs is counted where it is first asked for.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

START = "start, collection, reports"
_tests: Counter[str] = Counter()
_seconds: defaultdict[str, float] = defaultdict(float)
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cost", action="store_true", help="tell which files cost processor time")
    parser.addoption("--cost-rows", type=int, default=10, help="how many files (default: 10)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    if not item.config.getoption("--cost"):
        return (yield)
    before = _spent_s()
    result = yield
    group = item.nodeid.partition("::")[0]
    _tests[group] += 1
    _seconds[group] += _spent_s() - before
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--cost"):
        if session.config.getoption("numprocesses", None):  # the workers have told of themselves
            _seconds[START] += sum(os.times()[:2])
            return
        _seconds[START] += _spent_s() - sum(_seconds.values())
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["cost"] = (dict(_tests), dict(_seconds))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    tests, seconds = getattr(node, "workeroutput", {}).get("cost", ({}, {}))
    _tests.update(tests)
    for group, spent in seconds.items():
        _seconds[group] += spent


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not config.getoption("--cost"):
        return
    say = terminalreporter.write_line
    rows = config.getoption("--cost-rows")
    total = sum(_seconds.values())
    terminalreporter.section(f"processor time: {total:.1f} s for {_tests.total()} tests")
    folders: defaultdict[str, float] = defaultdict(float)
    for group, seconds in _seconds.items():
        folders["/".join(Path(group).parts[:2]) if group != START else START] += seconds
    for title, counted in (("folder", folders), ("file", _seconds)):
        say(f"{'seconds':>8} {'share':>6} {'tests':>6}  {title}")
        for group, seconds in sorted(counted.items(), key=lambda item: -item[1])[:rows]:
            tests = sum(n for name, n in _tests.items() if name.startswith(group))
            say(f"{seconds:8.1f} {seconds / total:6.1%} {tests:6}  {group}")


def _spent_s() -> float:
    """Processor time of this process and of all that descend from it, alive or ended."""
    return sum(os.times()[:4]) + sum(map(_ticks, _descendants("self"))) * _TICK_S


def _descendants(pid: str) -> Iterator[str]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it ended meanwhile
        return
    for child in children:
        yield child
        yield from _descendants(child)


def _ticks(pid: str) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))  # its own and that of its ended children
