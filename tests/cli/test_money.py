"""Credit, ledger, budgets and usage."""

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gwctl.jsontext import loads
from gwctl.output import Output
from gwctl.text import bar, sparkline
from tests.cli.analytics import META, PATH, used
from tests.cli.conftest import Run
from tests.cli.gateway import Answer, FakeGateway, Received
from tests.cli.written import route

CREDITS = {
    "total_credits": 200,
    "total_usage": 17.59,
    "balance": 182.41,
    "reserved": 0.48,
    "available": 181.93,
    "currency": "USD",
}


def test_balance_is_the_apis_record(run: Run, gateway: FakeGateway) -> None:
    gateway.on("GET", "/credits", {"data": CREDITS})
    assert run("credit", "balance", "--json", "--jq", ".available").out == "181.93\n"
    assert "reserved\t0.48" in run("credit", "balance").out


def test_a_grant_says_kind_amount_and_expiry(run: Run, gateway: FakeGateway) -> None:
    gateway.on("POST", "/credits/grants", Answer({"data": {"id": "led_1"}}, 201))
    words = [
        "credit",
        "grant",
        "25.5",
        "--kind",
        "promotional",
        "--expires",
        "2026-12-31",
        "--note",
        "hi",
    ]
    code, out, _ = run(*words)
    assert code == 0
    assert "$25.50 granted" in out
    assert gateway.sent("POST", "/credits/grants").body == {
        "kind": "promotional",
        "amount": 25.5,
        "expires_at": "2026-12-31T00:00:00Z",
        "note": "hi",
    }


def test_a_refund_is_confirmed(run: Run, gateway: FakeGateway) -> None:
    gateway.on("POST", "/credits/refunds", Answer({"data": {"id": "led_2"}}, 201))
    assert run("credit", "refund", "5", "--note", "unused").code == 2
    assert gateway.writes() == []
    assert run("credit", "refund", "5", "--note", "unused", "--yes").code == 0


def test_topup_is_shown_without_options_and_changed_with_them(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.on("GET", "/credits/auto-topup", {"data": {"enabled": False, "threshold": 5}})
    gateway.on("PATCH", "/credits/auto-topup", {"data": {"enabled": True, "threshold": 20}})
    assert "threshold\t5" in run("credit", "topup").out
    out = run("credit", "topup", "--enable", "--threshold", "20").out
    assert gateway.sent("PATCH", "/credits/auto-topup").body == {"enabled": True, "threshold": 20}
    assert "threshold  $5.00 -> $20.00" in out


def test_verify_is_0_when_all_adds_up_and_1_on_any_difference(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.on("POST", "/ledger/verify", {"data": {"ok": True, "checked": 12, "differences": []}})
    assert run("ledger", "verify").code == 0
    difference = {"message": "lot led_3 is negative", "invariant": "lots"}
    found = {"ok": False, "checked": 12, "differences": [difference]}
    gateway.on("POST", "/ledger/verify", {"data": found})
    code, out, err = run("ledger", "verify")
    assert code == 1
    assert "lot led_3 is negative" in out
    assert "1 difference" in err
    assert json.loads(run("ledger", "verify", "--json").out)["differences"] == [
        {**difference, "organization_id": None}
    ]


def test_a_head_is_printed_as_it_came_and_sent_back_as_it_was_kept(
    run: Run, gateway: FakeGateway, tmp_path: Path
) -> None:
    said = {"data": {"format": "gwd-head-1", "signature": "c2ln"}}
    gateway.on("GET", "/ledger/head", said)
    head = route("GET", "/ledger/head").whole(200, said)["data"]
    kept = tmp_path / "head.json"
    kept.write_text(run("ledger", "head", "--all").out)
    assert gateway.sent("GET", "/ledger/head").query["all"] == "true"
    assert json.loads(kept.read_text()) == head
    gateway.on("POST", "/ledger/verify", {"data": {"ok": True, "checked": 3, "differences": []}})
    assert run("ledger", "verify", "--head", str(kept), "--all").code == 0
    assert gateway.sent("POST", "/ledger/verify").body == {"all": True, "head": head}
    kept.write_text("a head")
    code, _, err = run("ledger", "verify", "--head", str(kept))
    assert (code, "gwctl ledger head printed" in err) == (2, True)
    assert run("ledger", "verify", "--head", str(tmp_path / "none.json")).code != 0


def test_ledger_show_is_one_generation_and_exit_3_without_entries(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.on("GET", "/credits/ledger", {"data": [{"id": "led_1", "amount": -0.5}]})
    assert run("ledger", "show", "gen-1").code == 0
    assert gateway.sent("GET", "/credits/ledger").query["generation_id"] == "gen-1"
    gateway.on("GET", "/credits/ledger", {"data": []})
    assert run("ledger", "show", "gen-1").code == 3


def test_ledger_times_may_be_spans_or_dates(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/credits/ledger")
    run("ledger", "list", "--from", "2026-11-01", "--to", "2026-11-02T10:00:00+02:00")
    query = gateway.sent("GET", "/credits/ledger").query
    assert (query["from"], query["to"]) == ("2026-11-01T00:00:00Z", "2026-11-02T08:00:00Z")


def _budgets(gateway: FakeGateway, *rows: dict[str, Any]) -> None:
    gateway.collection("/workspaces", {"id": "ws_1", "slug": "web", "name": "Web"})
    gateway.collection("/budgets", *rows, prefix="bud_")


def test_budget_set_creates_then_changes_then_leaves_alone(run: Run, gateway: FakeGateway) -> None:
    _budgets(gateway)
    assert run("budget", "set", "workspace:web", "--monthly", "200").code == 0
    assert gateway.sent("POST", "/budgets").body == {
        "scope": "workspace",
        "scope_id": "ws_1",
        "interval": "monthly",
        "kind": "hard",
        "limit": 200,
    }
    code, out, _ = run("budget", "set", "workspace:web", "--monthly", "250")
    assert code == 0
    assert "limit  $200.00 -> $250.00" in out
    before = len(gateway.writes())
    assert run("budget", "set", "workspace:web", "--monthly", "250").code == 0
    assert len(gateway.writes()) == before


def test_a_budget_of_a_tag_or_a_user_is_named_as_requests_name_it(
    run: Run, gateway: FakeGateway
) -> None:
    _budgets(gateway)
    for scope, name in (("tag", "team: web"), ("user", "ann")):
        assert run("budget", "set", f"{scope}:{name}", "--daily", "5").code == 0
        body = gateway.sent("POST", "/budgets").body
        assert (body["scope"], body["scope_id"]) == (scope, name)
    assert run("budget", "set", "tag:", "--daily", "5").code == 2
    _budgets(
        gateway,
        {"id": "bud_1", "scope": "tag", "scope_id": "nightly", "interval": "daily", "kind": "hard"},
    )
    assert run("budget", "list").out.startswith("tag:nightly\tdaily")


def test_a_soft_budget_is_another_budget(run: Run, gateway: FakeGateway) -> None:
    _budgets(gateway)
    run("budget", "set", "organization", "--daily", "20")
    run("budget", "set", "organization", "--daily", "10", "--soft")
    posts = [r.body for r in gateway.requests if r.method == "POST"]
    assert [body["kind"] for body in posts] == ["hard", "soft"]
    assert all("scope_id" not in body for body in posts)


def test_several_limits_are_raised_from_the_widest_and_cut_from_the_narrowest(
    run: Run, gateway: FakeGateway
) -> None:
    def row(interval: str, limit: int) -> dict[str, Any]:
        common = {"scope": "workspace", "scope_id": "ws_1", "kind": "hard"}
        return {"id": f"bud_{interval}", "interval": interval, "limit": limit, **common}

    _budgets(gateway, row("daily", 10), row("monthly", 100))
    run("budget", "set", "workspace:web", "--daily", "20", "--monthly", "200")
    assert [path for _, path in gateway.writes()] == ["/budgets/bud_monthly", "/budgets/bud_daily"]
    run("budget", "set", "workspace:web", "--daily", "5", "--monthly", "50")
    assert [path for _, path in gateway.writes()[2:]] == [
        "/budgets/bud_daily",
        "/budgets/bud_monthly",
    ]


def test_forecast_projects_the_end_of_the_period(run: Run, gateway: FakeGateway) -> None:
    row = {
        "id": "bud_1",
        "scope": "workspace",
        "scope_id": "ws_1",
        "interval": "monthly",
        "kind": "hard",
        "limit": 150,
        "limit_in_force": 200,
        "spend": 50,
        "percent_used": 25,
        "forecast": {"projected_spend": 300, "exhausts_at": "2026-11-20T00:00:00Z"},
    }
    _budgets(gateway, row)
    cells = run("budget", "forecast").out.rstrip("\n").split("\t")
    assert cells[0] == "workspace:web"
    assert cells[5:8] == ["300", "150", "2026-11-20T00:00:00Z"]
    (shown,) = json.loads(run("budget", "forecast", "--json").out)
    assert row.items() <= shown.items()


def test_bars_and_sparklines_are_scaled() -> None:
    assert bar(50, 10) == "█████░░░░░ 50 %"
    assert bar(150, 10) == "██████████ 150 %"
    assert sparkline([Decimal(0), Decimal(7), Decimal(14)]) == "▁▄█"
    assert sparkline([Decimal(0)]) == "▁"


USED: dict[str, Any] = {
    "model": "a/b", "status": "succeeded", "tokens_prompt": 10, "tokens_completion": 2,
}  # fmt: skip


def test_usage_adds_up_the_activity_without_refusals(run: Run, gateway: FakeGateway) -> None:
    used(
        gateway,
        {"id": "gen-1", "created_at": "2026-11-01T01:00:00Z", "total_cost": 0.1, **USED},
        {"id": "gen-2", "created_at": "2026-11-02T01:00:00Z", "total_cost": 0.2, **USED},
        {"id": "gen-3", "created_at": "2026-11-02T01:00:00Z", **USED, "status": "refused"},
        {"id": "gen-4", "created_at": "2026-11-02T01:00:00Z", **USED, "model": "c/d", "total_cost": 2},
    )  # fmt: skip
    rows = loads(run("usage", "summary", "--json").out)
    assert [row["model"] for row in rows] == ["c/d", "a/b"]
    assert rows[1] == {
        "model": "a/b",
        "requests": 2,
        "tokens_prompt": 20,
        "tokens_completion": 4,
        "cost": Decimal("0.3"),
        "cached_tokens": 0,
        "cache_discount": 0,
        "cache_hit_rate": 0,
    }


def test_usage_by_session_says_what_came_from_the_cache(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one(session_id: str | None, prompt: int, cached: int, saved: object) -> dict[str, Any]:
        return {
            **USED,
            "id": f"gen-{prompt}",
            "created_at": "2026-11-01T01:00:00Z",
            "session_id": session_id,
            "tokens_prompt": prompt,
            "total_cost": 1,
            "native_tokens_cached": cached,
            "cache_discount": saved,
        }

    used(
        gateway,
        one("s-1", 10_000, 0, -0.0025),
        one("s-1", 20_000, 9_999, 0.0275),
        one("s-2", 3, 3, None),
        one(None, 0, 0, None),
    )
    rows = loads(run("usage", "summary", "--by", "session", "--json").out)
    assert {row["session_id"]: row["cache_hit_rate"] for row in rows} == {
        "s-1": Decimal("0.3333"),
        "s-2": 1,
        None: None,
    }
    [first] = [row for row in rows if row["session_id"] == "s-1"]
    assert (first["cached_tokens"], first["cache_discount"]) == (9_999, Decimal("0.025"))
    monkeypatch.setattr(Output, "table", True)
    shown = run("usage", "summary", "--by", "session")
    assert re.search(r"s-1 .* 33 %", shown.out)
    assert re.search(r"s-2 .* 100 %", shown.out)
    assert "$0.025 saved by prompt caches" in shown.err


def test_plot_adds_cost_per_day(run: Run, gateway: FakeGateway) -> None:
    used(
        gateway,
        {**USED, "id": "gen-1", "created_at": "2026-11-01T00:00:00Z", "total_cost": 1},
        {**USED, "id": "gen-2", "created_at": "2026-11-03T00:00:00Z", "total_cost": 4},
    )
    words = ["usage", "summary", "--plot", "--from", "2026-11-01", "--to", "2026-11-03T12:00:00Z"]
    assert run(*words).out == "a/b\t2\t20\t4\t5\t0\t1,0,4\n"


def test_a_request_counts_for_each_of_its_tags(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = {"created_at": "2026-11-01T00:00:00Z"}
    gateway.collection(
        "/generations",
        {**USED, **at, "id": "gen-1", "total_cost": 1, "tags": ["a", "b"]},
        {**USED, **at, "id": "gen-2", "total_cost": 4, "tags": ["b"]},
        {**USED, **at, "id": "gen-3", "total_cost": 7, "tags": []},
    )
    rows = loads(run("usage", "summary", "--by", "tag", "--json").out)
    assert {row["tag"]: row["cost"] for row in rows} == {None: 7, "b": 5, "a": 1}
    monkeypatch.setattr(Output, "table", True)
    shown = run("usage", "summary", "--by", "tag")
    assert "total" not in shown.err
    assert "a request with several tags counts in the row of each" in shown.err


def test_export_is_csv_per_day_without_formulas(run: Run, gateway: FakeGateway) -> None:
    one = {**USED, "id": "gen-1", "created_at": "2026-11-01T00:00:00Z", "total_cost": 0.1}
    used(gateway, {**one, "key_id": "key_1"}, {**one, "key_id": "key_2"})
    gateway.collection("/keys", {"id": "key_1", "name": "=1+1"})
    table = list(csv.reader(io.StringIO(run("usage", "export", "--csv").out)))
    assert table == [
        [
            *("date", "model", "api_key", "requests", "tokens_prompt", "tokens_completion", "cost"),
            *("cached_tokens", "cache_hit_rate", "cache_discount"),
        ],
        ["2026-11-01", "a/b", "'=1+1", "1", "10", "2", "0.1", "0", "0", "0"],
        ["2026-11-01", "a/b", "key_2", "1", "10", "2", "0.1", "0", "0", "0"],  # it is gone
    ]


def test_a_long_time_is_asked_for_in_stretches_and_too_many_rows_in_halves(
    run: Run, gateway: FakeGateway
) -> None:
    asked: list[tuple[str, str]] = []

    def answer(request: Received) -> Answer:
        between = request.body["range"]
        asked.append((between["from"][:13], between["to"][:13]))
        rows = [
            {"date__day": f"{between['from'][:10]}T00:00:00Z", "model": "a", "requests": 1}
            | {"tokens_prompt": 1, "tokens_completion": 1, "cached_tokens": 0}
            | {"cost": 0.1, "cache_discount": 0}
        ]
        is_first = asked[-1] == ("2026-08-01T00", "2026-09-01T00")
        return Answer({"data": {"data": rows, "metadata": {**META, "truncated": is_first}}})

    gateway.on("POST", PATH, answer)
    words = ("usage", "summary", "--from", "2026-08-01", "--to", "2026-09-10", "--json")
    (row,) = loads(run(*words).out)
    assert asked == [
        ("2026-08-01T00", "2026-09-01T00"),
        ("2026-08-01T00", "2026-08-16T12"),
        ("2026-08-16T12", "2026-09-01T00"),
        ("2026-09-01T00", "2026-09-11T00"),
    ]
    assert (row["requests"], row["cost"]) == (3, Decimal("0.3"))
