"""Exports of records and charts of usage: streamed, whole or not at all, safe in a spreadsheet, resumable."""

import csv
import io
import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gwctl import chart, comma_separated
from gwctl.jsontext import loads
from gwctl.output import Output
from gwctl.record_export import field_order
from tests.cli.analytics import used
from tests.cli.conftest import Run
from tests.cli.gateway import Answer, Collection, FakeGateway, Received, error

SPAN = ("--from", "2026-11-01", "--to", "2026-11-30")


def record(number: int, **more: Any) -> dict[str, Any]:
    day = 1 + number % 28
    return {
        "id": f"gen-{number:04}",
        "created_at": f"2026-11-{day:02}T01:00:00Z",
        "settled_at": f"2026-11-28T01:00:{number % 60:02}Z",
        "model": "a/b",
        "status": "succeeded",
        "total_cost": round(number * 1e-9, 9),
        **more,
    }


def listed(gateway: FakeGateway, count: int) -> Collection:
    return gateway.collection("/generations", *(record(number) for number in range(count)))


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def asked(gateway: FakeGateway) -> list[Received]:
    return [one for one in gateway.requests if one.path == "/generations"]


@pytest.mark.parametrize("command", ["activity export", "usage export --by request"])
def test_a_file_has_every_record_once_and_its_columns_in_one_order(
    run: Run, gateway: FakeGateway, tmp_path: Path, command: str
) -> None:
    listed(gateway, 250)
    target = tmp_path / "all.csv"
    code, out, err = run(*command.split(), *SPAN, "--csv", "-o", str(target))
    assert (code, out) == (0, "")
    assert f"250 records written to {target}" in err
    rows = table(target.read_text("utf-8"))
    assert list(rows[0]) == field_order()
    assert [row["id"] for row in rows] == [f"gen-{number:04}" for number in range(250)]
    assert rows[249]["total_cost"] == "0.000000249"
    assert [one.query.get("after") for one in asked(gateway)] == [None, "gen-0099", "gen-0199"]
    assert os.listdir(tmp_path) == ["all.csv"]  # noqa: PTH208


def test_a_page_is_written_before_the_next_is_read(
    run: Run, gateway: FakeGateway, tmp_path: Path
) -> None:
    rows = listed(gateway, 1_000)
    target, seen = tmp_path / "all.jsonl", []

    def answer(request: Received) -> Answer:
        part = tmp_path / "all.jsonl.part"
        seen.append(part.read_text("utf-8").count("\n"))
        return rows.answer(request, "")

    gateway.on("GET", "/generations", answer)
    assert run("activity", "export", "--jsonl", "-o", str(target)).code == 0
    assert seen == [100 * page for page in range(10)]
    assert len(target.read_text("utf-8").splitlines()) == 1_000


@pytest.mark.parametrize("shape", ["--csv", "--jsonl"])
def test_an_export_that_broke_off_says_how_to_go_on_and_ends_as_if_it_had_not(
    run: Run, gateway: FakeGateway, tmp_path: Path, shape: str
) -> None:
    rows = listed(gateway, 250)
    whole, target = tmp_path / "whole", tmp_path / "rows"
    assert run("activity", "export", *SPAN, shape, "-o", str(whole)).code == 0
    target.write_text("of yesterday")

    def breaks(request: Received) -> Answer:
        if request.query.get("after") == "gen-0199":
            return error(500, "internal_error", "it broke")
        return rows.answer(request, "")

    gateway.on("GET", "/generations", breaks)
    code, _, err = run("activity", "export", *SPAN, shape, "-o", str(target))
    assert code == 1
    assert target.read_text() == "of yesterday"
    assert f"200 records written to {target}.part before it broke off" in err
    found = re.search(r"go on: gwctl (.*)", err)
    assert found is not None
    words = found[1].split()
    assert words[-2:] == ["--after", "gen-0199"]
    gateway.on("GET", "/generations", lambda request: rows.answer(request, ""))
    # Nothing is appended to a part that ends elsewhere.
    code, _, err = run(*words[:-1], "gen-0100")
    assert (code, "does not end with gen-0100" in err) == (2, True)
    assert run(*words).code == 0
    assert target.read_bytes() == whole.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["rows", "whole"]  # noqa: PTH208
    assert run(*words).code == 2  # there is no part any more


def test_what_breaks_off_before_the_first_record_leaves_nothing(
    run: Run, gateway: FakeGateway, tmp_path: Path
) -> None:
    gateway.on("GET", "/generations", error(500, "internal_error", "it broke"))
    assert run("activity", "export", "-o", str(tmp_path / "rows")).code == 1
    assert os.listdir(tmp_path) == []  # noqa: PTH208
    code, _, err = run("activity", "export", "-o", str(tmp_path))
    assert (code, "is no file" in err) == (2, True)
    assert run("activity", "export", "-o", str(tmp_path / "no" / "rows")).code == 1


def test_on_standard_output_the_place_is_told_too(run: Run, gateway: FakeGateway) -> None:
    rows = listed(gateway, 150)

    def breaks(request: Received) -> Answer:
        if "after" in request.query:
            return error(500, "internal_error", "it broke")
        return rows.answer(request, "")

    gateway.on("GET", "/generations", breaks)
    code, out, err = run("usage", "export", "--by", "request", *SPAN, "--jsonl")
    assert (code, len(out.splitlines())) == (1, 100)
    assert (
        "go on: gwctl usage export --by request --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z"
        " --jsonl --after gen-0099" in err
    )


def test_json_is_one_array_as_before_and_fields_are_picked(
    run: Run, gateway: FakeGateway, tmp_path: Path
) -> None:
    listed(gateway, 120)
    whole = run("activity", "export", "--json=id,total_cost").out
    assert loads(whole)[119] == {"id": "gen-0119", "total_cost": Decimal("0.000000119")}
    assert whole == run("activity", "list", "--all", "--json=id,total_cost").out
    assert run("activity", "export", "--jq", ".[1].id").out == "gen-0001\n"
    lines = run("activity", "export", "--jsonl", "--json=id").out.splitlines()
    assert lines[:1] == ['{"id": "gen-0000"}']
    assert run("activity", "export", "--json", "--after", "gen-0001").code == 2
    assert run("activity", "export", "--jq", ".", "-o", str(tmp_path / "x")).code == 2
    assert run("activity", "export", "--json", "--csv").code == 2
    gateway.collection("/generations")
    assert run("activity", "export", "--json").out == "[]\n"
    assert run("activity", "export").out == ",".join(field_order()) + "\n"


def test_what_went_wrong_is_one_list_of_several_statuses(run: Run, gateway: FakeGateway) -> None:
    statuses = ["failed", "succeeded", "refused", "incomplete"]
    rows = [record(number, status=statuses[number % 4]) for number in range(40, -1, -1)]
    gateway.collection("/generations", *rows)
    found = table(run("activity", "export", "--status", "error").out)
    assert [row["id"] for row in found] == [
        one["id"] for one in rows if one["status"] != "succeeded"
    ]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1+1", "'=1+1"),
        ("\r=1+1", "'=1+1"),
        ("＝1+1", "'＝1+1"),
        ('=HYPERLINK("x","y")', '\'=HYPERLINK("x","y")'),
        ("a=b", "a=b"),
        ("", ""),
        (None, ""),
        (Decimal("-0.5"), "-0.5"),
        (Decimal("1E-9"), "0.000000001"),
        (-5, "-5"),
        (True, "yes"),
        ("one\ntwo", "one two"),
    ],
)
def test_no_cell_is_a_formula_and_numbers_stay_numbers(value: Any, cell: str) -> None:
    written = comma_separated.lines([{"x": value, "y": "z"}], ["x", "y"])
    assert list(csv.reader(io.StringIO(written))) == [[cell, "z"]]


BY = {
    "session": {"session_id": "s-1"},
    "app": {"title": "App"},
    "user": {"external_user": "ada"},
    "provider": {"provider_name": "openai"},
    "endpoint": {"endpoint_id": "ep_1"},
    "dialect": {"dialect": "messages"},
    "key": {"key_id": "key_1"},
    "workspace": {"workspace_id": "wks_1"},
    "model": {"model": "c/d"},
}


@pytest.mark.parametrize("by", BY)
def test_usage_by_everything(run: Run, gateway: FakeGateway, by: str) -> None:
    (value,) = BY[by].values()
    used(gateway, record(1_000, **BY[by]), record(500, **BY[by]))
    gateway.collection("/keys", {"id": "key_1", "name": "ci"})
    shown = "ci" if by == "key" else value
    assert run("usage", "summary", "--by", by).out.startswith(f"{shown}\t2\t")


def test_usage_by_day_is_in_the_order_of_the_days(run: Run, gateway: FakeGateway) -> None:
    used(gateway, *(record(number) for number in range(60)))
    rows = loads(run("usage", "summary", "--by", "day", "--json").out)
    days = [row["date__day"] for row in rows]
    assert days == sorted(days)
    assert sum(row["requests"] for row in rows) == 60
    plotted = run("usage", "summary", "--by", "day", "--plot", "--json").out
    assert loads(plotted) == rows


def test_a_summary_can_be_written_to_a_file(run: Run, gateway: FakeGateway, tmp_path: Path) -> None:
    used(gateway, *(record(number) for number in range(60)))
    target = tmp_path / "days.csv"
    words = ["usage", "export", "--by", "model", *SPAN]
    printed = run(*words).out
    assert (run(*words, "-o", str(target)).out, target.read_text()) == ("", printed)
    assert run(*words, "--after", "gen-0001").code == 2
    assert run(*words, "-o", str(tmp_path)).code == 1


def test_a_chart_is_as_wide_as_the_terminal_and_of_ascii_where_it_must(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(
        gateway,
        record(1, created_at="2026-11-01T00:00:00Z", total_cost=1),
        record(2, created_at="2026-11-03T00:00:00Z", total_cost=4),
    )
    monkeypatch.setattr(Output, "table", True)
    words = ["usage", "summary", "--plot", "--from", "2026-11-01", "--to", "2026-11-03"]
    for columns_ in (60, 100):
        monkeypatch.setenv("COLUMNS", str(columns_))
        lines = run(*words).out.splitlines()[-3:]
        assert [line[:10] for line in lines] == ["2026-11-01", "2026-11-02", "2026-11-03"]
        assert [len(line) for line in lines][1:] == [len("2026-11-02  $0.00"), columns_]
        assert lines[2].count("█") // lines[0].count("█") == 4
    monkeypatch.setattr(Output, "unicode", False)
    out = run(*words).out
    assert out.isascii()
    assert "###" in out.splitlines()[-1]
    assert re.search(r"a/b .* [_.]_#$", out, re.MULTILINE)


def test_many_days_share_a_column() -> None:
    values = [Decimal(number) for number in range(90)]
    assert len(chart.sparkline(values, 30, ascii_only=False)) == 30
    assert chart.sparkline(values[:3], 30, ascii_only=True) == "_-#"
    assert chart.sparkline([], 30, ascii_only=True) == ""
    assert chart.bars([("a", Decimal(0))], 80, ascii_only=False) == "a  $0.00\n"
    small = chart.bars([("a", Decimal(1)), ("b", Decimal(10_000))], 40, ascii_only=False)
    assert small.splitlines()[0].endswith("▏")
