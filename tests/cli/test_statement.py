"""Statements on the command line: as lines, as CSV that no spreadsheet runs, as the API's JSON, into a file."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from gwctl.time_input import utc_now
from tests.cli.conftest import Run
from tests.cli.gateway import FakeGateway

COUNTS = {"requests": 2, "tokens_prompt": 30, "cached_tokens": 0, "tokens_completion": 12}
CHARGED = {**COUNTS, "charged": 0.000000001}
STATEMENT: dict[str, Any] = {
    "month": "2026-11",
    "closed": True,
    "opening_balance": 1,
    "movements": [{"type": "purchase", "entries": 1, "amount": 5}],
    "charges": CHARGED,
    "closing_balance": 5.999999999,
    "workspaces": [
        {"workspace_id": "ws_1", "workspace_name": "web", **CHARGED},
        {"workspace_id": None, "workspace_name": None, **CHARGED},
    ],
    "keys": [
        {
            "workspace_id": None,
            "family_id": "key_2",
            "key_name": "old",
            "key_ids": ["key_2"],
            **CHARGED,
        },
        {
            "workspace_id": "ws_1",
            "family_id": "key_1",
            "key_name": "=1+1",
            "key_ids": ["key_1"],
            **CHARGED,
        },
    ],
    "models": [{"model": None, "byok": True, **CHARGED}],
}


def test_a_statement_is_lines_from_balance_to_balance(run: Run, gateway: FakeGateway) -> None:
    gateway.on("GET", "/statements/2026-11", {"data": STATEMENT})
    lines = run("statement", "2026-11").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == [
        *("opening balance", "movement", "charges", "closing balance"),
        *("workspace", "key", "workspace", "key", "model"),
    ]
    assert [line.split("\t")[1] for line in lines[4:8]] == ["web", "=1+1", "", "old"]
    assert lines[-1] == "model\tfees for own keys\t2\t30\t12\t0.000000001\t"


def test_csv_is_safe_and_goes_into_a_file(run: Run, gateway: FakeGateway, tmp_path: Path) -> None:
    gateway.on("GET", "/statements/2026-11", {"data": STATEMENT})
    target = tmp_path / "november.csv"
    assert run("statement", "2026-11", "--csv", "--out", str(target)).out == ""
    rows = list(csv.DictReader(io.StringIO(target.read_text("utf-8"))))
    keys = [(row["workspace"], row["name"]) for row in rows if row["section"] == "key"]
    assert keys == [("web", "'=1+1"), ("", "old")]
    assert rows[3]["amount"] == "5.999999999"
    assert run("statement", "2026-11", "--csv", "--json").code == 2


def test_the_last_month_is_meant_and_an_open_one_is_called_so(
    run: Run, gateway: FakeGateway
) -> None:
    now = utc_now()
    year, month = divmod(now.year * 12 + now.month - 2, 12)
    path = f"/statements/{year}-{month + 1:02}"
    gateway.on("GET", path, {"data": {**STATEMENT, "closed": False}})
    code, out, err = run("statement", "--json")
    assert (code, json.loads(out)["movements"]) == (0, STATEMENT["movements"])
    assert "is not closed" in err
