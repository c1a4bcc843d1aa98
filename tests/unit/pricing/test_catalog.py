"""The shipped catalog: complete prices, known words, and links that lead somewhere."""

import tomllib
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gwd.catalog import endpoints, models, providers, snapshot
from gwd.catalog.inputs import (
    EndpointInput,
    ModelInput,
    ProviderInput,
    check_adapter,
    check_base_url,
    check_flags,
)
from gwd.catalog.snapshot import Catalog
from gwd.core.clock import SystemClock
from gwd.core.money import pico_from_price
from gwd.core.target import Flags
from gwd.store import Connection, Store, migrations
from gwd.vendors.formats import FORMATS

CATALOG = tomllib.loads(
    (Path(__file__).parents[3] / "examples" / "catalog.toml").read_text(encoding="utf-8")
)
MODELS: dict[str, dict[str, Any]] = {model["id"]: model for model in CATALOG["models"]}
PROVIDERS = {provider["slug"]: provider for provider in CATALOG["providers"]}
ENDPOINTS: list[dict[str, Any]] = CATALOG["endpoints"]

MODEL_FIELDS = {
    "id", "name", "vendor", "family", "aliases", "context_length", "max_completion_tokens",
    "supported_parameters", "input_modalities", "output_modalities", "pricing", "released_at",
    "is_moderated", "default_max_tokens", "pricing_tiers", "deprecated_at", "retired_at", "successor",
}  # fmt: skip
PRICES = {
    "prompt", "completion", "input_cache_read", "input_cache_write", "input_cache_write_1h",
    "internal_reasoning", "request", "image", "web_search", "price_modifiers",
}  # fmt: skip
PARAMETERS = {
    "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
    "repetition_penalty", "max_tokens", "max_completion_tokens", "logit_bias", "logprobs",
    "top_logprobs", "seed", "response_format", "structured_outputs", "stop", "tools", "tool_choice",
    "parallel_tool_calls", "include_reasoning", "reasoning", "reasoning_effort", "verbosity",
}  # fmt: skip
ADAPTERS = {"openai_chat", "openai_responses", "anthropic_messages", "gemini", "openai_embeddings"}


def price_sets(model: dict[str, Any]) -> list[dict[str, str]]:
    return [model["pricing"], *(tier["pricing"] for tier in model.get("pricing_tiers", ()))]


def is_embedding(model: dict[str, Any]) -> bool:
    return bool(model["output_modalities"] == ["embeddings"])


@pytest.mark.parametrize(
    ("table", "body"),
    [("providers", ProviderInput), ("models", ModelInput), ("endpoints", EndpointInput)],
)
def test_every_row_is_a_body_that_the_catalog_takes(table: str, body: type) -> None:
    for row in CATALOG[table]:
        msgspec.convert(row, body)


def test_nothing_is_listed_twice() -> None:
    assert len(MODELS) == len(CATALOG["models"])
    assert len(PROVIDERS) == len(CATALOG["providers"])
    assert len({(each["model"], each["provider"]) for each in ENDPOINTS}) == len(ENDPOINTS)


def test_every_vendor_has_eight_models_or_more_and_embeddings_where_it_sells_them() -> None:
    for vendor, embeds in (("OpenAI", True), ("Anthropic", False), ("Google", True)):
        ours = [model for model in MODELS.values() if model["vendor"] == vendor]
        assert len(ours) >= 8
        assert any(is_embedding(model) for model in ours) is embeds


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda provider: provider["slug"])
def test_providers_name_an_adapter_and_an_https_address_and_no_secret(
    provider: dict[str, Any],
) -> None:
    assert set(provider) <= {"slug", "name", "adapter", "base_url", "headers", "flags"}
    assert provider["adapter"] in ADAPTERS
    assert provider["base_url"].startswith("https://")


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model["id"])
def test_models_use_known_fields_and_words(model: dict[str, Any]) -> None:
    assert set(model) <= MODEL_FIELDS
    assert set(model["supported_parameters"]) <= PARAMETERS
    assert set(model["input_modalities"]) <= {"text", "image", "file"}
    assert model["id"].count("/") == 1
    if is_embedding(model):
        assert model["max_completion_tokens"] == 0
    else:
        assert 0 < model["max_completion_tokens"] < model["context_length"]
        assert {"max_tokens", "max_completion_tokens"} & set(model["supported_parameters"])


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model["id"])
def test_prices_are_complete_exact_and_in_proportion(model: dict[str, Any]) -> None:
    for prices in price_sets(model):
        assert set(prices) <= PRICES
        pico = {name: pico_from_price(text) for name, text in prices.items()}
        assert pico["prompt"] > 0
        if is_embedding(model):
            assert set(prices) == {"prompt"}
            continue
        assert pico["prompt"] < pico["completion"]
        assert 0 < pico["input_cache_read"] < pico["prompt"]
        if "input_cache_write" in pico:
            assert pico["input_cache_write"] * 4 == pico["prompt"] * 5
        if "input_cache_write_1h" in pico:
            assert pico["input_cache_write_1h"] == pico["prompt"] * 2


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model["id"])
def test_a_tier_is_dearer_in_every_class_and_begins_inside_the_context(
    model: dict[str, Any],
) -> None:
    for tier in model.get("pricing_tiers", ()):
        assert 0 < tier["above_prompt_tokens"] < model["context_length"]
        assert set(tier["pricing"]) == set(model["pricing"]) - {"web_search", "price_modifiers"}
        for name, price in tier["pricing"].items():
            assert Decimal(price) > Decimal(model["pricing"][name])


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model["id"])
def test_times_carry_an_offset_and_come_in_order(model: dict[str, Any]) -> None:
    named = ("released_at", "deprecated_at", "retired_at")
    times = [datetime.fromisoformat(model[name]) for name in named if name in model]
    assert all(time.tzinfo is not None for time in times)
    assert times == sorted(times)


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model["id"])
def test_a_retiring_model_has_a_successor_that_stays(model: dict[str, Any]) -> None:
    if "retired_at" not in model:
        assert "successor" not in model
        return
    assert "deprecated_at" in model
    successor = MODELS[model["successor"]]
    assert "retired_at" not in successor
    assert successor["vendor"] == model["vendor"]


def test_each_family_member_says_when_it_was_released() -> None:
    for model in MODELS.values():
        assert "family" not in model or "released_at" in model


@pytest.mark.parametrize("family", sorted({m["family"] for m in MODELS.values() if "family" in m}))
def test_the_newest_active_member_of_a_family_is_unambiguous(family: str) -> None:
    active = [
        model["released_at"]
        for model in MODELS.values()
        if model.get("family") == family and "deprecated_at" not in model
    ]
    assert active
    assert active.count(max(active)) == 1


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint["model"])
def test_endpoints_lead_to_a_model_and_a_provider_and_their_flags_are_known(
    endpoint: dict[str, Any],
) -> None:
    model, provider = MODELS[endpoint["model"]], PROVIDERS[endpoint["provider"]]
    assert set(endpoint) <= {"model", "provider", "upstream_model", "flags"}
    flags = msgspec.convert(endpoint.get("flags", {}), Flags)
    assert is_embedding(model) or provider["adapter"] != "openai_embeddings"
    if provider["adapter"] == "anthropic_messages":
        assert model["default_max_tokens"] <= model["max_completion_tokens"]
        assert flags.thinking_form is not None
        samples = "temperature" in model["supported_parameters"]
        assert samples is not flags.rejects_sampling


def test_where_prompts_are_marked_for_clients_writing_has_its_price() -> None:
    """Writing to the cache would else be billed like reading the prompt, below what the vendor takes."""
    marking = {slug for slug, p in PROVIDERS.items() if p.get("flags", {}).get("auto_cache")}
    assert marking == {"anthropic"}
    models = [MODELS[e["model"]] for e in ENDPOINTS if e["provider"] in marking]
    assert len(models) >= 8
    assert [m["id"] for m in models if "input_cache_write" not in m["pricing"]] == []


def test_every_model_can_be_reached() -> None:
    assert {endpoint["model"] for endpoint in ENDPOINTS} == set(MODELS)


NOW_US = 1_795_910_400_000_000  # 2026-11-29T00:00:00Z, the day after the file was made


def created(connection: Connection) -> Catalog:
    """The file put into the catalog in its own order, as `gwctl apply` does."""
    for row in CATALOG["providers"]:
        body = msgspec.convert(row, ProviderInput)
        providers.create(connection, body, formats=FORMATS, allow_http=False, now_us=NOW_US)
    for row in CATALOG["models"]:
        models.create(connection, msgspec.convert(row, ModelInput), now_us=NOW_US)
    for row in CATALOG["endpoints"]:
        endpoint = msgspec.convert(row, EndpointInput)
        endpoints.create(connection, endpoint, allow_http=False, now_us=NOW_US)
    return snapshot.load(connection, FORMATS)


async def test_the_catalog_takes_the_file_in_its_order_and_every_endpoint_has_a_price(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "gwd.db")
    migrations.migrate(path, SystemClock())
    store = Store(path)
    try:
        catalog = await store.write(created)
    finally:
        await store.close()
    assert set(catalog.models) == set(MODELS)
    for model in catalog.models.values():
        assert model.live_endpoints
        assert all(endpoint.price_at(NOW_US) for endpoint in model.live_endpoints)
    newest = catalog.resolve("~anthropic/sonnet-latest", NOW_US)
    assert newest is not None
    assert newest.id == "anthropic/claude-sonnet-5-5"


def test_every_preset_of_a_further_provider_is_one_that_the_catalog_takes() -> None:
    examples = Path(__file__).parents[3] / "examples"
    rows = []
    for name in ("providers.toml", "azure.toml"):
        text = (examples / name).read_text(encoding="utf-8").replace("RESOURCE", "acme")
        presets = tomllib.loads(text)
        assert presets.keys() == {"providers"}
        rows += presets["providers"]
    assert len(rows) > 20
    for row in rows:
        body = msgspec.convert(row, ProviderInput)
        kept = msgspec.json.decode(msgspec.json.encode(check_flags(body.flags)))
        assert kept == body.flags
        assert check_base_url(body.base_url, allow_http=False) == body.base_url
        assert check_adapter(body.adapter, FORMATS) == body.adapter
        assert body.slug not in PROVIDERS
