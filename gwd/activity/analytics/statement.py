"""The SQL of a question: which rows are read from where, how they are added up, what becomes of the sums.

parts    records and day sums of the time, one row each with its dimensions, its bucket and what it adds to the sums
summed   one row for each combination of dimensions and bucket
answer   the metrics, from the sums; of it the rows that are asked for, in their order
"""

from typing import Any, Final

import msgspec

from gwd.activity.analytics.buckets import Buckets
from gwd.activity.analytics.dimensions import Dimension
from gwd.activity.analytics.metrics import DAY_SUMS, MEASURED, RECORD_SUMS, Measured, Metric
from gwd.activity.analytics.question import Filter, Question
from gwd.activity.analytics.scope import Scope
from gwd.core.clock import US_PER_DAY
from gwd.store.connection import Value

_COMPARED: Final = {
    "eq": "IS ?",
    "neq": "IS NOT ?",
    "gt": "> ?",
    "gte": ">= ?",
    "lt": "< ?",
    "lte": "<= ?",
}
_LISTED: Final = "IN (SELECT value FROM json_each(?))"
_BUCKET: Final = "bucket"


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Records that ended from `from_us` until before `to_us`: in rows of these numbers, where time gives them."""

    from_us: int
    to_us: int
    first: int = 1
    beyond: int = (1 << 63) - 1


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a statement: SQL and its values."""

    sql: str
    values: tuple[Value, ...] = ()


class Statement:
    """The SQL of one question within a scope."""

    def __init__(self, question: Question, scope: Scope) -> None:
        self._question = question
        self._scope = scope
        self._dimensions = list(dict.fromkeys(question.dimensions.values()))
        self._metrics = _wanted(question)
        self._sums = list(dict.fromkeys(name for each in self._metrics for name in each.sums))
        self._measured: list[Measured] = sorted(
            {each.measured for each in self._metrics if each.measured is not None}
        )
        self._chosen = [each for each in question.filters if isinstance(each.field, Dimension)]
        granularity = question.granularity
        self._buckets = (
            None
            if granularity is None
            else Buckets(granularity, question.zone, question.from_us, question.to_us)
        )

    @property
    def takes_day_sums(self) -> bool:
        """Whether whole days can be read from the day sums: they know everything that is asked."""
        fields = [*self._dimensions, *(each.field for each in self._chosen)]
        return (
            not self._measured
            and all(isinstance(each, Dimension) and each.day_sum is not None for each in fields)
            and (self._buckets is None or self._buckets.is_of_utc_days)
        )

    def records(self, stretch: Stretch) -> Part:
        """What the records of a stretch add."""
        columns = [f"{_of_record(each)} AS {each.name}" for each in self._dimensions]
        values = list[Value]()
        if self._buckets is not None:
            bucket, given = self._buckets.of_record()
            columns.append(f"{bucket} AS {_BUCKET}")
            values += given
        columns += [f"{RECORD_SUMS[name]} AS {name}" for name in self._sums]
        columns += [f"{MEASURED[name]} AS {name}" for name in self._measured]
        conditions, given = self._scope.conditions()
        values += given
        conditions += ["generation.rowid >= ?", "generation.rowid < ?"]
        conditions += ["settled_at >= ?", "settled_at < ?"]
        values += [stretch.first, stretch.beyond, stretch.from_us, stretch.to_us]
        for filter_ in self._chosen:
            _choose(filter_, conditions, values, of_day_sums=False)
        return Part(
            sql=f"SELECT {', '.join(columns)} FROM generation INDEXED BY {self._index()}{self._members()}"  # noqa: S608
            f" WHERE {' AND '.join(conditions)}",
            values=tuple(values),
        )

    def day_sums(self, first_day: int, beyond_day: int) -> Part:
        """What whole UTC days add."""
        columns = [f"{each.day_sum} AS {each.name}" for each in self._dimensions]
        if self._buckets is not None:
            columns.append(f"{self._buckets.of_day_sum} AS {_BUCKET}")
        columns += [f"{DAY_SUMS[name]} AS {name}" for name in self._sums]
        conditions, values = self._scope.conditions()
        conditions += ["day >= ?", "day < ?"]
        values += [first_day, beyond_day]
        for filter_ in self._chosen:
            _choose(filter_, conditions, values, of_day_sums=True)
        return Part(
            sql=f"SELECT {', '.join(columns)} FROM day_sum WHERE {' AND '.join(conditions)}",  # noqa: S608
            values=tuple(values),
        )

    def whole(self, parts: list[Part]) -> Part:
        """The statement: rows of the answer, one more than the limit if there are more."""
        groups = self._groups()
        by = f" GROUP BY {', '.join(groups)}" if groups else ""
        source = "parts"
        steps = [f"parts AS ({' UNION ALL '.join(part.sql for part in parts)})"]
        if self._measured:
            source = "placed"
            steps.append(f"placed AS (SELECT *, {', '.join(self._places())} FROM parts)")  # noqa: S608
        sums = [f"COALESCE(SUM({name}), 0) AS {name}" for name in self._sums]
        sums += [_at_percent(each) for each in self._metrics if each.measured is not None]
        steps.append(f"summed AS (SELECT {', '.join((*groups, *sums))} FROM {source}{by})")  # noqa: S608
        metrics = [f"{each.sql or each.name} AS {each.name}" for each in self._metrics]
        steps.append(f"answer AS (SELECT {', '.join((*groups, *metrics))} FROM summed)")  # noqa: S608
        conditions, values = self._rows()
        return Part(
            sql=f"WITH {', '.join(steps)} SELECT {', '.join(self.columns)} FROM answer"  # noqa: S608
            f" WHERE {' AND '.join(conditions) or 'true'} ORDER BY {self._order()} LIMIT ?",
            values=(
                *(value for part in parts for value in part.values),
                *values,
                self._question.limit + 1,
            ),
        )

    @property
    def columns(self) -> list[str]:
        """What a row consists of: the bucket, the dimensions, the metrics that are shown."""
        shown = dict.fromkeys(each.name for each in self._question.metrics.values())
        bucket = [] if self._buckets is None else [_BUCKET]
        return [*bucket, *(each.name for each in self._dimensions), *shown]

    def read(self, row: dict[str, Any]) -> str | None:
        """When a row's bucket begins, where there are buckets."""
        return None if self._buckets is None else self._buckets.text(row[_BUCKET])

    def _groups(self) -> list[str]:
        bucket = [] if self._buckets is None else [_BUCKET]
        return [*(each.name for each in self._dimensions), *bucket]

    def _places(self) -> list[str]:
        """Each measured time's place among those of its group, and how many there are."""
        groups = self._groups()
        within = f"PARTITION BY {', '.join(groups)}" if groups else ""
        columns = []
        for name in self._measured:
            columns.append(
                f"ROW_NUMBER() OVER ({within} ORDER BY {name} NULLS LAST) AS {name}_place"
            )
            columns.append(f"COUNT({name}) OVER ({within}) AS {name}_count")
        return columns

    def _rows(self) -> tuple[list[str], list[Value]]:
        """Which rows are asked for: none of which nothing is to be said, unless it is the only one."""
        conditions, values = [], list[Value]()
        if not self._question.is_one_row:
            shown = dict.fromkeys(each.name for each in self._question.metrics.values())
            conditions.append(f"({' OR '.join(f'COALESCE({name}, 0) <> 0' for name in shown)})")
        for each in self._question.filters:
            if isinstance(each.field, Metric):
                conditions.append(f"{each.field.name} {_COMPARED[each.operator]}")
                values.append(each.value)
        return conditions, values

    def _order(self) -> str:
        terms = []
        for each in self._question.order:
            name = _BUCKET if each.field is None else each.field.name
            terms.append(f"{name} DESC NULLS LAST" if each.descending else name)
        return ", ".join(terms)

    def _members(self) -> str:
        """A record has a row for each member of a list that it is told apart by, and one where that is empty."""
        lists = [each for each in self._dimensions if each.kind == "list"]
        return "".join(
            f" LEFT JOIN json_each(generation.{each.record}) AS {each.record}_of" for each in lists
        )

    def _index(self) -> str:
        """The narrowest that fits: by key, by model, or all of the organization."""
        named = {each.field.name for each in self._chosen if each.operator in ("eq", "in")}
        if self._scope.key_ids is not None or "api_key" in named:
            return "generation_by_key"
        return "generation_by_model" if "model" in named else "generation_by_organization"


def whole_days(from_us: int, to_us: int) -> tuple[int, int]:
    """The UTC days that lie wholly between two times: the first, and the one after the last."""
    first = -(-from_us // US_PER_DAY)
    return first, max(first, to_us // US_PER_DAY)


def _wanted(question: Question) -> list[Metric]:
    """Every metric that is shown, sorted by, or compared."""
    fields = [*question.metrics.values(), *(each.field for each in question.order)]
    fields += [each.field for each in question.filters]
    return list(dict.fromkeys(each for each in fields if isinstance(each, Metric)))


def _at_percent(metric: Metric) -> str:
    """The time in the place that so many of a hundred are not behind."""
    name = metric.measured
    place = f"({name}_count * {metric.percent} + 99) / 100"
    return f"MAX(CASE WHEN {name}_place = {place} THEN {name} END) AS {metric.name}"


def _of_record(dimension: Dimension) -> str:
    return f"{dimension.record}_of.value" if dimension.kind == "list" else dimension.record


def _choose(
    filter_: Filter, conditions: list[str], values: list[Value], *, of_day_sums: bool
) -> None:
    """A condition on requests. What has no value is null, and is none of what a list names unless that has null."""
    field, operator, value = filter_.field, filter_.operator, filter_.value
    assert isinstance(field, Dimension)
    sql = field.day_sum if of_day_sums else field.record
    if field.kind == "list":
        conditions.append(_chosen_by_member(filter_, values))
        return
    if isinstance(value, list):
        condition = f"COALESCE({sql} {_LISTED}, 0)"
        if None in value:
            condition = f"({condition} OR {sql} IS NULL)"
        values.append(msgspec.json.encode(value).decode())
    else:
        condition = f"{sql} IS ?"
        values.append(value)
    conditions.append(f"NOT {condition}" if operator in ("neq", "not_in") else condition)


def _chosen_by_member(filter_: Filter, values: list[Value]) -> str:
    """A condition on a list: whether it has a member, or one of several; null is a list without any."""
    field, operator = filter_.field, filter_.operator
    assert isinstance(field, Dimension)
    wanted = filter_.value if isinstance(filter_.value, list) else [filter_.value]
    condition = f"EXISTS (SELECT 1 FROM json_each(generation.{field.record}) WHERE value {_LISTED})"  # noqa: S608
    if None in wanted:
        condition = f"({condition} OR generation.{field.record} IS NULL)"
    values.append(msgspec.json.encode(wanted).decode())
    return f"NOT {condition}" if operator in ("neq", "not_in") else condition
