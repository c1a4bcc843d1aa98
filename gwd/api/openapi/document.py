"""The whole document: what the API is, its operations by path, its schemas."""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import msgspec

from gwd import __version__
from gwd.api.openapi import inference, management, statuses
from gwd.api.openapi.words import TAGS
from gwd.api.routes import LIVE_ROUTES, OPEN_ROUTES, ROUTES

Json = dict[str, Any]
ABOUT: Final = (
    "Inference in six dialects, and the management of keys, money, people and the catalog. Amounts are US dollars"
    " and exact; times are ISO 8601 in UTC. The base path is `/api/v1`; `/v1` serves the same. A body is JSON; an"
    " unknown field of a management body is an error, and so is an unknown query parameter. Errors have one shape,"
    " which says what is wrong and what would fix it; the dialects messages and gemini have their own. What begins with"
    " `/models/{model}:` is served below `/v1beta` and `/api/v1beta`, too."
)
_SECURITY: Final[Json] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of the gateway: gwi_… for inference, gwm_… for management.",
    },
    "x_api_key": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "The same key in the header that clients of the messages dialect send.",
    },
    "x_goog_api_key": {
        "type": "apiKey",
        "in": "header",
        "name": "x-goog-api-key",
        "description": "The same key in the header that Google's clients send.",
    },
}


BASE_PATH: Final = "/api/v1"


@cache
def encoded(base_path: str = BASE_PATH) -> bytes:
    """The document as it is served."""
    return msgspec.json.encode(document(base_path))


def document(base_path: str = BASE_PATH) -> Json:
    """The document; `base_path` is that of the API as clients see it."""
    routes: tuple[management.AnyRoute, ...] = (*ROUTES, *LIVE_ROUTES, *OPEN_ROUTES)
    schemas, references = _schemas(
        [*management.types(routes), *inference.types(), *statuses.types()]
    )
    _require_what_is_sent(
        schemas,
        answered=[references[route.answers] for route in routes],
        taken=[references[route.shape] for route in routes if route.shape is not None],
    )
    paths: dict[str, Json] = {}
    for path, method, operation in (
        *inference.operations(references),
        *management.operations(routes, references),
    ):
        assert method not in paths.get(path, {}), f"{method} {path} is there twice"
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gwd",
            "summary": "A self-hosted model gateway with a prepaid, exact, auditable ledger.",
            "description": ABOUT,
            "version": __version__,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_path}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": statuses.components(references),
            "securitySchemes": _SECURITY,
        },
    }


def _schemas(types: list[Any]) -> tuple[Json, dict[Any, Json]]:
    """The schemas of all structs by their names, and for each type the schema that stands for it."""
    distinct = list(dict.fromkeys(types))
    shown, components = msgspec.json.schema_components(
        distinct, ref_template="#/components/schemas/{name}"
    )
    names = {name: _short(name) for name in components}
    assert len(set(names.values())) == len(names), "two schemas have one name"
    schemas = {names[name]: _renamed(schema, names) for name, schema in components.items()}
    return dict(sorted(schemas.items())), {
        each: _renamed(schema, names) for each, schema in zip(distinct, shown, strict=True)
    }


def _require_what_is_sent(schemas: Json, *, answered: list[Json], taken: list[Json]) -> None:
    """Records are sent whole: what has a default in the code is there, too, unless a body has the same struct."""
    for name in _named(schemas, answered) - _named(schemas, taken):
        schema = schemas[name]
        fields = schema.get("properties", {})
        always = {*schema["required"], *(each for each in fields if "default" in fields[each])}
        schema["required"] = [each for each in fields if each in always]
        for each in fields.values():
            each.pop("default", None)


def _named(schemas: Json, values: Iterable[Any]) -> set[str]:
    """The schemas that are referred to, and those that they refer to."""
    found: set[str] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            name = str(value.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found.add(name)
                waiting.append(schemas[name])
    return found


def _short(name: str) -> str:
    """Two structs of one name are told apart by their modules: `gwd.dialects.messages.wire.X` is `messages.X` here."""
    *rooms, last = name.split(".")
    distinct = [room for room in rooms if room not in ("gwd", "dialects", "api", "wire", "service")]
    return ".".join([*distinct[:1], last.strip("_")])


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """The schema with its references by the new names, and prose without the line breaks of its source."""
    if isinstance(value, list | tuple):
        return [_renamed(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _renamed(each, names) for key, each in value.items()}
    reference = changed.get("$ref")
    if isinstance(reference, str):
        head, _, name = reference.rpartition("/")
        changed["$ref"] = f"{head}/{names[name]}"
    if changed.get("format") == "decimal":
        changed["type"] = ["number", "string"]  # a Decimal of a body is read from both
    _lift_description(changed)
    if isinstance(changed.get("description"), str):
        changed["description"] = prose(changed["description"])
    if isinstance(changed.get("title"), str):
        changed["title"] = names.get(changed["title"], _short(changed["title"]))
    return changed


def _lift_description(schema: Json) -> None:
    """What is said of a field that may be null, too, is said of the field."""
    said = [each for each in schema.get("anyOf", ()) if "description" in each]
    if len(said) == 1 and "description" not in schema:
        schema["description"] = said[0].pop("description")


def prose(text: str) -> str:
    """A docstring as paragraphs of one line each."""
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    return "\n\n".join(part for part in paragraphs if part)
