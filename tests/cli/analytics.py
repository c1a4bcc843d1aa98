"""What the gateway's analytics say of records that a test has: added up by dimension and day, refusals left out."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tests.cli.gateway import Answer, FakeGateway, Received

PATH = "/analytics/query"
# Where a generation record keeps what analytics call by another name.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "api_key": ("key_id",),
    "user": ("external_user",),
    "app": ("title", "http_referer"),
    "provider": ("provider_name",),
    "endpoint": ("endpoint_id",),
    "workspace": ("workspace_id",),
}
METRICS: Mapping[str, str] = {
    "tokens_prompt": "tokens_prompt",
    "tokens_completion": "tokens_completion",
    "cost": "total_cost",
    "cached_tokens": "native_tokens_cached",
    "cache_discount": "cache_discount",
}


def used(gateway: FakeGateway, *records: Mapping[str, Any]) -> None:
    """The gateway's activity is these records; whatever time it is asked about, it answers with all of them."""

    def answer(request: Received) -> Answer:
        names = request.body["dimensions"]
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for record in records:
            if record.get("status") == "refused":
                continue
            values = [_value(record, name) for name in names]
            place = (str(record["created_at"])[:10], *values)
            empty = {"requests": 0, **dict.fromkeys(METRICS, Decimal(0))}
            day = {"date__day": f"{place[0]}T00:00:00Z"}
            row = rows.setdefault(place, {**day, **dict(zip(names, values, strict=True)), **empty})
            row["requests"] += 1
            for metric, field in METRICS.items():
                row[metric] += Decimal(str(record.get(field) or 0))
        return Answer({"data": {"data": [_plain(row) for row in rows.values()], "metadata": META}})

    gateway.on("POST", PATH, answer)


META: Mapping[str, Any] = {
    "query_time_ms": 1,
    "row_count": 1,
    "truncated": False,
    "from": "2026-11-01T00:00:00Z",
    "to": "2026-11-30T00:00:00Z",
    "time_zone": "UTC",
}


def _value(record: Mapping[str, Any], name: str) -> Any:
    fields = FIELDS.get(name, (name,))
    return next((record[field] for field in fields if record.get(field)), None)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(value) if name in METRICS else value for name, value in row.items()}


def _number(value: Decimal) -> int | float:
    return int(value) if value == int(value) else float(value)
