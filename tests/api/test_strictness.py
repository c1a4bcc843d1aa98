"""Management input is read strictly on every route: scripts must see typos."""

import json

import pytest

from gwd.api.route import LiveRoute, OpenRoute, Route
from gwd.api.routes import LIVE_ROUTES, OPEN_ROUTES, ROUTES
from tests.api.cases import CASES
from tests.api.office import Office
from tests.api.test_rights import name_of, path_of

AnyRoute = Route | LiveRoute | OpenRoute
TABLE: tuple[AnyRoute, ...] = (*ROUTES, *LIVE_ROUTES, *OPEN_ROUTES)
WITH_BODY = [route for route in TABLE if route.shape is not None]
JSON = {"content-type": "application/json"}


async def test_every_route_refuses_a_query_parameter_it_does_not_know(office: Office) -> None:
    operator = office["operator"]
    for route in TABLE:
        sent = await CASES[name_of(route)].build(office, operator)
        query = {**sent.query, "limti": "5"}
        reply = await office.call(
            operator, route.method, path_of(route, sent), sent.body, params=query
        )
        error = reply.json()["error"]
        assert (reply.status_code, error["code"], error["param"]) == (
            400,
            "unknown_parameter",
            "limti",
        ), name_of(route)


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=", "limit"),
        ("limit=-1", "limit"),
        ("limit=1.5", "limit"),
        ("limit=١", "limit"),
        ("offset=-1", "offset"),
        ("offset=x", "offset"),
        ("limit=5&limit=6", "limit"),
        ("include_disabled=maybe", "include_disabled"),
    ],
)
async def test_a_page_out_of_range_names_the_parameter(
    office: Office, query: str, param: str
) -> None:
    reply = await office.call("owner", "GET", f"/keys?{query}")
    assert reply.status_code == 400
    if "&" not in query:
        assert reply.json()["error"]["param"] == param


async def test_every_list_is_paged_and_counts_all(office: Office) -> None:
    operator = office["operator"]
    for route in TABLE:
        taken = {each.name for each in route.query}
        if "limit" not in taken or (isinstance(route, Route) and route.is_report):
            continue  # an answer of analytics is cut, not paged
        sent = await CASES[name_of(route)].build(office, operator)
        body = await office.ok(operator, "GET", path_of(route, sent), params={"limit": 1})
        places = {"next", "previous"} if "after" in taken else set()
        assert set(body) == {"data", "total_count", *places}, name_of(route)
        assert len(body["data"]) <= 1
        last = {"limit": 100, "offset": 99_999}
        far = await office.ok(operator, "GET", path_of(route, sent), params=last)
        empty = {"data": [], "total_count": body["total_count"]}
        assert far == empty | dict.fromkeys(places), name_of(route)


async def test_every_body_refuses_an_unknown_field_and_changes_nothing(office: Office) -> None:
    operator = office["operator"]
    for route in WITH_BODY:
        sent = await CASES[name_of(route)].build(office, operator)
        before = await _audit_count(office)
        body = {**(sent.body or {}), "nmae": 1}
        reply = await office.call(
            operator, route.method, path_of(route, sent), body, params=sent.query
        )
        error = reply.json()["error"]
        assert (reply.status_code, error["code"], error["param"]) == (
            400,
            "unknown_parameter",
            "nmae",
        ), name_of(route)
        assert await _audit_count(office) == before


async def test_every_body_refuses_a_field_given_twice(office: Office) -> None:
    """Which of two values counts would be a guess; one of them may come from a mistake in a script."""
    operator = office["operator"]
    for route in WITH_BODY:
        sent = await CASES[name_of(route)].build(office, operator)
        rest = json.dumps(sent.body or {})[1:-1]
        doubled = "{" + (rest + ", " if rest else "") + '"limit": 1, "limit": 2}'
        reply = await office.call(
            operator, route.method, path_of(route, sent), content=doubled.encode(), headers=JSON
        )
        assert reply.status_code == 400, name_of(route)
        assert reply.json()["error"]["param"] in ("limit", "kind"), name_of(route)


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"{", JSON, 400, "invalid_json"),
        (b"[]", JSON, 400, "invalid_request"),
        (b"null", JSON, 400, "invalid_request"),
        (b'{"name": NaN}', JSON, 400, "invalid_json"),
        (b'{"name": "\xff"}', JSON, 400, "invalid_json"),
        (b'{"name": "\\ud800"}', JSON, 400, "invalid_json"),
        (b'{"name": "a\\u0000b"}', JSON, 400, "invalid_value"),
        (b"[" * 100_000, JSON, 400, "invalid_json"),
        (b'{"name": 5}', JSON, 400, "invalid_value"),
        (b"", JSON, 400, "missing_parameter"),
        (b'{"name": "x", "limit": "NaN"}', JSON, 400, "invalid_value"),
        (b'{"name": "x", "limit": "Infinity"}', JSON, 400, "invalid_value"),
        (b'{"name": "x", "limit": true}', JSON, 400, "invalid_value"),
        (b'{"name": "x", "limit": -1}', JSON, 400, "invalid_value"),
        (b'{"name": "x", "limit": 1e400}', JSON, 400, "invalid_value"),
        (
            b'{"name": "x", "limit": "1.0000000000000000000000000000001"}',
            JSON,
            400,
            "invalid_value",
        ),
        (b'{"name": "x", "limit": "1e-999999999"}', JSON, 400, "invalid_value"),
        (b'{"name": "x", "allowed_models": []}', JSON, 400, "invalid_value"),
        (b'{"name": "x", "expires_at": "2030-01-01T00:00:00"}', JSON, 400, "invalid_value"),
        (b'{"name": "x", "expires_at": "tomorrow"}', JSON, 400, "invalid_value"),
        (b'{"name": "x", "expires_at": "2020-01-01T00:00:00Z"}', JSON, 400, "invalid_value"),
        (b"x" * (1024 * 1024 + 1), JSON, 413, "request_too_large"),
        (b"a=b", {"content-type": "application/x-www-form-urlencoded"}, 415, None),
        (b"{}", JSON | {"content-encoding": "br"}, 415, "unsupported_media_type"),
    ],
)
async def test_a_body_that_is_wrong_says_how(
    office: Office, content: bytes, headers: dict[str, str], status: int, code: str | None
) -> None:
    reply = await office.call("owner", "POST", "/keys", content=content, headers=headers)
    error = reply.json()["error"]
    assert reply.status_code == status, reply.text
    assert code in (None, error["code"]), reply.text
    assert error["message"]


NUMBERS = [
    "1" * 5_000,
    "-" + "1" * 5_000,
    "9223372036854775808",
    "1e400",
    "1e99999999999999999999",
    "-1e99999999999999999999",
    "1e-999999999",
    "1e-99999999999999999999",
    "0.0000000001",
    "1.0000000001",
    "1." + "0" * 40 + "1",
]
BUDGET = '{"scope": "organization", "interval": "daily", "kind": "hard", "limit": %s}'
PROVIDER = (
    '{"slug": "x", "name": "x", "adapter": "openai_chat", "base_url": "https://a.example",'
    ' "flags": {"first_event_s": %s}}'
)
FIELDS = [
    ("owner", "POST", "/keys", '{"name": "x", "limit": %s}', "limit"),
    ("owner", "POST", "/keys", '{"name": "x", "rate_limit_per_minute": %s}', "rate_limit_per_minute"),
    ("owner", "POST", "/keys", '{"name": "x", "alert_thresholds": [50, %s]}', "alert_thresholds"),
    ("operator", "POST", "/credits/purchases", '{"amount": %s}', "amount"),
    ("owner", "PATCH", "/organization/settings", '{"low_balance_threshold": %s}', "low_balance_threshold"),
    ("operator", "PATCH", "/organization/settings", '{"byok_fee_percent": %s}', "byok_fee_percent"),
    ("owner", "PATCH", "/credits/auto-topup", '{"amount": %s}', "amount"),
    ("owner", "POST", "/budgets", BUDGET, "limit"),
    ("operator", "POST", "/catalog/providers", PROVIDER, "flags"),
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS, ids=[number[:24] for number in NUMBERS])
async def test_a_number_that_cannot_be_kept_as_it_is_names_its_field(
    office: Office, number: str
) -> None:
    """Nothing is rounded silently, and no number is too odd to be refused."""
    for person, method, path, body, param in FIELDS:
        if number in ("0.0000000001", "1.0000000001", NUMBERS[-1]) and param == "flags":
            continue  # a time may be as fine as it likes
        reply = await office.call(
            person, method, path, content=(body % number).encode(), headers=JSON
        )
        error = reply.json()["error"]
        assert reply.status_code == 400, (path, body, reply.text)
        assert str(error["param"]).startswith(param), (path, body, reply.text)
        assert param in error["message"]


@pytest.mark.parametrize(
    "path",
    ["/audit?from={}", "/audit?to={}", "/credits/ledger?from={}", "/generations?to={}"],
)
async def test_a_time_in_a_query_needs_an_offset_and_means_that_moment(
    office: Office, path: str
) -> None:
    refused = await office.call("owner", "GET", path.format("2026-11-27T22:00:00"))
    assert refused.status_code == 400
    assert "offset" in refused.json()["error"]["message"]
    for moment in ("2026-11-27T22:00:00Z", "2026-11-27T23:00:00+01:00", "2026-11-27T22:00:00.5Z"):
        assert (await office.call("owner", "GET", path.format(moment))).status_code == 200


async def test_an_offset_moves_the_moment(office: Office) -> None:
    made = await office.ok(
        "owner", "POST", "/keys", {"name": "x", "expires_at": "2099-01-01T02:00:00+02:00"}
    )
    assert made["data"]["expires_at"] == "2099-01-01T00:00:00Z"


async def test_every_answer_has_request_ids_and_is_not_stored(office: Office) -> None:
    operator = office["operator"]
    for route in TABLE:
        sent = await CASES[name_of(route)].build(office, operator)
        for query in (sent.query, {"unknown": "x"}):
            reply = await office.call(
                operator,
                route.method,
                path_of(route, sent),
                sent.body,
                params=query,
                headers={"x-request-id": "evil id"},
            )
            assert reply.headers["cache-control"] == "no-store", name_of(route)
            assert reply.headers["x-request-id"].startswith("req_")
            assert reply.headers["request-id"] == reply.headers["x-request-id"]
            assert reply.headers["content-type"] == "application/json"


async def test_both_base_paths_answer_the_same(office: Office) -> None:
    root = office.gateway.base_url.removesuffix("/api/v1")
    replies = [
        await office.call("owner", "GET", f"{root}{base}/organization")
        for base in ("/api/v1", "/v1")
    ]
    assert replies[0].json() == replies[1].json()


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("PUT", "/keys", 405, "method_not_allowed"),
        ("POST", "/audit", 405, "method_not_allowed"),
        ("GET", "/keys/x/y/z", 404, "not_found"),
    ],
)
async def test_what_is_not_there_is_refused_in_our_envelope(
    office: Office, method: str, path: str, status: int, code: str
) -> None:
    reply = await office.call("owner", method, path)
    assert reply.json()["error"]["code"] == code
    assert reply.status_code == status
    assert reply.headers["cache-control"] == "no-store"


async def _audit_count(office: Office) -> int:
    found = await office.ok("owner", "GET", "/audit", params={"limit": 1})
    return int(found["total_count"])
