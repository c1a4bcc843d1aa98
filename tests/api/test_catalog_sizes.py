"""The catalog's texts and lists are bounded: they are read with every request, or sent with every call."""

from typing import Any

from tests.support.node import PARAMETERS, PRICES, Gateway

MODEL = {
    "id": "demo/large",
    "name": "large",
    "vendor": "Demo",
    "context_length": 1_000,
    "max_completion_tokens": 100,
    "supported_parameters": PARAMETERS,
    "pricing": PRICES,
}
PROVIDER = {
    "slug": "large",
    "name": "large",
    "adapter": "openai_chat",
    "base_url": "https://large.example",
}
TIERS = [{"above_prompt_tokens": n + 1, "pricing": PRICES} for n in range(33)]

ROWS: list[tuple[str, dict[str, Any], str | None]] = [
    ("/catalog/models", MODEL | {"aliases": [f"a{n}" for n in range(65)]}, "aliases"),
    ("/catalog/models", MODEL | {"pricing_tiers": TIERS}, "pricing_tiers"),
    ("/catalog/models", MODEL | {"supported_parameters": ["a"] * 257}, "supported_parameters"),
    ("/catalog/models", MODEL | {"input_modalities": ["text"] * 17}, "input_modalities"),
    ("/catalog/providers", PROVIDER | {"headers": {f"x-{n}": "v" for n in range(33)}}, "headers"),
    ("/catalog/providers", PROVIDER | {"headers": {"x-a": "v" * 5_000}}, "headers"),
    ("/keys", {"name": "k", "allowed_models": ["a/b"] * 1_001}, "allowed_models"),
    (
        "/catalog/models",
        MODEL | {"aliases": [f"a{n}" for n in range(64)], "pricing_tiers": TIERS[:32]},
        None,
    ),
    ("/catalog/providers", PROVIDER | {"headers": {f"x-{n}": "v" for n in range(32)}}, None),
]


async def test_lists_of_the_catalog_have_an_end_that_names_the_field(gateway: Gateway) -> None:
    wrong = []
    for path, body, param in ROWS:
        reply = await gateway.operator.post(path, json=body)
        found = None if reply.status_code in (200, 201) else reply.json()["error"].get("param")
        if found != param or reply.status_code not in (200, 201, 400):
            wrong.append((path, param, reply.status_code, reply.text[:200]))
    assert wrong == []


async def test_aliases_stand_in_the_list_of_models_with_what_they_lead_to(gateway: Gateway) -> None:
    await gateway.manage("POST", "/catalog/models", MODEL | {"aliases": ["large-1", "large-2"]})
    rows = (await gateway.client.get("/models")).json()["data"]
    found = {row["id"]: row.get("alias_target") for row in rows if "large" in row["id"]}
    target = {"slug": "demo/large", "name": "large"}
    assert found == {"demo/large": None, "large-1": target, "large-2": target}
