"""What a management handler is given and gives back: a `Call` in, an `Answer` out, or a GatewayError.

A handler is a synchronous function of a `Connection` and a `Call` and runs in one transaction. A live handler runs on
the loop instead: it looks at the running node or calls out.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from gwd.api.node import Node
from gwd.api.shapes import Deleted, Listed, Noted, One, Walked
from gwd.audit.service import Origin
from gwd.core.caller import Caller
from gwd.core.errors import InvalidValue
from gwd.management.change import Change
from gwd.store import Connection

R = TypeVar("R")

Subject = tuple[str, str | None]
"""What an audit line is about: type and id."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One management request, authenticated and read.

    `path` are the path's parameters, `query` the query's values, `headers` those of the client, by lower-case name.
    """

    node: Node
    caller: Caller
    path: dict[str, str]
    query: dict[str, Any]
    body: Any
    headers: Mapping[str, str] = {}
    origin: Origin
    now_us: int
    due_us: int

    @property
    def organization_id(self) -> str:
        return self.caller.organization_id

    @property
    def change(self) -> Change:
        """Who changes something and when, for the use cases that span rooms."""
        return Change(actor=self.caller, now_us=self.now_us)

    def page(self) -> tuple[int, int]:
        """(limit, offset) of a list."""
        return self.query["limit"], self.query.get("offset", 0)

    def walk(self) -> "Walk":
        """The stretch of a list that grows at its head: by offset, or on from a place of an earlier answer."""
        limit, offset = self.page()
        after, before = self.query.get("after"), self.query.get("before")
        named = [name for name in ("after", "before", "offset") if name in self.query]
        if (after is not None or before is not None) and len(named) > 1:
            raise InvalidValue(
                f"`{named[0]}` and `{named[1]}` exclude each other: give one of them",
                param=named[0],
            )
        return Walk(limit=limit, offset=offset, after=after, before=before)


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a list that grows at its head: `limit` rows from an offset, or next to a place."""

    limit: int
    offset: int
    after: str | None
    before: str | None

    @property
    def size(self) -> int:
        """How many rows to read: one more than the page tells whether the list goes on."""
        return self.limit + 1

    def cut(self, rows: list[R]) -> tuple[list[R], bool]:
        """The page of `size` rows that were read, and whether the list goes on behind it."""
        if self.before is not None:
            return rows[-self.limit :], bool(rows)
        return rows[: self.limit], len(rows) > self.limit


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler gives back. `subject` (type, id) and `details` go into the audit line of a write.

    Without a subject nothing was changed, and no line is written. `organization_id` is whose line it is, and `actor`
    who acts, if not the caller's and the caller. `replay` is the body that a repetition with the same Idempotency-Key
    gets, where it differs: secrets are not kept. `replayed`: this is a repetition already, and nothing was changed.
    """

    body: Any
    status: int = 200
    subject: Subject | None = None
    details: Mapping[str, Any] = {}
    organization_id: str | None = None
    actor: Caller | None = None
    replay: Any = None
    replayed: bool = False


Handler = Callable[[Connection, Call], Answer]
LiveHandler = Callable[[Call], Awaitable[Answer]]
Check = Callable[[Call], Awaitable[None]]


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request without a key: what it carries is its credential."""

    node: Node
    body: Any
    origin: Origin
    now_us: int


OpenHandler = Callable[[Connection, OpenCall], Answer]


def one(
    record: Any,
    *,
    status: int = 200,
    subject: Subject | None = None,
    details: Mapping[str, Any] | None = None,
) -> Answer:
    """A single record under `data`; with a subject it was made or changed."""
    return Answer(body=One(data=record), status=status, subject=subject, details=details or {})


def noted(record: Any, notes: list[str], *, subject: Subject, details: Mapping[str, Any]) -> Answer:
    """A record that was changed, with what is to be said of it."""
    return Answer(body=Noted(data=record, notes=notes or UNSET), subject=subject, details=details)


def listed(records: list[Any], total: int) -> Answer:
    """A list with the count of all."""
    return Answer(body=Listed(data=records, total_count=total))


def walked(
    walk: Walk,
    rows: list[R],
    total: int | None,
    record: Callable[[R], Any],
    place: Callable[[R], str],
    *,
    reached: str | None = None,
) -> Answer:
    """A page of a list that grows at its head, with the places from which to go on.

    `next` (as `after`) leads to older rows and is null at the end; `previous` (as `before`) to what was added since.
    `reached` is the place where the look ended for a page that is not full and yet not the last.
    """
    page, goes_on = walk.cut(rows)
    older, newer = (reached, None) if walk.before is None else (None, reached)
    return Answer(
        body=Walked(
            data=[record(row) for row in page],
            total_count=total,
            next=place(page[-1]) if page and goes_on else older,
            previous=newer or (place(page[0]) if page else walk.before),
        )
    )


def deleted(
    kind: str,
    identifier: str | None,
    *,
    body: Deleted | None = None,
    details: Mapping[str, Any] | None = None,
) -> Answer:
    """The reply of a DELETE. Without an identifier there was nothing to delete, and nothing is noted.

    `body` is given where the answer says what became of things that hung on it.
    """
    return Answer(
        body=Deleted(id=identifier) if body is None else body,
        subject=None if identifier is None else (kind, identifier),
        details=details or {},
    )
