"""What generations came to, by UTC day of settlement, key, workspace, model, endpoint and whose vendor key served.

A sum is added to in the transaction that writes the record, so that statements and overviews never read the records
one by one. What has no name (the model of a refusal, the provider of a request that was never served) is kept as ''.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from gwd.activity.row import GenerationRow
from gwd.core.clock import US_PER_DAY
from gwd.store import Connection

PLACE: Final = (
    *("organization_id", "day", "key_id", "model", "endpoint_id", "byok"),
    *("workspace_id", "vendor", "provider"),
)
"""The primary key, what tells most rows apart first. `day` counts from 1970-01-01."""

COSTS: Final = (
    *("cost_prompt_nano", "cost_cache_read_nano", "cost_cache_write_nano", "cost_completion_nano"),
    *("cost_reasoning_nano", "cost_request_fee_nano", "cost_web_search_nano"),
    "cost_platform_fee_nano",
)
LIST_PRICE: Final = " + ".join(COSTS[:-1])
"""SQL: what the vendor's work costs by its list price, without the platform's fee."""

_DISPATCHED: Final = "status <> 'refused'"
_SAME: Final = ("tokens_input", "tokens_cache_read", "tokens_output", "tokens_reasoning", *COSTS)
SUMS: Final[dict[str, str]] = {
    "requests": _DISPATCHED,
    "errors": "status IN ('failed', 'incomplete')",
    "fallbacks": "fallbacks",
    "insured": "insured",
    "refusals": "occurrences * (status = 'refused')",
    "tokens_cache_write": "tokens_cache_write_5m + tokens_cache_write_1h",
    **{name: name for name in _SAME},
    "charged_nano": "cost_total_nano",
    "cache_discount_nano": "COALESCE(cache_discount_nano, 0)",
    "latency_ms": f"COALESCE(latency_ms, 0) * ({_DISPATCHED})",
    "latencies": f"latency_ms IS NOT NULL AND {_DISPATCHED}",
    "ttft_ms": "COALESCE(ttft_ms, 0)",
    "ttfts": "ttft_ms IS NOT NULL",
    "generation_ms": "COALESCE(generation_ms, 0)",
    "timed_tokens": "(tokens_output + tokens_reasoning) * (COALESCE(generation_ms, 0) > 0)",
}
"""Each sum, and what one generation adds to it, as SQL of its row. Milliseconds and how many they are the sum of;
`timed_tokens` are those of answers whose generation took a time that was measured."""

_ADD: Final = (
    f"INSERT INTO day_sum VALUES ({','.join('?' * (len(PLACE) + len(SUMS)))})"  # noqa: S608
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in SUMS)}"
)
_COUNT_REFUSALS: Final = (
    "UPDATE day_sum SET refusals = refusals + ? WHERE organization_id = ? AND day = ? AND key_id = ? AND model = ?"
    " AND endpoint_id = '' AND byok = 0 AND workspace_id = ?"
)
_OF_RECORDS: Final = f"""
    SELECT organization_id, settled_at / {US_PER_DAY}, key_id, COALESCE(model, ''), COALESCE(endpoint_id, ''), byok,
        COALESCE(workspace_id, ''), COALESCE(vendor, ''), COALESCE(provider, ''),
        {", ".join(f"SUM({sql})" for sql in SUMS.values())}
    FROM generation WHERE organization_id = ?1 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9"""  # noqa: S608
_KEPT: Final = f"SELECT {', '.join((*PLACE, *SUMS))} FROM day_sum WHERE organization_id = ?1"  # noqa: S608
_BY_LEDGER: Final = f"""
    SELECT created_at / {US_PER_DAY}, key_id, COALESCE(workspace_id, ''), SUM(amount_nano) FROM entry
    WHERE organization_id = ?1 AND type = 'charge' GROUP BY 1, 2, 3"""  # noqa: S608
_BY_DAY_SUMS: Final = """
    SELECT day, key_id, workspace_id, SUM(charged_nano) FROM day_sum
    WHERE organization_id = ?1 GROUP BY 1, 2, 3 HAVING SUM(charged_nano) <> 0"""
_CHARGED: Final = """
    SELECT workspace_id, key_id, model, byok, SUM(requests),
        SUM(tokens_input + tokens_cache_read + tokens_cache_write), SUM(tokens_cache_read),
        SUM(tokens_output + tokens_reasoning), SUM(charged_nano)
    FROM day_sum WHERE organization_id = ? AND day >= ? AND day < ? GROUP BY 1, 2, 3, 4
    HAVING SUM(requests) > 0 OR SUM(charged_nano) <> 0"""
_OF_ENDPOINTS: Final = """
    SELECT model, endpoint_id, SUM(requests), SUM(charged_nano), SUM(tokens_input), SUM(tokens_cache_read),
        SUM(tokens_cache_write), SUM(tokens_output), SUM(tokens_reasoning)
    FROM day_sum WHERE organization_id IN (SELECT id FROM organization) AND day >= ? AND day <= ? AND byok = 0
    GROUP BY model, endpoint_id"""
_place: Final = attrgetter("key_id", "model", "endpoint_id", "byok")
_costs: Final = attrgetter(*COSTS)


class Charged(NamedTuple):
    """What the requests of one key for one model came to, on the platform's keys or on own ones; '' is none."""

    workspace_id: str
    key_id: str
    model: str
    byok: int
    requests: int
    tokens_prompt: int
    tokens_cached: int
    tokens_completion: int
    nano: int


class EndpointSums(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform's keys did at an endpoint, all organizations together."""

    model: str
    endpoint_id: str
    requests: int
    charged_nano: int
    tokens_input: int
    tokens_cache_read: int
    tokens_cache_write: int
    tokens_output: int
    tokens_reasoning: int


def of_endpoints(connection: Connection, first_day: int, last_day: int) -> list[EndpointSums]:
    """The sums of some days, by model and endpoint."""
    rows = connection.rows(_OF_ENDPOINTS, (first_day, last_day))
    names = EndpointSums.__struct_fields__
    return [EndpointSums(**dict(zip(names, row, strict=True))) for row in rows]


def add(connection: Connection, row: GenerationRow) -> None:
    """Count a generation that has just been written."""
    key_id, model, endpoint_id, byok = _place(row)
    is_dispatched = row.status != "refused"
    latency_ms, ttft_ms, generation_ms = row.latency_ms, row.ttft_ms, row.generation_ms or 0
    is_timed = is_dispatched and latency_ms is not None
    connection.execute(
        _ADD,
        (
            row.organization_id,
            row.settled_at // US_PER_DAY,
            key_id,
            model or "",
            endpoint_id or "",
            byok,
            row.workspace_id or "",
            row.vendor or "",
            row.provider or "",
            is_dispatched,
            row.status in ("failed", "incomplete"),
            row.fallbacks,
            row.insured,
            0 if is_dispatched else row.occurrences,
            row.tokens_cache_write_5m + row.tokens_cache_write_1h,
            row.tokens_input,
            row.tokens_cache_read,
            row.tokens_output,
            row.tokens_reasoning,
            *_costs(row),
            row.cost_total_nano,
            row.cache_discount_nano or 0,
            latency_ms if is_timed else 0,
            is_timed,
            ttft_ms or 0,
            ttft_ms is not None,
            generation_ms,
            row.tokens_output + row.tokens_reasoning if generation_ms > 0 else 0,
        ),
    )


def count_refusals(connection: Connection, row: GenerationRow, settled_us: int) -> None:
    """Count `row.occurrences` refusals more of a record that was written with another time."""
    connection.execute(
        _COUNT_REFUSALS,
        (
            row.occurrences,
            row.organization_id,
            settled_us // US_PER_DAY,
            row.key_id,
            row.model or "",
            row.workspace_id or "",
        ),
    )


def charged(
    connection: Connection, organization_id: str, *, first_day: int, end_day: int
) -> list[Charged]:
    """What requests that were dispatched came to from `first_day` to the day before `end_day`, by whom and for what."""
    return [
        Charged(*row) for row in connection.rows(_CHARGED, (organization_id, first_day, end_day))
    ]


def check(connection: Connection, organization_id: str) -> Iterator[str]:
    """Where an organization's sums are not those of its records, or charge another amount than the ledger did."""
    owner = (organization_id,)
    for kind, first, second in (
        ("the records give others", _KEPT, _OF_RECORDS),
        ("they are missing or others", _OF_RECORDS, _KEPT),
    ):
        for _, day, key_id, model, *_ in connection.rows(f"{first} EXCEPT {second}", owner):
            yield f"the sums of {key_id} for {model or 'no model'} on day {day}: {kind}"
    for first, second in ((_BY_LEDGER, _BY_DAY_SUMS), (_BY_DAY_SUMS, _BY_LEDGER)):
        for day, key_id, _, nano in connection.rows(f"{first} EXCEPT {second}", owner):
            whose = "the ledger" if first is _BY_LEDGER else "its sums"
            yield f"the sums of {key_id} on day {day} and the ledger differ: {whose} charged {nano}"
