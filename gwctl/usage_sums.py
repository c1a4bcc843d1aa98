"""Rows of usage added up to coarser ones, by whom or what it was for."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

DAY = "date__day"
COUNTS = ("requests", "tokens_prompt", "tokens_completion", "cached_tokens")
AMOUNTS = ("cost", "cache_discount")


def summed(rows: Iterable[Mapping[str, Any]], dimensions: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a finer division added up to one per combination of these dimensions."""
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        whole = _row(sums, {name: row.get(name) for name in dimensions})
        for name in (*COUNTS, *AMOUNTS):
            whole[name] += row[name]
    return _finished(sums)


def _row(rows: dict[tuple[Any, ...], dict[str, Any]], named: dict[str, Any]) -> dict[str, Any]:
    group = tuple(named.values())
    if group not in rows:
        rows[group] = named | dict.fromkeys(COUNTS, 0) | dict.fromkeys(AMOUNTS, Decimal(0))
    return rows[group]


def _finished(rows: Mapping[tuple[Any, ...], dict[str, Any]]) -> list[dict[str, Any]]:
    for row in rows.values():
        row["cache_hit_rate"] = _share(row["cached_tokens"], row["tokens_prompt"])
    return list(rows.values())


def _share(part: int, whole: int) -> Decimal | None:
    """A part as a number from 0 to 1 of at most four digits; None of nothing."""
    return None if not whole else round(Decimal(part) / whole, 4).normalize()
