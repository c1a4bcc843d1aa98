"""gwctl/schema.json: what gwctl knows of the API's fields, made from the document that a node serves."""

import json
import re
from collections.abc import Iterator
from typing import Any

from gwd.api.openapi import document

Json = dict[str, Any]


def page() -> str:
    """The file: a line for each route and each record, so that a change of one is a change of one line."""
    written = document()
    schemas = written["components"]["schemas"]
    routes = {
        f"{method.upper()} {re.sub('{[a-z]+}', '{}', path)}": _taken_and_answered(
            operation, schemas
        )
        for path, methods in written["paths"].items()
        for method, operation in methods.items()
        if operation["tags"] != ["inference"]
    }
    names: dict[str, Json] = {}
    waiting = [name for pair in routes.values() for name in pair if name]
    while waiting:
        name = waiting.pop()
        if name not in names:
            properties = schemas[name].get("properties", {})
            words = {field: _word(shape, schemas) for field, shape in properties.items()}
            names[name] = words
            waiting += [each for word in words.values() for each in re.findall(r"@([\w.]+)", word)]
    parts = (_lines("routes", routes), _lines("records", dict(sorted(names.items()))))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(title: str, rows: Json) -> str:
    lines = [f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    return f'  "{title}": {{\n' + ",\n".join(lines) + "\n  }"


def _taken_and_answered(operation: Json, schemas: Json) -> list[str]:
    """The names of the body and of the record under `data`, or of the whole answer that has none."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    answers = next(
        said["content"]["application/json"]["schema"]
        for status, said in operation["responses"].items()
        if status.startswith("2")
    )
    name = _name(answers)
    data = schemas.get(name, {}).get("properties", {}).get("data", {})
    return [_name(body.get("schema", {})), _name(data.get("items", data)) or name]


def _name(schema: Json) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _word(schema: Json, schemas: Json) -> str:
    """A field in a word, as gwctl/schema.py reads it."""
    if "anyOf" in schema:
        kinds = [_word(each, schemas) for each in schema["anyOf"]]
        real = next((kind for kind in kinds if kind != "null"), "text")
        return f"{real}?" if "null" in kinds else real
    if name := _name(schema):
        return f"@{name}" if "properties" in schemas[name] else _word(schemas[name], schemas)
    if "x-kind" in schema:
        return str(schema["x-kind"])
    match schema.get("type"):
        case "array":
            return f"[{_word(schema.get('items', {}), schemas)}]"
        case "integer" | "boolean" | "object" | "null" as kind:
            return str(kind)
        case "number" | ["number", "string"]:
            return "number"
        case _:
            return "text"


def kinds() -> Iterator[str]:
    """Every kind of field that the document names."""
    yield from set(re.findall(r'"x-kind": "(\w+)"', json.dumps(document())))
