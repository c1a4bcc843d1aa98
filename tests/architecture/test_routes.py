"""The table of routes: nothing is served that is not in it, and every line says who may call and what it is called."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from gwd.api.access import INFERENCE, PUBLIC, Access
from gwd.api.failures import BASE_PATHS
from gwd.api.gemini import BETA_PATHS
from gwd.api.route import LiveRoute, OpenRoute, Route
from gwd.api.routes import LIVE_ROUTES, OPEN_ROUTES, ROUTES
from gwd.dialects.table import DIALECTS
from gwd.wiring import RunningNode
from tests.support.node import Nodes

AnyRoute = Route | LiveRoute | OpenRoute
TABLE: tuple[AnyRoute, ...] = (*ROUTES, *LIVE_ROUTES, *OPEN_ROUTES)
READ_BY_EVERYBODY = {
    (method, path)
    for method in ("GET", "HEAD")
    for path in ("/models", "/models/<model:path>", "/openapi.json")
}
NOTED_WHEN_READ = {"/generation/content"}
AT_THE_ROOT = {
    ("GET", "/healthz"),
    ("GET", "/healthz/stream"),  # four pieces of a test stream
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/invitations/accept"),  # tells a person with a link what to do; changes nothing
    ("HEAD", "/healthz"),
    ("HEAD", "/readyz"),
    ("HEAD", "/"),
    ("GET", "/"),
    ("HEAD", "/api"),
    ("HEAD", "/api/v1"),
    ("HEAD", "/v1"),
    # the page judges each of its own paths: tests/page
    *(
        (method, path)
        for method in ("GET", "HEAD", "POST")
        for path in ("/app", "/app/<path:path>")
    ),
    # links of mails that were sent before there was a page
    *(("GET", f"/{place}/<path:path>") for place in ("keys", "budgets", "settings", "models")),
    ("GET", "/node"),
}


@pytest_asyncio.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningNode]:
    nodes = Nodes(tmp_path)
    nodes.init()
    async with nodes.running() as node:
        yield node


def served(node: RunningNode) -> list[tuple[str, str]]:
    """(method, path) of everything the framework would answer, as the table writes paths."""

    found = []
    for route in node._listeners[0].app.router.routes:
        path = "/" + "/".join(_written(part) for part in route.parts if part)
        found += [(str(method), path) for method in route.methods]
    return found


def _written(part: str) -> str:
    """`<key:str>` of the router is `<key>` in the table."""
    return part.replace(":str>", ">")


def access_of(method: str, path: str) -> Access | None:
    """Who may call what is served; None is a hole."""
    if (method, path) in AT_THE_ROOT:
        return PUBLIC
    for base in (*BASE_PATHS, *BETA_PATHS):
        if not path.startswith(f"{base}/"):
            continue
        below = path.removeprefix(base)
        if method == "OPTIONS" or (method, below) in READ_BY_EVERYBODY:
            return PUBLIC  # preflight says nothing and changes nothing
        if method == "POST" and any(
            below == dialect.path or below.startswith(f"{dialect.path}/") for dialect in DIALECTS
        ):
            return INFERENCE
        for route in TABLE:
            if (route.method, route.path) == (method, below):
                return route.access
    return None


async def test_everything_that_is_served_has_its_access_in_the_table(running: RunningNode) -> None:
    holes = [(method, path) for method, path in served(running) if access_of(method, path) is None]
    assert holes == []
    assert access_of("POST", "/api/v1/debug") is None


async def test_everything_in_the_table_is_served_below_both_base_paths(
    running: RunningNode,
) -> None:
    found = set(served(running))
    for route in TABLE:
        for base in BASE_PATHS:
            assert (route.method, base + route.path) in found


def test_no_route_is_there_twice() -> None:
    names = [(route.method, route.path) for route in TABLE]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("route", TABLE, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_names_what_it_takes_and_what_it_writes(route: AnyRoute) -> None:
    """A write has the name of its audit line; only a write with a body has a shape, and only one without a query."""
    asks = is_question(route)
    match route.method:
        case "GET":
            assert route.shape is None
            assert (route.action is not None) == (route.path in NOTED_WHEN_READ)
        case "DELETE":
            assert route.shape is None
            assert route.action
        case _:
            assert route.shape is not None
            assert bool(route.action) != asks
    assert route.method in ("GET", "DELETE") or route.query == ()


@pytest.mark.parametrize("route", TABLE, ids=lambda route: f"{route.method} {route.path}")
def test_every_body_refuses_fields_it_does_not_know(route: AnyRoute) -> None:
    if route.shape is not None:
        assert _config(route.shape).forbid_unknown_fields


def test_management_routes_name_a_right_and_only_the_open_ones_need_no_key() -> None:
    """Denied unless somebody is let in: a management key without a right named could do anything."""
    anybody_with_a_key = {"/auth/key", "/key", "/key/usage"}
    for route in TABLE:
        if isinstance(route, OpenRoute):
            assert route.access.is_public
            continue
        assert not route.access.is_public
        if route.path not in anybody_with_a_key:
            assert route.access.right is not None, route.path
        if route.method != "GET" and not is_question(route):
            assert route.access.kinds == {"management"}


def is_question(route: AnyRoute) -> bool:
    """A POST that changes nothing."""
    return route.reads or (isinstance(route, LiveRoute) and route.asks)


def _config(shape: Any) -> msgspec.structs.StructConfig:
    config: msgspec.structs.StructConfig = shape.__struct_config__
    return config
