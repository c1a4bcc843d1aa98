"""How a management request runs: one synchronous function in one transaction, with audit line and idempotent reply.

A handler is a function of a `Connection` and a `Call`; it returns an `Answer` or raises a GatewayError. GET runs on a
reader; everything else on the writer, and afterwards caches that may hold what it changed are emptied.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gwd.api.bodies import MAX_MANAGEMENT_BYTES, strict, unpacked
from gwd.api.node import Node
from gwd.audit import service as audit
from gwd.audit.service import Origin
from gwd.core.caller import Caller
from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import InvalidValue, UnknownParameter
from gwd.replay import idempotency
from gwd.store import Connection

MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 50


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One management request, authenticated and read. `path` are the path's parameters, `query` the query's."""

    node: Node
    caller: Caller
    path: dict[str, str]
    query: dict[str, str]
    body: Any
    now_us: int

    @property
    def organization_id(self) -> str:
        return self.caller.organization_id

    def allow(self, *names: str) -> None:
        """Refuse query parameters that the route does not know."""
        for name in self.query:
            if name not in names and name not in ("limit", "offset"):
                raise UnknownParameter(
                    f"unknown query parameter `{name}`; check its spelling", param=name
                )

    def page(self, *, default: int = DEFAULT_LIMIT) -> tuple[int, int]:
        """(limit, offset) of a list."""
        limit = self._whole("limit", default)
        offset = self._whole("offset", 0)
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidValue(f"`limit` must be from 1 to {MAX_LIMIT}", param="limit")
        return limit, offset

    def flag(self, name: str) -> bool:
        """A boolean query parameter, false when absent."""
        text = self.query.get(name, "false").lower()
        if text not in ("true", "false", "1", "0"):
            raise InvalidValue(f"`{name}` must be true or false", param=name)
        return text in ("true", "1")

    def moment(self, name: str) -> int | None:
        """A time of the query in microseconds."""
        text = self.query.get(name)
        if text is None:
            return None
        try:
            return us_from_iso(text.replace(" ", "+"))
        except TimeError as error:
            raise InvalidValue(f"`{name}` {error}", param=name) from None

    def _whole(self, name: str, default: int) -> int:
        text = self.query.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise InvalidValue(f"`{name}` must be a whole number", param=name)
        return int(text)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler gives back. `subject` (type, id) and `details` go into the audit line of a write.

    `replay` is the body that a repetition with the same Idempotency-Key gets, where it differs: secrets are not kept.
    """

    body: Any
    status: int = 200
    subject: tuple[str, str | None] | None = None
    details: Mapping[str, Any] = {}
    replay: Any = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Status and bytes for the client."""

    status: int
    body: bytes
    replayed: bool = False


Handler = Callable[[Connection, Call], Answer]


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A management request as HTTP has it."""

    method: str
    path: str
    parameters: dict[str, str]
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes
    address: str
    request_id: str


def one(record: Any) -> Answer:
    """A single record under `data`."""
    return Answer(body={"data": record})


def listed(records: list[Any], total: int) -> Answer:
    """A list with the count of all."""
    return Answer(body={"data": records, "total_count": total})


def deleted(kind: str, identifier: str) -> Answer:
    """The reply of a DELETE."""
    return Answer(body={"deleted": True, "id": identifier}, subject=(kind, identifier))


async def perform(
    node: Node,
    handler: Handler,
    incoming: Incoming,
    caller: Caller,
    *,
    shape: type | None,
    action: str | None,
    reads: bool = False,
) -> Reply:
    """Run a handler: read its body strictly, replay or remember a keyed POST, write the audit line.

    `reads` marks a POST that changes nothing and runs on a reader.
    """
    data = unpacked(incoming.body, incoming.headers, max_bytes=MAX_MANAGEMENT_BYTES)
    call = Call(
        node=node,
        caller=caller,
        path=incoming.parameters,
        query=incoming.query,
        body=strict(data, shape) if shape is not None else None,
        now_us=node.clock.now_us(),
    )
    if reads or incoming.method == "GET":
        answer = await node.store.read(handler, call)
        return Reply(status=answer.status, body=msgspec.json.encode(answer.body))
    name = incoming.headers.get("idempotency-key") if incoming.method == "POST" else None
    claim = None
    if name is not None:
        claim = idempotency.claim(
            key_id=caller.key_id,
            name=name,
            method=incoming.method,
            path=incoming.path,
            body=data,
        )
    origin = Origin(address=incoming.address, request_id=incoming.request_id)
    try:
        return await node.store.write(_act, handler, call, action, claim, origin)
    finally:
        node.authenticator.forget()
        node.state.forget()


def _act(
    connection: Connection,
    handler: Handler,
    call: Call,
    action: str | None,
    claim: idempotency.Claim | None,
    origin: Origin,
) -> Reply:
    if claim is not None:
        first = idempotency.begin(connection, claim, now_us=call.now_us)
        if first is not None:
            return Reply(status=first.status, body=first.body, replayed=True)
    answer = handler(connection, call)
    body = msgspec.json.encode(answer.body)
    if action is not None and answer.subject is not None:
        audit.record(
            connection,
            call.caller,
            action,
            answer.subject[0],
            answer.subject[1],
            dict(answer.details),
            origin=origin,
            now_us=call.now_us,
        )
    if claim is not None:
        kept = body if answer.replay is None else msgspec.json.encode(answer.replay)
        idempotency.finish(connection, claim, status=answer.status, body=kept, now_us=call.now_us)
    return Reply(status=answer.status, body=body)
