"""Changes: nothing is written where nothing differs, nothing half, and what cannot work is refused first."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.gateway import FakeGateway
from tests.cli.test_nouns import MODEL


@pytest.fixture
def node(gateway: FakeGateway) -> FakeGateway:
    """A gateway with one record of what is changed here."""
    for path, record in (
        ("/organization", {"id": "org_1", "name": "Acme", "slug": "acme"}),
        ("/organization/settings", {"retention_days": 90}),
        ("/credits/auto-topup", {"enabled": False, "threshold": 20}),
    ):
        gateway.on("GET", path, {"data": record})
        gateway.on("PATCH", path, {"data": record})
    gateway.collection("/keys", {"id": "key_1", "name": "7", "limit": 50, "disabled": False})
    gateway.collection("/workspaces", {"id": "ws_1", "slug": "web", "name": "Web"})
    gateway.collection("/catalog/models", dict(MODEL))
    gateway.collection("/budgets")
    return gateway


@pytest.mark.parametrize(
    "line",
    [
        "org update --name Acme",
        "org settings retention_days=90",
        "credit topup --threshold 20",
        "workspace settings web name=Web",
        "key update 7 --limit 50.00",
        "key enable 7",
        "model price set acme/fast --prompt 0.5",
        "model price set acme/fast --prompt 0.5 --effective 2026-12-31",
        "model alias acme/fast quick",
    ],
)
def test_where_nothing_differs_nothing_is_written(run: Run, node: FakeGateway, line: str) -> None:
    code, out, err = run(*line.split(), "--dry-run")
    assert (code, out) == (0, "")
    assert "is already so; nothing would change" in err
    code, out, err = run(*line.split())
    assert (code, out) == (0, "")
    assert "nothing was changed" in err
    assert json.loads(run(*line.split(), "--json").out)
    assert node.writes() == []


@pytest.mark.parametrize(
    "line", ["org update --name New", "org settings retention_days=30", "credit topup --enable"]
)
def test_a_difference_is_exit_8_and_written_without_dry_run(
    run: Run, node: FakeGateway, line: str
) -> None:
    assert run(*line.split(), "--dry-run").code == 8
    assert node.writes() == []
    assert run(*line.split()).code == 0
    assert len(node.writes()) == 1


def test_two_texts_are_not_compared_as_numbers(run: Run, node: FakeGateway) -> None:
    assert run("key", "update", "7", "--name", "007").code == 0
    assert node.sent("PATCH", "/keys/key_1").body == {"name": "007"}


def test_an_update_of_nothing_is_wrong_usage(run: Run, node: FakeGateway) -> None:
    for line in ("org update", "workspace update web", "key update 7"):
        assert run(*line.split()).code == 2
    assert node.writes() == []


def test_alert_thresholds_are_percentages_or_null(run: Run, node: FakeGateway) -> None:
    node.collections["/keys"].rows[0]["alert_thresholds"] = [50]
    run("key", "update", "7", "--alerts", "none")
    assert node.sent("PATCH", "/keys/key_1").body == {"alert_thresholds": None}
    run("key", "update", "7", "--alerts", "80%, 100")
    assert node.sent("PATCH", "/keys/key_1").body == {"alert_thresholds": [80, 100]}
    for wrong in ("0", "101", "80,", "many", "50,none", "²"):
        code, _, err = run("key", "update", "7", "--alerts", wrong)
        assert code == 2
        assert "from 1 to 100" in err


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "/x", "x/", "a//b"])
def test_a_name_that_is_a_folder_is_refused_before_a_request(
    run: Run, node: FakeGateway, name: str
) -> None:
    for verb in ("model show", "provider delete", "workspace show"):
        assert run(*verb.split(), name, *(["--yes"] if "delete" in verb else [])).code == 2
    assert node.requests == []


def test_budgets_are_not_half_written(run: Run, node: FakeGateway) -> None:
    code, _, err = run("budget", "set", "workspace:web", "--monthly", "250", "--daily", "300")
    assert code == 2
    assert "the monthly limit ($250.00) must be larger than the daily limit ($300.00)" in err
    assert run("budget", "set", "workspace:web", "--monthly", "250", "--daily", "100").code == 0
    made = node.writes()
    assert run("budget", "set", "workspace:web", "--weekly", "250", "--daily", "20").code == 1
    assert run("budget", "set", "workspace:web", "--weekly", "0").code == 2
    assert node.writes() == made
    code, _, err = run("budget", "set", "workspace:web", "--monthly", "none")
    assert code == 2
    assert "gwctl budget delete workspace:web --interval monthly" in err


def test_a_workspace_that_is_not_there_is_exit_3(run: Run, node: FakeGateway) -> None:
    for line in (
        "key create x --workspace nosuch",
        "key list --workspace nosuch",
        "budget set workspace:nosuch --monthly 5",
        "member invite a@b.example --workspace nosuch",
    ):
        code, _, err = run(*line.split())
        assert (code, "gwctl workspace list" in err) == (3, True), line
    assert node.writes() == []


@pytest.mark.parametrize(
    "line", ["credit grant none", "credit purchase none", "key create x --model"]
)
def test_what_is_no_amount_or_model_is_refused(run: Run, node: FakeGateway, line: str) -> None:
    words = [*line.split(), *(["bad model"] if line.endswith("--model") else [])]
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "  do:  " in err
    assert node.writes() == []


def test_status_says_what_rests_why_and_how_long(run: Run, gateway: FakeGateway) -> None:
    def rest(reason: str, until: str | None, *, tried: bool) -> dict[str, Any]:
        why = {"reason": reason, "message": "too busy", "credential_id": "pk_1"}
        return {**why, "until": until, "tried": tried}

    endpoints = [
        {
            "model": "a/b",
            "tag": "x",
            "status": "cooling_down",
            "reason": "overloaded",
            "rests": [rest("overloaded", "2099-01-01T00:00:00Z", tried=True)],
        },
        {
            "model": "a/b",
            "tag": "y",
            "status": "healthy",
            "rests": [rest("auth_invalid", None, tried=False)],
        },
        {"model": "a/b", "tag": "z", "status": "healthy", "rests": []},
    ]
    money = {"balance": 1, "available": 1, "reserved": 0}
    gateway.on(
        "GET",
        "/operator/status",
        {"data": {"version": "1", "credits": money, "endpoints": endpoints}},
    )
    code, out, _ = run("status")
    assert code == 0
    assert "2 of 3 healthy" in out
    assert "a/b x: cooling down" in out
    assert "(overloaded: too busy)" in out
    assert (
        "a/b y: one credential rests until its key is changed, not tried (auth_invalid: too busy)"
    ) in out


def test_update_never_leads_to_delete(run: Run, gateway: FakeGateway) -> None:
    for noun in ("member", "budget", "ledger"):
        _, _, err = run(noun, "update", "x")
        assert "delete" not in err.split("do:")[1]
        assert "remove" not in err.split("do:")[1]
    assert "gwctl provider delete" in run("provider", "delte", "x").err
