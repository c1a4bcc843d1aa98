"""The other nouns: what they send and what they show."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gwctl.client import own_version
from gwctl.commands.member import token_of
from tests.cli.conftest import ROOT, Run
from tests.cli.gateway import Answer, FakeGateway, Received, error

MODEL: dict[str, Any] = {
    "id": "acme/fast",
    "name": "Fast",
    "context_length": 32000,
    "pricing": {"prompt": "0.0000005", "completion": "0.000002"},
    "aliases": ["quick"],
    "endpoints": [{"id": "ep_1"}],
    "prices": [
        {"id": "prc_1", "effective_at": "2026-01-01T00:00:00Z", "pricing": {"prompt": "0.000001"}},
        {
            "id": "prc_2",
            "effective_at": "2026-06-01T00:00:00Z",
            "pricing": {"prompt": "0.0000005", "completion": "0.000002"},
        },
        {
            "id": "prc_3",
            "effective_at": "2027-06-01T00:00:00Z",
            "pricing": {"prompt": "0.000009", "completion": "0.000009"},
        },
    ],
}
GENERATION: dict[str, Any] = {
    "id": "gen-1",
    "model": "acme/fast",
    "status": "succeeded",
    "tokens_prompt": 10,
    "tokens_completion": 5,
    "total_cost": 0.000138,
    "latency": 900,
    "created_at": "2026-11-01T10:00:00Z",
}


def test_org_settings_are_shown_or_changed(run: Run, gateway: FakeGateway) -> None:
    path = "/organization/settings"
    gateway.on("GET", path, {"data": {"retention_days": 90, "forward_retired_models": True}})
    gateway.on("PATCH", path, {"data": {"retention_days": 30, "forward_retired_models": False}})
    assert "retention_days\t90" in run("org", "settings").out
    words = ("org", "settings", "retention_days=30", "forward_retired_models=false")
    assert "retention_days  90 -> 30" in run(*words).out
    assert gateway.sent("PATCH", path).body == {
        "retention_days": 30,
        "forward_retired_models": False,
    }
    assert run("org", "settings", "retention_days").code == 2


def test_members_are_named_by_their_address(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/organization/members", {"id": "usr_1", "email": "ada@example.com"})
    assert run("member", "role", "Ada@example.com", "billing").code == 0
    assert gateway.sent("PATCH", "/organization/members/usr_1").body == {"role": "billing"}
    assert run("member", "role", "ada@example.com", "king").code == 2
    assert run("member", "remove", "ada@example.com", "--yes").code == 0
    assert gateway.writes()[-1] == ("DELETE", "/organization/members/usr_1")


def test_an_invitation_link_is_shown_once_and_alone_with_q(run: Run, gateway: FakeGateway) -> None:
    reply = {"accept_url": "https://gw/a?token=t", "data": {"id": "inv_1", "email": "b@x.example"}}
    gateway.on("POST", "/organization/invitations", Answer(reply, 201))
    assert run("member", "invite", "b@x.example", "-q").out == "https://gw/a?token=t\n"
    assert gateway.sent("POST", "/organization/invitations").body == {
        "email": "b@x.example",
        "role": "member",
    }


def test_accepting_takes_the_link_as_a_secret_and_needs_no_key(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GWCTL_KEY")
    reply = {"management_key": "gwm_new", "data": {"email": "b@x.example", "role": "member"}}
    gateway.on("POST", "/invitations/accept", Answer(reply, 201))
    out = run("member", "accept", "--secret-stdin", "-q", stdin="https://gw/a?token=t0k").out
    assert out == "gwm_new\n"
    assert gateway.sent("POST", "/invitations/accept").body == {"token": "t0k"}


@pytest.mark.parametrize(
    "link",
    ["t0k", "https://gw/accept?token=t0k", "https://gw/accept#token=t0k", "https://gw/accept/t0k"],
)
def test_the_token_is_found_in_any_form_of_link(link: str) -> None:
    assert token_of(link) == "t0k"


def test_model_list_without_a_key_is_the_public_one(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {name: MODEL[name] for name in ("id", "name", "context_length", "pricing")}
    gateway.on("GET", "/models", {"data": [{**shown, "endpoints_available": 1}]})
    gateway.collection("/catalog/models", MODEL, {**MODEL, "id": "acme/slow"})
    assert len(run("model", "list").out.splitlines()) == 2
    assert len(run("model", "list", "--search", "SLOW").out.splitlines()) == 1
    monkeypatch.delenv("GWCTL_KEY")
    assert run("model", "list").out.startswith("acme/fast\t32000\t0.0000005\t0.000002\t1\tactive")


def test_prices_are_typed_per_million_and_sent_per_token(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/models", dict(MODEL))
    words = [
        "model",
        "price",
        "set",
        "acme/fast",
        "--prompt",
        "0.0375",
        "--effective",
        "2026-12-01",
    ]
    assert run(*words).code == 0
    assert gateway.sent("PATCH", "/catalog/models/acme/fast").body == {
        "pricing": {"prompt": "0.0000000375", "completion": "0.000002"},
        "effective_at": "2026-12-01T00:00:00Z",
    }
    assert run(*words[:-1], "2027-07-01").code == 0
    assert gateway.sent("PATCH", "/catalog/models/acme/fast").body["pricing"] == {
        "prompt": "0.0000000375",
        "completion": "0.000009",
    }
    assert run("model", "price", "set", "acme/fast").code == 2
    assert "per million" not in run("model", "price", "show", "acme/fast").err
    rows = run("model", "price", "history", "acme/fast").out.splitlines()
    assert [row.split("\t")[-1] for row in rows] == ["prc_3", "prc_2", "prc_1"]


def test_a_model_is_added_with_its_price(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/models")
    words = [
        "model",
        "add",
        "acme/new",
        "--context",
        "32000",
        "--prompt",
        "0.5",
        "--completion",
        "2",
    ]
    assert run(*words, "--family", "fast").code == 0
    body = gateway.sent("POST", "/catalog/models").body
    assert body["pricing"] == {"prompt": "0.0000005", "completion": "0.000002"}
    assert (body["vendor"], body["max_completion_tokens"]) == ("Acme", 8192)


def test_retiring_names_a_successor_and_deprecates_first(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/models", dict(MODEL))
    assert run("model", "retire", "acme/fast").code == 2
    words = ["model", "retire", "acme/fast", "--successor", "acme/new", "--at", "2026-12-31"]
    assert run(*words).code == 0
    assert gateway.sent("PATCH", "/catalog/models/acme/fast").body == {
        "retired_at": "2026-12-31T00:00:00Z",
        "deprecated_at": "2026-12-30T23:59:59Z",
        "successor": "acme/new",
    }
    run("model", "undo-retire", "acme/fast", "--active")
    assert gateway.sent("PATCH", "/catalog/models/acme/fast").body == {
        "retired_at": None,
        "deprecated_at": None,
        "successor": None,
    }


def test_an_alias_is_added_to_the_others_or_removed(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/models", dict(MODEL))
    run("model", "alias", "acme/fast", "swift")
    sent = gateway.sent("PATCH", "/catalog/models/acme/fast").body
    assert sent == {"aliases": ["quick", "swift"]}
    run("model", "alias", "acme/fast", "quick", "--remove")
    assert gateway.sent("PATCH", "/catalog/models/acme/fast").body == {"aliases": ["swift"]}


def test_endpoints_are_drained_and_switched(run: Run, gateway: FakeGateway) -> None:
    gateway.collection("/catalog/endpoints", {"id": "ep_1", "tag": "acme/eu", "model": "a/b"})
    gateway.on("POST", "/catalog/endpoints/ep_1/drain", {"data": {"id": "ep_1"}})
    assert run("endpoint", "drain", "acme/eu").code == 0
    assert run("endpoint", "disable", "ep_1").code == 0
    assert gateway.writes()[-1] == ("PATCH", "/catalog/endpoints/ep_1")


def test_status_error_means_all_that_went_wrong_newest_first(
    run: Run, gateway: FakeGateway
) -> None:
    def script(request: Any) -> Answer:
        status = request.query["status"]
        at = {"failed": "2026-11-03", "incomplete": "2026-11-01", "refused": "2026-11-02"}[status]
        row = {**GENERATION, "id": f"gen-{status}", "settled_at": at, "status": status}
        return Answer({"data": [row], "total_count": 1})

    gateway.on("GET", "/generations", script)
    out = run("activity", "list", "--last", "1h", "--status", "error", "--json", "--jq", ".[].id")
    assert out.out.split() == ["gen-failed", "gen-refused", "gen-incomplete"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", gateway.requests[0].query["from"])
    assert run("activity", "list", "--status", "broken").code == 2


def test_activity_shows_one_generation_and_exports_all(run: Run, gateway: FakeGateway) -> None:
    gateway.on("GET", "/generation", {"data": GENERATION})
    assert "total_cost\t0.000138" in run("activity", "show", "gen-1").out
    gateway.collection("/generations", *({**GENERATION, "id": f"gen-{n}"} for n in range(120)))
    lines = run("activity", "export", "--csv").out.splitlines()
    assert lines[0].startswith("created_at,id,model,status,total_cost")
    assert len(lines) == 121
    assert len(run("activity", "export", "--jsonl").out.splitlines()) == 120


def test_tail_prints_each_record_once_as_it_ends(gateway: FakeGateway, home: Path) -> None:
    """What ended before the command began is not printed; the rest in the order in which it ended."""
    rows = [{**GENERATION, "id": "gen-0"}]
    asked: list[str | None] = []

    def listed(request: Received) -> Answer:
        place = request.query.get("before")
        asked.append(place)
        newer = rows[: [row["id"] for row in rows].index(place)] if place else rows[:1]
        return Answer({"data": newer, "next": None, "previous": newer[0]["id"] if newer else place})

    gateway.on("GET", "/generations", listed)
    process = subprocess.Popen(
        [sys.executable, "-m", "gwctl", "activity", "tail", "--interval", "1", "--json", "id"],
        cwd=ROOT,
        env={"GWCTL_URL": gateway.url, "GWCTL_KEY": "gwm_x", "XDG_CONFIG_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        while "gen-0" not in asked:
            time.sleep(0.01)
        rows[:0] = [{**GENERATION, "id": "gen-2"}, {**GENERATION, "id": "gen-1"}]
        assert json.loads(process.stdout.readline()) == {"id": "gen-1"}
        assert json.loads(process.stdout.readline()) == {"id": "gen-2"}
        rows.insert(0, {**GENERATION, "id": "gen-3"})
        assert json.loads(process.stdout.readline()) == {"id": "gen-3"}
        process.terminate()
        assert process.stdout.read() == ""
        process.wait(timeout=10)


def test_doctor_fails_when_a_check_fails(run: Run, gateway: FakeGateway) -> None:
    root = gateway.url.removesuffix("/api/v1")
    gateway.on("GET", "/healthz", Answer(raw=b"ok"))
    checks = [
        {"name": "sqlite", "state": "ok", "message": "3.53"},
        {"name": "disk", "state": "failed", "do": "make room"},
    ]
    gateway.on("GET", "/healthz/stream", Answer(raw=b"data: 0\n\ndata: 1\n\n"))
    found = {"ok": False, "base_url": gateway.url, "checks": checks}
    gateway.on("GET", "/operator/doctor", {"data": found})
    gateway.on("GET", "/operator/status", {"data": {"version": "0.1.0"}})
    code, out, err = run("doctor")
    assert root
    assert code == 1
    assert "sqlite\tok\t3.53" in out
    assert "streams\twarning\tthe pieces of a stream arrive together" in out
    assert "disk" in err
    assert run("doctor", "--local").code == 0


def test_server_check_tells_whether_requests_are_taken(run: Run, gateway: FakeGateway) -> None:
    gateway.on("GET", "/healthz", Answer(raw=b"ok"))
    gateway.on("GET", "/readyz", Answer(raw=b"ready"))
    assert run("server", "check").code == 0
    gateway.on("GET", "/readyz", Answer(raw=b"not ready", status=503))
    assert run("server", "check").code == 1


def test_a_missing_endpoint_is_explained_by_the_versions_and_by_nothing_else(
    run: Run, gateway: FakeGateway
) -> None:
    found: dict[str, str] = {}
    gateway.lacks("GET", "/audit")
    gateway.on("GET", "/operator/status", error(403, "insufficient_role", "Operators only."))
    for version in ("", own_version(), "0.0.1"):
        if version:
            gateway.on("GET", "/operator/status", {"data": {"version": version}})
        code, _, found[version] = run("audit", "list")
        assert code == 3
    assert "older" not in "".join(found.values())
    assert "check the URL: gwctl config get url" in found[""]
    assert f"gwctl and the gateway are both version {own_version()}" in found[own_version()]
    assert f"gwctl is {own_version()}, the gateway 0.0.1" in found["0.0.1"]


def test_status_falls_back_to_what_a_member_may_see(run: Run, gateway: FakeGateway) -> None:
    gateway.on("GET", "/operator/status", error(403, "insufficient_role", "Operators only."))
    gateway.on("GET", "/healthz", Answer(raw=b"ok"))
    gateway.on("GET", "/credits", {"data": {"balance": 5, "available": 4, "reserved": 1}})
    code, out, _ = run("status")
    assert code == 0
    assert "balance     $5.00   available $4.00   holds $1.00" in out
    assert f"anthropic   {gateway.url.removesuffix('/v1')}" in out


def test_a_key_of_a_provider_comes_from_stdin_a_file_or_a_reference(
    run: Run, gateway: FakeGateway, home: Path
) -> None:
    path = "/catalog/credentials"
    gateway.collection("/catalog/providers", {"slug": "openai", "name": "OpenAI"})
    rows = gateway.collection(path, prefix="pk_").rows
    assert run("provider", "secret", "openai").code == 2
    assert run("provider", "secret", "openai", "--secret-stdin", stdin="sk-1\n").code == 0
    assert gateway.sent("POST", path).body == {"provider": "openai", "key": "sk-1"}
    (home / "new").write_text("sk-2")
    assert run("provider", "secret", "openai", "--secret-file", str(home / "new")).code == 0
    assert gateway.sent("PATCH", f"{path}/{rows[0]['id']}").body == {"key": "sk-2"}
    assert run("provider", "secret", "openai", "--key-ref", "env:X", "--name", "second").code == 0
    assert gateway.sent("POST", path).body["key_ref"] == "env:X"
    assert run("provider", "secret", "openai", "--key-ref", "sk-1").code == 2
    words = ("provider", "secret", "openai", "--name", "third", "--secret-stdin", "--dry-run")
    for shape in ((), ("--json",)):
        code, out, _ = run(*words, *shape, stdin="sk-secret-1234567890\n")
        assert code == 8
        assert "sk-secret" not in out


def test_own_vendor_keys_come_from_stdin_a_file_or_the_operators_reference(
    run: Run, gateway: FakeGateway, home: Path
) -> None:
    gateway.collection("/byok", prefix="pk_")
    gateway.collection("/keys", {"id": "key_1", "name": "ci", "hash": "a" * 64})
    gateway.collection("/organization/members", {"id": "usr_1", "email": "ada@example.com"})
    assert run("byok", "add", "openai").code == 2
    assert gateway.writes() == []
    words = ("byok", "add", "openai", "--secret-stdin")
    for shape in ((), ("--json",)):
        dry = run(*words, "--dry-run", *shape, stdin="sk-secret-1234567890\n")
        assert dry.code == 8
        assert "sk-secret" not in dry.out + dry.err
    assert run(*words, stdin="sk-1234567890ab\n").code == 0
    assert gateway.sent("POST", "/byok").body == {"provider": "openai", "key": "sk-1234567890ab"}
    limited = (
        "--name",
        "batch",
        "--key",
        "ci",
        "--user",
        "ada@example.com",
        "--model",
        "openai/*",
        "--fallback",
    )
    assert run("byok", "add", "openai", "--key-ref", "env:X", *limited).code == 0
    assert gateway.sent("POST", "/byok").body == {
        "provider": "openai",
        "key_ref": "env:X",
        "name": "batch",
        "allowed_api_key_hashes": ["a" * 64],
        "allowed_user_ids": ["usr_1"],
        "allowed_models": ["openai/*"],
        "is_fallback": True,
    }
    assert run("byok", "add", "openai", "--key-ref", "sk-1").code == 2
    row = gateway.collections["/byok"].rows[1]
    (home / "new").write_text("sk-new-0123456789\n")
    assert run("byok", "rotate", "batch", "--secret-file", str(home / "new")).code == 0
    path = f"/byok/{row['id']}"
    assert gateway.sent("PATCH", path).body == {"key": "sk-new-0123456789"}
    assert run("byok", "update", "batch", "--key", "none", "--workspace", "none").code == 0
    for word, value in (("disable", True), ("enable", False)):
        row["disabled"] = not value
        assert run("byok", word, "batch").code == 0
        assert gateway.sent("PATCH", path).body == {"disabled": value}
    gateway.on(
        "POST", f"{path}/test", {"data": {"ok": True, "model": "openai/gpt-5", "latency_ms": 9}}
    )
    assert "batch answers: openai/gpt-5 9 ms" in run("byok", "test", "batch").out
    row["problem"] = "made for somewhere else"
    listed = run("byok", "list").out
    assert "unusable" in listed
    assert run("byok", "delete", "batch", "--yes").code == 0


def test_endpoint_health_of_a_model_and_of_one_endpoint(run: Run, gateway: FakeGateway) -> None:
    def row(model: str, tag: str) -> dict[str, Any]:
        return {"id": f"ep_{tag}", "model": model, "tag": tag, "status": "healthy"}

    rows = [row("acme/fast", "a"), row("acme/fast", "b"), row("acme/slow", "c")]
    gateway.on("GET", "/operator/status", {"data": {"endpoints": rows}})
    assert len(run("endpoint", "health").out.splitlines()) == 3
    assert len(run("endpoint", "health", "acme/fast").out.splitlines()) == 2
    fault = {"at": "2026-11-29T00:00:00Z", "reason": "overloaded", "message": "too busy"}
    stands = {**rows[2], "circuit": "half_open", "in_flight": 3, "last_errors": [fault]}
    gateway.on("GET", "/catalog/endpoints/ep_c/health", {"data": stands})
    live = [{**each, "status": "live"} for each in rows]
    gateway.on("GET", "/catalog/endpoints", {"data": live})
    for reference in ("c", "ep_c"):
        out = run("endpoint", "health", reference).out
        assert "half_open" in out
        assert "too busy" in out
    gateway.on("GET", "/catalog/endpoints/ep_c", {"data": live[2]})
    _, out, err = run("endpoint", "show", "ep_c")
    assert "acme/slow" in out
    assert "its circuit is half open, 3 requests are there now" in err
    refused = error(403, "insufficient_role", "Operators only.")
    gateway.on("GET", "/catalog/endpoints/ep_c/health", refused)
    code, out, err = run("endpoint", "show", "ep_c")
    assert (code, "circuit" in out + err) == (0, False)
