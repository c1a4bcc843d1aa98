"""How a management request runs: query and body read strictly, one transaction, audit line, idempotent reply.

After everything that may have changed something, caches that may hold it are emptied before the client is answered.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from gwd.api import query
from gwd.api.bodies import MAX_MANAGEMENT_BYTES, around, decoded_body, strict
from gwd.api.management import Answer, Call, Handler, OpenCall, OpenHandler
from gwd.api.node import Node
from gwd.api.route import LiveRoute, OpenRoute, Route
from gwd.audit import service as audit
from gwd.audit.service import Origin
from gwd.core.caller import Caller
from gwd.core.errors import NotFound
from gwd.replay import idempotency
from gwd.store import Connection

T = TypeVar("T")


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A management request as HTTP has it; `query` holds every pair in its order."""

    method: str
    path: str
    parameters: dict[str, str]
    query: list[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes
    address: str
    request_id: str
    by_page: bool = False

    @property
    def origin(self) -> Origin:
        return Origin(address=self.address, request_id=self.request_id, by_page=self.by_page)


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Status and bytes for the client."""

    status: int
    body: bytes
    replayed: bool = False


async def perform(
    node: Node, route: Route | LiveRoute, incoming: Incoming, caller: Caller
) -> Reply:
    """Serve a request whose caller may make it."""
    values = query.read(incoming.query, route.query)
    if isinstance(route, LiveRoute) and route.asks:
        data, body = b"", await _question(node, incoming, route.shape)
    else:
        data, body = _body(incoming, route.shape)
    call = Call(
        node=node,
        caller=caller,
        path=incoming.parameters,
        query=values,
        body=body,
        headers=incoming.headers,
        origin=incoming.origin,
        now_us=node.clock.now_us(),
        due_us=node.clock.due_us(),
    )
    if isinstance(route, LiveRoute):
        return await _live(node, route, call)
    if route.is_report:
        owner, within_s = caller.organization_id, node.settings.timeouts.report_s
        return await node.store.reports.read(owner, within_s, _report, route.handler, call)
    if route.reads or incoming.method == "GET":
        return _reply(await node.store.read(route.handler, call))
    if route.before is not None:
        await route.before(call)
    claim = _claim(incoming, caller, data)
    try:
        return await node.store.write(_act, route.handler, call, route.action, claim)
    finally:
        _forget(node)


async def perform_open(node: Node, route: OpenRoute, incoming: Incoming) -> Reply:
    """Serve a request that brings its own credential; one that fits nothing counts against the address."""
    query.read(incoming.query, route.query)
    _, body = _body(incoming, route.shape)
    call = OpenCall(node=node, body=body, origin=incoming.origin, now_us=node.clock.now_us())
    try:
        if route.reads:
            return _reply(await node.store.read(route.handler, call))
        assert route.action is not None
        return await node.store.write(_act_open, route.handler, call, route.action)
    except NotFound as error:
        node.authenticator.count_failure(incoming.address, error)
        raise
    finally:
        if not route.reads:
            _forget(node)


async def _live(node: Node, route: LiveRoute, call: Call) -> Reply:
    answer = await route.handler(call)
    if route.action is not None:
        await node.store.write(_note, call, route.action, answer)
        _forget(node)
    return _reply(answer)


def _report(connection: Connection, handler: Handler, call: Call) -> Reply:
    """A long answer is put into bytes where it was read."""
    return _reply(handler(connection, call))


def _act(
    connection: Connection,
    handler: Handler,
    call: Call,
    action: str | None,
    claim: idempotency.Claim | None,
) -> Reply:
    if claim is not None:
        first = idempotency.begin(connection, claim, now_us=call.now_us)
        if first is not None:
            return Reply(status=first.status, body=first.body, replayed=True)
    answer = handler(connection, call)
    reply = _reply(answer)
    if action is not None:
        _note(connection, call, action, answer)
    if claim is not None:
        kept = reply.body if answer.replay is None else msgspec.json.encode(answer.replay)
        idempotency.finish(connection, claim, status=answer.status, body=kept, now_us=call.now_us)
    return reply


def _act_open(connection: Connection, handler: OpenHandler, call: OpenCall, action: str) -> Reply:
    answer = handler(connection, call)
    _note(connection, call, action, answer)
    return _reply(answer)


def _note(connection: Connection, call: Call | OpenCall, action: str, answer: Answer) -> None:
    """The audit line of a request, in the transaction of what it changed: the only place that writes one."""
    if answer.subject is None:
        return
    caller = call.caller if isinstance(call, Call) else None
    details = dict(answer.details)
    if call.origin.by_page:
        details["origin"] = "page"
    audit.record(
        connection,
        answer.actor or caller,
        action,
        *answer.subject,
        details,
        organization_id=answer.organization_id,
        origin=call.origin,
        now_us=call.now_us,
    )


def _reply(answer: Answer) -> Reply:
    return Reply(
        status=answer.status, body=msgspec.json.encode(answer.body), replayed=answer.replayed
    )


def _forget(node: Node) -> None:
    node.authenticator.forget()
    node.state.forget()


def _claim(incoming: Incoming, caller: Caller, data: bytes) -> idempotency.Claim | None:
    name = incoming.headers.get("idempotency-key") if incoming.method == "POST" else None
    if name is None:
        return None
    return idempotency.claim(
        key_id=caller.key_id, name=name, method=incoming.method, path=incoming.path, body=data
    )


def _body(incoming: Incoming, shape: type[Any] | None) -> tuple[bytes, Any]:
    """The bytes as the client meant them, and what they say."""
    data = decoded_body(incoming.body, incoming.headers, max_bytes=MAX_MANAGEMENT_BYTES)
    return data, None if shape is None else strict(data, shape)


async def _question(node: Node, incoming: Incoming, shape: type[Any] | None) -> Any:
    """What a body says beside the request that it holds; a large one is read beside the event loop."""
    max_bytes = node.settings.limits.request_body_max_bytes
    size = max_bytes if "content-encoding" in incoming.headers else len(incoming.body)

    def read() -> Any:
        assert shape is not None
        return around(decoded_body(incoming.body, incoming.headers, max_bytes=max_bytes), shape)

    return await node.line.offload.run(size, read)
