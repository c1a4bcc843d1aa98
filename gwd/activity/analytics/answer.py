"""Answering a question: from day sums where they know all that is asked, else from records."""

from typing import Any, Final

import msgspec

from gwd import ledger
from gwd.activity.analytics.dimensions import Dimension
from gwd.activity.analytics.metrics import Metric
from gwd.activity.analytics.question import Question
from gwd.activity.analytics.scope import Scope
from gwd.activity.analytics.statement import Part, Statement, Stretch, whole_days
from gwd.activity.lists import LOOK_US, number_at
from gwd.core.clock import US_PER_DAY
from gwd.core.money import usd_json
from gwd.store import Connection

_DIGITS: Final = {"share": 4, "milliseconds": 1, "tokens_per_second": 1}


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """Rows by the names that were asked for, and whether there are more than the limit lets through."""

    rows: list[dict[str, Any]]
    truncated: bool


def answer(
    connection: Connection, scope: Scope, question: Question, *, from_records: bool = False
) -> Answered:
    """What a question comes to. `from_records` leaves the day sums aside; the answer is the same."""
    statement = Statement(question, scope)
    parts = _parts(connection, scope, question, statement, from_records=from_records)
    whole = statement.whole(parts)
    found = connection.rows(whole.sql, whole.values)
    rows = [dict(zip(statement.columns, values, strict=True)) for values in found[: question.limit]]
    return Answered(
        rows=[_shown(row, statement, question) for row in rows],
        truncated=len(found) > question.limit,
    )


def _parts(
    connection: Connection,
    scope: Scope,
    question: Question,
    statement: Statement,
    *,
    from_records: bool,
) -> list[Part]:
    """Whole days from the day sums with the rest of the first and the last day from records, or all from records."""
    from_us, to_us = question.from_us, question.to_us
    first_day, beyond_day = whole_days(from_us, to_us)
    ends = [(from_us, to_us)]
    parts = []
    if statement.takes_day_sums and first_day < beyond_day and not from_records:
        parts.append(statement.day_sums(first_day, beyond_day))
        ends = [(from_us, first_day * US_PER_DAY), (beyond_day * US_PER_DAY, to_us)]
    parts += [
        statement.records(_stretch(connection, scope.organization_id, start_us, end_us))
        for start_us, end_us in ends
        if start_us < end_us
    ]
    return parts


def _stretch(connection: Connection, organization_id: str, from_us: int, to_us: int) -> Stretch:
    if ledger.was_set_back(connection, organization_id):
        return Stretch(from_us=from_us, to_us=to_us)
    return Stretch(
        from_us=from_us,
        to_us=to_us,
        first=number_at(connection, organization_id, from_us - LOOK_US),
        beyond=number_at(connection, organization_id, to_us + LOOK_US),
    )


def _shown(row: dict[str, Any], statement: Statement, question: Question) -> dict[str, Any]:
    begins = statement.read(row)
    shown: dict[str, Any] = {} if begins is None else {question.date: begins}
    for name, dimension in question.dimensions.items():
        shown[name] = _value(row[dimension.name], dimension)
    for name, metric in question.metrics.items():
        shown[name] = _amount(row[metric.name], metric)
    return shown


def _value(value: Any, dimension: Dimension) -> Any:
    return bool(value) if dimension.kind == "flag" and value is not None else value


def _amount(value: Any, metric: Metric) -> Any:
    if value is None:
        return None
    if metric.format == "usd":
        return usd_json(value)
    digits = _DIGITS.get(metric.format)
    return value if digits is None else round(value, digits)
