"""Every route with every kind of caller is answered as the table of rights says."""

import re
from collections.abc import Iterator

import httpx
import msgspec
import pytest

from gwd.api import auth
from gwd.api.access import manage
from gwd.api.route import LiveRoute, OpenRoute, Route
from gwd.api.routes import LIVE_ROUTES, OPEN_ROUTES, ROUTES
from gwd.core.ids import random_base62
from gwd.orgs.rights import allowed
from tests.api.cases import CASES, Case, Sent
from tests.api.office import Office, Person

AnyRoute = Route | LiveRoute | OpenRoute
TABLE: tuple[AnyRoute, ...] = (*ROUTES, *LIVE_ROUTES, *OPEN_ROUTES)
PEOPLE = (
    "nobody",
    "inference",
    "member",
    "billing",
    "admin",
    "owner",
    "lead",
    "stranger",
    "operator",
)
_PARAMETER = re.compile(r"<(\w+)(?::\w+)?>")


def name_of(route: AnyRoute) -> str:
    return f"{route.method} {route.path}"


def path_of(route: AnyRoute, sent: Sent) -> str:
    return _PARAMETER.sub(lambda found: sent.ids[found[1]], route.path)


def trials(route: AnyRoute, case: Case, person: Person) -> Iterator[tuple[str, int]]:
    """(which request, expected status) for a person: denied unless the route's access and the table say otherwise."""
    caller, access = person.caller, route.access
    if access.is_public:
        yield "build", route.status
        return
    if caller is None:
        yield "build", 401
        return
    if caller.kind not in access.kinds:
        yield "build", 403
        return
    foreign = person.name == "stranger" and case.scoped
    if caller.kind == "inference" or access.right is None:
        yield "build", 404 if foreign else route.status
        return
    match allowed(caller, access.right):
        case "none":
            yield "build", 403
        case "all":
            yield "build", 404 if foreign else route.status
        case _ if case.whole:
            yield "build", 403
        case _ if case.outside is None:
            yield "build", route.status
        case _:
            yield "build", case.outside
            yield "within", route.status


def test_every_route_has_a_case_and_every_case_a_route():
    assert sorted(CASES) == sorted(name_of(route) for route in TABLE)


@pytest.mark.parametrize("person_name", PEOPLE)
async def test_every_route_answers_a_caller_as_the_table_of_rights_says(
    office: Office, person_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "FAILURES_PER_MINUTE", 1_000)  # more refusals than one address gets
    assert await unexpected(office, office[person_name], TABLE) == []


async def test_the_matrix_would_see_a_route_that_lets_too_many_in(office: Office) -> None:
    """The harness has teeth: expected of a stricter and of a looser access, the same answers are wrong."""
    listing = next(route for route in ROUTES if name_of(route) == "GET /audit")
    stricter = msgspec.structs.replace(listing, access=manage("operator"))
    looser = msgspec.structs.replace(listing, access=manage("organization.read"))
    assert len(await unexpected(office, office["owner"], (stricter,))) == 1
    assert len(await unexpected(office, office["member"], (looser,))) == 1


async def unexpected(office: Office, person: Person, routes: tuple[AnyRoute, ...]) -> list[str]:
    """What is answered otherwise than expected."""
    wrong = []
    for route in routes:
        case = CASES[name_of(route)]
        for which, expected in trials(route, case, person):
            build = case.build if which == "build" else case.within
            assert build is not None, f"{name_of(route)} has no request within a reach"
            sent = await build(office, person)
            reply = await office.call(
                person, route.method, path_of(route, sent), sent.body, params=sent.query
            )
            if reply.status_code != expected:
                wrong.append(
                    f"{name_of(route)} {which}: {reply.status_code}, not {expected}: {reply.text}"
                )
    return wrong


async def test_a_refusal_says_whether_the_key_or_its_right_is_wrong(office: Office) -> None:
    codes = {
        "nobody": "missing_api_key",
        "inference": "wrong_key_type",
        "member": "insufficient_role",
        "lead": "insufficient_role",
    }
    for name, code in codes.items():
        reply = await office.call(name, "POST", "/organizations", {"name": "X"})
        assert reply.json()["error"]["code"] == code


IDS = [route for route in TABLE if "<" in route.path and CASES[name_of(route)].scoped]


def test_whatever_belongs_to_an_organization_is_tried_with_foreign_ids():
    """A parameter that is not one of these names something of one organization."""
    of_the_node = {"slug", "model", "endpoint", "credential", "organization", "month"}
    tried = {name_of(route) for route in IDS}
    for route in TABLE:
        if set(_PARAMETER.findall(route.path)) - of_the_node:
            assert name_of(route) in tried, name_of(route)


async def test_foreign_and_absent_ids_are_the_same_to_the_byte(office: Office) -> None:
    """No probing: neither body, status nor headers tell another organization's id from one that never was."""
    stranger = office["stranger"]
    for route in IDS:
        sent = await CASES[name_of(route)].build(office, stranger)
        absent = msgspec.structs.replace(sent, ids=_absent(sent.ids))
        foreign_reply, absent_reply = [
            await office.call(
                stranger, route.method, path_of(route, each), each.body, params=each.query
            )
            for each in (sent, absent)
        ]
        assert foreign_reply.status_code == 404, f"{name_of(route)}: {foreign_reply.text}"
        assert _comparable(foreign_reply) == _comparable(absent_reply), name_of(route)


@pytest.mark.parametrize(
    ("path", "name", "rest"),
    [
        ("/keys", "workspace_id", {"name": "x"}),
        ("/keys", "user_id", {"name": "x"}),
        ("/budgets", "workspace", {"interval": "daily", "limit": 1, "scope": "workspace"}),
        ("/budgets", "key", {"interval": "daily", "limit": 1, "scope": "key"}),
        ("/organization/invitations", "workspace_ids", {"email": "a@globex.example"}),
        ("/workspaces", "lead_user_id", {"name": "Space"}),
    ],
)
async def test_foreign_ids_in_bodies_are_like_absent_ones(
    office: Office, path: str, name: str, rest: dict[str, object]
) -> None:
    key = await office.ok("owner", "POST", "/keys", {"name": "theirs"})
    foreign = {
        "workspace_id": office.workspace_id,
        "workspace": office.workspace_id,
        "workspace_ids": office.workspace_id,
        "key": key["data"]["id"],
        "user_id": office["member"].user_id,
        "lead_user_id": office["member"].user_id,
    }[name]
    assert foreign is not None
    field = {"workspace": "scope_id", "key": "scope_id"}.get(name, name)
    replies = []
    for value in (foreign, _like(foreign)):
        named: object = [value] if field == "workspace_ids" else value
        replies.append(await office.call("stranger", "POST", path, {**rest, field: named}))
    assert replies[0].status_code == 404, replies[0].text
    assert _comparable(replies[0]) == _comparable(replies[1])


@pytest.mark.parametrize("path", ["/generation?id={}", "/keys?workspace_id={}"])
async def test_foreign_ids_in_queries_are_like_absent_ones(office: Office, path: str) -> None:
    sent = await CASES["GET /generation"].build(office, office["owner"])
    foreign = sent.query["id"] if "generation" in path else office.workspace_id
    replies = [
        await office.call("stranger", "GET", path.format(value))
        for value in (foreign, _like(foreign))
    ]
    assert replies[0].status_code == 404
    assert _comparable(replies[0]) == _comparable(replies[1])


async def test_a_key_out_of_a_members_reach_is_like_an_absent_one(office: Office) -> None:
    """Within one organization too: members see their own keys, leads those of their workspace."""
    made = await office.ok("owner", "POST", "/keys", {"name": "the owner's"})
    there = made["data"]["id"]
    for person in ("member", "lead"):
        for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
            replies = [
                await office.call(person, method, f"/keys/{key}{rest}")
                for key in (there, _like(there))
            ]
            assert replies[0].status_code == 404
            assert _comparable(replies[0]) == _comparable(replies[1])


async def test_an_id_in_the_path_is_never_anything_but_an_id(office: Office) -> None:
    """Encoded slashes, wildcards and blanks find nothing and break nothing."""
    for odd in ("%2e%2e", "a%2Fb", "%25", "_%25_", "%00x", "%20", "x" * 300, "é"):
        reply = await office.call("owner", "GET", f"/keys/{odd}")
        assert reply.status_code == 404, odd


def _absent(ids: dict[str, str]) -> dict[str, str]:
    return {name: value if name == "interval" else _like(value) for name, value in ids.items()}


def _like(identifier: str) -> str:
    """An id of the same form that nothing has."""
    prefix, mark, rest = identifier.partition("-" if identifier.startswith("gen-") else "_")
    return prefix + mark + random_base62(len(rest))


def _comparable(reply: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    headers = dict(reply.headers)
    for name in ("x-request-id", "request-id"):
        assert headers.pop(name).startswith("req_")
    return reply.status_code, reply.content, headers
