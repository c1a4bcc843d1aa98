"""What organization, key and request let a request use, together: none brings back what another left out."""

from typing import Any, Final

import httpx

from gwd.demo.calls import Call
from tests.flows.conftest import A, B
from tests.flows.frames import error_of, receipt_of
from tests.support.node import Gateway

ASK_RECEIPT = {"x-gw-metadata": "enabled"}
HERE, BACKUP = "openai-chat", "backup"
EVERYBODY: Final = {HERE, BACKUP}
TRAINS: Final = {BACKUP}
UPSTREAM: Final = {A: HERE, B: BACKUP}

# One level's choices: the providers it allows (None: all), those it ignores, and whether it denies training.
Level = tuple[tuple[str, ...] | None, tuple[str, ...], bool]
LEVELS: Final[tuple[Level, ...]] = (
    (None, (), False),
    ((HERE,), (), False),
    ((BACKUP,), (), False),
    (None, (HERE,), False),
    (None, (), True),
)


def left(levels: tuple[Level, ...]) -> tuple[set[str], set[str], dict[str, list[str]]]:
    """Who may serve, why the others may not, and whose choice that was, by plain sets: the first choice counts."""
    names = ("key", "organization", "request")
    serving, reasons, chosen = set(EVERYBODY), set(), dict[str, list[str]]()
    for provider in (HERE, BACKUP):
        for name, (allowed, ignored, denies) in zip(names, levels, strict=True):
            reason = None
            if allowed is not None and provider not in allowed:
                reason = "allowed_providers"
            elif provider in ignored:
                reason = "ignored_providers"
            elif denies and provider in TRAINS:
                reason = "data_policy"
            if reason is not None:
                serving.discard(provider)
                reasons.add(reason)
                if name not in chosen.setdefault(reason, []):
                    chosen[reason].append(name)
                break
    return serving, reasons, chosen


def model_of(call: Call) -> str:
    """The vendor's model that was called."""
    assert call.body is not None
    return str(call.body["model"])


def stored(level: Level) -> dict[str, Any]:
    allowed, ignored, denies = level
    return {
        "allowed_providers": None if allowed is None else list(allowed),
        "ignored_providers": list(ignored),
        "data_policy": "deny" if denies else "allow",
    }


def asked(level: Level) -> dict[str, Any]:
    allowed, ignored, denies = level
    wanted: dict[str, Any] = {"ignore": list(ignored)}
    if allowed is not None:
        wanted["only"] = [name.upper() for name in allowed]
    if denies:
        wanted["data_collection"] = "deny"
    return wanted


async def test_every_mix_of_choices_leaves_who_all_three_allow(two: Gateway) -> None:
    await two.manage("PATCH", f"/catalog/providers/{BACKUP}", {"flags": {"trains_on_inputs": True}})
    wrong: list[Any] = []
    for organization in LEVELS:
        await two.manage("PATCH", "/organization/settings", stored(organization))
        for key in LEVELS:
            await two.manage("PATCH", f"/keys/{two.key_id}", stored(key))
            for request in LEVELS:
                serving, reasons, chosen = left((key, organization, request))
                two.vendor.calls.clear()
                reply = await two.chat(provider=asked(request))
                served = {UPSTREAM[model_of(call)] for call in two.vendor.calls}
                if serving:
                    if reply.status_code != 200 or not served <= serving:
                        wrong.append((organization, key, request, reply.status_code, served))
                    continue
                error = error_of(reply)
                metadata = error["metadata"]
                told = (
                    (reply.status_code, error["code"]) == (404, "no_eligible_endpoints")
                    and metadata["excluded_by"] == sorted(reasons)
                    and metadata["chosen_by"] == chosen
                    and all(
                        f"the {name}" in error["message"]
                        for names in chosen.values()
                        for name in names
                    )
                )
                if not told or served:
                    wrong.append((organization, key, request, error))
    assert wrong == []


async def test_a_choice_says_whose_it_is_and_what_would_change_it(gateway: Gateway) -> None:
    path = f"/keys/{gateway.key_id}"
    await gateway.manage("PATCH", path, {"ignored_providers": [HERE]})
    message = error_of(await gateway.chat())["message"]
    assert "left out by ignored_providers of the key" in message
    assert "take a provider out of the key's ignored_providers" in message
    await gateway.manage("PATCH", path, {"ignored_providers": []})
    settings = {"allowed_providers": ["anthropic-messages"]}
    await gateway.manage("PATCH", "/organization/settings", settings)
    message = error_of(await gateway.chat())["message"]
    assert "an admin can add a provider to allowed_providers" in message
    assert "anthropic" not in message


async def test_a_choice_is_told_also_where_what_it_left_cannot_serve_now(two: Gateway) -> None:
    [credential] = (await two.manage("GET", f"/catalog/credentials?provider={BACKUP}"))["data"]
    await two.manage("PATCH", f"/catalog/credentials/{credential['id']}", {"disabled": True})
    await two.manage("PATCH", f"/keys/{two.key_id}", {"ignored_providers": [HERE]})
    refused = await two.chat()
    assert (refused.status_code, error_of(refused)["code"]) == (503, "no_available_endpoint")
    metadata = error_of(refused)["metadata"]
    assert metadata["excluded_by"] == ["ignored_providers", "no_credential"]
    assert metadata["chosen_by"] == {"ignored_providers": ["key"]}


async def test_an_endpoints_flag_goes_before_its_providers(two: Gateway) -> None:
    """The fact stands on the provider, and an endpoint may say otherwise."""
    await two.manage("PATCH", f"/catalog/providers/{HERE}", {"flags": {"trains_on_inputs": True}})
    endpoints = await two.manage("GET", f"/catalog/endpoints?provider={BACKUP}")
    path = f"/catalog/endpoints/{endpoints['data'][0]['id']}"
    deny = {"data_collection": "deny"}
    reply = await two.chat(provider=deny)
    assert (reply.status_code, model_of(two.vendor.calls[-1])) == (200, B)
    await two.manage("PATCH", path, {"flags": {"trains_on_inputs": True}})
    shown = (await two.client.get("/models/demo/chat/endpoints")).json()["data"]["endpoints"]
    assert {e["tag"]: e["trains_on_inputs"] for e in shown} == {HERE: True, BACKUP: True}
    refused = await two.chat(provider=deny)
    assert error_of(refused)["metadata"]["excluded_by"] == ["data_policy"]
    assert "provider.data_collection" in error_of(refused)["message"]
    await two.manage("PATCH", f"/catalog/providers/{HERE}", {"flags": {}})
    await two.chat(provider=deny)
    assert model_of(two.vendor.calls[-1]) == A


async def sort_of(gateway: Gateway, **fields: Any) -> str | None:
    reply = await gateway.chat(headers=ASK_RECEIPT, **fields)
    receipt = receipt_of(reply)
    assert receipt is not None
    sort: str | None = receipt["routing"]["sort"]
    return sort


async def test_the_nearest_sort_holds(two: Gateway) -> None:
    workspace, key = "/workspaces/default", f"/keys/{two.key_id}"
    steps: list[tuple[str, str | None, str | None]] = [
        ("/organization/settings", "price", "price"),
        (workspace, "throughput", "throughput"),
        (key, "latency", "latency"),
        (workspace, None, "latency"),
        (key, None, "price"),
        ("/organization/settings", None, None),
    ]
    found = []
    for path, sort, _ in steps:
        await two.manage("PATCH", path, {"default_provider_sort": sort})
        found.append(await sort_of(two))
    assert found == [wanted for _, _, wanted in steps]
    await two.manage("PATCH", key, {"default_provider_sort": "latency"})
    assert await sort_of(two, provider={"sort": "price"}) == "price"
    assert await sort_of(two, model="demo/chat:nitro") == "throughput"


async def test_a_workspaces_model_serves_requests_that_name_none(gateway: Gateway) -> None:
    say = {"messages": [{"role": "user", "content": "hi"}]}

    async def post(path: str, body: dict[str, Any]) -> httpx.Response:
        return await gateway.client.post(path, json=body)

    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/chat/completions", say),
        ("/messages", {**say, "max_tokens": 9}),
        ("/messages/count_tokens", say),
        ("/responses", {"input": "hi"}),
        ("/completions", {"prompt": "hi"}),
    ]
    for path, body in bodies:
        refused = await post(path, body)
        assert refused.status_code == 400, path
        assert "`model` is required" in refused.text
    await gateway.manage(
        "PATCH", "/workspaces/default", {"default_text_model": "demo/chat-b:floor"}
    )
    for path, body in bodies:
        reply = await post(path, body)
        assert reply.status_code == 200, reply.text
        if "count_tokens" not in path:
            assert reply.headers["x-gw-model"] == "demo/chat-b"
    reply = await post("/chat/completions", {**say, "model": "demo/claude"})
    assert reply.headers["x-gw-model"] == "demo/claude"
    refused = await post("/embeddings", {"input": "hi"})
    assert error_of(refused)["code"] == "missing_parameter"
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"allowed_models": ["demo/cl*"]})
    refused = await post("/chat/completions", say)
    assert error_of(refused)["metadata"] == {"allowed_models_source": "key"}


async def test_patterns_narrow_what_a_key_may_use_and_sees(two: Gateway) -> None:
    await two.manage("PATCH", "/organization/settings", {"is_filtered_model_catalog_enabled": True})

    async def listed(**fields: Any) -> set[str]:
        key, _ = await two.new_key(**fields)
        reply = await two.client.get("/models", headers={"authorization": f"Bearer {key}"})
        return {row["id"] for row in reply.json()["data"]}

    everything = await listed()
    assert await listed(allowed_models=["demo/c*"]) == {
        name for name in everything if name.startswith("demo/c")
    }
    assert await listed(allowed_models=["*/chat*", "demo/claude"]) == {
        name for name in everything if name.startswith("demo/chat")
    } | {"demo/claude"}
    assert await listed(allowed_providers=[BACKUP]) == {"demo/chat"}
    await two.manage("PATCH", "/organization/settings", {"allowed_models": ["*/claude"]})
    assert await listed(allowed_models=["demo/*"]) == {"demo/claude"}
    await two.manage("PATCH", "/organization/settings", {"allowed_models": None})
    key, _ = await two.new_key(allowed_models=["*/cla*"])
    for model, status in (("demo/claude", 200), ("demo/chat", 403)):
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        headers = {"authorization": f"Bearer {key}"}
        reply = await two.client.post("/chat/completions", json=body, headers=headers)
        assert reply.status_code == status


async def test_a_provider_made_a_moment_ago_is_known(gateway: Gateway) -> None:
    """Also one that serves nothing yet: it is passed over, not refused."""
    reply = await gateway.chat(provider={"order": ["backup"]})
    assert (reply.status_code, error_of(reply)["param"]) == (400, "provider.order[0]")
    await gateway.add_provider("backup", "openai_chat", gateway.vendor.openai_url, "sk-backup-1")
    assert (await gateway.chat(provider={"order": ["Backup"]})).status_code == 200


async def test_a_key_that_restricts_nothing_is_asked_nothing(gateway: Gateway) -> None:
    """No policy is made of open lists, so that a request of such a key finds none to ask."""
    node = gateway.running.node

    async def policies() -> int:
        row = await node.authenticator.find(dict(gateway.client.headers), "127.0.0.1")
        organization_id = await gateway.organization_id()
        return len((await node.state.plan_input(organization_id, row.policy)).policies)

    assert await policies() == 0
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"data_policy": "deny"})
    assert await policies() == 1
    await gateway.manage("PATCH", "/organization/settings", {"allowed_models": ["demo/*"]})
    assert await policies() == 2
    await gateway.manage("PATCH", "/organization/settings", {"allowed_models": None})
    await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"data_policy": "allow"})
    assert await policies() == 0
