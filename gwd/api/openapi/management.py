"""The routes of the table as operations."""

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from gwd.api.access import Access
from gwd.api.openapi import statuses
from gwd.api.openapi.statuses import EVERY_KEY, EVERY_REQUEST, References
from gwd.api.openapi.words import PARAMETERS, tag_of
from gwd.api.query import Query
from gwd.api.route import LiveRoute, OpenRoute, Route
from gwd.orgs import rights

Json = dict[str, Any]
AnyRoute = Route | LiveRoute | OpenRoute
SECURITY: Final[list[Json]] = [{"bearer": []}, {"x_api_key": []}]
FOUND: Final = "It was there already; nothing was made or booked."
_PARAMETER: Final = re.compile(r"<([a-z]+)(?::[a-z]+)?>")
_REQUEST_ID: Final[Json] = {
    "x-request-id": {
        "description": "The request, for questions about it.",
        "schema": {"type": "string"},
    }
}
_IDEMPOTENCY_KEY: Final[Json] = {
    "name": "idempotency-key",
    "in": "header",
    "description": "A name of your own for this request: a repetition with the same name and body changes nothing and"
    " gets the first answer, without secrets.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}


def types(routes: Iterable[AnyRoute]) -> list[Any]:
    """Every type that a body or an answer has."""
    return [each for route in routes for each in (route.shape, route.answers) if each is not None]


def operations(
    routes: Iterable[AnyRoute], references: References
) -> Iterator[tuple[str, str, Json]]:
    """(path, method, operation) of each."""
    taken: set[str] = set()
    for route in routes:
        name = _name(route, taken)
        taken.add(name)
        yield (
            _PARAMETER.sub(r"{\1}", route.path),
            route.method.lower(),
            _operation(route, name, references),
        )


def _operation(route: AnyRoute, name: str, references: References) -> Json:
    summary, _, more = (inspect.getdoc(route.handler) or "").partition("\n")
    operation: Json = {
        "operationId": name,
        "tags": [tag_of(route.path)],
        "summary": " ".join(summary.split()),
        "description": "\n\n".join(
            part for part in (" ".join(more.split()), who_may(route.access)) if part
        ),
        "parameters": _parameters(route),
    }
    if route.shape is not None:
        operation["requestBody"] = {
            # A body that is absent is read as {}.
            "required": bool(_required(route.shape)),
            "content": {"application/json": {"schema": references[route.shape]}},
        }
    shown = references[route.answers]
    success: Json = {
        "description": "Done." if route.method != "GET" else "What was asked for.",
        "headers": _REQUEST_ID,
        "content": {"application/json": {"schema": shown}},
    }
    operation["responses"] = {
        str(route.status): success,
        **({} if route.also is None else {str(route.also): {**success, "description": FOUND}}),
        **statuses.responses(error_statuses(route)),
    }
    operation["security"] = [] if route.access.is_public else SECURITY
    if route.access.right is not None:
        operation["x-right"] = route.access.right
    operation["x-keys"] = sorted(route.access.kinds)
    return operation


def error_statuses(route: AnyRoute) -> set[int]:
    """The statuses of the errors that a route can answer."""
    found = {*EVERY_REQUEST, *route.fails}
    if isinstance(route, OpenRoute):
        found.add(429)
    elif not route.access.is_public:
        found.update(EVERY_KEY)
    if "<" in route.path:
        found.add(404)
    if _claims(route):
        found.add(409)
    return found


def who_may(access: Access) -> str:
    """The keys and roles that may call, in a sentence."""
    if access.is_public:
        return "Needs no key."
    if access.right is None:
        return "Needs a key, of any kind."
    roles = ", ".join(
        role if reach == "all" else f"{role} ({_REACHES[reach]})"
        for role, reach in rights.holders(access.right).items()
    )
    other = "An inference key may call it, too. " if "inference" in access.kinds else ""
    return f"Needs a management key with the right `{access.right}`: {roles}. {other}".strip()


_REACHES: Final = {"own": "one's own", "workspace": "of the key's workspace"}


def _claims(route: AnyRoute) -> bool:
    """Whether an Idempotency-Key is looked at."""
    return isinstance(route, Route) and route.method == "POST" and not route.reads


def _parameters(route: AnyRoute) -> list[Json]:
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, **PARAMETERS[name]}
        for name in _PARAMETER.findall(route.path)
    ]
    parameters += map(query_parameter, route.query)
    if _claims(route):
        parameters.append(_IDEMPOTENCY_KEY)
    return parameters


def query_parameter(query: Query) -> Json:
    """A query parameter, with its default."""
    schema = query.kind.schema
    if query.default is not None:
        schema = {**schema, "default": query.default}
    return {
        "name": query.name,
        "in": "query",
        "required": query.required,
        "description": query.about,
        "schema": schema,
    }


def _required(shape: type) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(shape) if field.required]


def _name(route: AnyRoute, taken: set[str]) -> str:
    """`keys_create` of the handler `create` in `keys`; where a handler serves a second path, that path is added."""
    module = route.handler.__module__.rpartition(".")[2]
    name = f"{module}_{route.handler.__name__.strip('_')}"
    if name in taken:
        name = f"{name}_at{re.sub('[^a-z]+', '_', route.path)}".rstrip("_")
    return name
