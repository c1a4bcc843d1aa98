"""gwctl alert: what was raised, who hears of which, and silence for a while."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gwctl import time_input
from tests.cli.conftest import Run
from tests.cli.gateway import FakeGateway

EVENTS = "/notifications/events"
SETTINGS = "/notifications/alerts"
ALERT: dict[str, Any] = {
    "id": "evt_1",
    "type": "alert.key_limit",
    "severity": "warning",
    "title": "ci has used 82 % of its limit",
    "message": "It resets soon.",
    "data": {"key_name": "ci"},
}
ROWS: list[dict[str, Any]] = [
    {"category": "low_balance", "enabled": True, "email_roles": ["owner", "admin"]},
    {
        "category": "key_limit",
        "enabled": True,
        "thresholds": [80, 100],
        "channels": ["dst_1"],
        "email_roles": [],
    },
]


@pytest.fixture
def node(gateway: FakeGateway) -> FakeGateway:
    gateway.collection(EVENTS, dict(ALERT))
    gateway.on("GET", SETTINGS, {"data": ROWS, "total_count": 2})
    gateway.on("PATCH", SETTINGS, {"data": ROWS[0]})
    gateway.collection("/notifications/destinations", {"id": "dst_1", "name": "ops"})
    return gateway


def test_alerts_are_listed_by_what_one_asks_for(run: Run, node: FakeGateway) -> None:
    words = "alert list --severity warning --type alert.key_limit --from 2026-10-01 --to 2026-11-01"
    code, out, _ = run(*words.split())
    assert code == 0
    assert out.rstrip().split("\t")[1:] == [
        "warning",
        "alert.key_limit",
        "ci has used 82 % of its limit",
        "evt_1",
    ]
    assert node.sent("GET", EVENTS).query == {
        "severity": "warning",
        "type": "alert.key_limit",
        "from": "2026-10-01T00:00:00Z",
        "to": "2026-11-02T00:00:00Z",
        "limit": "30",
        "offset": "0",
    }
    run("alert", "list", "--category", "key_limit")
    assert node.sent("GET", EVENTS).query["category"] == "key_limit"
    assert run("alert", "list", "--severity", "loud").code == 2


def test_one_alert_is_shown_whole(run: Run, node: FakeGateway) -> None:
    assert "data.key_name\tci" in run("alert", "show", "evt_1").out
    code, _, err = run("alert", "show", "evt_2")
    assert code == 3
    assert "do:  gwctl alert list" in err


def test_the_settings_tell_all_from_none(run: Run, node: FakeGateway) -> None:
    out = run("alert", "settings").out.splitlines()
    assert [line.split("\t") for line in out] == [
        ["low_balance", "enabled", "all", "all", "owner, admin"],
        ["key_limit", "enabled", "80, 100", "dst_1", "nobody"],
    ]
    silent = {**ROWS[0], "thresholds": [], "channels": [], "enabled": False}
    node.on("GET", SETTINGS, {"data": [silent], "total_count": 1})
    assert run("alert", "settings").out.split("\t")[1:4] == ["disabled", "none", "none"]


def test_settings_change_one_category(run: Run, node: FakeGateway) -> None:
    words = "alert settings low_balance --thresholds 80,100 --channel ops --email-role billing"
    assert run(*words.split(), "--dry-run").code == 8
    assert node.writes() == []
    code, out, _ = run(*words.split())
    assert code == 0
    assert node.sent("PATCH", SETTINGS).body == {
        "category": "low_balance",
        "thresholds": [80, 100],
        "channels": ["dst_1"],
        "email_roles": ["billing"],
    }
    assert "email_roles  owner, admin -> billing" in out
    run("alert", "settings", "key_limit", "--disable", "--channel", "none", "--thresholds", "none")
    assert node.sent("PATCH", SETTINGS).body == {
        "category": "key_limit",
        "enabled": False,
        "channels": None,
        "thresholds": None,
    }
    run("alert", "settings", "low_balance", "--email-role", "nobody")
    assert node.sent("PATCH", SETTINGS).body == {"category": "low_balance", "email_roles": []}
    assert "email_roles\towner, admin" in run("alert", "settings", "low_balance").out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("nothing --disable", 3),
        ("low_balance --email-role boss", 2),
        ("low_balance --thresholds 0", 2),
        ("low_balance --channel nowhere", 3),
    ],
)
def test_wrong_settings_change_nothing(run: Run, node: FakeGateway, words: str, code: int) -> None:
    assert run("alert", "settings", *words.split()).code == code
    assert node.writes() == []


def test_a_category_is_muted_for_a_while(
    run: Run, node: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 11, 29, 12, tzinfo=UTC)
    monkeypatch.setattr(time_input, "utc_now", lambda: now)
    run("alert", "mute", "low_balance", "--for", "24h")
    until = "2026-11-30T12:00:00Z"
    body = {"category": "low_balance", "muted_until": until}
    assert node.sent("PATCH", SETTINGS).body == body
    muted = {**ROWS[0], "muted_until": until}
    node.on("GET", SETTINGS, {"data": [muted], "total_count": 1})
    assert run("alert", "settings").out.split("\t")[1] == f"muted until {until}"
    run("alert", "mute", "low_balance", "--end")
    assert node.sent("PATCH", SETTINGS).body == {"category": "low_balance", "muted_until": None}
    now += timedelta(days=2)
    assert run("alert", "settings").out.split("\t")[1] == "enabled"
    for wrong in ((), ("--for", "24h", "--end"), ("--for", "a while")):
        assert run("alert", "mute", "low_balance", *wrong).code == 2, wrong
    assert run("alert", "mute", "nothing", "--end").code == 3
