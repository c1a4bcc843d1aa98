"""The management calls that prepare a case: catalogue, money, key, budgets; and the ones that look at money."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .assertions import BadCase, compact_json, cut, fill, load_json, plain_decimal
from .gateway import Gateway, SetupError
from .vendors import Json, Vendors
from .wire import send

SPEND_PER_TOKEN = Decimal("0.00001")
PARAMETERS = [
    *(
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "stop",
    ),
    *(
        "repetition_penalty",
        "max_tokens",
        "max_completion_tokens",
        "logit_bias",
        "logprobs",
        "top_logprobs",
    ),
    *(
        "response_format",
        "structured_outputs",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "verbosity",
    ),
    *("include_reasoning", "reasoning", "reasoning_effort"),
]
PRICE_FIELDS = {
    "prompt": "prompt",
    "completion": "completion",
    "cache_read": "input_cache_read",
    "cache_write": "input_cache_write",
    "cache_write_1h": "input_cache_write_1h",
    "reasoning": "internal_reasoning",
}
PRICED_EXTRAS = ("web_search", "price_modifiers")
ADAPTERS = {
    "openai": "openai_chat",
    "anthropic": "anthropic_messages",
    "gemini": "gemini",
    "responses": "openai_responses",
}
VENDOR_KEYS = {
    "openai": "up-oai-key",
    "anthropic": "up-ant-key",
    "gemini": "up-gem-key",
    "responses": "up-rsp-key",
}

LEFTOVERS = (
    ("/budgets", "id", ""),
    ("/catalog/endpoints", "model", "test/"),
    ("/catalog/models", "id", "test/"),
    ("/catalog/credentials", "provider", "case-"),
)


Fixture = Mapping[str, Any]


@dataclass(frozen=True)
class Model:
    slug: str
    kind: str
    upstream: str
    prices: dict[str, str]  # USD per million tokens
    family: str | None = None
    without: tuple[str, ...] = ()
    flags: dict[str, Any] | None = None
    embeddings: bool = False


ANT_PRICES = {
    "prompt": "3",
    "completion": "15",
    "cache_read": "0.3",
    "cache_write": "3.75",
    "cache_write_1h": "6",
}
MODELS = [
    Model(
        "test/oai",
        "openai",
        "oai-up",
        {"prompt": "2", "completion": "8", "cache_read": "0.5"},
        family="oai",
    ),
    Model(
        "test/oai-b", "openai", "oai-b-up", {"prompt": "1", "completion": "4", "cache_read": "0.25"}
    ),
    Model(
        "test/oai-rs",
        "openai",
        "oai-rs-up",
        {"prompt": "10", "completion": "40", "cache_read": "2.5"},
        without=("max_tokens",),
    ),
    Model(
        "test/rsp", "responses", "rsp-up", {"prompt": "2", "completion": "8", "cache_read": "0.5"}
    ),
    Model(
        "test/ant",
        "anthropic",
        "ant-up",
        ANT_PRICES,
        flags={"thinking_form": "budget", "supports_prefill": True},
    ),
    Model("test/gem", "gemini", "gem-up", {"prompt": "1", "completion": "4", "cache_read": "0.25"}),
    Model("test/emb", "openai", "emb-up", {"prompt": "0.1"}, embeddings=True),
]
SPEND_MODEL = Model("test/spend", "openai", "spend-up", {"prompt": "10", "completion": "10"})


class Management:
    """The management API, as the operator."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def call(
        self, method: str, path: str, body: Any = None, *, accept: tuple[int, ...] = ()
    ) -> Any:
        headers = {"authorization": f"Bearer {self._gateway.management_key}"}
        if body is not None:
            headers["content-type"] = "application/json"
        payload = b"" if body is None else compact_json(body).encode()
        reply = await send(
            self._gateway.address, method, self._gateway.base_path + path, headers, payload
        )
        if reply.status in accept:
            return None
        if reply.status is None or not 200 <= reply.status < 300:
            raise SetupError(
                f"{method} {path} answered {reply.status}: {cut(reply.trouble or reply.text, 300)}"
            )
        return load_json(reply.text) if reply.text else {}

    async def credits(self) -> Json:
        data: Json = (await self.call("GET", "/credits"))["data"]
        return data

    async def open_reservations(self, money: Json) -> int:
        """How many holds are open: none if nothing is reserved, else as the ledger tells."""
        if not money["reserved"]:
            return 0
        entries = (await self.call("GET", "/credits/ledger?limit=100"))["data"]
        held = {e["generation_id"] for e in entries if e["type"] == "reservation"}
        resolved = {e["generation_id"] for e in entries if e["type"] in ("settlement", "release")}
        return max(1, len(held - resolved))

    async def generation(self, generation_id: str) -> Any:
        found = await self.call("GET", f"/generation?id={generation_id}", accept=(404,))
        return found and found["data"]

    async def clear(self) -> None:
        """Leftovers of earlier cases; only for a gateway that was not started for this case."""
        for path, field, start in LEFTOVERS:
            for record in (await self.call("GET", f"{path}?limit=100"))["data"]:
                if record[field].startswith(start):
                    await self.call("DELETE", f"{path}/{record['id']}", accept=(404,))
        balance = (await self.credits())["balance"]
        if balance > 0:
            await self.call("POST", "/credits/refunds", {"amount": balance, "note": "next case"})

    async def catalogue(
        self, fixture: Fixture, kind: str, vendors: Vendors, prefix: str = ""
    ) -> None:
        """Providers, models and endpoints of one case."""
        names = fixture.get("endpoints", {})
        await self._providers(fixture, kind, vendors, prefix)
        models = MODELS + ([SPEND_MODEL] if "budgets" in fixture else [])
        for model in models:
            await self._model(
                model,
                fixture.get("models", {}).get(model.slug, {}),
                names.get(model.slug, ["a"]),
                prefix,
            )

    async def money_and_key(self, fixture: Fixture) -> Any:
        """What one case may spend; returns the reply of POST /keys."""
        spent = sum(Decimal(budget["spent_usd"]) for budget in fixture.get("budgets", []))
        amount = Decimal(str(fixture.get("balance_usd", "10"))) + spent
        await self.call("POST", "/credits/grants", {"kind": "purchased", "amount": amount})
        return await self.call("POST", "/keys", {"name": "case", **fixture.get("key", {})})

    async def _providers(self, fixture: Fixture, kind: str, vendors: Vendors, prefix: str) -> None:
        for slug, name, vendor in provider_names(fixture, prefix):
            embeddings = slug.startswith(f"{prefix}embeddings")
            own = fixture.get("endpoint_config", {}).get(name, {}) if vendor == kind else {}
            own = fill(own, {"upstream_url": vendors.url(name, vendor)})
            provider = {
                "slug": slug,
                "name": slug,
                "adapter": "openai_embeddings" if embeddings else ADAPTERS[vendor],
                "base_url": own.get("base_url", vendors.base_url(name, vendor)),
            }
            key = own.get("api_key", VENDOR_KEYS[vendor] + ("" if name == "a" else f"-{name}"))
            await self.call("POST", "/catalog/providers", provider)
            secret = {"key_ref": f"env:{key[2:-1]}"} if key.startswith("${") else {"key": key}
            await self.call(
                "POST", "/catalog/credentials", {"provider": slug, "name": f"case-{slug}", **secret}
            )

    async def _model(self, model: Model, changed: Json, names: list[str], prefix: str) -> None:
        own_prices = changed.get("pricing_per_million", {})
        prices = model.prices | {name: str(price) for name, price in own_prices.items()}
        extras = {name: changed[name] for name in PRICED_EXTRAS if name in changed}
        unknown = changed.keys() - {
            "pricing_per_million",
            "supported_parameters",
            "input_modalities",
            "flags",
            *PRICED_EXTRAS,
        }
        if unknown or prices.keys() - PRICE_FIELDS.keys():
            raise BadCase(f"fixture.models: unknown field in {changed}")
        body = {
            "id": model.slug,
            "name": model.slug,
            "vendor": "Test",
            "context_length": 200_000,
            "max_completion_tokens": 0 if model.embeddings else 64_000,
            "supported_parameters": changed.get(
                "supported_parameters", [p for p in PARAMETERS if p not in model.without]
            ),
            "input_modalities": changed.get(
                "input_modalities", ["text"] if model.embeddings else ["text", "image", "file"]
            ),
            "output_modalities": ["embeddings"] if model.embeddings else ["text"],
            "pricing": {
                PRICE_FIELDS[k]: plain_decimal(Decimal(v) / 1_000_000) for k, v in prices.items()
            }
            | extras,
        }
        if model is SPEND_MODEL:
            body |= {"context_length": 10_000_000, "max_completion_tokens": 5_000_000}
        if model.family:
            body["family"] = model.family
        await self.call("POST", "/catalog/models", body)
        for rank, name in enumerate(names):
            endpoint: Json = {
                "model": model.slug,
                "provider": f"{prefix}{'embeddings' if model.embeddings else model.kind}-{name}",
                "upstream_model": model.upstream,
            }
            flags = {**(model.flags or {}), **changed.get("flags", {})}
            if flags:
                endpoint["flags"] = flags
            if len(names) > 1:  # earlier names first, all but surely
                endpoint["weight"] = 10_000 ** (len(names) - 1 - rank)
            await self.call("POST", "/catalog/endpoints", endpoint)

    async def budget(self, budget: Json, key_record: Json) -> None:
        scope_ids = {"key": "id", "workspace": "workspace_id", "organization": "organization_id"}
        body = {
            "scope": budget["scope"],
            "scope_id": key_record[scope_ids[budget["scope"]]],
            "interval": budget["window"],
            "kind": budget["kind"],
            "limit": Decimal(budget["limit_usd"]),
        }
        await self.call("POST", "/budgets", body)


def endpoint_names(fixture: Fixture) -> list[str]:
    return sorted({"a", *itertools.chain.from_iterable(fixture.get("endpoints", {}).values())})


def provider_names(fixture: Fixture, prefix: str = "") -> list[tuple[str, str, str]]:
    """(slug, endpoint name, vendor) of every provider."""
    kinds = [*((vendor, vendor) for vendor in ADAPTERS), ("embeddings", "openai")]
    return [
        (f"{prefix}{kind}-{name}", name, vendor)
        for name in endpoint_names(fixture)
        for kind, vendor in kinds
    ]


def spending_exchange(amount: str) -> tuple[Json, Json]:
    """A request and a vendor answer that cost exactly this much on test/spend."""
    tokens = Decimal(amount) / SPEND_PER_TOKEN
    if tokens != int(tokens) or tokens < 10:
        raise BadCase(f"spent_usd {amount} is not a multiple of {SPEND_PER_TOKEN}")
    body = {
        "model": SPEND_MODEL.slug,
        "messages": [{"role": "user", "content": "spend"}],
        "max_tokens": int(tokens),
    }
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "ok"},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 1, "completion_tokens": int(tokens) - 1, "total_tokens": int(tokens)}
    answer = {
        "id": "cmpl-up-1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": SPEND_MODEL.upstream,
    }
    return body, {"status": 200, "body": answer | {"choices": [choice], "usage": usage}}
