"""What views ask and acts call: the API's own routes, in process, as the caller of the session."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final

import msgspec

from gwd.api import query as queries
from gwd.api.auth import check_access
from gwd.api.bodies import strict
from gwd.api.management import Call
from gwd.api.node import Node
from gwd.api.perform import Incoming, Reply, perform
from gwd.api.query import PLACES
from gwd.api.route import LiveRoute, Route
from gwd.api.routes import LIVE_ROUTES, ROUTES
from gwd.audit.service import Origin
from gwd.core.caller import Caller
from gwd.core.clock import US_PER_DAY
from gwd.core.errors import GatewayError
from gwd.keys.admission import KeyRow
from gwd.orgs import rights
from gwd.orgs.rights import Right
from gwd.page import formats
from gwd.page.request import Form
from gwd.store import Connection
from gwd.store.reports import limited

REPORT_S: Final = 0.2
"""As long as one question of a page may take that grows with what is on record."""

_decoder: Final = msgspec.json.Decoder(float_hook=Decimal)


@cache
def routes() -> dict[tuple[str, str], Route | LiveRoute]:
    """The routes of the API by method and path."""
    every: tuple[Route | LiveRoute, ...] = (*ROUTES, *LIVE_ROUTES)
    return {(route.method, route.path): route for route in every}


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks at what: one request of a browser that is signed in."""

    node: Node
    key: KeyRow
    request_id: str
    address: str
    now_us: int
    due_us: int

    @property
    def caller(self) -> Caller:
        return self.key.caller

    def may(self, right: Right) -> bool:
        return rights.allowed(self.caller, right) != "none"


class Ask:
    """Asks the API inside one read transaction. Amounts of answers are Decimal."""

    def __init__(
        self,
        connection: Connection,
        visit: Visit,
        *,
        path: Mapping[str, str],
        query: Form,
        live: Mapping[str, Any],
        errors: Mapping[str, str],
        typed: Form | None,
    ) -> None:
        self._connection = connection
        self.visit = visit
        self.path = path
        self.query = query
        self._live = live
        self.errors = errors
        self.typed = typed

    def __call__(
        self,
        route: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **parameters: str,
    ) -> Any:
        """The body of a route's answer. Raises what the API would answer."""
        visit = self.visit
        found = routes()["GET" if body is None else "POST", route]
        assert isinstance(found, Route)
        assert found.method == "GET" or found.reads
        check_access(visit.key, found.access, now_us=visit.now_us)
        pairs = [(name, str(value)) for name, value in (query or {}).items() if value is not None]
        call = Call(
            node=visit.node,
            caller=visit.caller,
            path=parameters,
            query=queries.read(pairs, found.query),
            body=None if body is None else strict(msgspec.json.encode(body), found.shape or dict),
            origin=Origin(address=visit.address, request_id=visit.request_id),
            now_us=visit.now_us,
            due_us=visit.due_us,
        )
        if found.is_report or set(PLACES) <= set(found.query):
            with limited(self._connection, REPORT_S):
                answer = found.handler(self._connection, call)
        else:
            answer = found.handler(self._connection, call)
        return _decoder.decode(msgspec.json.encode(answer.body))

    def all(self, route: str, *, query: Mapping[str, Any] | None = None, most: int = 500) -> Any:
        """The records of a list, page by page, up to `most`."""
        found: list[Any] = []
        while len(found) < most:
            page = self(route, query={**(query or {}), "limit": 100, "offset": len(found)})
            found += page["data"]
            if len(page["data"]) < 100:
                break
        return found

    def live(self, route: str) -> Any:
        """The body of a live route that the page names; None where the caller has no right to it."""
        return self._live.get(route)

    def may(self, right: Right) -> bool:
        return self.visit.may(right)

    @property
    def now(self) -> datetime:
        return formats.of_us(self.visit.now_us)

    @property
    def today(self) -> date:
        return date.fromordinal(date(1970, 1, 1).toordinal() + self.visit.now_us // US_PER_DAY)

    @property
    def month(self) -> str:
        return f"{self.today:%Y-%m}"


class Doing:
    """Acts through the API, as a client with the session's key would."""

    def __init__(self, visit: Visit, form: Form, path: Mapping[str, str]) -> None:
        self.visit = visit
        self.form = form
        self.path = path

    @property
    def now(self) -> datetime:
        return formats.of_us(self.visit.now_us)

    async def send(
        self,
        method: str,
        route: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        once: str | None = None,
        **parameters: str,
    ) -> Any:
        """The body of a route's answer; `once` makes a repetition harmless. Raises what the API would answer."""
        return _decoder.decode(
            (await self._reply(method, route, body, query, once, parameters)).body
        )

    async def _reply(
        self,
        method: str,
        route: str,
        body: Any,
        query: Mapping[str, Any] | None,
        once: str | None,
        parameters: Mapping[str, str],
    ) -> Reply:
        found, visit = routes()[method, route], self.visit
        path = route
        for name, value in parameters.items():
            path = path.replace(f"<{name}>", value).replace(f"<{name}:path>", value)
        headers = {} if once is None else {"idempotency-key": once}
        data = b"" if found.shape is None else msgspec.json.encode(body or {})
        caller = check_access(visit.key, found.access, now_us=visit.now_us)
        incoming = Incoming(
            method=method,
            path=f"/api/v1{path}",
            parameters=dict(parameters),
            query=[(name, str(value)) for name, value in (query or {}).items()],
            headers=headers,
            body=data,
            address=visit.address,
            request_id=visit.request_id,
            by_page=True,
        )
        return await perform(visit.node, found, incoming, caller)


async def ask_live(visit: Visit, route: str) -> Any:
    """The body of a live route, or None where the caller has no right to it or it fails."""
    found = routes()["GET", route]
    try:
        caller = check_access(visit.key, found.access, now_us=visit.now_us)
        incoming = Incoming(
            method="GET",
            path=f"/api/v1{route}",
            parameters={},
            query=[],
            headers={},
            body=b"",
            address=visit.address,
            request_id=visit.request_id,
        )
        return _decoder.decode((await perform(visit.node, found, incoming, caller)).body)
    except GatewayError:
        return None
