"""/byok: an organization's own vendor keys: written once, never read back, never seen by anybody else."""

import asyncio
import json
from typing import Any

import pytest

from gwd.credentials import keyring, own, service
from gwd.credentials.trouble import Trouble, note
from gwd.credentials.vault import Vault
from gwd.demo import Behaviour
from gwd.store import Connection
from tests.api.office import Office, Person

CANARY = "sk-canary-4f9c2d71e8ab5533"
OTHER_CANARY = "sk-canary-97d1c0ffee120044"
PROVIDER = "openai-chat"


async def add(office: Office, who: Person | str = "owner", **fields: Any) -> Any:
    wanted = {"provider": PROVIDER, "key": CANARY, "name": office.unique("key"), **fields}
    return (await office.ok(who, "POST", "/byok", wanted))["data"]


async def refused(
    office: Office, who: Person | str = "owner", /, status: int = 400, **fields: Any
) -> Any:
    wanted = {"provider": PROVIDER, "key": CANARY, "name": office.unique("key"), **fields}
    reply = await office.call(who, "POST", "/byok", wanted)
    assert reply.status_code == status, reply.text
    assert CANARY not in reply.text
    return reply.json()["error"]


async def test_the_record_has_every_field_and_never_the_key(busy_office: Office) -> None:
    made = await add(busy_office, name="ours")
    at = {name: made.pop(name) for name in ("id", "created_at", "updated_at")}
    assert at["id"].startswith("pk_")
    assert at["created_at"] == at["updated_at"]
    assert made == {
        "object": "byok",
        "provider": PROVIDER,
        "name": "ours",
        "label": "sk-…5533",
        "key_ref": None,
        "workspace_id": None,
        "disabled": False,
        "is_fallback": False,
        "is_required": False,
        "allowed_models": None,
        "allowed_api_key_hashes": None,
        "allowed_user_ids": None,
        "base_url": None,
        "sort_order": 0,
        "is_byok_only": False,
        "declared_region": None,
        "declared_zdr": None,
        "fee_percent": 5,
        "last_used_at": None,
        "last_error": None,
        "problem": None,
    }
    unnamed = await add(busy_office, name=None)
    assert unnamed["name"] == PROVIDER
    settings = {"byok_fee_percent": "2.5"}
    await busy_office.ok("operator", "PATCH", "/organization/settings", settings)
    shown = (await busy_office.ok("owner", "GET", f"/byok/{unnamed['id']}"))["data"]
    assert shown["fee_percent"] == 2.5


async def test_two_organizations_never_see_each_others_keys(busy_office: Office) -> None:
    """Canaries: whatever an organization can read holds nothing of the other's keys, nor of its own secrets."""
    ours = await add(busy_office, key=CANARY, name="name-of-ours")
    theirs = await add(busy_office, "stranger", key=OTHER_CANARY, name="name-of-theirs")
    seen: dict[str, str] = {}
    for who in ("owner", "stranger", "member", "billing", "operator"):
        for path in (
            "/byok",
            "/audit",
            "/catalog/credentials",
            "/auth/key",
            "/keys",
            "/operator/status",
        ):
            seen[f"{who} {path}"] = (await busy_office.call(who, "GET", path)).text
    for who, mine, foreign in (("owner", ours, theirs), ("stranger", theirs, ours)):
        listed = json.loads(seen[f"{who} /byok"])
        assert [each["id"] for each in listed["data"]] == [mine["id"]]
        assert listed["total_count"] == 1
        for method, tail, body in (
            ("GET", "", None),
            ("PATCH", "", {"name": "taken"}),
            ("PATCH", "", {"key": "sk-another-0123456789"}),
            ("POST", "/test", None),
            ("DELETE", "", None),
        ):
            path = f"/byok/{foreign['id']}{tail}"
            reply = await busy_office.call(who, method, path, body)
            assert reply.status_code == 404, f"{who} {method} {path}"
            seen[f"{who} {method} {path}"] = reply.text
        replaced = await busy_office.call(
            who, "PATCH", f"/catalog/credentials/{mine['id']}", {"name": "x"}
        )
        assert replaced.status_code in (403, 404)
    for where, text in seen.items():
        for secret in (CANARY, OTHER_CANARY, CANARY[4:], OTHER_CANARY[4:]):
            assert secret not in text, where
        foreign_name = "name-of-ours" if where.startswith("stranger") else "name-of-theirs"
        assert foreign_name not in text, where
    still = (await busy_office.ok("stranger", "GET", f"/byok/{theirs['id']}"))["data"]
    assert still["name"] == "name-of-theirs"


async def test_the_operator_does_not_reach_an_own_key_as_if_it_were_the_platforms(
    busy_office: Office,
) -> None:
    theirs = await add(busy_office, "stranger")
    path = f"/catalog/credentials/{theirs['id']}"
    for method, body in (("GET", None), ("PATCH", {"disabled": True}), ("DELETE", None)):
        assert (await busy_office.call("operator", method, path, body)).status_code == 404
    listed = await busy_office.ok("operator", "GET", "/catalog/credentials")
    assert theirs["id"] not in [each["id"] for each in listed["data"]]


async def test_a_wrong_body_gets_one_error_that_names_the_field(busy_office: Office) -> None:
    foreign_space = (await busy_office.ok("stranger", "POST", "/workspaces", {"name": "Theirs"}))[
        "data"
    ]
    foreign_key = (await busy_office.ok("stranger", "POST", "/keys", {"name": "theirs"}))["data"]
    owner = busy_office["stranger"].caller
    assert owner is not None
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"provider": "openai-chatt"}, "provider"),
        ({"key": None}, "key"),
        ({"key": ""}, "key"),
        ({"key": "   "}, "key"),
        ({"key": "sk-two words-0123"}, "key"),
        ({"key": "sk-line\nbreak-0123"}, "key"),
        ({"key": "sk-ключ-0123456789"}, "key"),
        ({"key": "s" * 4_097}, "key"),
        ({"base_url": "https://evil.example/v1"}, "base_url"),
        ({"base_url": "ftp://127.0.0.1"}, "base_url"),
        (
            {"base_url": busy_office.gateway.vendor.url.replace("127.0.0.1", "127.0.0.2")},
            "base_url",
        ),
        ({"workspace_id": "ws_nosuch"}, "workspace_id"),
        ({"workspace_id": foreign_space["id"]}, "workspace_id"),
        ({"allowed_api_key_hashes": [foreign_key["hash"]]}, "allowed_api_key_hashes[0]"),
        ({"allowed_api_key_hashes": []}, "allowed_api_key_hashes"),
        ({"allowed_user_ids": [owner.user_id]}, "allowed_user_ids[0]"),
        ({"allowed_models": []}, "allowed_models"),
        ({"allowed_models": ["/gpt*"]}, "allowed_models[0]"),
        ({"is_fallback": True, "is_required": True}, "is_required"),
        ({"sort_order": 10**9}, "sort_order"),
        ({"name": " "}, "name"),
        ({"colour": "red"}, "colour"),
    ]
    for fields, param in wrong:
        error = await refused(busy_office, **fields)
        assert error["param"] == param, (fields, error)
    nearest = await refused(busy_office, provider="openai-chatt")
    assert "did you mean `openai-chat`" in nearest["message"]
    assert (await busy_office.ok("owner", "GET", "/byok"))["total_count"] == 0


async def test_a_reference_is_the_operators_alone(busy_office: Office) -> None:
    """A tenant must not make the daemon read the node's environment or files, nor see what of them it reads."""
    for who in ("owner", "admin", "lead"):
        error = await refused(busy_office, who, 403, key=None, key_ref="env:HOME")
        assert error["param"] == "key_ref"
    mine = await add(busy_office)
    patched = await busy_office.call(
        "owner", "PATCH", f"/byok/{mine['id']}", {"key_ref": "file:/etc/passwd"}
    )
    assert patched.status_code == 403
    theirs = await add(busy_office, "operator", key=None, key_ref="env:A_VARIABLE_OF_THE_NODE")
    assert theirs["key_ref"] == "env:A_VARIABLE_OF_THE_NODE"
    assert "is empty or not set" in theirs["problem"]
    for who in ("owner", "member"):
        reply = await busy_office.call(who, "GET", f"/byok/{theirs['id']}")
        assert reply.json()["data"]["problem"]
        for text in (reply.text, (await busy_office.call(who, "GET", "/byok")).text):
            assert "A_VARIABLE" not in text
    audit = (await busy_office.call("owner", "GET", "/audit")).text
    assert "A_VARIABLE" not in audit


async def test_a_key_is_rotated_in_place_and_gets_a_new_chance(busy_office: Office) -> None:
    made = await add(busy_office)
    path = f"/byok/{made['id']}"

    def spoil(connection: Connection) -> None:
        trouble = Trouble(reason="auth_invalid", first_us=2**52, last_us=2**52)
        note(connection, made["id"], trouble)

    await busy_office.gateway.store.write(spoil)
    shown = (await busy_office.ok("member", "GET", path))["data"]
    assert shown["last_error"]["reason"] == "auth_invalid"
    rotated = (await busy_office.ok("owner", "PATCH", path, {"key": OTHER_CANARY}))["data"]
    assert (rotated["id"], rotated["label"]) == (made["id"], "sk-…0044")
    assert rotated["last_error"] is None
    for body, status in (
        ({"key": None}, 400),
        ({"key": CANARY, "key_ref": "env:X"}, 403),
        ({"base_url": busy_office.gateway.vendor.url}, 400),
        ({"provider": "anthropic-messages"}, 400),
        ({}, 200),
    ):
        reply = await busy_office.call("owner", "PATCH", path, body)
        assert reply.status_code == status, (body, reply.text)
    line = (await busy_office.ok("owner", "GET", "/audit"))["data"]
    rotation = next(each for each in line if each["details"].get("secret_replaced"))
    assert (rotation["action"], rotation["subject_id"]) == ("byok.patch", made["id"])


async def test_what_is_left_out_stays_and_null_clears(busy_office: Office) -> None:
    key = (await busy_office.ok("owner", "POST", "/keys", {"name": "ci"}))["data"]
    user = (await busy_office.ok("owner", "GET", "/organization/members"))["data"][0]["id"]
    full: dict[str, Any] = {
        "workspace_id": "web",
        "allowed_models": ["demo/*", "demo/chat"],
        "allowed_api_key_hashes": [key["id"]],
        "allowed_user_ids": [user],
        "is_required": True,
        "sort_order": 3,
        "disabled": True,
        "base_url": busy_office.gateway.vendor.url + "/other",
    }
    made = await add(busy_office, **full)
    kept = {
        **full,
        "workspace_id": busy_office.workspace_id,
        "allowed_api_key_hashes": [key["hash"]],
    }
    assert {name: made[name] for name in kept} == kept
    path = f"/byok/{made['id']}"
    again = (await busy_office.ok("owner", "PATCH", path, {"name": "renamed"}))["data"]
    assert {name: again[name] for name in kept} == kept
    cleared = dict.fromkeys(
        ("workspace_id", "allowed_models", "allowed_api_key_hashes", "allowed_user_ids", "name")
    )
    empty = (await busy_office.ok("owner", "PATCH", path, cleared))["data"]
    assert {name: empty[name] for name in cleared} == {**cleared, "name": PROVIDER}
    both = await busy_office.call("owner", "PATCH", path, {"is_fallback": True})
    assert both.json()["error"]["param"] == "is_required"
    swapped = {"is_fallback": True, "is_required": False}
    assert (await busy_office.ok("owner", "PATCH", path, swapped))["data"]["is_fallback"]


async def test_a_name_is_one_keys_of_its_provider(busy_office: Office) -> None:
    await add(busy_office, name="ours")
    twin = await refused(busy_office, "owner", 409, name="ours")
    assert (twin["code"], twin["param"]) == ("already_exists", "name")
    await add(busy_office, name="ours", provider="anthropic-messages")
    await add(busy_office, "stranger", name="ours")
    second = await add(busy_office, name="second")
    reply = await busy_office.call("owner", "PATCH", f"/byok/{second['id']}", {"name": "ours"})
    assert reply.status_code == 409


async def test_an_organization_has_so_many_keys_of_a_provider(
    busy_office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "MAX_OF_PROVIDER", 2)
    for _ in range(2):
        await add(busy_office)
    error = await refused(busy_office, "owner", 409)
    assert "at most 2 keys of a provider" in error["message"]
    await add(busy_office, provider="anthropic-messages")
    await add(busy_office, "stranger")


async def test_lists_are_filtered_and_paged_in_the_order_of_use(busy_office: Office) -> None:
    last = await add(busy_office, sort_order=9)
    first = await add(busy_office, sort_order=-1, workspace_id="web")
    other = await add(busy_office, provider="anthropic-messages")

    async def ids(**query: Any) -> list[str]:
        listed = await busy_office.ok("member", "GET", "/byok", params=query)
        return [each["id"] for each in listed["data"]]

    assert await ids() == [first["id"], other["id"], last["id"]]
    assert await ids(limit=1, offset=1) == [other["id"]]
    assert await ids(provider=PROVIDER) == [first["id"], last["id"]]
    assert await ids(workspace_id="web") == [first["id"]]
    assert await ids(workspace_id=busy_office.workspace_id, provider="anthropic-messages") == []
    unknown = await busy_office.call("member", "GET", "/byok", params={"workspace_id": "nosuch"})
    assert unknown.status_code == 404


async def test_a_lead_has_the_keys_of_its_workspace(busy_office: Office) -> None:
    made = await add(busy_office, "lead")
    assert made["workspace_id"] == busy_office.workspace_id
    wide = await add(busy_office)
    path = f"/byok/{made['id']}"
    for who, where, body, status in (
        ("lead", f"/byok/{wide['id']}", {"name": "x"}, 403),
        ("lead", path, {"workspace_id": None}, 403),
        ("lead", path, {"workspace_id": "default"}, 403),
        ("lead", path, {"name": "x"}, 200),
        ("lead", f"/byok/{wide['id']}", None, 200),
        ("member", path, {"name": "x"}, 403),
        ("billing", path, {"name": "x"}, 403),
    ):
        method = "GET" if body is None else "PATCH"
        reply = await busy_office.call(who, method, where, body)
        assert reply.status_code == status, (who, where, body, reply.text)
    assert (await refused(busy_office, "lead", 403, workspace_id="default"))[
        "param"
    ] == "workspace_id"


async def test_a_repeated_request_makes_one_key(busy_office: Office) -> None:
    wanted = {"provider": PROVIDER, "key": CANARY}
    headers = {"idempotency-key": "once"}
    replies = await asyncio.gather(
        *(busy_office.call("owner", "POST", "/byok", wanted, headers=headers) for _ in range(3))
    )
    assert len({reply.json()["data"]["id"] for reply in replies}) == 1
    assert (await busy_office.ok("owner", "GET", "/byok"))["total_count"] == 1


async def test_a_test_calls_the_vendor_with_the_key_and_keeps_its_refusal(
    busy_office: Office,
) -> None:
    made = await add(busy_office, allowed_models=["demo/chat-b"], disabled=True)
    path = f"/byok/{made['id']}"
    vendor = busy_office.gateway.vendor
    answer = (await busy_office.ok("owner", "POST", f"{path}/test"))["data"]
    assert (answer["ok"], answer["credential_id"], answer["model"]) == (
        True,
        made["id"],
        "demo/chat-b",
    )
    (call,) = vendor.calls.on("/v1/chat/completions")
    assert call.headers["authorization"] == f"Bearer {CANARY}"
    vendor.script.next(Behaviour(status=401), model="gpt-demo-mini")
    failed = await busy_office.call("owner", "POST", f"{path}/test")
    assert failed.status_code == 502
    assert failed.json()["error"]["metadata"]["reason"] == "auth_invalid"
    assert CANARY not in failed.text
    shown = (await busy_office.ok("owner", "GET", path))["data"]
    assert shown["last_error"]["reason"] == "auth_invalid"
    vendor.script.next(Behaviour(status=500), model="gpt-demo-mini")
    assert (await busy_office.call("owner", "POST", f"{path}/test")).status_code == 502
    assert (await busy_office.ok("owner", "GET", path))["data"]["last_error"] == shown["last_error"]
    await busy_office.ok("owner", "POST", f"{path}/test")
    assert (await busy_office.ok("owner", "GET", path))["data"]["last_error"] is None
    nothing = await add(busy_office, allowed_models=["nobody/*"])
    reply = await busy_office.call("owner", "POST", f"/byok/{nothing['id']}/test")
    assert (reply.status_code, reply.json()["error"]["metadata"]["reason"]) == (409, "no_endpoint")


async def test_a_key_does_not_follow_its_provider(busy_office: Office) -> None:
    """The owner's key was given for one server; a provider that the operator moves does not get it."""
    made = await add(busy_office)
    moved = busy_office.gateway.vendor.openai_url.replace("127.0.0.1", "127.0.0.2")
    path = f"/catalog/providers/{PROVIDER}"
    await busy_office.ok("operator", "PATCH", path, {"base_url": moved})
    shown = (await busy_office.ok("owner", "GET", f"/byok/{made['id']}"))["data"]
    assert shown["problem"].startswith("made for http://127.0.0.1:")
    assert f"gwctl byok rotate {made['id']}" in shown["problem"]
    reply = await busy_office.call("owner", "POST", f"/byok/{made['id']}/test")
    assert reply.status_code == 409
    assert "made for http://127.0.0.1:" in reply.json()["error"]["message"]
    assert busy_office.gateway.vendor.calls.on("/v1/chat/completions") == []
    again = (await busy_office.ok("owner", "PATCH", f"/byok/{made['id']}", {"key": CANARY}))["data"]
    assert again["problem"] is None


async def test_a_key_that_does_not_open_spoils_nothing_else(busy_office: Office) -> None:
    """A blob of another ring, as after a restore with the wrong file: its key says so, all others go on."""
    lost, kept = await add(busy_office), await add(busy_office)
    strange = Vault(keyring.fresh())

    def spoil(connection: Connection) -> None:
        row = own.get(connection, busy_office.organization_id, lost["id"])
        given = {"key": CANARY}
        secret = service.replaced_secret(connection, strange, row, given)
        connection.execute(
            "UPDATE credential SET sealed = ? WHERE id = ?", (secret["sealed"], lost["id"])
        )

    await busy_office.gateway.store.write(spoil)
    await busy_office.gateway.running.node.state.reload()
    listed = (await busy_office.ok("owner", "GET", "/byok"))["data"]
    problems = {each["id"]: each["problem"] for each in listed}
    assert "does not open with this key ring" in problems[lost["id"]]
    assert problems[kept["id"]] is None
    assert (await busy_office.call("owner", "POST", f"/byok/{lost['id']}/test")).status_code == 409
    await busy_office.ok("owner", "POST", f"/byok/{kept['id']}/test")
    assert (await busy_office.gateway.chat()).status_code == 200
    await busy_office.ok("owner", "PATCH", f"/byok/{lost['id']}", {"key": CANARY})
    await busy_office.ok("owner", "POST", f"/byok/{lost['id']}/test")


async def test_a_deleted_key_is_gone_with_its_secret(busy_office: Office) -> None:
    made = await add(busy_office)
    await busy_office.ok("owner", "DELETE", f"/byok/{made['id']}")
    assert (await busy_office.call("owner", "GET", f"/byok/{made['id']}")).status_code == 404
    rows = await busy_office.gateway.store.read(
        lambda connection: connection.rows(
            "SELECT COUNT(*) FROM credential WHERE id = ?", (made["id"],)
        )
    )
    assert rows == [(0,)]
    line = (await busy_office.ok("owner", "GET", "/audit"))["data"][0]
    assert (line["action"], line["subject_id"]) == ("byok.delete", made["id"])
    assert line["details"] == {"provider": PROVIDER, "name": made["name"]}


async def test_keys_go_with_the_workspace_or_the_organization_that_had_them(
    busy_office: Office,
) -> None:
    await add(busy_office)
    space = (await busy_office.ok("owner", "POST", "/workspaces", {"name": "Short"}))["data"]["id"]
    await add(busy_office, workspace_id=space)
    await add(busy_office, "stranger")
    await add(busy_office, "stranger")
    gone = await busy_office.ok("owner", "DELETE", f"/workspaces/{space}")
    assert gone["vendor_keys_deleted"] == 1
    foreign = f"/organizations/{busy_office.stranger_organization_id}"
    assert (await busy_office.ok("operator", "DELETE", foreign))["vendor_keys_deleted"] == 2
    rows = await busy_office.gateway.store.read(
        lambda connection: connection.rows(
            "SELECT organization_id FROM credential WHERE organization_id IS NOT NULL"
        )
    )
    assert rows == [(busy_office.organization_id,)]


async def test_a_provider_that_takes_no_key_has_no_own_keys(busy_office: Office) -> None:
    """Whoever attached one would pay the fee only for what the operator runs."""
    made = await add(busy_office)
    path = f"/catalog/providers/{PROVIDER}"
    await busy_office.ok("operator", "PATCH", path, {"auth": "none"})
    assert (await refused(busy_office))["param"] == "provider"
    shown = (await busy_office.ok("owner", "GET", f"/byok/{made['id']}"))["data"]
    assert "takes no key" in shown["problem"]
    assert (await busy_office.call("owner", "POST", f"/byok/{made['id']}/test")).status_code == 409
    keyless = await busy_office.call("operator", "POST", f"{path}/test")
    assert keyless.json()["error"]["metadata"]["credential_id"] is None
    (call,) = busy_office.gateway.vendor.calls.on("/v1/chat/completions")
    assert "authorization" not in call.headers
