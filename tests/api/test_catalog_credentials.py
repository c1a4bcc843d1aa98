"""/catalog/credentials: the platform's vendor keys, written once and never read back (spec 5.7; api.md 8.12)."""

from pathlib import Path

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
