"""Keys: secrets shown once, --if-absent, dry runs, rotation, names against ids."""

import json
from typing import Any

import pytest

from gwctl.jsontext import loads
from tests.cli.conftest import Run
from tests.cli.gateway import SECRET, Answer, FakeGateway, Received


def test_a_new_secret_is_shown_once_with_what_it_may_do(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", prefix="key_")
    words = [
        "key",
        "create",
        "ci",
        "--limit",
        "50",
        "--reset",
        "monthly",
        "--model",
        "openai/*",
        "--rpm",
        "120",
    ]
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert SECRET in out
    assert "limit $50.00 monthly" in out
    assert gateway.sent("POST", "/keys").body == {
        "name": "ci",
        "limit": 50,
        "limit_reset": "monthly",
        "allowed_models": ["openai/*"],
        "rate_limit_per_minute": 120,
    }


def test_quiet_prints_the_new_secret_alone(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", prefix="key_")
    assert run("key", "create", "ci", "-q").out == SECRET + "\n"


def test_json_puts_the_new_secret_into_the_record(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", prefix="key_")
    record = json.loads(run("key", "create", "ci", "--json").out)
    assert (record["key"], record["name"]) == (SECRET, "ci")
    assert run("key", "create", "ci2", "--json", "--jq", ".key").out == SECRET + "\n"


def test_amounts_reach_the_api_exactly_as_typed(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", prefix="key_")
    run("key", "create", "ci", "--limit", "0.000000001")
    assert loads(gateway.sent("POST", "/keys").text)["limit"].as_tuple().digits == (1,)
    assert '"limit": 0.000000001' in gateway.sent("POST", "/keys").text


def test_every_post_carries_an_idempotency_key(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", prefix="key_")
    run("key", "create", "a")
    run("key", "create", "b")
    keys = [r.headers["idempotency-key"] for r in gateway.requests if r.method == "POST"]
    assert len(set(keys)) == 2
    run("key", "create", "c", "--idempotency-key", "job-7")
    assert gateway.sent("POST", "/keys").headers["idempotency-key"] == "job-7"


def test_a_replayed_creation_cannot_show_the_secret_and_says_so(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.on("POST", "/keys", Answer({"key": None, "data": {"id": "key_1", "name": "ci"}}, 201))
    code, out, err = run("key", "create", "ci", "-q")
    assert (code, out) == (1, "")
    assert "gwctl key rotate" in err


def test_if_absent_leaves_a_live_key_alone_and_prints_no_secret(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci", "disabled": False})
    code, out, err = run("key", "create", "ci", "--if-absent", "-q")
    assert (code, out) == (0, "")
    assert "gwctl key rotate key_1" in err
    assert len(gateway.collections["/keys"].rows) == 1


@pytest.mark.parametrize(
    "gone",
    [
        {"disabled": True},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"rotated_to": "key_9", "expires_at": "2999-01-01T00:00:00Z"},
    ],
)
def test_if_absent_makes_a_key_when_the_one_of_that_name_is_dead(
    run: Run, gateway: FakeGateway, gone: dict[str, Any]
) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci", **gone})
    assert run("key", "create", "ci", "--if-absent", "-q").out == SECRET + "\n"


def test_a_name_means_the_live_key_after_a_rotation(run: Run, gateway: FakeGateway) -> None:
    old = {"id": "key_1", "name": "ci", "rotated_to": "key_2"}
    gateway.collection("/keys", old, {"id": "key_2", "name": "ci"})
    assert run("key", "show", "ci", "--jq", ".id").out == "key_2\n"
    assert run("key", "show", "key_1", "--jq", ".id").out == "key_1\n"
    run("key", "disable", "ci")
    assert run("key", "show", "ci", "--jq", ".id").out == "key_2\n"


def test_two_live_keys_of_one_name_are_ambiguous(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci"}, {"id": "key_2", "name": "ci"})
    code, _, err = run("key", "disable", "ci")
    assert code == 2
    assert "key_1, key_2" in err
    assert gateway.writes() == []


def test_an_unknown_name_is_exit_3(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys")
    assert run("key", "show", "nobody").code == 3


def test_update_sends_only_what_was_named_and_none_clears(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci", "limit": 50, "allowed_models": ["a"]})
    code, out, _ = run("key", "update", "ci", "--limit", "none", "--model", "none", "--rpm", "60")
    assert code == 0
    assert gateway.sent("PATCH", "/keys/key_1").body == {
        "limit": None,
        "allowed_models": None,
        "rate_limit_per_minute": 60,
    }
    assert "limit  $50.00 -> -" in out


def test_dry_run_shows_the_difference_field_by_field_and_does_nothing(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci", "limit": 50})
    code, out, _ = run("key", "update", "ci", "--limit", "100", "--dry-run")
    assert code == 8
    assert out == "~ key ci\n  limit  $50.00 -> $100.00\n"
    assert run("key", "update", "ci", "--limit", "50.00", "--dry-run").code == 0
    assert gateway.writes() == []


def test_dry_run_of_a_creation_says_what_would_be_sent(run: Run, gateway: FakeGateway) -> None:
    code, out, _ = run("key", "create", "ci", "--limit", "5", "--dry-run", "--json")
    assert code == 8
    assert json.loads(out) == {
        "dry_run": True,
        "method": "POST",
        "path": "/keys",
        "body": {"name": "ci", "limit": 5},
    }
    assert gateway.writes() == []


def test_rotate_shows_the_new_secret_and_when_the_old_one_ends(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci"})
    reply = {
        "key": SECRET,
        "data": {"id": "key_2", "name": "ci"},
        "previous": {"id": "key_1", "expires_at": "2026-11-02T00:00:00Z"},
    }
    gateway.on("POST", "/keys/key_1/rotate", Answer(reply, 201))
    code, out, err = run("key", "rotate", "ci", "--overlap", "1h", "-q")
    assert (code, out) == (0, SECRET + "\n")
    assert "2026-11-02T00:00:00Z" in err
    assert gateway.sent("POST", "/keys/key_1/rotate").body == {"overlap": "1h"}


def test_disable_and_enable_patch_the_key(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci", "disabled": False})
    run("key", "disable", "ci")
    assert gateway.sent("PATCH", "/keys/key_1").body == {"disabled": True}
    run("key", "enable", "ci")
    assert gateway.sent("PATCH", "/keys/key_1").body == {"disabled": False}


def test_deleting_without_a_terminal_needs_yes(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci"})
    code, out, err = run("key", "delete", "ci")
    assert (code, out) == (2, "")
    assert "--yes" in err
    assert gateway.writes() == []
    assert run("key", "delete", "ci", "--yes").code == 0
    assert gateway.writes() == [("DELETE", "/keys/key_1")]


def test_deleting_dry_asks_nothing_and_deletes_nothing(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci"})
    assert run("key", "delete", "ci", "--dry-run").code == 8
    assert gateway.writes() == []


@pytest.mark.parametrize(
    ("record", "state"),
    [
        ({"disabled": True}, "disabled"),
        ({"limit": 5, "limit_remaining": 0}, "at limit"),
        ({"rotated_to": "key_2", "expires_at": "2999-01-01T00:00:00Z"}, "rotating"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expired"),
        ({"limit": 5, "limit_remaining": 1}, "enabled"),
    ],
)
def test_the_state_column_tells_why_a_key_does_not_work(
    run: Run, gateway: FakeGateway, record: dict[str, Any], state: str
) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci", **record})
    assert run("key", "list").out.rstrip("\n").split("\t")[6] == state


def test_a_workspace_is_named_by_its_slug(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", prefix="key_")
    gateway.collection("/workspaces", {"id": "ws_9", "slug": "web", "name": "Web"})
    run("key", "create", "ci", "--workspace", "web")
    assert gateway.sent("POST", "/keys").body["workspace_id"] == "ws_9"
    assert run("key", "create", "ci", "--workspace", "wbe").code == 3


def test_a_team_is_one_command_workspace_invitation_and_key(run: Run, gateway: FakeGateway) -> None:
    def invite(request: Received) -> Answer:
        link = "https://gw/accept?token=t0k3n"
        return Answer({"accept_url": link, "data": {"id": "inv_1", **request.body}}, 201)

    gateway.collection("/keys", prefix="key_")
    gateway.on("POST", "/workspaces", Answer({"data": {"id": "ws_1", "slug": "web"}}, 201))
    gateway.on("POST", "/organization/invitations", invite)
    words = [
        "workspace",
        "create",
        "web",
        "--lead",
        "a@b.example",
        "--key-limit",
        "50",
        "--reset",
        "monthly",
    ]
    code, out, _ = run(*words)
    assert code == 0
    assert "https://gw/accept?token=t0k3n" in out
    assert SECRET in out
    assert gateway.sent("POST", "/organization/invitations").body == {
        "email": "a@b.example",
        "is_lead": True,
        "workspace_ids": ["ws_1"],
    }
    assert gateway.sent("POST", "/keys").body == {
        "name": "web",
        "limit": 50,
        "limit_reset": "monthly",
        "workspace_id": "ws_1",
    }
    code, out, _ = run(*words, "--dry-run")
    assert code == 8
    assert len(gateway.writes()) == 3


def test_if_absent_is_content_with_two_live_keys(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci"}, {"id": "key_2", "name": "ci"})
    code, out, err = run("key", "create", "ci", "--if-absent", "-q")
    assert (code, out) == (0, "")
    assert "gwctl key rotate key_1" in err
    assert len(gateway.collections["/keys"].rows) == 2


def test_a_keys_policy_is_set_and_cleared(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/keys", prefix="key_")
    words = ["--provider", "openai,azure", "--ignore-provider", "acme", "--data-policy", "deny"]
    assert run("key", "create", "ci", "--sort", "price", *words).code == 0
    assert gateway.sent("POST", "/keys").body == {
        "name": "ci",
        "allowed_providers": ["openai", "azure"],
        "ignored_providers": ["acme"],
        "default_provider_sort": "price",
        "data_policy": "deny",
    }
    words = ["--provider", "none", "--ignore-provider", "none", "--sort", "none"]
    assert run("key", "update", "ci", *words, "--data-policy", "allow").code == 0
    assert gateway.sent("PATCH", "/keys/key_1").body == {
        "allowed_providers": None,
        "ignored_providers": [],
        "default_provider_sort": None,
        "data_policy": "allow",
    }
    refused = run("key", "update", "ci", "--data-policy", "maybe")
    assert (refused.code, "allow, deny" in refused.err) == (2, True)
