"""/catalog/credentials: the platform's vendor keys, written once and never read back."""

from pathlib import Path
from typing import Any

import pytest

from gwd.demo import Behaviour
from tests.support.node import Gateway

SECRET = "sk-live-4f9c2d71e8ab5533"


async def test_a_secret_is_in_no_answer_no_list_and_no_audit_line(gateway: Gateway) -> None:
    reply = await gateway.operator.post(
        "/catalog/credentials", json={"provider": "openai-chat", "key": SECRET, "name": "second"}
    )
    assert reply.status_code == 201
    path = f"/catalog/credentials/{reply.json()['data']['id']}"
    seen = [reply.text]
    for shown in (
        path,
        "/catalog/credentials",
        "/catalog/providers",
        "/catalog/endpoints",
        "/audit",
    ):
        seen.append((await gateway.operator.get(shown)).text)
    renewed = await gateway.operator.patch(path, json={"key": SECRET + "9"})
    refused = await gateway.operator.post(
        "/catalog/credentials", json={"provider": "openai-chat", "key": SECRET, "color": "red"}
    )
    assert (renewed.status_code, refused.status_code) == (200, 400)
    for text in [*seen, renewed.text, refused.text]:
        assert SECRET not in text
        assert SECRET[:16] not in text
    assert reply.json()["data"]["label"].endswith(SECRET[-4:])


async def test_a_secret_is_sealed_on_disk(gateway: Gateway, tmp_path: Path) -> None:
    body = {"provider": "openai-chat", "key": SECRET}
    await gateway.manage("POST", "/catalog/credentials", body)
    files = [file for file in (tmp_path / "node").iterdir() if file.is_file()]
    assert "gwd.db" in [file.name for file in files]
    for file in files:
        assert SECRET.encode() not in file.read_bytes()


async def test_the_next_call_carries_the_new_key_and_a_disabled_one_is_not_used(
    gateway: Gateway,
) -> None:
    listed = (await gateway.manage("GET", "/catalog/credentials"))["data"]
    (old,) = [credential for credential in listed if credential["provider"] == "openai-chat"]
    path = f"/catalog/credentials/{old['id']}"
    await gateway.manage("PATCH", path, {"key": SECRET})
    await gateway.chat()
    (call,) = gateway.vendor.calls.on("/v1/chat/completions")
    assert call.headers["authorization"] == f"Bearer {SECRET}"
    await gateway.manage("PATCH", path, {"disabled": True})
    assert (await gateway.chat()).status_code in (404, 503)
    await gateway.manage("DELETE", path)
    await gateway.manage("GET", path, status=404)


async def last_error(gateway: Gateway, provider: str = "openai-chat") -> Any:
    """What the record says once everything is written."""
    gateway.running.node.state.write_trouble()
    await gateway.store.write(lambda connection: None)
    listed = (await gateway.manage("GET", "/catalog/credentials"))["data"]
    (found,) = [credential for credential in listed if credential["provider"] == provider]
    return found["last_error"]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Behaviour(status=401), "auth_invalid"),
        (Behaviour(status=402), "quota_exhausted"),
        (Behaviour(status=404), "model_access_denied"),
        (Behaviour(status=500), None),
    ],
    ids=["auth", "quota", "model", "server"],
)
async def test_a_credential_says_why_its_vendor_turned_it_away_until_it_serves_again(
    gateway: Gateway, fault: Behaviour, reason: str | None
) -> None:
    state = gateway.running.node.state
    before = await state.load()
    gateway.vendor.script.next(fault, model="gpt-demo")
    assert (await gateway.chat()).status_code != 200
    found = await last_error(gateway)
    assert (found and found["reason"]) == reason
    assert (await state.load()).revision == before.revision
    assert await last_error(gateway, "anthropic-messages") is None
    await state.reload()
    assert (await gateway.chat()).status_code == 200
    assert await last_error(gateway) is None


async def test_a_credential_that_is_changed_has_a_clean_record(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(status=401), model="gpt-demo")
    await gateway.chat()
    listed = (await gateway.manage("GET", "/catalog/credentials"))["data"]
    (old,) = [credential for credential in listed if credential["provider"] == "openai-chat"]
    await gateway.manage("PATCH", f"/catalog/credentials/{old['id']}", {"key": SECRET})
    assert await last_error(gateway) is None


async def test_a_credential_is_a_key_or_a_reference(gateway: Gateway) -> None:
    for body in (
        {"provider": "openai-chat"},
        {"provider": "openai-chat", "key": SECRET, "key_ref": "env:NAME"},
        {"provider": "openai-chat", "key": ""},
        {"provider": "openai-chat", "key_ref": "vault:NAME"},
    ):
        refused = await gateway.manage("POST", "/catalog/credentials", body, status=400)
        assert refused["error"]["param"] in ("key", "key_ref")
    unknown = await gateway.operator.post(
        "/catalog/credentials", json={"provider": "nobody", "key": SECRET}
    )
    assert unknown.status_code in (400, 404)
