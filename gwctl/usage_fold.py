"""Adding up generation records, by whom or what they were for, and by day."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from gwctl.text import decimal

DAY = "date__day"
TAG = "tag"
# Where a generation record keeps what the rows call by another name.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "api_key": ("key_name", "key_id"),
    "user": ("external_user",),
    "app": ("title", "http_referer"),
    "provider": ("provider_name",),
    "endpoint": ("endpoint_id",),
    "workspace": ("workspace_id",),
}
_COUNTS = ("requests", "tokens_prompt", "tokens_completion", "cached_tokens")
_AMOUNTS = ("cost", "cache_discount")


def fold(
    generations: Iterable[Mapping[str, Any]], dimensions: Sequence[str], *, daily: bool
) -> list[dict[str, Any]]:
    """One row per combination of dimensions (and day), refusals left out.

    A request counts for each of its tags; without any it counts as one that has none.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in generations:
        if record.get("status") == "refused":
            continue
        named = {name: _value(record, name) for name in dimensions}
        if daily:
            named[DAY] = str(record.get("created_at"))[:10]
        tags = (record.get("tags") or [None]) if TAG in dimensions else [None]
        for tag in tags:
            _add(_row(rows, {**named, TAG: tag} if TAG in dimensions else named), record)
    return _finished(rows)


def _add(row: dict[str, Any], record: Mapping[str, Any]) -> None:
    row["requests"] += 1
    row["tokens_prompt"] += record.get("tokens_prompt") or 0
    row["tokens_completion"] += record.get("tokens_completion") or 0
    row["cost"] += decimal(record.get("total_cost")) or Decimal(0)
    row["cached_tokens"] += record.get("native_tokens_cached") or 0
    row["cache_discount"] += decimal(record.get("cache_discount")) or Decimal(0)


def summed(rows: Iterable[Mapping[str, Any]], dimensions: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a finer division added up to one per combination of these dimensions."""
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        whole = _row(sums, {name: row.get(name) for name in dimensions})
        for name in (*_COUNTS, *_AMOUNTS):
            whole[name] += row[name]
    return _finished(sums)


def _row(rows: dict[tuple[Any, ...], dict[str, Any]], named: dict[str, Any]) -> dict[str, Any]:
    group = tuple(named.values())
    if group not in rows:
        rows[group] = named | dict.fromkeys(_COUNTS, 0) | dict.fromkeys(_AMOUNTS, Decimal(0))
    return rows[group]


def _finished(rows: Mapping[tuple[Any, ...], dict[str, Any]]) -> list[dict[str, Any]]:
    for row in rows.values():
        row["cache_hit_rate"] = _share(row["cached_tokens"], row["tokens_prompt"])
    return list(rows.values())


def _share(part: int, whole: int) -> Decimal | None:
    """A part as a number from 0 to 1 of at most four digits; None of nothing."""
    return None if not whole else round(Decimal(part) / whole, 4).normalize()


def _value(record: Mapping[str, Any], dimension: str) -> Any:
    names = _FIELDS.get(dimension, (dimension,))
    return next((record[name] for name in names if record.get(name)), None)
