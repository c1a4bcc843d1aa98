"""A question to analytics: how it is sent, and what it means once every name and value in it is known to be good."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, TypeVar, get_args
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta

from gwd.activity.analytics import dimensions as dimensions_
from gwd.activity.analytics import metrics as metrics_
from gwd.activity.analytics.buckets import Granularity, zone_named
from gwd.activity.analytics.dimensions import Dimension
from gwd.activity.analytics.metrics import Metric
from gwd.core.clock import US_PER_DAY, TimeError, us_from_iso
from gwd.core.errors import InvalidValue
from gwd.core.inputs import MomentInput
from gwd.core.money import MAX_NANO, NANO_PER_USD

DEFAULT_DAYS: Final = 7
MOST_DAYS: Final = 366
MOST_METRICS: Final = 20
MOST_DIMENSIONS: Final = 3
MOST_FILTERS: Final = 20
MOST_VALUES: Final = 1_000
DEFAULT_LIMIT: Final = 1_000
MOST_ROWS: Final = 10_000
GRANULARITIES: Final[tuple[str, ...]] = get_args(Granularity)
OPERATORS: Final = {
    "eq": "is",
    "neq": "is not",
    "in": "is one of",
    "not_in": "is none of",
    "gt": "is above",
    "gte": "is at least",
    "lt": "is below",
    "lte": "is at most",
}
DIRECTIONS: Final = ("asc", "desc")
_OF_LISTS: Final = ("in", "not_in")
_OF_DIMENSIONS: Final = ("eq", "neq", "in", "not_in")
_OF_METRICS: Final = ("eq", "neq", "gt", "gte", "lt", "lte")
_LAST_US: Final = 8_000 * 366 * US_PER_DAY  # what a calendar of any zone can show, and far off
_LARGEST: Final = 1 << 62

T = TypeVar("T")


def _words(words: Iterable[str]) -> dict[str, Any]:
    return {"enum": list(words)}


class Between(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"from_": "from"},
):
    """The time that is asked about: when requests ended, as in the ledger."""

    from_: Annotated[
        MomentInput | None,
        Meta(description="From this time on. Null is seven days before `to`."),
    ] = None
    to: Annotated[
        MomentInput | None, Meta(description="Up to, but not at this time. Null is now.")
    ] = None


class TimeRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same in other words."""

    start: Annotated[MomentInput | None, Meta(description="As `range.from`.")] = None
    end: Annotated[MomentInput | None, Meta(description="As `range.to`.")] = None


class FilterInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition: on requests by a dimension, or on rows of the answer by a metric."""

    field: Annotated[
        str,
        Meta(
            description="A dimension, or a metric, whether or not the answer shows it.",
            extra_json_schema=_words((*dimensions_.BY_ANY_NAME, *metrics_.BY_ANY_NAME)),
        ),
    ]
    operator: Annotated[
        str,
        Meta(
            description="Dimensions take eq, neq, in and not_in; metrics eq, neq, gt, gte, lt and lte.",
            extra_json_schema=_words(OPERATORS),
        ),
    ]
    value: Annotated[
        Any,
        Meta(
            description="A text, true or false for a dimension, null for what has none; a list of them for in and"
            " not_in; a number for a metric, in the metric's own unit."
        ),
    ]


class OrderInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What rows are sorted by."""

    field: Annotated[
        str,
        Meta(
            description="A metric, a dimension of the answer, or `date__` with its granularity.",
        ),
    ]
    direction: Annotated[
        str,
        Meta(
            description="`desc` has the largest first, `asc` the smallest.",
            extra_json_schema=_words(DIRECTIONS),
        ),
    ] = "desc"


class AnalyticsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question to analytics."""

    range: Annotated[
        Between | None, Meta(description="The time, at most 366 days. Null is the last 7 days.")
    ] = None
    time_range: Annotated[
        TimeRange | None, Meta(description="The same with `start` and `end`; send one of the two.")
    ] = None
    metrics: Annotated[
        list[str],
        Meta(
            min_length=1,
            max_length=MOST_METRICS,
            description="What to add up.",
            extra_json_schema={"items": {"type": "string", **_words(metrics_.BY_ANY_NAME)}},
        ),
    ]
    dimensions: Annotated[
        list[str],
        Meta(
            max_length=MOST_DIMENSIONS,
            description="By what to tell requests apart; none gives one row.",
            extra_json_schema={"items": {"type": "string", **_words(dimensions_.BY_ANY_NAME)}},
        ),
    ] = []
    granularity: Annotated[
        str | None,
        Meta(
            description="How long the stretches are that each row is about. Null is the whole time.",
            extra_json_schema={"enum": [*GRANULARITIES, None]},
        ),
    ] = None
    time_zone: Annotated[
        str,
        Meta(
            max_length=100,
            description="An IANA name such as Europe/Berlin, in which stretches begin and are shown. Booking is UTC.",
        ),
    ] = "UTC"
    filters: Annotated[
        list[FilterInput], Meta(max_length=MOST_FILTERS, description="All of them must hold.")
    ] = []
    order_by: Annotated[
        OrderInput | None,
        Meta(
            description="How rows are sorted. Null is by time where there is a granularity, then by the first metric,"
            " largest first."
        ),
    ] = None
    limit: Annotated[
        int, Meta(ge=1, le=MOST_ROWS, description="How many rows the answer may have.")
    ] = DEFAULT_LIMIT


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on a dimension or on a metric; values as SQL compares them, nano-USD for amounts."""

    field: Dimension | Metric
    operator: str
    value: Any


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """`field` None is the time."""

    field: Dimension | Metric | None
    descending: bool


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics and dimensions stand by the names that were asked for. Times in microseconds, the end exclusive."""

    from_us: int
    to_us: int
    metrics: dict[str, Metric]
    dimensions: dict[str, Dimension]
    granularity: Granularity | None
    zone: ZoneInfo
    filters: tuple[Filter, ...]
    order: tuple[Order, ...]
    limit: int

    @property
    def date(self) -> str:
        """What a row's time is called."""
        return f"date__{self.granularity}"

    @property
    def is_one_row(self) -> bool:
        """Whether everything is added up to one row, which is there even if it is of nothing."""
        return not self.dimensions and self.granularity is None


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """The ends of the time as far as they were given, and what they are called where the question was sent."""

    from_us: int | None
    to_us: int | None
    start: str
    end: str


def ends_of(asked: AnalyticsQuery) -> Ends:
    """The time that a question names. Raises the InvalidValue that names the field."""
    between, start, end = asked.range or Between(), "range.from", "range.to"
    if asked.time_range is not None:
        if asked.range is not None:
            raise InvalidValue(
                "`range` and `time_range` say the same: send one of them", param="time_range"
            )
        between = Between(from_=asked.time_range.start, to=asked.time_range.end)
        start, end = "time_range.start", "time_range.end"
    return Ends(
        from_us=_moment(between.from_, start), to_us=_moment(between.to, end), start=start, end=end
    )


def question(asked: AnalyticsQuery, ends: Ends, *, at_us: int) -> Question:
    """What is asked at a moment of ledger time. Raises the InvalidValue that names the field and what would do."""
    from_us, to_us = _time(ends, at_us)
    zone = zone_named(asked.time_zone)
    if zone is None:
        raise InvalidValue(
            "`time_zone` must be an IANA name that this node knows, such as UTC or Europe/Berlin",
            param="time_zone",
        )
    metrics = _found(asked.metrics, metrics_.BY_ANY_NAME, metrics_.METRICS, "metrics")
    dimensions = _found(
        asked.dimensions, dimensions_.BY_ANY_NAME, dimensions_.DIMENSIONS, "dimensions"
    )
    granularity: Any = asked.granularity
    if granularity is not None:
        _one_of(granularity, GRANULARITIES, "granularity")
    return Question(
        from_us=from_us,
        to_us=to_us,
        metrics=metrics,
        dimensions=dimensions,
        granularity=granularity,
        zone=zone,
        filters=tuple(_filter(each, f"filters[{n}]") for n, each in enumerate(asked.filters)),
        order=_order(asked, metrics, dimensions),
        limit=asked.limit,
    )


def _time(ends: Ends, at_us: int) -> tuple[int, int]:
    # What was booked at this moment is meant, too.
    to_us = at_us + 1 if ends.to_us is None else ends.to_us
    from_us = ends.from_us
    if from_us is None:
        from_us = max(0, to_us - DEFAULT_DAYS * US_PER_DAY)
    for given_us, name in ((ends.from_us, ends.start), (ends.to_us, ends.end)):
        if given_us is not None and not 0 <= given_us <= _LAST_US:
            raise InvalidValue(f"`{name}` must be a time after 1970", param=name)
    if from_us >= to_us:
        raise InvalidValue(f"`{ends.start}` must be before `{ends.end}`", param=ends.start)
    if to_us - from_us > MOST_DAYS * US_PER_DAY:
        raise InvalidValue(
            f"`{ends.start}` may be at most {MOST_DAYS} days before `{ends.end}`; ask for one year after the other",
            param=ends.start,
        )
    return from_us, to_us


def _moment(text: str | None, param: str) -> int | None:
    if text is None:
        return None
    try:
        return us_from_iso(text)
    except TimeError as error:
        raise InvalidValue(f"`{param}` {error}", param=param) from None


def _found(
    asked: Sequence[str], known: dict[str, T], shown: Iterable[str], param: str
) -> dict[str, T]:
    found: dict[str, T] = {}
    for place, name in enumerate(asked):
        if name not in known:
            raise InvalidValue(
                f"`{param}[{place}]`: {_quoted(name)} is not known; one of {', '.join(shown)}",
                param=f"{param}[{place}]",
            )
        if name in found:
            raise InvalidValue(
                f"`{param}[{place}]`: `{name}` is given twice", param=f"{param}[{place}]"
            )
        found[name] = known[name]
    return found


def _one_of(word: str, words: Iterable[str], param: str) -> None:
    if word not in words:
        raise InvalidValue(f"`{param}` must be one of {', '.join(words)}", param=param)


def _filter(asked: FilterInput, param: str) -> Filter:
    field: Dimension | Metric | None = dimensions_.BY_ANY_NAME.get(asked.field)
    field = field or metrics_.BY_ANY_NAME.get(asked.field)
    if field is None:
        raise InvalidValue(
            f"`{param}.field`: {_quoted(asked.field)} is not known; one of"
            f" {', '.join((*dimensions_.DIMENSIONS, *metrics_.METRICS))}",
            param=f"{param}.field",
        )
    _one_of(asked.operator, OPERATORS, f"{param}.operator")
    is_metric = isinstance(field, Metric)
    if asked.operator not in (_OF_METRICS if is_metric else _OF_DIMENSIONS):
        kind, fitting = ("metric", _OF_METRICS) if is_metric else ("dimension", _OF_DIMENSIONS)
        raise InvalidValue(
            f"`{param}.operator`: {asked.field} is a {kind}, which takes {', '.join(fitting)}",
            param=f"{param}.operator",
        )
    place, value = f"{param}.value", asked.value
    if isinstance(field, Metric):
        return Filter(field=field, operator=asked.operator, value=_number(value, field, place))
    if asked.operator not in _OF_LISTS:
        return Filter(field=field, operator=asked.operator, value=_member(value, field, place))
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_VALUES:
        raise InvalidValue(
            f"`{place}` must be a list of 1 to {MOST_VALUES} values for {asked.operator}",
            param=place,
        )
    members = [_member(each, field, f"{place}[{n}]") for n, each in enumerate(value)]
    return Filter(field=field, operator=asked.operator, value=members)


def _member(value: Any, field: Dimension, param: str) -> str | bool | None:
    """A value that a dimension may have; null is none."""
    if value is None or isinstance(value, bool if field.kind == "flag" else str):
        checked: str | bool | None = value
        return checked
    what = "true, false" if field.kind == "flag" else "a text"
    raise InvalidValue(f"`{param}` must be {what} or null: {field.name} is one", param=param)


def _number(value: Any, field: Metric, param: str) -> int | float:
    """A number as SQL has the metric: whole nano-USD for an amount."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise InvalidValue(
            f"`{param}` must be a number: {field.name} is compared with it", param=param
        )
    if field.format == "usd":
        nano = Decimal(value) * NANO_PER_USD
        if nano != nano.to_integral_value() or abs(nano) > MAX_NANO:
            raise InvalidValue(
                f"`{param}` must be an amount in USD with at most nine decimals", param=param
            )
        return int(nano)
    whole = Decimal(value)
    return (
        int(whole) if whole == whole.to_integral_value() and abs(whole) < _LARGEST else float(whole)
    )


def _order(
    asked: AnalyticsQuery, metrics: dict[str, Metric], dimensions: dict[str, Dimension]
) -> tuple[Order, ...]:
    """By what rows are sorted; dimensions come last, so that rows which are alike are always in the same order."""
    by_time = [Order(field=None, descending=False)] if asked.granularity is not None else []
    by_metric = Order(field=next(iter(metrics.values())), descending=True)
    rest = [Order(field=each, descending=False) for each in dimensions.values()]
    if asked.order_by is None:
        return (*by_time, by_metric, *rest)
    name = asked.order_by.field
    _one_of(asked.order_by.direction, DIRECTIONS, "order_by.direction")
    descending = asked.order_by.direction == "desc"
    if by_time and name == f"date__{asked.granularity}":
        return (Order(field=None, descending=descending), by_metric, *rest)
    field = dimensions.get(name) or metrics_.BY_ANY_NAME.get(name)
    if field is None:
        fitting = [*dimensions, *metrics_.METRICS]
        fitting += [f"date__{asked.granularity}"] if by_time else []
        raise InvalidValue(
            f"`order_by.field`: {_quoted(name)} is no metric and no dimension of this question; one of"
            f" {', '.join(fitting)}",
            param="order_by.field",
        )
    return (Order(field=field, descending=descending), *by_time, *rest)


def _quoted(name: str) -> str:
    return repr(name[:50])
