"""Analytics: whatever is asked, day sums and records say what a plain sum over the generations says."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwd.activity import analytics
from gwd.activity import service as activity
from gwd.activity.analytics import AnalyticsQuery, Scope
from gwd.activity.analytics.question import FilterInput
from gwd.activity.row import GenerationRow
from gwd.store.connection import Connection, open_connection
from tests.support.money import ORGANIZATION, open_organization
from tests.support.store import NOW_US, migrated
from tests.unit.activity.test_day_sums import DAY_US, random_row

END_US = NOW_US + 4 * DAY_US
ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Pacific/Apia")
Rows = list[dict[str, Any]]


def varied(chance: random.Random, number: int) -> GenerationRow:
    row = random_row(chance, number)
    return msgspec.structs.replace(
        row,
        user_tag=chance.choice((None, "ann", "ben")),
        session_id=chance.choice((None, "s1", "s2", "s3")),
        title=chance.choice((None, "Editor")),
        referer=chance.choice((None, "https://a.example")),
        dialect=chance.choice(("messages", "responses")),
        finish_reason=chance.choice((None, "stop", "length")),
        requested_model=chance.choice((None, "demo/a", "~demo/latest")),
        tags=chance.choice((None, '["a"]', '["a","b"]', '["b","c"]')),
        cost_total_nano=row.cost_prompt_nano + row.cost_reasoning_nano,
    )


GENERATIONS = [varied(random.Random(number), number) for number in range(400)]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    path: Path = tmp_path_factory.mktemp("analytics")
    opened = open_connection(migrated(path), "writer")
    open_organization(opened, now_us=NOW_US - 1)
    for row in sorted(GENERATIONS, key=lambda row: row.settled_at):
        activity.write(opened, row)
    yield opened
    opened.raw.close()


# --- the plain sum ------------------------------------------------------------------------------


def prompt(row: GenerationRow) -> int:
    written = row.tokens_cache_write_5m + row.tokens_cache_write_1h
    return row.tokens_input + row.tokens_cache_read + written


def output(row: GenerationRow) -> int:
    return row.tokens_output + row.tokens_reasoning


def listed(row: GenerationRow) -> int:
    names = ("prompt", "cache_read", "cache_write", "completion", "reasoning", "request_fee")
    return sum(int(getattr(row, f"cost_{name}_nano")) for name in (*names, "web_search"))


def share(part: int, whole: int, digits: int) -> float | None:
    return None if not whole else round(float(Fraction(part, whole)), digits)


def at_percent(times: list[int], percent: int) -> float | None:
    return sorted(times)[-(-len(times) * percent // 100) - 1] if times else None


def metrics_of(rows: list[GenerationRow]) -> dict[str, Any]:
    """Every metric, amounts in nano-USD."""
    sent = [row for row in rows if row.status != "refused"]
    took = [row.latency_ms for row in sent if row.latency_ms is not None]
    began = [row.ttft_ms for row in rows if row.ttft_ms is not None]
    timed = [row for row in rows if row.generation_ms]
    errors = sum(row.status in ("failed", "incomplete") for row in rows)
    cached = sum(row.tokens_cache_read for row in rows)
    classes = {
        name: sum(int(getattr(row, f"{name}_nano")) for row in rows)
        for name in analytics.METRICS
        if name.startswith("cost_")
    }
    return {
        "requests": len(sent),
        "cost": sum(row.cost_total_nano for row in rows),
        "tokens_prompt": sum(map(prompt, rows)),
        "tokens_completion": sum(map(output, rows)),
        "tokens_total": sum(prompt(row) + output(row) for row in rows),
        "reasoning_tokens": sum(row.tokens_reasoning for row in rows),
        "cached_tokens": cached,
        "cache_write_tokens": sum(
            row.tokens_cache_write_5m + row.tokens_cache_write_1h for row in rows
        ),
        "cache_hit_rate": share(cached, sum(map(prompt, rows)), 4),
        "cache_discount": sum(row.cache_discount_nano or 0 for row in rows),
        "errors": errors,
        "error_rate": share(errors, len(sent), 4),
        "fallbacks": sum(row.fallbacks for row in rows),
        "insured_requests": sum(row.insured for row in rows),
        "refusals": sum(row.occurrences for row in rows if row.status == "refused"),
        "avg_latency": share(sum(took), len(took), 1),
        **{f"p{percent}_latency": at_percent(took, percent) for percent in (50, 90, 99)},
        "avg_ttft": share(sum(began), len(began), 1),
        **{f"p{percent}_ttft": at_percent(began, percent) for percent in (50, 90)},
        "avg_throughput": share(
            1_000 * sum(map(output, timed)), sum(row.generation_ms or 0 for row in timed), 1
        ),
        "byok_cost": sum(listed(row) for row in rows if row.byok),
        **classes,
    }


def dimensions_of(row: GenerationRow) -> dict[str, Any]:
    return {
        "model": row.model,
        "requested_model": row.requested_model,
        "vendor": row.vendor,
        "provider": row.provider,
        "endpoint": row.endpoint_id,
        "api_key": row.key_id,
        "workspace": row.workspace_id,
        "user": row.user_tag,
        "session_id": row.session_id,
        "app": row.title or row.referer,
        "tag": tuple(msgspec.json.decode(row.tags)) if row.tags else (None,),
        "dialect": row.dialect,
        "status": row.status,
        "finish_reason": row.finish_reason,
        "byok": row.byok,
        "error_code": row.error_code,
    }


def bucket(at_us: int, granularity: str, zone: str) -> str:
    """When the stretch that holds a moment begins, by the calendar of the standard library."""
    local = datetime.fromtimestamp(at_us // 1_000_000, ZoneInfo(zone))
    begins = local.replace(second=0, microsecond=0)
    if granularity != "minute":
        begins = begins.replace(minute=0)
    if granularity in ("day", "week", "month"):
        begins = begins.replace(hour=0)
    if granularity == "week":
        begins -= timedelta(days=begins.weekday())
    if granularity == "month":
        begins = begins.replace(day=1)
    text = begins.isoformat()
    return text.replace("+00:00", "Z") if zone == "UTC" else text


def chosen(row: GenerationRow, asked: FilterInput) -> bool:
    found = dimensions_of(row).get(asked.field)
    values = found if isinstance(found, tuple) else (found,)
    wanted = asked.value if asked.operator.endswith("in") else [asked.value]
    return any(value in wanted for value in values) is (asked.operator in ("eq", "in"))


def plainly(asked: AnalyticsQuery, from_us: int, to_us: int) -> Rows:
    groups: dict[tuple[Any, ...], list[GenerationRow]] = {}
    for row in GENERATIONS:
        if not from_us <= row.settled_at < to_us:
            continue
        if not all(chosen(row, each) for each in asked.filters):
            continue
        named = dimensions_of(row)
        when = asked.granularity and bucket(row.settled_at, asked.granularity, asked.time_zone)
        members = [named[name] for name in asked.dimensions]
        for group in product(*(one if isinstance(one, tuple) else (one,) for one in members)):
            groups.setdefault((when, *group), []).append(row)
    if not asked.dimensions and asked.granularity is None:
        groups = groups or {(None,): []}
    answered = []
    for (when, *values), rows in groups.items():
        metrics = metrics_of(rows)
        shown = {name: metrics[name] for name in asked.metrics}
        if (asked.granularity is None and not asked.dimensions) or any(shown.values()):
            date = {} if when is None else {f"date__{asked.granularity}": when}
            named = dict(zip(asked.dimensions, values, strict=True))
            answered.append({**date, **named, **shown})
    return answered


# --- questions ----------------------------------------------------------------------------------

VALUES: dict[str, list[Any]] = {
    name: sorted({dimensions_of(row)[name] for row in GENERATIONS}, key=str)
    for name in analytics.DIMENSIONS
    if name != "tag"
}
VALUES["tag"] = ["a", "b", "c", None]


@st.composite
def filters(draw: st.DrawFn) -> FilterInput:
    field = draw(st.sampled_from(sorted(VALUES)))
    operator = draw(st.sampled_from(("eq", "neq", "in", "not_in")))
    one = st.sampled_from(VALUES[field])
    value = draw(st.lists(one, min_size=1, max_size=3) if operator.endswith("in") else one)
    return FilterInput(field=field, operator=operator, value=value)


@st.composite
def questions(draw: st.DrawFn) -> tuple[AnalyticsQuery, int, int]:
    moments = st.integers(NOW_US - DAY_US, END_US) | st.sampled_from(
        [(NOW_US // DAY_US + day) * DAY_US for day in range(6)]
    )
    from_us, to_us = sorted(draw(st.tuples(moments, moments)))
    names = st.lists(st.sampled_from(sorted(VALUES)), max_size=3, unique=True)
    summed = st.lists(st.sampled_from(sorted(analytics.METRICS)), min_size=1, unique=True)
    asked = AnalyticsQuery(
        metrics=draw(summed)[:20],
        dimensions=draw(names),
        granularity=draw(st.none() | st.sampled_from(analytics.GRANULARITIES)),
        time_zone=draw(st.sampled_from(ZONES)),
        filters=draw(st.lists(filters(), max_size=3)),
        limit=10_000,
    )
    return asked, from_us, max(to_us, from_us + 1)


def ask(
    connection: Connection,
    asked: AnalyticsQuery,
    from_us: int | None = None,
    to_us: int | None = None,
    *,
    from_records: bool = False,
    scope: Scope | None = None,
) -> analytics.Answered:
    ends = analytics.ends_of(asked)
    if from_us is not None:
        ends = analytics.Ends(from_us=from_us, to_us=to_us, start="from", end="to")
    question = analytics.question(asked, ends, at_us=END_US)
    scope = scope or Scope(organization_id=ORGANIZATION)
    return analytics.answer(connection, scope, question, from_records=from_records)


def in_nano(rows: Rows) -> Rows:
    """Amounts of an answer as whole nano-USD, so that nothing is lost in comparing."""
    return [
        {
            name: round(Fraction(bytes(value).decode()) * 10**9)
            if isinstance(value, msgspec.Raw)
            else value
            for name, value in row.items()
        }
        for row in rows
    ]


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=str)


@settings(max_examples=300, deadline=None)
@given(asked=questions())
def test_day_sums_records_and_a_plain_sum_agree(
    connection: Connection, asked: tuple[AnalyticsQuery, int, int]
) -> None:
    from_both = ask(connection, *asked)
    from_records = ask(connection, *asked, from_records=True)
    assert from_both == from_records
    assert in_order(in_nano(from_both.rows)) == in_order(plainly(*asked))
