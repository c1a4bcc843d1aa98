"""The catalog's records as commands and files share them: models, providers, endpoints, keys."""

from datetime import datetime, timedelta
from typing import Any

from gwctl import text, time_input
from gwctl.records import Resource
from gwctl.tables import Column, Record, of
from gwctl.values import body, price, price_each

_FOREVER = timedelta(days=366)


def model_state(record: Record) -> str:
    """Derived from the clock, as the gateway does."""
    now = time_input.utc_now()
    retired, deprecated = (text.parse_time(record.get(n)) for n in ("retired_at", "deprecated_at"))
    if retired is not None and retired <= now:
        return "retired"
    return "deprecated" if deprecated is not None and deprecated <= now else "active"


MODELS = Resource(
    noun="model",
    path="/catalog/models",
    by_path=True,
    names=("id",),
    columns=of(
        "ModelRecord",
        Column("MODEL", "id", name=True),
        Column("CONTEXT", "context_length"),
        Column("IN", "pricing.prompt"),
        Column("OUT", "pricing.completion"),
        Column(
            "ENDPOINTS",
            lambda row: (
                len(row["endpoints"])
                if isinstance(row.get("endpoints"), list)
                else row.get("endpoints_available")
            ),
            "count",
        ),
        Column("STATE", model_state, "state"),
        Column("SUCCESSOR", "successor", cut=False),
    ),
)

# option name, field of `pricing`, what it is
PRICES = (
    ("--prompt", "prompt", "input tokens"),
    ("--completion", "completion", "output tokens"),
    ("--cache-read", "input_cache_read", "tokens read from the prompt cache"),
    ("--cache-write", "input_cache_write", "tokens written to the prompt cache (5 minutes)"),
    ("--cache-write-1h", "input_cache_write_1h", "tokens written to the prompt cache (1 hour)"),
    ("--reasoning", "internal_reasoning", "reasoning tokens"),
)
_PER_PIECE = (("--request", "request"), ("--image", "image"), ("--web-search", "web_search"))

PROVIDERS = Resource(
    noun="provider",
    path="/catalog/providers",
    by_path=True,
    names=("slug",),
    columns=of(
        "ProviderRecord",
        Column("SLUG", "slug", name=True),
        Column("NAME", "name"),
        Column("ADAPTER", "adapter"),
        Column("BASE URL", "base_url"),
        Column("STATE", lambda row: "disabled" if row.get("disabled") else "enabled", "state"),
    ),
)

PROVIDER_MODELS = of(
    "ProviderModelRecord",
    Column("MODEL", "id", name=True),
    Column("CONTEXT", "context_length"),
    Column("ANSWER", "max_completion_tokens"),
    Column("OWNER", "owned_by", leaves=1),
    Column("IN CATALOG AS", lambda row: ", ".join(e["model"] for e in row.get("in_catalog") or ())),
)

CREDENTIALS = Resource(
    noun="credential",
    path="/catalog/credentials",
    names=("name", "label"),
    columns=of(
        "CredentialRecord",
        Column("PROVIDER", "provider", name=True),
        Column("NAME", "name", cut=False),
        Column("KEY", lambda row: row.get("key_ref") or row.get("label")),
        Column("STATE", lambda row: "disabled" if row.get("disabled") else "enabled", "state"),
        Column("EXPIRES", "expires_at"),
        Column("ID", "id", leaves=1),
    ),
)


def endpoint_state(record: Record) -> str:
    if record.get("disabled"):
        return "disabled"
    return str(record.get("status") or "enabled")


def cooling_until(record: Record) -> str | None:
    """When a resting endpoint is tried again; what a vendor refused for its key rests until that changes."""
    until = text.parse_time(record.get("cooldown_until"))
    if until is not None and until - time_input.utc_now() < _FOREVER:
        return str(record["cooldown_until"])
    if until is None and record.get("status") != "cooling_down":
        return None
    rests = record.get("rests") or [{}]
    takes_key = any(rest.get("credential_id", "") is not None for rest in rests)
    return f"until its {'key' if takes_key else 'provider'} is changed"


ENDPOINTS = Resource(
    noun="endpoint",
    path="/catalog/endpoints",
    id_prefix=("ep_",),
    names=("name", "tag"),
    columns=of(
        "EndpointRecord",
        Column("MODEL", "model"),
        Column("TAG", lambda row: row.get("tag") or row.get("provider"), cut=False),
        Column("UPSTREAM MODEL", "upstream_model"),
        Column("WEIGHT", "weight"),
        Column("STATE", endpoint_state, "state"),
        Column("ID", "id", name=True),
    ),
)


def pricing_body(given: dict[str, str | None]) -> dict[str, Any]:
    """`pricing` from options: per million for tokens, as they are for requests, images and searches."""
    result: dict[str, Any] = {}
    for option, field, _ in PRICES:
        result[field] = price(option, given.get(field))
    for option, field in _PER_PIECE:
        result[field] = price_each(option, given.get(field))
    return body(result)


def price_at(record: Record, at: str) -> dict[str, Any]:
    """The prices that a model or an endpoint will have then; empty: none of its own.

    A price is one dated whole: what a new one does not name is carried over from the one that holds until then.
    """
    moment = datetime.fromisoformat(at)
    pricing: dict[str, Any] = {}
    for version in record.get("prices") or []:  # oldest first
        if datetime.fromisoformat(version["effective_at"]) <= moment:
            pricing = version.get("pricing") or {}
    return pricing
