"""Schemas in OpenAPI's form as Google's format has it: to JSON Schema, which every vendor reads.

Types are in capitals, whole numbers may be texts (they are 64 bits long), and the order of properties is a list beside
them.
"""

from typing import Any, Final

from gwd.dialects.gemini.casing import camel
from gwd.dialects.schemas import Schema, modern

_ORDER: Final = "propertyOrdering"
_COUNTS: Final = frozenset(
    ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
)


def json_schema(schema: Schema | None) -> Schema | None:
    """The schema as JSON Schema of draft 2020-12."""
    return modern(_plain(schema)) if schema is not None else None


def _plain(schema: Schema) -> Schema:
    found: Schema = {}
    for written, value in schema.items():
        name = camel(written)
        match value:
            case dict() if name in ("properties", "$defs", "defs"):
                found[name] = {key: _inside(each) for key, each in value.items()}
            case str() if name in _COUNTS and value.isascii() and value.isdigit():
                found[name] = int(value)
            case dict() | list() if name not in ("enum", "default", "example", "required"):
                found[name] = _inside(value)
            case _:
                found[name] = value
    return _ordered(found)


def _inside(value: Any) -> Any:
    match value:
        case dict():
            return _plain(value)
        case list():
            return [_inside(each) for each in value]
        case _:
            return value


def _ordered(schema: Schema) -> Schema:
    """The properties in the order that is asked for, which no other format has a keyword for."""
    order = schema.pop(_ORDER, None)
    properties = schema.get("properties")
    if isinstance(order, list) and isinstance(properties, dict):
        first = [name for name in order if isinstance(name, str) and name in properties]
        schema["properties"] = {name: properties[name] for name in (*first, *properties)}
    return schema
