"""Adding up generation records, by model, key, user, app or session, and by day."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from gwctl.text import decimal

# Where a generation record keeps what the rows call by another name.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "api_key": ("key_name", "key_id"),
    "user": ("external_user",),
    "app": ("title", "http_referer"),
}


def fold(
    generations: Sequence[Mapping[str, Any]], dimensions: Sequence[str], *, daily: bool
) -> list[dict[str, Any]]:
    """One row per combination of dimensions (and day), refusals left out."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in generations:
        if record.get("status") == "refused":
            continue
        values = [_value(record, name) for name in dimensions]
        day = str(record.get("created_at"))[:10]
        group = (*values, day) if daily else tuple(values)
        row = rows.get(group)
        if row is None:
            row = dict(zip(dimensions, values, strict=True))
            row |= {"requests": 0, "tokens_prompt": 0, "tokens_completion": 0, "cost": Decimal(0)}
            row |= {"cached_tokens": 0, "cache_discount": Decimal(0)}
            if daily:
                row["date__day"] = day
            rows[group] = row
        row["requests"] += 1
        row["tokens_prompt"] += record.get("tokens_prompt") or 0
        row["tokens_completion"] += record.get("tokens_completion") or 0
        row["cost"] += decimal(record.get("total_cost")) or Decimal(0)
        row["cached_tokens"] += record.get("native_tokens_cached") or 0
        row["cache_discount"] += decimal(record.get("cache_discount")) or Decimal(0)
    for row in rows.values():
        row["cache_hit_rate"] = _share(row["cached_tokens"], row["tokens_prompt"])
    return list(rows.values())


def _share(part: int, whole: int) -> Decimal | None:
    """A part as a number from 0 to 1 of at most four digits; None of nothing."""
    return None if not whole else round(Decimal(part) / whole, 4).normalize()


def _value(record: Mapping[str, Any], dimension: str) -> Any:
    names = _FIELDS.get(dimension, (dimension,))
    return next((record[name] for name in names if record.get(name)), None)
