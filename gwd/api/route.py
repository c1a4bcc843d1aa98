"""What a route says of itself: where it is, who may call it, what it takes, and the name of its audit line.

`path` is relative to the base path, its parameters in `<angle brackets>`. `query` are the only query parameters it
takes. `action` names the audit line of what changes something. `answers` is the type of a success's whole body,
`status` its status, and `also` another one where a POST found what it would have made. `fails` are statuses of errors
beside those that every route of its kind has (`gwd.api.openapi.management`).
"""

from functools import partial
from typing import Any, Final

import msgspec

from gwd.api.access import PUBLIC, Access
from gwd.api.management import Check, Handler, LiveHandler, OpenHandler
from gwd.api.query import DEFAULT_LIMIT, OFFSET, PAGING, PLACES, Query, limit


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Served by one function in one transaction: GET and `reads` on a reader, the rest on the writer.

    What `is_report` may take long, and is read beside the others, with an end.
    `before` looks outside ahead of the transaction, such as at what a name resolves to; it may refuse and changes
    nothing.
    """

    method: str
    path: str
    access: Access
    handler: Handler
    query: tuple[Query, ...] = ()
    shape: type | None = None
    action: str | None = None
    answers: Any
    status: int = 200
    also: int | None = None
    fails: tuple[int, ...] = ()
    reads: bool = False
    is_report: bool = False
    before: Check | None = None


class LiveRoute(msgspec.Struct, frozen=True, kw_only=True):
    """Served on the loop: it looks at the running node or calls out.

    One that `reads` is a POST that changes nothing; so is one that `asks`, whose body holds a request to a model, as
    long as those may be.
    """

    method: str
    path: str
    access: Access
    handler: LiveHandler
    query: tuple[Query, ...] = ()
    shape: type | None = None
    action: str | None = None
    reads: bool = False
    asks: bool = False
    answers: Any
    status: int = 200
    also: int | None = None
    fails: tuple[int, ...] = ()


class OpenRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A POST without a key: the body carries the credential, and wrong ones count as failed attempts.

    One that `reads` changes nothing.
    """

    method: str
    path: str
    handler: OpenHandler
    shape: type
    action: str | None = None
    reads: bool = False
    query: tuple[Query, ...] = ()
    access: Access = PUBLIC
    answers: Any
    status: int = 200
    also: int | None = None
    fails: tuple[int, ...] = ()


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a POST that needs none."""


def get(
    path: str,
    access: Access,
    handler: Handler,
    *query: Query,
    answers: Any,
    fails: tuple[int, ...] = (),
) -> Route:
    return Route(
        method="GET",
        path=path,
        access=access,
        handler=handler,
        query=query,
        answers=answers,
        fails=fails,
    )


def list_(
    path: str,
    access: Access,
    handler: Handler,
    *query: Query,
    answers: Any,
    fails: tuple[int, ...] = (),
) -> Route:
    """A GET of many, in pages."""
    return get(path, access, handler, *PAGING, *query, answers=answers, fails=fails)


def walk(
    path: str,
    access: Access,
    handler: Handler,
    *query: Query,
    page: int = DEFAULT_LIMIT,
    answers: Any,
    fails: tuple[int, ...] = (),
) -> Route:
    """A GET of many that grow at their head: in pages, or on from a place that an answer named."""
    return get(
        path, access, handler, limit(page), OFFSET, *PLACES, *query, answers=answers, fails=fails
    )


def ask(
    path: str,
    access: Access,
    handler: Handler,
    shape: type,
    *,
    answers: Any,
    fails: tuple[int, ...] = (),
) -> Route:
    """A POST that changes nothing."""
    return Route(
        method="POST",
        path=path,
        access=access,
        handler=handler,
        shape=shape,
        reads=True,
        answers=answers,
        fails=fails,
    )


def report(
    path: str,
    access: Access,
    handler: Handler,
    *query: Query,
    shape: type | None = None,
    answers: Any,
) -> Route:
    """A question that may take long: a GET, or a POST with a body that changes nothing."""
    return Route(
        method="GET" if shape is None else "POST",
        path=path,
        access=access,
        handler=handler,
        query=query,
        shape=shape,
        reads=True,
        is_report=True,
        answers=answers,
    )


def _changes(
    method: str,
    path: str,
    access: Access,
    handler: Handler,
    shape: type,
    action: str,
    *,
    answers: Any,
    status: int = 200,
    also: int | None = None,
    fails: tuple[int, ...] = (),
    before: Check | None = None,
) -> Route:
    return Route(
        method=method,
        path=path,
        access=access,
        handler=handler,
        shape=shape,
        action=action,
        answers=answers,
        fails=fails,
        status=status,
        also=also,
        before=before,
    )


post: Final = partial(_changes, "POST")
put: Final = partial(_changes, "PUT")
patch: Final = partial(_changes, "PATCH")


def delete(
    path: str,
    access: Access,
    handler: Handler,
    action: str,
    *query: Query,
    answers: Any,
    fails: tuple[int, ...] = (),
) -> Route:
    return Route(
        method="DELETE",
        path=path,
        access=access,
        handler=handler,
        action=action,
        query=query,
        answers=answers,
        fails=fails,
    )
