"""/analytics, /activity and /key/usage over HTTP: rows, their order, whose they are, and what wrong questions get."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gwd.activity import analytics
from gwd.activity import service as activity
from gwd.activity.row import GenerationRow
from gwd.store import Connection
from tests.api.office import Office, people, working
from tests.support.node import Gateway, open_gateway

ROOT = Path(__file__).parents[2]
TURN = "2025-10-26"  # Berlin's clocks show the hour from 2 to 3 twice
RANGE = {"from": "2025-10-25T00:00:00Z", "to": "2025-11-05T00:00:00Z"}
FOR_EVER = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


@pytest_asyncio.fixture
async def recorded(office: Office) -> AsyncIterator[Office]:
    """An office in which requests may be planted. They go at the end, since no hold stands behind them."""
    yield office
    await office.gateway.store.write(uproot)


def uproot(connection: Connection) -> None:
    connection.execute("DELETE FROM generation")
    connection.execute("DELETE FROM day_sum")


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


async def plant(
    office: Office, key_id: str, when: str, organization_id: str = "", **fields: Any
) -> None:
    """A request that ended then, and was free."""
    office.counter += 1
    row = GenerationRow(
        **{
            "id": f"gen-planted-{office.counter}",
            "organization_id": organization_id or office.organization_id,
            "workspace_id": None,
            "key_id": key_id,
            "family_id": key_id,
            "dialect": "messages",
            "model": "demo/a",
            "status": "succeeded",
            "cost_total_nano": 0,
            "created_at": at(when),
            "settled_at": at(when),
            **fields,
        }
    )
    await office.gateway.store.write(activity.write, row)


async def plant_three_users(office: Office) -> None:
    """Ann asks twice, Ben once with most tokens, and somebody without a name once."""
    asked = (
        ("2025-10-27T08:00:00Z", "ann", 10),
        ("2025-10-28T08:00:00Z", "ann", 20),
        ("2025-10-29T08:00:00Z", "ben", 90),
        ("2025-10-29T09:00:00Z", None, 5),
    )
    for when, user, tokens in asked:
        await plant(office, "key_1", when, user_tag=user, tokens_input=tokens)


async def ask(office: Office, who: str = "owner", **question: Any) -> Any:
    body = {"range": RANGE, **question}
    return (await office.ok(who, "POST", "/analytics/query", body))["data"]


async def refused(office: Office, **question: Any) -> Any:
    body = {"range": RANGE, "metrics": ["requests"], **question}
    reply = await office.call("owner", "POST", "/analytics/query", body)
    assert reply.status_code == 400, reply.text
    return reply.json()["error"]


# --- rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "users"),
    [
        (None, ["ann", None, "ben"]),
        ({"field": "requests", "direction": "desc"}, ["ann", None, "ben"]),
        ({"field": "requests", "direction": "asc"}, [None, "ben", "ann"]),
        ({"field": "tokens_prompt"}, ["ben", "ann", None]),
        ({"field": "user", "direction": "desc"}, ["ben", "ann", None]),
    ],
)
async def test_rows_come_in_the_order_that_is_asked_for(
    recorded: Office, order: Any, users: list[str | None]
) -> None:
    """Also by a metric that is not shown; rows that are alike come by their dimensions."""
    await plant_three_users(recorded)
    found = await ask(recorded, metrics=["requests"], dimensions=["user"], order_by=order)
    assert [row["user"] for row in found["data"]] == users


@pytest.mark.parametrize(
    ("direction", "days"), [("asc", ["27", "28", "29"]), ("desc", ["29", "28", "27"])]
)
async def test_rows_come_by_time(recorded: Office, direction: str, days: list[str]) -> None:
    await plant_three_users(recorded)
    order = {"field": "date__day", "direction": direction}
    found = await ask(recorded, metrics=["request_count"], granularity="day", order_by=order)
    assert [row["date__day"] for row in found["data"]] == [
        f"2025-10-{day}T00:00:00Z" for day in days
    ]


async def test_an_answer_says_whether_its_limit_cut_it(recorded: Office) -> None:
    await plant_three_users(recorded)
    asked: dict[str, Any] = {"metrics": ["requests"], "dimensions": ["external_user"]}
    for limit, rows, truncated in ((1, 1, True), (2, 2, True), (3, 3, False), (10_000, 3, False)):
        found = await ask(recorded, limit=limit, **asked)
        told = found["metadata"]
        assert len(found["data"]) == told["row_count"] == rows
        assert told["truncated"] is truncated
    for limit in (0, 10_001):
        assert (await refused(recorded, limit=limit))["param"] == "limit"


@pytest.mark.parametrize(
    ("field", "operator", "value", "users"),
    [
        ("requests", "gt", 1, ["ann"]),
        ("requests", "lte", 1, [None, "ben"]),
        ("tokens_prompt", "gte", 30, ["ann", "ben"]),
        ("tokens_prompt", "lt", 5.5, [None]),
        ("tokens_prompt", "eq", 90, ["ben"]),
        ("tokens_prompt", "neq", 90, ["ann", None]),
        ("cost", "gt", 0.000000001, []),
    ],
)
async def test_rows_are_chosen_by_what_they_add_up_to(
    recorded: Office, field: str, operator: str, value: Any, users: list[str | None]
) -> None:
    await plant_three_users(recorded)
    chosen = [{"field": field, "operator": operator, "value": value}]
    found = await ask(recorded, metrics=["requests"], dimensions=["user"], filters=chosen)
    assert [row["user"] for row in found["data"]] == users


async def test_the_hour_that_the_clocks_repeat_is_two_and_its_day_has_25(recorded: Office) -> None:
    for time in ("00:30", "01:30", "22:30", "23:30"):
        await plant(recorded, "key_1", f"{TURN}T{time}:00Z")
    asked: dict[str, Any] = {"metrics": ["requests"], "time_zone": "Europe/Berlin"}
    found = await ask(recorded, granularity="hour", **asked)
    assert [row["date__hour"] for row in found["data"]] == [
        "2025-10-26T02:00:00+02:00",
        "2025-10-26T02:00:00+01:00",
        "2025-10-26T23:00:00+01:00",
        "2025-10-27T00:00:00+01:00",
    ]
    found = await ask(recorded, granularity="day", **asked)
    assert found["data"] == [
        {"date__day": "2025-10-26T00:00:00+02:00", "requests": 3},
        {"date__day": "2025-10-27T00:00:00+01:00", "requests": 1},
    ]
    assert found["metadata"]["time_zone"] == "Europe/Berlin"
    found = await ask(recorded, metrics=["requests"], granularity="day")
    assert found["data"] == [{"date__day": "2025-10-26T00:00:00Z", "requests": 4}]


async def test_everything_that_meta_names_can_be_asked(recorded: Office) -> None:
    await plant(recorded, "key_1", "2025-10-27T08:00:00Z")
    told = (await recorded.ok("owner", "GET", "/analytics/meta"))["data"]
    metrics = [word for each in told["metrics"] for word in (each["name"], *each["aliases"])]
    dimensions = [word for each in told["dimensions"] for word in (each["name"], *each["aliases"])]
    for start in range(0, len(metrics), 20):
        names = metrics[start : start + 20]
        [row] = (await ask(recorded, metrics=names))["data"]
        assert set(row) == set(names)
    for name in dimensions:
        [row] = (await ask(recorded, metrics=["requests"], dimensions=[name]))["data"]
        assert set(row) == {name, "requests"}
    for each in told["granularities"]:
        found = await ask(recorded, metrics=["requests"], granularity=each["name"])
        assert [set(row) for row in found["data"]] == [{f"date__{each['name']}", "requests"}]


async def test_the_page_about_usage_names_everything_and_its_example_is_answered(
    office: Office,
) -> None:
    page = (ROOT / "docs" / "usage.md").read_text("utf-8")
    known: list[Any] = [*analytics.METRICS.values(), *analytics.DIMENSIONS.values()]
    for each in known:
        other = ", ".join(f"`{alias}`" for alias in each.aliases)
        assert f"| `{each.name}` | {other} | {each.about} |" in page
    body = json.loads((ROOT / "examples/requests/analytics_query.json").read_text("utf-8"))
    assert await office.ok("owner", "POST", "/analytics/query", body)


# --- what a wrong question gets -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "param", "allowed"),
    [
        ({"metrics": ["requests", "costs"]}, "metrics[1]", analytics.METRICS),
        ({"dimensions": ["colour"]}, "dimensions[0]", analytics.DIMENSIONS),
        ({"granularity": "year"}, "granularity", analytics.GRANULARITIES),
        (
            {"filters": [{"field": "colour", "operator": "eq", "value": 1}]},
            "filters[0].field",
            (*analytics.DIMENSIONS, *analytics.METRICS),
        ),
        (
            {"filters": [{"field": "cost", "operator": "like", "value": 1}]},
            "filters[0].operator",
            analytics.OPERATORS,
        ),
        ({"order_by": {"field": "colour"}}, "order_by.field", analytics.METRICS),
        (
            {"order_by": {"field": "requests", "direction": "up"}},
            "order_by.direction",
            ("asc", "desc"),
        ),
    ],
)
async def test_an_unknown_name_is_answered_with_those_that_are_known(
    office: Office, question: dict[str, Any], param: str, allowed: Any
) -> None:
    error = await refused(office, **question)
    assert (error["code"], error["param"]) == ("invalid_value", param)
    assert [name for name in allowed if name not in error["message"]] == []


async def test_a_question_that_takes_too_long_is_a_400_that_says_what_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a status that SDKs try again; the node goes on as if nothing had been asked."""

    def answer(connection: Connection, *_: Any) -> None:
        connection.row(FOR_EVER)

    near = {"GWD_TIMEOUTS_REPORT_S": "0.05"}
    async with (
        open_gateway(tmp_path, begin=people, environment=near) as made,
        working(made) as office,
    ):
        with monkeypatch.context() as patch:
            patch.setattr(analytics, "answer", answer)
            error = await refused(office)
            assert error["code"] == "report_too_large"
            assert "shorter range" in str(error)
            reply = await office.call("inference", "GET", "/key/usage")
            assert (reply.status_code, reply.json()["error"]["code"]) == (400, "report_too_large")
        assert await made.store.read(lambda connection: connection.row("SELECT 1")) == (1,)


NAMES = st.sampled_from(
    [*analytics.METRICS, *analytics.DIMENSIONS, "cost; DROP TABLE entry", "date__day", "1"]
)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=8) | st.sampled_from(
    ["\ud800", "\0", "' OR 1=1 --", "UTC", "Europe/Berlin", "../../etc/passwd", "%s", "?1"]
)
NUMBERS = st.integers() | st.sampled_from([1e308, -1e-300, 10**40, 2**63, -(2**63) - 1, 0.1, -0.0])
ODD = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | TEXTS | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | NAMES, inner, max_size=3),
    max_leaves=6,
)
MOMENTS = st.sampled_from(
    (
        *("2025-10-25T00:00:00Z", "2025-11-05T12:00:00+14:00", "9999-12-31T23:59:59Z", "now"),
        *("0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2025-02-30"),
    )
)
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "metrics": st.lists(NAMES, min_size=1, max_size=21),
    "dimensions": st.lists(NAMES, max_size=4),
    "granularity": st.sampled_from(analytics.GRANULARITIES),
    "time_zone": st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia", "localtime", "", "."]),
    "range": st.fixed_dictionaries({}, optional={"from": MOMENTS, "to": MOMENTS}),
    "time_range": st.fixed_dictionaries({}, optional={"start": MOMENTS, "end": MOMENTS | ODD}),
    "filters": st.lists(
        st.fixed_dictionaries(
            {
                "field": NAMES,
                "operator": st.sampled_from([*analytics.OPERATORS, "like"]),
                "value": ODD,
            }
        ),
        max_size=3,
    ),
    "order_by": st.fixed_dictionaries(
        {"field": NAMES}, optional={"direction": st.sampled_from(["asc", "desc", "up"])}
    ),
    "limit": st.integers(-1, 10_001),
}
GOOD_METRICS = st.lists(st.sampled_from(list(analytics.METRICS)), min_size=1, unique=True)
QUESTIONS = st.fixed_dictionaries(
    {"metrics": GOOD_METRICS.map(lambda names: names[:20]) | FITTING["metrics"] | ODD},
    optional={
        name: st.one_of(fitting, fitting, ODD)
        for name, fitting in FITTING.items()
        if name != "metrics"
    },
)


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(question=QUESTIONS)
async def test_no_question_is_more_than_the_node_can_answer(
    office: Office, question: dict[str, Any]
) -> None:
    """Any JSON in any field: an answer within the limits of rows and time, or a 400 that names the field."""
    reply = await office.call(
        "owner",
        "POST",
        "/analytics/query",
        content=json.dumps(question),
        headers={"content-type": "application/json"},
    )
    if reply.status_code == 200:
        answered = reply.json()["data"]
        told = answered["metadata"]
        assert told["row_count"] == len(answered["data"]) <= question.get("limit", 1_000)
        assert (
            told["query_time_ms"] <= 1_000 * office.gateway.running.node.settings.timeouts.report_s
        )
        return
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    if error["code"] != "invalid_json":
        said = f"{error['param']} {error['message']}"
        assert any(name in said for name in question), said


# --- whose they are -----------------------------------------------------------------------------


async def test_members_see_their_own_keys_and_tenants_nothing_of_each_other(
    recorded: Office,
) -> None:
    inference, owner = recorded["inference"].caller, recorded["owner"].caller
    assert inference is not None
    assert owner is not None
    when = "2025-10-27T08:00:00Z"
    await plant(recorded, inference.key_id, when, workspace_id=inference.workspace_id)
    await plant(recorded, owner.key_id, when)
    await plant(recorded, owner.key_id, when, workspace_id=recorded.workspace_id)
    stranger = recorded["stranger"].caller
    assert stranger is not None
    await plant(recorded, stranger.key_id, when, recorded.stranger_organization_id)
    asked: dict[str, Any] = {"metrics": ["requests"], "dimensions": ["api_key"]}
    seen = {
        name: {
            row["api_key"]: row["requests"] for row in (await ask(recorded, name, **asked))["data"]
        }
        for name in ("owner", "admin", "member", "stranger")
    }
    everything = {inference.key_id: 1, owner.key_id: 2}
    assert seen == {
        "owner": everything,
        "admin": everything,
        "member": {inference.key_id: 1},
        "stranger": {stranger.key_id: 1},
    }
    chosen = [{"field": "api_key", "operator": "eq", "value": owner.key_id}]
    for name in ("member", "stranger"):
        assert (await ask(recorded, name, filters=chosen, **asked))["data"] == []
    body = {"metrics": ["requests"]}
    reply = await recorded.call("inference", "POST", "/analytics/query", body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong_key_type")


async def test_a_key_sees_its_own_requests_and_no_other(busy_office: Office) -> None:
    """What it is told is what its receipts say, to the last digit."""
    gateway = busy_office.gateway
    bearer = {"authorization": f"Bearer {busy_office['inference'].key}"}
    mine = [await gateway.chat(headers=bearer) for _ in range(2)]
    others = [await gateway.chat("and more " * 9)]
    costs = [
        sum([exact(await gateway.generation(reply)) for reply in replies])
        for replies in (mine, others)
    ]
    assert costs[0] != costs[1]
    for headers, requests, cost in ((bearer, 2, costs[0]), (None, 1, costs[1])):
        reply = await gateway.client.get("/key/usage", headers=headers)
        [row] = json.loads(reply.content, parse_float=Decimal)["data"]["data"]
        assert (row["requests"], Decimal(row["cost"])) == (requests, cost)
    [row] = await key_usage(gateway, bearer, dimensions="model,api_key", granularity="month")
    caller = busy_office["inference"].caller
    assert caller is not None
    assert (row["model"], row["api_key"], row["requests"]) == ("demo/chat", caller.key_id, 2)
    assert await key_usage(gateway, bearer, model="demo/none", dimensions="model") == []
    for name, value in (("metrics", "costs"), ("dimensions", "a,b,c,d"), ("filters", "api_key")):
        reply = await gateway.client.get("/key/usage", params={name: value}, headers=bearer)
        assert reply.status_code == 400
        assert name in reply.json()["error"]["param"]


def exact(record: Any) -> Decimal:
    return Decimal(str(record["total_cost"]))


async def key_usage(gateway: Gateway, headers: Any, **query: str) -> Any:
    reply = await gateway.client.get("/key/usage", params=query, headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.json()["data"]["data"]


# --- the last thirty days -----------------------------------------------------------------------


async def test_activity_is_of_a_day_and_of_a_key(recorded: Office) -> None:
    today = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    days = [(today - timedelta(days=back)).date().isoformat() for back in range(40)]
    made = [await recorded.ok("owner", "POST", "/keys", {"name": name}) for name in ("a", "b")]
    first, second = (each["data"] for each in made)
    planted = ((31, first), (30, first), (2, first), (1, first), (1, second), (1, second))
    for back, key in planted:
        await plant(recorded, key["id"], f"{days[back]}T12:00:00Z", tokens_input=7, tokens_output=3)

    async def rows(**query: str) -> list[tuple[str, int, int]]:
        found = await recorded.ok("owner", "GET", "/activity", params=query)
        assert found["total_count"] == len(found["data"])
        return [(row["date"], row["requests"], row["prompt_tokens"]) for row in found["data"]]

    assert await rows() == [(days[1], 3, 21), (days[2], 1, 7), (days[30], 1, 7)]
    assert await rows(date=days[1]) == [(days[1], 3, 21)]
    assert await rows(date=days[3]) == []
    for ref in (second["hash"], second["id"]):
        assert await rows(api_key_hash=ref) == [(days[1], 2, 14)]
    assert await rows(api_key_hash=first["hash"], date=days[2]) == [(days[2], 1, 7)]
    assert await rows(api_key_hash="0" * 64) == []
    stranger = await recorded.ok(
        "stranger", "GET", "/activity", params={"api_key_hash": first["hash"]}
    )
    assert stranger["data"] == []
    for wrong in (days[0], days[31], "yesterday", "2025-02-30"):
        reply = await recorded.call("owner", "GET", "/activity", params={"date": wrong})
        error = reply.json()["error"]
        assert (reply.status_code, error["param"]) == (400, "date")
        assert days[30] in error["message"]
