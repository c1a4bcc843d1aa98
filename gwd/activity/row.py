"""One generation as it is written: the columns of the table, in their order."""

from hashlib import sha256
from operator import attrgetter
from typing import Any, Final, Literal, get_args

import msgspec

from gwd.core.events import FinishReason
from gwd.core.request import DialectName

Status = Literal["succeeded", "incomplete", "failed", "cancelled", "refused"]
STATUSES: Final[tuple[str, ...]] = ("in_progress", *get_args(Status))
"""Every word of the API; no record has the first, because one is written when its generation is settled."""


class GenerationRow(msgspec.Struct, frozen=True, kw_only=True):
    """Times in microseconds UTC, durations in milliseconds, amounts in nano-USD; JSON text where the name says so.

    `price` names the version of the price that was applied and `price_modifiers` the factors, so that the
    charge can be computed again. `service_tier` is the vendor's word for the tier that served.
    """

    id: str
    organization_id: str
    workspace_id: str | None
    key_id: str
    family_id: str
    user_tag: str | None = None
    session_id: str | None = None
    referer: str | None = None
    title: str | None = None
    dialect: DialectName
    requested_model: str | None = None
    model: str | None = None
    vendor: str | None = None
    provider: str | None = None
    endpoint_id: str | None = None
    status: Status
    streamed: bool = False
    finish_reason: FinishReason | None = None
    native_finish_reason: str | None = None
    error_status: int | None = None
    error_code: str | None = None
    error_message: str | None = None
    tokens_input: int = 0
    tokens_cache_read: int = 0
    tokens_cache_write_5m: int = 0
    tokens_cache_write_1h: int = 0
    tokens_output: int = 0
    tokens_reasoning: int = 0
    images: int = 0
    usage_estimated: bool = False
    cost_prompt_nano: int = 0
    cost_cache_read_nano: int = 0
    cost_cache_write_nano: int = 0
    cost_completion_nano: int = 0
    cost_reasoning_nano: int = 0
    cost_request_fee_nano: int = 0
    cost_platform_fee_nano: int = 0
    cost_total_nano: int = 0
    insured: bool = False
    byok: bool = False
    fee_bps: int = 0
    price: str | None = None
    attempts: int = 0
    fallbacks: int = 0
    routing_ms: int | None = None
    fallback_ms: int | None = None
    ttft_ms: int | None = None
    generation_ms: int | None = None
    latency_ms: int | None = None
    upstream_id: str | None = None
    request_id: str | None = None
    user_agent: str | None = None
    dropped_parameters: str | None = None
    dropped_tools: str | None = None
    forwarded_from: str | None = None
    receipt: str | None = None
    occurrences: int = 1
    created_at: int
    settled_at: int
    web_searches: int = 0
    cost_web_search_nano: int = 0
    price_modifiers: str | None = None
    service_tier: str | None = None
    prompt_above_bound: bool = False
    cache_discount_nano: int | None = None
    tags: str | None = None


COLUMNS: Final = tuple(field.name for field in msgspec.structs.fields(GenerationRow))
SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM generation"  # noqa: S608
_BOOLEANS: Final = ("streamed", "usage_estimated", "prompt_above_bound", "insured", "byok")
_SEALED_COLUMNS: Final = (
    *("id", "organization_id", "workspace_id", "key_id", "family_id", "dialect", "requested_model"),
    *("model", "vendor", "provider", "endpoint_id", "status", "finish_reason", "error_code"),
    *("tokens_input", "tokens_cache_read", "tokens_cache_write_5m", "tokens_cache_write_1h"),
    *("tokens_output", "tokens_reasoning", "images", "web_searches"),
    *("cost_prompt_nano", "cost_cache_read_nano", "cost_cache_write_nano", "cost_completion_nano"),
    *("cost_reasoning_nano", "cost_request_fee_nano", "cost_web_search_nano"),
    *("cost_platform_fee_nano", "cost_total_nano", "fee_bps", "price", "price_modifiers"),
    *("service_tier", "upstream_id", "forwarded_from", "created_at"),
)
_SEALED_FLAGS: Final = ("streamed", "usage_estimated", "insured", "byok")
SEALED: Final = _SEALED_COLUMNS + _SEALED_FLAGS
"""What the ledger vouches for, of a generation that held credit: all that a bill is made of, and whose it is. It leaves
out what may be forgotten later. Another list or order would break every digest written so far."""

_columns: Final = attrgetter(*_SEALED_COLUMNS)
_flags: Final = attrgetter(*_SEALED_FLAGS)
_encode: Final = msgspec.json.Encoder().encode


def digest(row: GenerationRow) -> str:
    """The digest of `SEALED`, as the entry that ends the generation's hold keeps it."""
    return digest_of(_columns(row) + tuple(map(int, _flags(row))))


def digest_of(values: tuple[Any, ...]) -> str:
    """The same, of the columns as they are stored."""
    return sha256(_encode(values)).hexdigest()


def row_of(values: tuple[Any, ...]) -> GenerationRow:
    """A generation from its columns in order."""
    fields = dict(zip(COLUMNS, values, strict=True))
    for name in _BOOLEANS:
        fields[name] = bool(fields[name])
    return GenerationRow(**fields)
