"""gwctl webhook: where alerts go, what became of each delivery, and a secret that is shown once."""

import re
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.gateway import SECRET, Answer, FakeGateway

PLACE = "/notifications/destinations"
OPS: dict[str, Any] = {
    "id": "dst_1",
    "name": "ops",
    "type": "webhook",
    "url": "https://hooks.example.com/gw",
    "events": ["key_limit"],
    "min_severity": "warning",
    "enabled": True,
}
CHAT = "https://hooks.slack.com/services/T0/B0/very-secret-token"
DELIVERY: dict[str, Any] = {
    "id": "dlv_1",
    "event_id": "evt_1",
    "type": "alert.key_limit",
    "destination_id": "dst_1",
    "attempt": 2,
    "status": "failed",
    "response_status": 503,
    "error": "the receiver answered 503",
}


@pytest.fixture
def node(gateway: FakeGateway) -> FakeGateway:
    gateway.collection(PLACE, dict(OPS), prefix="dst_")
    return gateway


def test_a_webhook_shows_its_signing_secret_once(run: Run, node: FakeGateway) -> None:
    words = [
        "webhook",
        "add",
        "https://hooks.example.com/x",
        "--name",
        "night",
        "--event",
        "low_balance,key_limit",
        "--event",
        "destination",
        "--min-severity",
        "critical",
    ]
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "Webhook created. This is its signing secret. It is shown once; keep it now." in out
    assert out.count(SECRET) == 1
    assert node.sent("POST", PLACE).body == {
        "type": "webhook",
        "url": "https://hooks.example.com/x",
        "name": "night",
        "events": ["low_balance", "key_limit", "destination"],
        "min_severity": "critical",
    }
    assert run("webhook", "add", "https://hooks.example.com/y", "-q").out == f"{SECRET}\n"
    assert node.sent("POST", PLACE).body["name"] == "hooks.example.com"
    assert SECRET not in run("webhook", "list", "--json").out


def test_the_same_request_again_has_no_secret_and_says_what_makes_one(
    run: Run, node: FakeGateway
) -> None:
    node.on("POST", PLACE, Answer({"data": OPS}, 201))
    code, out, err = run("webhook", "add", "https://hooks.example.com/gw")
    assert (code, out) == (1, "")
    assert "do:  gwctl webhook rotate-secret dst_1" in err


def test_mail_and_chat_are_told_by_their_looks(run: Run, node: FakeGateway) -> None:
    assert run("webhook", "add", "ada@example.com").code == 0
    assert node.sent("POST", PLACE).body == {
        "type": "email",
        "address": "ada@example.com",
        "name": "ada@example.com",
    }
    for host in ("a.webhook.office.com", "prod-1.westeurope.logic.azure.com"):
        run("webhook", "add", f"https://{host}/x", "--name", "team")
        assert node.sent("POST", PLACE).body["type"] == "chat"
    run("webhook", "add", "https://chat.example.com/hooks/x", "--type", "chat", "--format", "slack")
    sent = node.sent("POST", PLACE).body
    assert (sent["type"], sent["format"]) == ("chat", "slack")
    for words in (
        ("ada@example.com", "--type", "webhook"),
        ("https://a.example", "--type", "email"),
        ("https://a.example", "--type", "pigeon"),
        ("https://a.example", "--min-severity", "loud"),
    ):
        assert run("webhook", "add", *words).code == 2, words


def test_the_address_of_a_chat_workspace_is_in_no_output(run: Run, node: FakeGateway) -> None:
    """Who knows it can write to the workspace."""
    said = [run("webhook", "add", CHAT, "--name", "team")]
    assert node.sent("POST", PLACE).body["url"] == CHAT
    said.append(run("webhook", "add", "-", "--name", "team-2", stdin=f"{CHAT}\n"))
    assert node.sent("POST", PLACE).body == {"type": "chat", "url": CHAT, "name": "team-2"}
    shown = {
        **OPS,
        "id": "dst_9",
        "name": "talk",
        "type": "chat",
        "url": "https://hooks.slack.com/…",
    }
    node.collection(PLACE, shown)
    said.append(run("webhook", "update", "talk", "--target", "-", stdin=CHAT))
    assert node.sent("PATCH", f"{PLACE}/dst_9").body == {"url": CHAT}
    assert "url  is replaced" in said[-1].out
    shown["url"] = "https://hooks.slack.com/…"
    for words in (("add", CHAT), ("update", "talk", "--target", CHAT)):
        for more in (("--dry-run",), ("--dry-run", "--json"), ("--debug",)):
            shown["url"] = "https://hooks.slack.com/…"
            said.append(run("webhook", *words, *more))
    for result in said:
        assert "very-secret" not in result.out + result.err, result
    assert [r.code for r in said[3:]] == [8, 8, 0, 8, 8, 0]


def test_the_list_says_where_to_of_what_and_how_it_stands(run: Run, node: FakeGateway) -> None:
    mail = {
        "id": "dst_2",
        "name": "ada",
        "type": "email",
        "address": "ada@example.com",
        "events": [],
        "enabled": False,
        "consecutive_failures": 5,
    }
    node.collection(PLACE, dict(OPS), mail)
    first, second = (line.split("\t") for line in run("webhook", "list").out.splitlines())
    assert first[:5] == ["ops", "webhook", "https://hooks.example.com/gw", "key_limit", "enabled"]
    assert second[:6] == ["ada", "email", "ada@example.com", "all", "disabled", "5"]
    assert "min_severity\twarning" in run("webhook", "show", "ops").out
    assert run("webhook", "show", "https://hooks.example.com/gw").code == 0
    assert run("webhook", "show", "nobody").code == 3


def test_update_sends_what_differs(run: Run, node: FakeGateway) -> None:
    words = "webhook update ops --event none --min-severity info --target https://hooks.example/2"
    code, out, _ = run(*words.split())
    assert code == 0
    assert node.sent("PATCH", f"{PLACE}/dst_1").body == {
        "url": "https://hooks.example/2",
        "events": [],
        "min_severity": "info",
    }
    assert "events  key_limit -> []" in out
    assert "already so" in run(*words.split()).err
    assert run("webhook", "update", "ops").code == 2


@pytest.mark.parametrize(
    ("words", "sent"), [(("test", "ops"), {}), (("trigger", "ops", "model.retired"), {"type": "model.retired"})]
)  # fmt: skip
def test_a_sample_says_what_came_of_it(
    run: Run, node: FakeGateway, words: tuple[str, ...], sent: dict[str, str]
) -> None:
    path = f"{PLACE}/dst_1/test"
    good = {**DELIVERY, "status": "delivered", "response_status": 204, "error": None}
    node.on("POST", path, {"data": good})
    code, out, _ = run("webhook", *words)
    assert (code, node.sent("POST", path).body) == (0, sent)
    assert "to ops: delivered, answered 204" in out
    node.on("POST", path, {"data": DELIVERY})
    code, out, err = run("webhook", *words)
    assert (code, out) == (1, "")
    assert "ops did not take it: failed, answered 503, the receiver answered 503" in err


def test_switches_and_deletion(run: Run, node: FakeGateway) -> None:
    for verb in ("disable", "enable"):
        node.on("POST", f"{PLACE}/dst_1/{verb}", {"data": {**OPS, "enabled": verb == "enable"}})
        assert f"webhook ops {verb}d" in run("webhook", verb, "ops").out
        assert run("webhook", verb, "ops", "--dry-run").code == 8
    assert run("webhook", "delete", "ops").code == 2
    assert run("webhook", "delete", "ops", "--yes").code == 0
    assert run("webhook", "show", "ops").code == 3


def test_a_new_secret_with_an_overlap(run: Run, node: FakeGateway) -> None:
    path = f"{PLACE}/dst_1/rotate-secret"
    node.on("POST", path, {"data": OPS, "signing_secret": "whsec_2"})
    assert run("webhook", "rotate-secret", "ops", "-q").out == "whsec_2\n"
    assert node.sent("POST", path).body == {}
    run("webhook", "rotate-secret", "ops", "--overlap", "24h")
    assert node.sent("POST", path).body == {"overlap_s": 86_400}
    assert run("webhook", "rotate-secret", "ops", "--overlap", "soon").code == 2


def test_deliveries_of_one_destination_and_of_all(run: Run, node: FakeGateway) -> None:
    one, every = f"{PLACE}/dst_1/deliveries", "/notifications/deliveries"
    node.on("GET", one, {"data": [DELIVERY], "total_count": 1})
    node.on("GET", every, {"data": [DELIVERY, DELIVERY], "total_count": 2})
    words = "webhook deliveries ops --status failed --type alert.key_limit --from 2026-11-01"
    code, out, _ = run(*words.split(), "--to", "2026-11-02")
    assert code == 0
    assert out.split("\t")[1:4] == ["alert.key_limit", "failed", "503"]
    asked = node.sent("GET", one).query
    assert (asked["status"], asked["type"]) == ("failed", "alert.key_limit")
    # The last day is meant whole, as everywhere.
    assert (asked["from"], asked["to"]) == ("2026-11-01T00:00:00Z", "2026-11-03T00:00:00Z")
    assert len(run("webhook", "deliveries").out.splitlines()) == 2
    assert run("webhook", "deliveries", "--status", "lost").code == 2


def test_one_delivery_or_a_stretch_of_them_is_sent_again(run: Run, node: FakeGateway) -> None:
    path = "/notifications/deliveries/dlv_1/redeliver"
    node.on("POST", path, {"data": {**DELIVERY, "id": "dlv_2", "status": "pending"}})
    assert "dlv_1 will be sent again" in run("webhook", "redeliver", "dlv_1").out
    path = f"{PLACE}/dst_1/redeliver"
    node.on("POST", path, {"data": {"count": 1}})
    assert "1 delivery to ops" in run("webhook", "redeliver", "ops", "--from", "2h").out
    sent = node.sent("POST", path).body
    assert set(sent) == {"from"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", sent["from"])
    node.on("POST", path, {"data": {"count": 3}})
    words = "webhook redeliver ops --from 2026-11-01 --to 2026-11-01 --status expired"
    assert "3 deliveries to ops" in run(*words.split()).out
    assert node.sent("POST", path).body == {
        "from": "2026-11-01T00:00:00Z",
        "to": "2026-11-02T00:00:00Z",
        "status": "expired",
    }
    assert "--from is missing" in run("webhook", "redeliver", "ops").err
