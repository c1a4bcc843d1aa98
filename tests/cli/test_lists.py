"""Every list at every width: what matters is whole, what does not fit is left out whole and counted."""

import json
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pytest

import gwctl
import gwctl.commands
from gwctl import jsontext, text
from gwctl.layout import cells, drawn, fitted
from gwctl.records import Resource
from gwctl.tables import Column, cell
from tests.cli.conftest import Run
from tests.cli.gateway import Answer, FakeGateway, error
from tests.cli.test_terminal import Terminal, terminal

__all__ = ["terminal"]

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
NAME = "名前-🙂-e\u0301-key"
SAMPLE: dict[str, Any] = {
    "money": "-1234567.891", "price": "0.00000375", "each": "0.000123456", "count": 1_234_567,
    "time": "2026-11-28T11:00:00Z", "percent": 99.7, "bar": 99.7, "ms": 12_345,
    "state": "cooling_down", "spark": [], "id": "key_" + "x" * 22,
    "text": "a long description of whatever this may be, 名前", "note": "a note that somebody wrote at length",
}  # fmt: skip
KEPT = {"money", "price", "each", "time", "count", "percent", "bar", "ms", "state"}


def lists() -> Iterator[tuple[str, tuple[Column, ...]]]:
    """Every table that a command can print, by where it is declared."""
    found = [
        *pkgutil.iter_modules(gwctl.__path__, "gwctl."),
        *pkgutil.iter_modules(gwctl.commands.__path__, "gwctl.commands."),
    ]
    for module in found:
        if module.name == "gwctl.__main__":
            continue
        for name, value in vars(import_module(module.name)).items():
            if isinstance(value, Resource):
                yield f"{module.name}.{name}", value.columns
            elif isinstance(value, tuple) and value and isinstance(value[0], Column):
                yield f"{module.name}.{name}", value


def sample(columns: tuple[Column, ...]) -> tuple[tuple[Column, ...], list[dict[str, Any]]]:
    """The same columns over rows made for them: one full, one empty."""
    picked = tuple(
        Column(c.title, f"c{n}", c.kind, c.name, c.cut, c.leaves) for n, c in enumerate(columns)
    )
    full = {
        f"c{n}": NAME if c.name and c.kind == "text" else SAMPLE[c.kind]
        for n, c in enumerate(columns)
    }
    return picked, [full, dict.fromkeys(full)]


def test_every_list_is_true_at_every_width() -> None:
    seen = dict(lists())
    assert len(seen) > 20
    wrong = []
    for title, declared in seen.items():
        columns, rows = sample(declared)
        whole = drawn(rows, columns, now=NOW, width=None, color=False)
        if whole.left_out or "…" in whole.text:
            wrong.append(f"{title}: something is missing at full width")
        names = sum(c.name for c in columns)
        for width in (40, 80, 100, 200):
            drawing = drawn(rows, columns, now=NOW, width=width, color=False)
            header, line, _ = drawing.text.split("\n", 2)
            must = [cell(rows[0][str(c.pick)], c.kind, NOW) for c in columns if c.name]
            if any(value not in line for value in must):
                wrong.append(f"{title} at {width}: the name one types next is cut")
            here = [c for c in columns if c.title and f" {c.title} " in f" {header} "]
            if len(columns) - drawing.left_out < len(here):
                wrong.append(
                    f"{title} at {width}: {drawing.left_out} left out, but {len(here)} shown"
                )
            for c in here:
                value = cell(rows[0][str(c.pick)], c.kind, NOW)
                if c.kind in KEPT and value.strip() and value not in line:
                    wrong.append(f"{title} at {width}: {c.title} is cut: {line}")
            least = sum(cells(value) for value in must) + 3 * (names - 1)
            if max(map(cells, drawing.text.splitlines())) > max(width, least):
                wrong.append(f"{title} at {width}: {line}")
    assert wrong == []


def test_columns_leave_from_the_right_and_the_empty_ones_first() -> None:
    columns = (
        Column("NAME", "name", name=True), Column("COST", "cost", "money"), Column("EMPTY", "nothing"),
        Column("STATE", "state", "state"), Column("LATER", "at", "time", leaves=1),
    )  # fmt: skip
    row = {"name": "n" * 10, "cost": "1.5", "state": "enabled", "at": "2026-11-28T11:00:00Z"}

    def titles(width: int) -> list[str]:
        return drawn([row], columns, now=NOW, width=width, color=False).text.split("\n")[0].split()

    assert titles(80) == ["NAME", "COST", "EMPTY", "STATE", "LATER"]
    assert titles(40) == ["NAME", "COST", "STATE", "LATER"]
    assert titles(32) == ["NAME", "COST", "STATE"]
    assert titles(20) == ["NAME", "COST"]
    assert titles(5) == ["NAME"]


def test_widths_are_counted_in_cells() -> None:
    assert [cells(value) for value in ("abc", "名前", "🙂", "e\u0301")] == [3, 4, 2, 1]
    assert fitted("名前名前", 6) == "名前… "
    assert fitted("e\u0301e\u0301", 3) == "e\u0301e\u0301 "
    rows = [{"a": "名前", "b": 1}, {"a": "plain", "b": 2}, {"a": "🙂", "b": 3}]
    lines = drawn(rows, (Column("A", "a"), Column("B", "b")), now=NOW, width=80, color=False).text
    starts = [cells(line[:-1]) for line in lines.splitlines()[1:]]
    assert starts == [8, 8, 8]


def test_all_and_nothing_are_said_only_when_it_is_so() -> None:
    numbers = (100, "99.96", "99.5", "99.4", 50, "0.3", "0.0001", 0, "100.2", "150.4")
    assert [text.percent(number) for number in numbers] == [
        "100 %", "99.9 %", "99.5 %", "99 %", "50 %", "0.3 %", "0.1 %", "0 %", "100.2 %", "150 %",
    ]  # fmt: skip
    assert text.bar("99.9").count("█") == 19
    assert text.bar(100).count("█") == 20


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_list_on_a_terminal_says_what_it_left_out(
    terminal: Terminal, gateway: FakeGateway, columns: int
) -> None:
    row: dict[str, Any] = {
        "id": "led_" + "x" * 22, "created_at": "2026-11-28T11:00:00Z", "type": "settlement", "bucket": "promotional",
        "amount": -0.000123, "balance_after": 1234.567891, "generation_id": "gen-" + "y" * 22, "note": "名前 " * 20,
    }  # fmt: skip
    gateway.collection("/credits/ledger", row)
    _, seen = terminal("ledger", "list", NO_COLOR="1", COLUMNS=str(columns))
    _, line, *note = seen.splitlines()
    assert "gen-" + "y" * 22 in line
    assert ("-$0.000123" in line) == (columns > 40)
    assert ("$1,234.57" in line) == (columns > 40)
    left_out = {40: 6, 80: 3, 200: 0}[columns]
    assert note == ([f"{left_out} columns left out; --wide shows all"] if left_out else [])
    _, wide = terminal("ledger", "list", "--wide", NO_COLOR="1", COLUMNS=str(columns))
    assert row["id"] in wide
    assert "left out" not in wide


def test_the_models_of_a_provider_are_shown_beside_the_catalogs(
    run: Run, gateway: FakeGateway
) -> None:
    rows = [
        {"id": f"m{number}", "name": f"M{number}", "context_length": 8192, "in_catalog": []}
        for number in range(40)
    ]
    rows[0]["in_catalog"] = [{"id": "ep_1", "model": "acme/fast", "tag": "acme"}]
    answered = {"data": rows, "total_count": 40, "truncated": True}
    gateway.on("GET", "/catalog/providers/acme/models", answered)
    code, out, err = run("provider", "models", "acme")
    assert (code, len(out.splitlines())) == (0, 30)
    assert out.splitlines()[0].split("\t")[:2] == ["m0", "8192"]
    assert "acme/fast" in out.splitlines()[0]
    assert "30 of 40 shown" in err
    assert "lists more than 40 models" in err
    assert len(json.loads(run("provider", "models", "acme", "--all", "--json").out)) == 40


ENTRIES: list[dict[str, Any]] = [
    {"id": f"led_{number}", "type": "purchase", "amount": 1, "balance_after": number}
    for number in range(250, 0, -1)
]


def walked(rows: list[dict[str, Any]], onwards: str | None) -> Answer:
    return Answer({"data": rows, "total_count": None, "next": onwards, "previous": None})


def test_a_whole_list_is_printed_while_it_is_read(run: Run, gateway: FakeGateway) -> None:
    """A page may be empty and lead on; what was printed before the gateway broke is there."""
    is_broken = False

    def answer(request: Any) -> Answer:
        match request.query.get("after"):
            case None:
                return walked(ENTRIES[:100], "first")
            case "first":
                return walked([], "second")
            case "second":
                return walked(ENTRIES[100:200], "third")
            case _ if is_broken:
                return error(500, "internal_error", "it broke")
            case _:
                return walked(ENTRIES[200:], None)

    gateway.on("GET", "/credits/ledger", answer)
    ids = [entry["id"] for entry in ENTRIES]
    list_all = ("ledger", "list", "--all")
    assert run(*list_all, "-q").out.split() == ids
    assert [line.split("\t")[-1] for line in run(*list_all).out.splitlines()] == ids
    lines = run(*list_all, "--jsonl").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ids
    whole = run(*list_all, "--json").out
    assert [entry["id"] for entry in json.loads(whole)] == ids
    assert whole == jsontext.dumps(jsontext.loads(whole), indent=2) + "\n"
    assert run(*list_all, "--json", "--jq", ".[249].id").out == "led_1\n"
    is_broken = True
    code, out, err = run(*list_all, "-q")
    assert (code, out.split()) == (1, ids[:200])
    assert "it broke" in err
    assert run(*list_all, "--json", "--jq", "length").out == ""


def test_without_a_count_a_full_page_is_not_taken_for_all(run: Run, gateway: FakeGateway) -> None:
    gateway.on("GET", "/credits/ledger", lambda _: walked(ENTRIES[:30], "more"))
    assert "30 shown, there may be many more; --all shows every one" in run("ledger", "list").err
    gateway.on("GET", "/credits/ledger", lambda _: walked(ENTRIES[:29], None))
    assert run("ledger", "list").err == ""
