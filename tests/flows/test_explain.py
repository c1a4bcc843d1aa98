"""POST /route/explain and /estimate: what is explained is what then happens, and nothing happens by explaining."""

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from gwd.demo import Behaviour
from tests.flows.clock import MovableClock
from tests.flows.conftest import ORDER, A, Opened, add_backup
from tests.support.node import CLAUDE_PRICES, PRICES, Gateway

EXAMPLES = Path(__file__).parents[2] / "examples" / "requests"
SORTS = ("price", "throughput", "latency", {"by": "price", "partition": "none"})
HELLO = [{"role": "user", "content": "hello"}]
FLOOR = {"provider": {"sort": "price"}}
TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}
PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5Erk"
    "Jggg=="
)
PICTURE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}]
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat_completions": ("/chat/completions", {"model": "demo/chat", "messages": HELLO}),
    "messages": ("/messages", {"model": "demo/claude", "messages": HELLO, "max_tokens": 100}),
    "responses": ("/responses", {"model": "demo/responses", "input": "hello"}),
    "completions": ("/completions", {"model": "demo/chat", "prompt": "hello"}),
    "embeddings": ("/embeddings", {"model": "demo/embed", "input": ["hello", "world"]}),
}


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "demo/chat", "messages": HELLO, **fields}


async def explained(gateway: Gateway, request: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What the test's own key is told of a request."""
    reply = await gateway.client.post("/route/explain", json={"request": request, **more})
    assert reply.status_code == 200, reply.text
    data: dict[str, Any] = reply.json()["data"]
    return data


async def managed(gateway: Gateway, request: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What the operator is told of it."""
    reply = await gateway.manage("POST", "/route/explain", {"request": request, **more})
    data: dict[str, Any] = reply["data"]
    return data


def codes(explanation: dict[str, Any]) -> list[str]:
    return [refusal["code"] for refusal in explanation["refusals"]]


def reasons(explanation: dict[str, Any]) -> dict[str, str]:
    return {each["tag"]: each["reason"] for each in explanation["left_out"]}


async def receipt(gateway: Gateway, request: dict[str, Any]) -> tuple[httpx.Response, Any]:
    headers = {"x-gw-metadata": "enabled"}
    reply = await gateway.client.post("/chat/completions", json=request, headers=headers)
    return reply, reply.json().get("gateway_metadata")


async def dumped(gateway: Gateway) -> dict[str, list[Any]]:
    """Every row of every table."""

    def dump(connection: Any) -> dict[str, list[Any]]:
        names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        return {
            str(name): list(connection.rows(f'SELECT * FROM "{name}"'))
            for (name,) in connection.rows(names)
        }

    gateway.running.node.refusals.flush()
    await gateway.store.write(lambda connection: None)
    found: dict[str, list[Any]] = await gateway.store.read(dump)
    return found


# what is explained is what then happens

REQUESTS: dict[str, dict[str, Any]] = {
    "by price": chat(**FLOOR),
    "floor": chat(model="demo/chat:floor"),
    "in order": chat(provider={"order": ["backup"]}),
    "only": chat(provider={"only": ["openai-chat"]}),
    "ignore": chat(provider={"ignore": ["openai-chat"]}),
    "no fallbacks": chat(provider={"order": ["backup"], "allow_fallbacks": False}),
    "the next model": chat(models=["demo/none", "demo/claude"], model="demo/gone", **FLOOR),
    "one pool": chat(
        models=["demo/claude"], provider={"sort": {"by": "price", "partition": "none"}}
    ),
    "tools": chat(tools=[TOOL], **FLOOR),
    "nobody": chat(provider={"only": ["nobody"]}),
    "all ignored": chat(provider={"ignore": ["openai-chat", "backup"]}),
    "a picture": chat(messages=PICTURE, model="demo/blind"),
    "too long": chat(model="demo/short", messages=[{"role": "user", "content": "word " * 5_000}]),
    "required": chat(top_k=3, min_p=0.5, provider={"require_parameters": True}),
    "unknown": chat(model="demo/none"),
    "elsewhere": chat(model="demo/embed"),
}


async def furnish(gateway: Gateway) -> None:
    await add_backup(gateway, pricing={"prompt": "0.000001", "completion": "0.000004"})
    for slug, changes in {
        "demo/blind": {"input_modalities": ["text"]},
        "demo/short": {"context_length": 1_000, "max_completion_tokens": 500},
    }.items():
        await gateway.add_model(slug, pricing=PRICES)
        await gateway.manage("PATCH", f"/catalog/models/{slug}", changes)
        await gateway.add_endpoint(slug, "openai-chat", A)


async def test_what_is_explained_is_what_then_happens(gateway: Gateway) -> None:
    await furnish(gateway)
    for name, request in REQUESTS.items():
        before = await explained(gateway, request)
        reply, receipt_ = await receipt(gateway, request)
        if reply.status_code == 200:
            first = before["targets"][0]
            assert before["refusals"] == [], name
            assert before["serves"] == first["tag"], name
            assert first["model"] == reply.headers["x-gw-model"], name
            assert first["upstream_model"] == gateway.vendor.calls.last.model, name
            assert receipt_["routing"]["sort"] == first["sort"], name
            assert receipt_["routing"]["strategy"] == first["strategy"], name
            continue
        error = reply.json()["error"]
        refusal = before["refusals"][0]
        assert before["serves"] is None
        assert refusal["code"] == error["code"], name
        assert (refusal["status"], refusal["message"]) == (reply.status_code, error["message"])
        assert refusal["metadata"] == (error["metadata"] or {}), name
        excluded = error["metadata"].get("excluded_by") if error["metadata"] else None
        if excluded is not None:
            assert sorted(set(reasons(before).values())) == excluded, name


async def test_whatever_is_preferred_the_first_that_is_explained_serves(two: Gateway) -> None:
    """Random preferences over three endpoints of two models, with the dice in the same place for both."""
    await two.add_provider("third", "openai_chat", two.vendor.openai_url, "sk-third-1")
    await two.add_endpoint(
        "demo/chat", "third", A, pricing={"prompt": "0.00001", "completion": "0.00001"}
    )
    secrets = {"backup": "sk-backup-1", "third": "sk-third-1"}
    names = ["openai-chat", "backup", "third", "anthropic-messages", "nobody"]
    choice = random.Random(11)
    dice = two.running.node.state._rng
    ended = set()
    for _ in range(60):
        provider: dict[str, Any] = {
            field: choice.sample(names, choice.randint(1, 3))
            for field in ("order", "only", "ignore")
            if choice.random() < 0.3
        }
        provider |= {"allow_fallbacks": False} if choice.random() < 0.3 else {}
        provider |= {"sort": choice.choice(SORTS)} if choice.random() < 0.4 else {}
        model = choice.choice(["demo/chat", "demo/chat:floor", "demo/chat:nitro", "demo/claude"])
        request = chat(model=model, provider=provider, max_tokens=20)
        request |= {"models": ["demo/claude"]} if choice.random() < 0.3 else {}
        seed = choice.random()
        dice.seed(seed)
        told = await explained(two, request)
        dice.seed(seed)
        reply, receipt_ = await receipt(two, request)
        ended.add(reply.status_code)
        if reply.status_code != 200:
            assert codes(told)[0] == reply.json()["error"]["code"], request
            continue
        first = told["targets"][0]
        assert (told["refusals"], told["serves"]) == ([], first["tag"]), request
        called = two.vendor.calls.last
        assert first["upstream_model"] == called.model, request
        assert secrets.get(first["tag"], "sk-demo-0000") in str(called.headers), request
        assert first["model"] == receipt_["model"], request
        assert first["sort"] == receipt_["routing"]["sort"], request
    assert ended == {200, 404}


async def test_the_draw_is_explained_as_one_and_comes_out_the_same(two: Gateway) -> None:
    """With the dice in the same place the next request goes where the explanation said."""
    dice = two.running.node.state._rng
    served = set()
    for seed in range(8):
        dice.seed(seed)
        before = await explained(two, chat())
        dice.seed(seed)
        reply = await two.chat()
        assert reply.status_code == 200
        assert before["is_drawn"]
        assert before["targets"][0]["upstream_model"] == two.vendor.calls.last.model
        served.add(before["serves"])
    assert served == {"openai-chat", "backup"}
    assert not (await explained(two, chat(**FLOOR)))["is_drawn"]


@pytest.mark.parametrize("dialect", BODIES)
async def test_every_dialect_is_read_as_it_is_served(gateway: Gateway, dialect: str) -> None:
    path, request = BODIES[dialect]
    told = await explained(gateway, request, dialect=dialect)
    assert (told["dialect"], told["refusals"]) == (dialect, [])
    served = await gateway.client.post(path, json=request)
    assert served.status_code == 200, served.text
    assert told["targets"][0]["model"] == served.headers["x-gw-model"]
    broken = {name: value for name, value in request.items() if name == "model"}
    refused = await gateway.client.post(path, json=broken)
    asked = {"request": broken, "dialect": dialect}
    reply = await gateway.client.post("/route/explain", json=asked)
    assert reply.status_code == refused.status_code == 400
    assert reply.json()["error"]["message"] == refused.json()["error"]["message"]


async def test_a_model_alone_is_enough(gateway: Gateway) -> None:
    for model, dialect in (("demo/chat", "chat_completions"), ("demo/embed", "embeddings")):
        reply = await gateway.client.post("/route/explain", json={"model": model})
        told = reply.json()["data"]
        assert (told["dialect"], told["refusals"]) == (dialect, [])
        assert told["models"][0]["model"] == model


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "request"),
        ({"request": None}, "request"),
        ({"model": "demo/chat", "request": {}}, "model"),
        ({"model": "demo/chat", "dialect": "messages"}, "model"),
        ({"model": "demo/chat", "key_id": "key_1"}, "key_id"),
        ({"model": "demo/chat", "workspace_id": "ws_1"}, "workspace_id"),
        ({"request": {"messages": HELLO}}, "model"),
        ({"request": "demo/chat"}, None),
        ({"request": {}, "dialect": "telegram"}, "dialect"),
        ({"requst": {}}, "requst"),
    ],
)
async def test_a_question_that_is_wrong_names_its_field(
    gateway: Gateway, body: dict[str, Any], param: str | None
) -> None:
    reply = await gateway.client.post("/route/explain", json=body)
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param


# why not


async def test_every_endpoint_that_is_left_out_has_its_reason(two: Gateway) -> None:
    backup = (await two.manage("GET", "/catalog/endpoints?limit=100"))["data"]
    backup_id = next(each["id"] for each in backup if each["provider"] == "backup")
    endpoint = f"/catalog/endpoints/{backup_id}"
    rows: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
        ({"disabled": True}, {"disabled": False}, {}, "disabled"),
        (
            {"supported_parameters": ["max_tokens"]},
            {"supported_parameters": None},
            {"tools": [TOOL]},
            "unsupported_parameters",
        ),
        (
            {"supported_parameters": ["max_tokens"]},
            {"supported_parameters": None},
            {"seed": 1, "provider": {"require_parameters": True}},
            "require_parameters",
        ),
        (
            {"supported_parameters": ["max_tokens"]},
            {"supported_parameters": None},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {"type": "object"}},
                }
            },
            "structured_outputs",
        ),
        ({"context_length": 300}, {"context_length": None}, {"max_tokens": 299}, "context_length"),
        (
            {},
            {},
            {"provider": {"order": ["openai-chat"], "allow_fallbacks": False}},
            "no_fallbacks",
        ),
        ({}, {}, {"provider": {"only": ["openai-chat"]}}, "allowed_providers"),
        ({}, {}, {"provider": {"ignore": ["backup"]}}, "ignored_providers"),
    ]
    for change, undo, fields, reason in rows:
        if change:
            await two.manage("PATCH", endpoint, change)
        told = await explained(two, chat(**fields))
        assert reasons(told) == {"backup": reason}, told["left_out"]
        assert told["left_out"][0]["message"]
        assert "{" not in told["left_out"][0]["message"]
        assert [each["tag"] for each in told["targets"]] == ["openai-chat"]
        if undo:
            await two.manage("PATCH", endpoint, undo)
    told = await explained(two, chat(seed=1))
    assert reasons(told) == {}


async def test_what_rests_is_last_with_its_reason_and_what_is_closed_is_out(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        await add_backup(gateway)
        clock.stop()
        gateway.vendor.script.next(Behaviour(status=503), model=A)
        assert (await gateway.chat(provider=ORDER)).status_code == 200
        told = await explained(gateway, chat(provider=ORDER))
        assert [each["tag"] for each in told["targets"]] == ["backup", "openai-chat"]
        assert [each["state"] for each in told["targets"]] == ["healthy", "resting"]
        assert told["targets"][1]["rest"]["reason"] == "overloaded"
        clock.pass_by(60)
        limited = Behaviour(status=429, headers={"retry-after": "100"})
        gateway.vendor.script.next(limited, model=A)
        assert (await gateway.chat(provider=ORDER)).status_code == 200
        told = await explained(gateway, chat(provider=ORDER))
        assert reasons(told) == {"openai-chat": "closed"}
        assert "rate_limited, until" in told["left_out"][0]["message"]


async def test_only_the_operator_learns_what_is_wrong_with_a_key(two: Gateway) -> None:
    secret = "Incorrect API key provided: sk-demo."
    two.vendor.script.next(Behaviour(status=401, message=secret), model=A)
    assert (await two.chat(provider=ORDER)).status_code == 200
    tenant = await explained(two, chat())
    assert tenant["credentials"] is None
    assert [each["credential_id"] for each in tenant["targets"]] == [None]
    [out] = tenant["left_out"]
    assert (out["reason"], out["message"]) == ("no_credential", "no usable credential")
    operator = await managed(two, chat())
    [trouble] = operator["credentials"]
    assert (trouble["tag"], trouble["credential_id"][:3]) == ("openai-chat", "pk_")
    assert "Incorrect API key provided" in trouble["message"]
    assert operator["targets"][0]["credential_id"].startswith("pk_")
    assert "gwctl provider secret openai-chat" in operator["left_out"][0]["message"]


async def test_lifecycle_forwarding_and_aliases_are_told(gateway: Gateway) -> None:
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"aliases": ["fast"]})
    old = {
        "deprecated_at": "2020-01-01T00:00:00Z",
        "retired_at": "2021-01-01T00:00:00Z",
        "successor": "demo/chat",
    }
    await gateway.manage("PATCH", "/catalog/models/demo/chat-b", old)
    told = await explained(gateway, chat(model="fast:floor", models=["demo/chat-b", "demo/none"]))
    alias, forwarded, unknown = told["models"]
    assert (alias["requested"], alias["model"], alias["sort"]) == (
        "fast:floor",
        "demo/chat",
        "price",
    )
    assert (forwarded["model"], forwarded["forwarded_from"]) == ("demo/chat", "demo/chat-b")
    assert (unknown["model"], unknown["error"]["code"]) == (None, "model_not_found")
    assert told["serves"] == "openai-chat"


async def test_what_would_be_dropped_is_named(gateway: Gateway) -> None:
    request = chat(model="demo/claude", seed=7, service_tier="priority", min_p=0.1)
    told = await explained(gateway, request)
    assert {"seed", "min_p"} <= set(told["targets"][0]["drops"])
    tier = await explained(gateway, chat(service_tier="priority"))
    assert "service_tier" in tier["targets"][0]["drops"]


async def test_each_key_has_a_place_and_no_more_than_six_are_tried(gateway: Gateway) -> None:
    for number in range(7):
        body = {"provider": "openai-chat", "key": f"sk-more-{number}", "sort_order": number + 1}
        await gateway.manage("POST", "/catalog/credentials", body)
    told = await explained(gateway, chat())
    assert [each["tag"] for each in told["targets"]] == ["openai-chat"] * 8
    assert [each["skipped"] is None for each in told["targets"]] == [True] * 6 + [False] * 2
    assert "6 attempts" in told["targets"][-1]["skipped"]
    keys = [each["credential_id"] for each in (await managed(gateway, chat()))["targets"]]
    assert len(set(keys)) == 8


@pytest.mark.parametrize("dialect", BODIES)
async def test_the_shipped_examples_are_read(gateway: Gateway, dialect: str) -> None:
    request = json.loads((EXAMPLES / f"{dialect}.json").read_text("utf-8"))
    told = await explained(gateway, request, dialect=dialect)
    assert told["dialect"] == dialect
    assert told["models"][0]["requested"] == request["model"]


# what would refuse


async def test_every_refusal_is_listed_and_the_first_is_what_a_request_gets(
    gateway: Gateway,
) -> None:
    key, key_id = await gateway.new_key(limit=0.000001, rate_limit_per_minute=1, name="poor")
    poor = {"authorization": f"Bearer {key}"}
    assert (await gateway.chat(headers=poor)).status_code == 200
    for scope in ("organization", "key"):
        budget = {"scope": scope, "interval": "daily", "limit": 0.000001}
        budget |= {"scope_id": key_id} if scope == "key" else {}
        await gateway.manage("POST", "/budgets", budget)
    soft = {"scope": "organization", "interval": "monthly", "limit": 0.000002, "kind": "soft"}
    await gateway.manage("POST", "/budgets", soft)
    request = chat(provider={"only": ["nobody"]})
    told = await managed(gateway, request, key_id=key_id)
    assert codes(told) == [
        "rate_limit_exceeded",
        "key_limit_exceeded",
        "budget_exceeded",
        "budget_exceeded",
        "no_eligible_endpoints",
    ]
    scopes = [
        each["metadata"]["budget_scope"]
        for each in told["refusals"]
        if each["code"] == "budget_exceeded"
    ]
    assert scopes == ["organization", "key"]
    assert {each["kind"] for each in told["budgets"]} == {"hard", "soft"}
    assert all(each["remedy"] and each["message"] for each in told["refusals"])
    assert (await gateway.chat(headers=poor)).json()["error"]["code"] == codes(told)[0]
    await gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": True})
    assert codes(await managed(gateway, request, key_id=key_id))[0] == "key_disabled"
    assert (await gateway.chat(headers=poor)).json()["error"]["code"] == "key_disabled"


async def test_a_poor_balance_and_a_strict_key_say_what_they_have_room_for(
    opened: Opened,
) -> None:
    async with opened(credit="0.0001") as gateway:
        await add_backup(gateway, pricing={"prompt": "0.00000001", "completion": "0.00000001"})
        request = chat(max_tokens=1_000, **FLOOR)
        told = await explained(gateway, request)
        dear = told["targets"][1]
        assert (dear["tag"], told["serves"]) == ("openai-chat", "backup")
        assert "hold" in dear["skipped"]
        assert Decimal(str(told["hold"]["available"])) == Decimal("0.0001")
        assert told["hold"]["amount"] == told["targets"][0]["hold"]
        request = chat(max_tokens=1_000, provider={"only": ["openai-chat"]})
        told = await explained(gateway, request)
        assert codes(told) == ["insufficient_credits"]
        refused = await gateway.client.post("/chat/completions", json=request)
        assert refused.status_code == 402
        assert refused.json()["error"]["metadata"] == told["refusals"][0]["metadata"]
        assert told["hold"]["amount"] is None
        assert told["hold"]["needed"] == told["targets"][0]["hold"]
        _, strict_id = await gateway.new_key(limit=0.00001, strict=True)
        told = await managed(gateway, request, key_id=strict_id)
        assert codes(told) == ["key_limit_exceeded", "insufficient_credits"]


async def test_what_a_key_may_not_use_or_is_over_is_told(gateway: Gateway) -> None:
    _, narrow = await gateway.new_key(allowed_models=["demo/claude"])
    assert codes(await managed(gateway, chat(), key_id=narrow)) == ["model_not_allowed"]
    _, ended = await gateway.new_key(expires_at="2999-01-01T00:00:00Z")
    assert codes(await managed(gateway, chat(), key_id=ended)) == []
    gateway.running.node.status.draining = True
    assert codes(await managed(gateway, chat(), key_id=ended)) == ["draining"]
    gateway.running.node.status.draining = False


# nothing happens


async def test_nothing_is_written_sent_or_counted_against_the_minute(gateway: Gateway) -> None:
    key, _ = await gateway.new_key(rate_limit_per_minute=5)
    await gateway.client.get("/auth/key", headers={"authorization": f"Bearer {key}"})
    gateway.client.headers["authorization"] = f"Bearer {key}"
    await explained(gateway, chat())
    before = await dumped(gateway)
    for request in (chat(), chat(model="demo/none"), chat(provider={"only": ["nobody"]})):
        await explained(gateway, request)
    asked = {"request": chat(max_tokens=10)}
    assert (await gateway.client.post("/estimate", json=asked)).status_code == 200
    sixth = await gateway.client.post("/estimate", json=asked)
    assert (sixth.status_code, "retry-after" in sixth.headers) == (429, True)
    assert await dumped(gateway) == before
    assert gateway.vendor.calls.on("/v1/chat/completions") == []
    assert (await gateway.chat()).headers["x-ratelimit-remaining"] == "4"


async def test_a_large_request_is_explained_as_well(gateway: Gateway) -> None:
    long = [{"role": "user", "content": "a word or two " * 150_000}]
    told = await explained(gateway, chat(messages=long))
    assert codes(told) == ["context_length_exceeded"]
    assert told["prompt"]["estimate"] > 200_000


# what it would cost


async def test_an_estimate_holds_what_the_request_then_costs(two: Gateway) -> None:
    await two.manage(
        "PATCH", "/catalog/models/demo/chat-b", {"pricing": {**CLAUDE_PRICES, "request": "0.01"}}
    )
    for request in (
        chat(max_tokens=50, provider=ORDER),
        chat(model="demo/chat-b", max_tokens=50),
        chat(model="demo/claude", max_tokens=500),
    ):
        reply = await two.client.post("/estimate", json={"request": request})
        assert reply.status_code == 200, reply.text
        told = reply.json(parse_float=Decimal)["data"]
        assert told["refusals"] == []
        first = told["first"]
        _, paid = await receipt(two, request)
        cost = Decimal(str(paid["cost"]["total"]))
        assert cost <= first["most"]["total"] <= first["hold"]
        assert first["least"]["total"] <= first["most"]["total"]
        assert told["prompt"]["estimate"] <= told["prompt"]["bound"]
        assert (first["output_from"], first["output_to"]) == (1, request["max_tokens"])
        for end in ("least", "most"):
            classes = {name: value for name, value in first[end].items() if name != "total"}
            assert sum(classes.values()) == first[end]["total"]
        assert told["dearest"]["hold"] >= first["hold"]


async def test_an_estimate_of_a_model_without_price_says_so(gateway: Gateway) -> None:
    body = {
        "id": "demo/free",
        "name": "free",
        "vendor": "Demo",
        "context_length": 1_000,
        "max_completion_tokens": 100,
        "input_modalities": ["text"],
        "output_modalities": ["text"],
        "supported_parameters": ["max_tokens"],
    }
    await gateway.manage("POST", "/catalog/models", body)
    await gateway.add_endpoint("demo/free", "openai-chat", A)
    reply = await gateway.client.post("/estimate", json={"request": chat(model="demo/free")})
    told = reply.json()["data"]
    assert (told["first"], told["dearest"]) == (None, None)
    assert told["without_price"] == ["demo/free"]
    assert [each["code"] for each in told["refusals"]] == ["no_eligible_endpoints"]
    assert told["prompt"]["estimate"] > 0
    assert reasons(await explained(gateway, chat(model="demo/free"))) == {"openai-chat": "price"}
