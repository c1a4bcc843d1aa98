"""Writing generations and reading them back: one by id, the last minute for rate windows; lists are in `lists`."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gwd.activity.lists import LOOK_US, number_at
from gwd.activity.row import COLUMNS, SELECT, GenerationRow, row_of
from gwd.core.clock import US_PER_S, iso
from gwd.core.errors import GenerationNotFound
from gwd.core.money import usd_json
from gwd.ledger import ledger_time_us
from gwd.store import Connection, keeps_facts

Record = dict[str, Any]

_INSERT: Final = (
    f"INSERT INTO generation ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
    " ON CONFLICT (id) DO NOTHING"
)
_NONE: Final = 1 << 62
_LAST_OF_EACH: Final = (
    "SELECT id, (SELECT MAX(rowid) FROM generation WHERE organization_id = organization.id)"
    " FROM organization"
)
_COUNTS: Final = (
    "SELECT COALESCE(SUM(status <> 'refused'), 0), COALESCE(SUM(status IN ('failed', 'incomplete')), 0),"
    " COALESCE(SUM(occurrences * (status = 'refused')), 0), COUNT(ttft_ms) FROM generation"
    " WHERE rowid >= ? AND created_at >= ?"
)
_TTFT_AT: Final = (
    "SELECT ttft_ms FROM generation WHERE rowid >= ? AND created_at >= ? AND ttft_ms IS NOT NULL"
    " ORDER BY ttft_ms LIMIT 1 OFFSET ?"
)


@keeps_facts
def write(connection: Connection, row: GenerationRow) -> None:
    """Write a generation once; a second write of the same id changes nothing (recovery may run twice).

    Lists are walked and cut by time in the order in which rows are written, so a refusal has ledger time as well: a
    clock that was set back does not put it before what was written earlier.
    """
    if row.status == "refused":
        at_us = ledger_time_us(connection, row.organization_id, now_us=row.settled_at)
        row = msgspec.structs.replace(row, settled_at=at_us)
    connection.execute(_INSERT, msgspec.structs.astuple(row))


def count_refusal(connection: Connection, row: GenerationRow) -> None:
    """Write a refusal that repeats: one row per key, code and second, with the number of occurrences."""
    second = row.created_at // US_PER_S * US_PER_S
    changed = connection.execute(
        "UPDATE generation SET occurrences = occurrences + ? WHERE organization_id = ? AND rowid >= ?"
        " AND created_at >= ? AND created_at < ? AND key_id = ? AND error_code = ? AND status = 'refused'",
        (
            row.occurrences,
            row.organization_id,
            number_at(connection, row.organization_id, second - LOOK_US),
            second,
            second + US_PER_S,
            row.key_id,
            row.error_code,
        ),
    )
    if not changed:
        write(connection, row)


def get(connection: Connection, organization_id: str, generation_id: str) -> GenerationRow:
    """Raises GenerationNotFound, for a foreign or unknown id and for one that is not settled yet."""
    found = connection.row(
        f"{SELECT} WHERE id = ? AND organization_id = ?",
        (generation_id, organization_id),
    )
    if found is None:
        raise GenerationNotFound(
            "no such generation; one that is still running appears when it is settled",
            retry_after_s=1,
        )
    return row_of(found)


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What the node did in a stretch of time: dispatched requests, those that failed, and what was refused."""

    requests: int
    errors: int
    refusals: int
    p50_ttft_ms: int | None


def traffic(connection: Connection, since_us: int) -> Traffic:
    """Of all organizations since a moment."""
    first = _number_since(connection, since_us)
    counts = connection.row(_COUNTS, (first, since_us))
    assert counts is not None
    requests, errors, refusals, timed = counts
    middle = connection.row(_TTFT_AT, (first, since_us, timed // 2))
    return Traffic(
        requests=requests,
        errors=errors,
        refusals=refusals,
        p50_ttft_ms=None if middle is None else middle[0],
    )


def tagged(
    connection: Connection, organization_id: str, *, before_us: int, at_most: int
) -> list[str]:
    """Old records that still say who and what was asking. Looks through the whole history: not for the writer."""
    return [
        str(row[0])
        for row in connection.rows(
            "SELECT id FROM generation INDEXED BY generation_by_organization"
            " WHERE organization_id = ? AND created_at < ?"
            " AND COALESCE(user_tag, session_id, referer, title, user_agent) IS NOT NULL LIMIT ?",
            (organization_id, before_us, at_most),
        )
    ]


def forget_tags(connection: Connection, generation_ids: Sequence[str]) -> None:
    """Drop who and what was asking from these records; amounts, tokens, prices and receipts stay."""
    connection.execute_many(
        "UPDATE generation SET user_tag = NULL, session_id = NULL, referer = NULL, title = NULL, user_agent = NULL"
        " WHERE id = ?",
        [(generation_id,) for generation_id in generation_ids],
    )


def admitted_since(connection: Connection, since_us: int) -> list[tuple[str, int]]:
    """(family, created_at) of what the rate limit let through: what its windows are seeded with at start."""
    return [
        (str(row[0]), int(row[1]))
        for row in connection.rows(
            "SELECT family_id, created_at FROM generation WHERE rowid >= ? AND created_at >= ?"
            " AND (error_code IS NULL OR error_code <> 'rate_limit_exceeded') ORDER BY created_at",
            (_number_since(connection, since_us), since_us),
        )
    ]


def _number_since(connection: Connection, since_us: int) -> int:
    """A row number before which nothing ended since a moment, whatever the organization.

    Each organization's times are in order, and all are one clock's but for what a clock that was set back left ahead.
    """
    first = None
    for organization_id, last in connection.rows(_LAST_OF_EACH):
        number = last and number_at(connection, organization_id, since_us - LOOK_US)
        if number and number <= last and (first is None or number < first):
            first = number
    return _NONE if first is None else first


def record(row: GenerationRow, key_name: str | None = None) -> Record:
    """The generation record of api.md 8.6: the spec's fields, those other clients insist on, ours on top."""
    prompt = (
        row.tokens_input
        + row.tokens_cache_read
        + row.tokens_cache_write_5m
        + row.tokens_cache_write_1h
    )
    completion = row.tokens_output + row.tokens_reasoning
    list_price = (
        row.cost_prompt_nano
        + row.cost_cache_read_nano
        + row.cost_cache_write_nano
        + row.cost_completion_nano
        + row.cost_reasoning_nano
        + row.cost_request_fee_nano
        + row.cost_web_search_nano
    )
    return {
        "id": row.id,
        "model": row.model,
        "provider_name": row.provider,
        "status": row.status,
        "streamed": row.streamed,
        "finish_reason": row.finish_reason,
        "tokens_prompt": prompt,
        "tokens_completion": completion,
        "native_tokens_cached": row.tokens_cache_read,
        "native_tokens_reasoning": row.tokens_reasoning,
        "total_cost": usd_json(row.cost_total_nano),
        "latency": row.latency_ms or 0,
        "generation_time": row.generation_ms or 0,
        "created_at": iso(row.created_at),
        "settled_at": iso(row.settled_at),
        "ttft": row.ttft_ms,
        "usage": usd_json(row.cost_total_nano),
        "upstream_inference_cost": usd_json(list_price) if row.byok else None,
        "native_tokens_prompt": prompt,
        "native_tokens_completion": completion,
        "native_tokens_cache_write": row.tokens_cache_write_5m + row.tokens_cache_write_1h,
        "native_finish_reason": row.native_finish_reason,
        "is_byok": row.byok,
        "insured": row.insured,
        "dialect": row.dialect,
        "requested_model": row.requested_model,
        "vendor": row.vendor,
        "key_id": row.key_id,
        "key_name": key_name,
        "workspace_id": row.workspace_id,
        "session_id": row.session_id,
        "external_user": row.user_tag,
        "http_referer": row.referer,
        "origin": row.referer or "",
        "title": row.title,
        "user_agent": row.user_agent,
        "request_id": row.request_id,
        "upstream_id": row.upstream_id,
        "error": None
        if row.error_code is None
        else {"status": row.error_status, "code": row.error_code, "message": row.error_message},
        "attempts": row.attempts,
        "usage_estimated": row.usage_estimated,
        "prompt_above_bound": row.prompt_above_bound,
        "price_version": row.price,
        "price_modifiers": msgspec.json.decode(row.price_modifiers)
        if row.price_modifiers
        else None,
        "service_tier": row.service_tier,
        "web_searches": row.web_searches,
        "web_search_cost": usd_json(row.cost_web_search_nano),
        "dropped_parameters": msgspec.json.decode(row.dropped_parameters)
        if row.dropped_parameters
        else [],
        "dropped_tools": msgspec.json.decode(row.dropped_tools) if row.dropped_tools else [],
        "forwarded_from": row.forwarded_from,
        "occurrences": row.occurrences,
        "cancelled": row.status == "cancelled",
        "num_media_prompt": row.images or None,
        "data_region": "global",
        "gateway_metadata": msgspec.Raw(row.receipt.encode()) if row.receipt else None,
        **dict.fromkeys(_UNKNOWN_HERE),
    }


# Fields that other clients' models require and this gateway has no value for.
_UNKNOWN_HERE: Final = (
    "api_type",
    "app_id",
    "cache_discount",
    "moderation_latency",
    "native_tokens_completion_images",
    "num_fetches",
    "num_input_audio_prompt",
    "num_media_completion",
    "num_search_results",
    "preset_id",
    "provider_responses",
    "router",
    "web_search_engine",
)
