"""/analytics, /activity and /key/usage: what requests came to, added up."""

from datetime import date
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.activity import analytics
from gwd.activity.analytics import AnalyticsQuery, Ends, Question, Scope
from gwd.activity.analytics.question import (
    DEFAULT_LIMIT,
    MOST_DIMENSIONS,
    MOST_METRICS,
    MOST_ROWS,
    FilterInput,
)
from gwd.activity.by_day import MOST_DAYS, by_day
from gwd.api.management import Answer, Call, listed, one
from gwd.api.query import BETWEEN, Query, Text, Whole, Words
from gwd.core.clock import iso
from gwd.core.errors import InvalidValue
from gwd.core.fields import Count, Milliseconds, Moment
from gwd.core.periods import day_of
from gwd.keys import service as keys
from gwd.ledger import ledger_time_us
from gwd.orgs import rights
from gwd.store import Connection

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
KEY_USAGE: Final = (
    *BETWEEN,
    Query(
        "metrics",
        Text(),
        "What to add up: names of metrics with commas between them.",
        "requests,tokens_prompt,tokens_completion,cost",
    ),
    Query("dimensions", Text(), "By what to tell requests apart: up to three names, with commas."),
    Query(
        "granularity",
        Words(analytics.GRANULARITIES),
        "How long the stretches are that each row is about; the whole time without.",
    ),
    Query("time_zone", Text(), "The IANA name of the zone in which stretches begin.", "UTC"),
    Query("model", Text(), "Only requests that this model served."),
    Query("limit", Whole(1, MOST_ROWS), "How many rows the answer may have.", DEFAULT_LIMIT),
)
ACTIVITY: Final = (
    Query("date", Text(), "Only this UTC day, YYYY-MM-DD, one of the last 30 that are over."),
    Query("api_key_hash", Text(), "Only requests of this key, by its hash or id."),
    Query("user_id", Text(), "Only requests of the keys of this member."),
    Query("workspace_id", Text(), "Only requests of this workspace's keys."),
)


class AnalyticsMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer is about."""

    query_time_ms: Annotated[Milliseconds, Meta(description="How long it took to read.")]
    row_count: Annotated[Count, Meta(description="How many rows there are in `data`.")]
    truncated: Annotated[
        bool, Meta(description="Whether there are more rows than `limit` lets through.")
    ]
    from_: Annotated[Moment, Meta(description="Where the time begins.")] = msgspec.field(
        name="from"
    )
    to: Annotated[Moment, Meta(description="Where it ends; this moment is no part of it.")]
    time_zone: Annotated[str, Meta(description="The zone in which stretches begin.")]


class AnalyticsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of an answer."""

    data: Annotated[
        list[dict[str, Any]],
        Meta(
            description="Each with the metrics and dimensions that were asked for, by those names, and with a"
            " granularity `date__` and its name: when the stretch begins. Amounts are USD."
        ),
    ]
    metadata: Annotated[AnalyticsMetadata, Meta(description="What it is about.")]


class MetricRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that can be asked for."""

    name: Annotated[str, Meta(description="What it is called in questions and answers.")]
    display_label: Annotated[str, Meta(description="The same for people.")]
    display_format: Annotated[
        Literal["count", "tokens", "usd", "share", "milliseconds", "tokens_per_second"],
        Meta(description="What its numbers are; a share is from 0 to 1."),
    ]
    is_rate: Annotated[bool, Meta(description="Whether its values cannot be added up.")]
    aliases: Annotated[list[str], Meta(description="Other names that it is known by.")]
    description: Annotated[str, Meta(description="What it counts.")]


class DimensionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A dimension that requests can be told apart by."""

    name: Annotated[str, Meta(description="What it is called in questions and answers.")]
    display_label: Annotated[str, Meta(description="The same for people.")]
    aliases: Annotated[list[str], Meta(description="Other names that it is known by.")]
    description: Annotated[str, Meta(description="What it is of a request.")]


class WordRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A word of questions."""

    name: Annotated[str, Meta(description="The word.")]
    display_label: Annotated[str, Meta(description="The same for people.")]


class AnalyticsMeta(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a question may name."""

    metrics: Annotated[list[MetricRecord], Meta(description="What can be added up.")]
    dimensions: Annotated[
        list[DimensionRecord], Meta(description="What requests can be told apart and chosen by.")
    ]
    operators: Annotated[list[WordRecord], Meta(description="How filters compare.")]
    granularities: Annotated[
        list[WordRecord], Meta(description="How long the stretches of an answer can be.")
    ]


def query(connection: Connection, call: Call) -> Answer:
    """Add up what requests came to.

    By the time at which they ended, as in the ledger; refusals are counted in `refusals` alone. Rows of which every
    metric is 0 or null are left out; without dimensions and granularity there is always one row.
    """
    asked: AnalyticsQuery = call.body
    return _answered(connection, call, _scope(connection, call), asked, analytics.ends_of(asked))


def key_usage(connection: Connection, call: Call) -> Answer:
    """Add up what the requests of the calling key came to, and of no other.

    Answers as POST /analytics/query does.
    """
    asked = AnalyticsQuery(
        metrics=_names(call, "metrics", MOST_METRICS),
        dimensions=_names(call, "dimensions", MOST_DIMENSIONS),
        granularity=call.query.get("granularity"),
        time_zone=call.query["time_zone"],
        filters=[
            FilterInput(field=name, operator="eq", value=call.query[name])
            for name in ("model",)
            if name in call.query
        ],
        limit=call.query["limit"],
    )
    ends = Ends(from_us=call.query.get("from"), to_us=call.query.get("to"), start="from", end="to")
    scope = Scope(organization_id=call.organization_id, key_ids=(call.caller.key_id,))
    return _answered(connection, call, scope, asked, ends)


def meta(connection: Connection, call: Call) -> Answer:
    """The metrics, dimensions, operators and granularities that questions may name."""
    return one(
        AnalyticsMeta(
            metrics=[
                MetricRecord(
                    name=each.name,
                    display_label=each.label,
                    display_format=each.format,
                    is_rate=each.is_rate,
                    aliases=list(each.aliases),
                    description=each.about,
                )
                for each in analytics.METRICS.values()
            ],
            dimensions=[
                DimensionRecord(
                    name=each.name,
                    display_label=each.label,
                    aliases=list(each.aliases),
                    description=each.about,
                )
                for each in analytics.DIMENSIONS.values()
            ],
            operators=[
                WordRecord(name=name, display_label=label)
                for name, label in analytics.OPERATORS.items()
            ],
            granularities=[
                WordRecord(name=name, display_label=name.capitalize())
                for name in analytics.GRANULARITIES
            ],
        )
    )


def activity(connection: Connection, call: Call) -> Answer:
    """What requests came to by day and endpoint, for the last 30 UTC days that are over, newest first.

    All rows in one answer. Refused requests are no part of it.
    """
    scope = _scope(connection, call)
    if (workspace_id := call.query.get("workspace_id")) is not None:
        if scope.workspace_id not in (None, workspace_id):
            return listed([], 0)
        scope = msgspec.structs.replace(scope, workspace_id=workspace_id)
    if (user_id := call.query.get("user_id")) is not None:
        scope = _within(scope, keys.ids_of_user(connection, call.organization_id, user_id))
    if (key_hash := call.query.get("api_key_hash")) is not None:
        scope = _within(scope, keys.ids_of_hash(connection, call.organization_id, key_hash))
    today = day_of(ledger_time_us(connection, call.organization_id, now_us=call.now_us))
    first, beyond = today - MOST_DAYS, today
    if "date" in call.query:
        first = _day(call.query["date"], first, beyond)
        beyond = first + 1
    records = by_day(connection, scope, first, beyond)
    return listed(records, len(records))


def _answered(
    connection: Connection, call: Call, scope: Scope, asked: AnalyticsQuery, ends: Ends
) -> Answer:
    clock = call.node.clock
    began_s = clock.monotonic_s()
    at_us = ledger_time_us(connection, call.organization_id, now_us=call.now_us)
    question: Question = analytics.question(asked, ends, at_us=at_us)
    found = analytics.answer(connection, scope, question)
    return one(
        AnalyticsAnswer(
            data=found.rows,
            metadata=AnalyticsMetadata(
                query_time_ms=round((clock.monotonic_s() - began_s) * 1_000, 1),
                row_count=len(found.rows),
                truncated=found.truncated,
                from_=iso(question.from_us),
                to=iso(question.to_us),
                time_zone=asked.time_zone,
            ),
        )
    )


def _scope(connection: Connection, call: Call) -> Scope:
    """What the caller may see of the organization's requests."""
    caller = call.caller
    own = None
    if rights.require(caller, "activity.read") == "own":
        own = tuple(keys.ids_of_user(connection, call.organization_id, caller.user_id or ""))
    return Scope(
        organization_id=call.organization_id, workspace_id=caller.workspace_id, key_ids=own
    )


def _within(scope: Scope, key_ids: list[str]) -> Scope:
    """Of the scope what these keys asked."""
    seen = key_ids if scope.key_ids is None else [each for each in key_ids if each in scope.key_ids]
    return msgspec.structs.replace(scope, key_ids=tuple(seen))


def _names(call: Call, param: str, most: int) -> list[str]:
    names = [name.strip() for name in call.query.get(param, "").split(",") if name.strip()]
    if len(names) > most:
        raise InvalidValue(f"`{param}` must have at most {most} names", param=param)
    if param == "metrics" and not names:
        raise InvalidValue("`metrics` must name at least one metric", param=param)
    return names


def _day(text: str, first: int, beyond: int) -> int:
    """A day counted from 1970-01-01. Raises InvalidValue for one that is not among those that are told."""
    try:
        day = date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        day = -1
    if not first <= day < beyond:
        shown = [date.fromordinal(each + _EPOCH_ORDINAL) for each in (first, beyond - 1)]
        raise InvalidValue(
            f"`date` must be a UTC day from {shown[0]} to {shown[1]}, such as {shown[1]}",
            param="date",
        )
    return day
