"""The written API as the tests' gateway keeps to it: its routes, what they take, whole answers out of partial ones."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from gwd.api.openapi import document
from tools.pages.errors import codes

Json = dict[str, Any]

KEY = "gwm_" + "m" * 43 + "ABCDEF"
SECRET = "gwi_6vR2" + "x" * 41 + "9Zq1"
MOMENT = "2026-11-01T00:00:00Z"
OK = range(200, 300)


class Untrue(AssertionError):
    """The script of a test, or a request of gwctl, that the written API does not know."""


@cache
def written() -> Json:
    return document()


@cache
def error_codes() -> Mapping[str, tuple[set[int], str]]:
    """Of each code the statuses it comes with, and the type of its error."""
    found: dict[str, tuple[set[int], str]] = {}
    for code, status, kind in codes():
        found.setdefault(code, (set(), kind.type))[0].add(status)
    return found


@dataclass(frozen=True)
class Route:
    """One operation of the document."""

    name: str
    operation: Json

    @property
    def successes(self) -> dict[int, Json]:
        """The schema of each good status, the usual one first."""
        return {
            int(status): said["content"]["application/json"]["schema"]
            for status, said in self.operation["responses"].items()
            if status.isdigit() and int(status) in OK
        }

    @property
    def event(self) -> Json | None:
        """The schema of an event, where the answer may be a stream of them."""
        content = self.operation["responses"]["200"]["content"]
        stream = content.get("text/event-stream")
        return None if stream is None else stream["schema"]["x-event"]

    @property
    def record(self) -> Json:
        """What the answer holds under `data`, one of them where it is a list."""
        data = resolved(next(iter(self.successes.values())))["properties"]["data"]
        return resolved(data["items"] if data.get("type") == "array" else data)

    @property
    def takes(self) -> Json | None:
        body = self.operation.get("requestBody")
        return None if body is None else body["content"]["application/json"]["schema"]

    def whole(self, status: int, body: Any) -> Any:
        """The answer with all that the daemon sends, not only what a test says; Untrue where it could not be so."""
        if status in OK:
            if status not in self.successes:
                raise Untrue(f"{self.name} does not answer {status}, but {list(self.successes)}")
            return checked(self.successes[status], body, f"the answer of {self.name}")
        known = self.operation["responses"]
        if str(status) not in known and f"{status // 100}XX" not in known:
            raise Untrue(f"{self.name} does not answer {status}, but {sorted(known)}")
        detail = body.get("error") if isinstance(body, dict) else None
        code = detail.get("code") if isinstance(detail, dict) else None
        if status not in error_codes().get(str(code), (set(), ""))[0]:
            raise Untrue(f"{self.name}: the gateway has no error {code} of status {status}")
        envelope = {"$ref": "#/components/schemas/ErrorEnvelope"}
        return checked(envelope, body, f"the error of {self.name}")

    def refused(self, query: Mapping[str, str], body: Any) -> str:
        """What the daemon would refuse of a request; empty where it is as written."""
        parameters = {p["name"]: p for p in self.operation["parameters"] if p["in"] == "query"}
        for name, text in query.items():
            if name not in parameters:
                return f"{self.name} has no query parameter {name}"
            for fault in faults(parameters[name]["schema"], _typed(parameters[name], text)):
                return f"{self.name}: query parameter {name}: {fault}"
        if self.takes is None:
            return "" if body in (None, {}) else f"{self.name} takes no body"
        shape = resolved(self.takes)
        if shape.get("additionalProperties") is False:
            for name in body or {}:
                if name not in shape["properties"]:
                    return f"{self.name} takes no field {name}"
        for fault in faults(self.takes, {} if body is None else body):
            return f"the body of {self.name}: {fault}"
        return ""


@cache
def _templates() -> list[tuple[re.Pattern[str], str, Json]]:
    """Paths as patterns, those that say most first. Only a model has slashes in its name."""
    found = []
    for path, methods in written()["paths"].items():
        pattern = re.escape(path).replace(r"\{model\}", ".+")
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", pattern)
        found.append((re.compile(pattern), path, methods))
    return sorted(found, key=lambda one: -len(re.sub(r"\{\w+\}", "", one[1])))


def route(method: str, path: str) -> Route:
    """The operation of a request; Untrue where the daemon has none."""
    for pattern, template, methods in _templates():
        if pattern.fullmatch(path) and method.lower() in methods:
            return Route(f"{method} {template}", methods[method.lower()])
    raise Untrue(f"the gateway has no route {method} {path}")


def resolved(schema: Json) -> Json:
    """The struct that a schema leads to."""
    if "allOf" in schema:
        return resolved(schema["allOf"][0])
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Json = written()["components"]["schemas"][reference.rpartition("/")[2]]
    return found


def checked(schema: Json, value: Any, where: str) -> Any:
    """The value filled up to what the schema says; Untrue with the field where it cannot be so."""
    filled = _filled(schema, value, where)
    for fault in faults(schema, filled):
        raise Untrue(f"{where}: {fault}")
    return filled


def faults(schema: Json, value: Any) -> Iterator[str]:
    plain = json.loads(json.dumps(value, default=float))
    validator = Draft202012Validator({**schema, "components": written()["components"]})
    for error in validator.iter_errors(plain):
        place = ".".join(str(part) for part in error.absolute_path)
        yield f"{place}: {error.message}" if place else error.message


def _filled(schema: Json, value: Any, where: str) -> Any:
    if "anyOf" in schema:
        fitting = [each for each in schema["anyOf"] if _may_be(resolved(each), value)]
        return _filled(fitting[0], value, where) if fitting else value
    shape = resolved(schema)
    if isinstance(value, list) and "items" in shape:
        return [_filled(shape["items"], each, f"{where}[{n}]") for n, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    fields, others = shape.get("properties", {}), shape.get("additionalProperties")
    if not fields and others is None:
        return value  # an object of any fields
    filled: Json = {}
    for name, given in value.items():
        if name in fields:
            filled[name] = _filled(fields[name], given, f"{where}: {name}")
        elif isinstance(others, dict):
            filled[name] = _filled(others, given, f"{where}: {name}")
        else:
            title = shape.get("title", "object")
            raise Untrue(f"{where}: {title} has no field {name}, but {', '.join(fields)}")
    for name in shape.get("required", ()):
        if name not in filled:
            filled[name] = _usual(fields[name])
    return filled


def _may_be(shape: Json, value: Any) -> bool:
    kinds = {
        "null": type(None), "object": dict, "array": list, "string": str, "boolean": bool,
        "integer": int, "number": (int, float),
    }  # fmt: skip
    kind = shape.get("type")
    if kind is None:
        return value is not None
    return isinstance(value, tuple(_flat(kinds[one] for one in _flat([kind]))))


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value


def _usual(schema: Json) -> Any:
    """What a field holds of which a test says nothing."""
    if "anyOf" in schema:
        kinds = [resolved(each) for each in schema["anyOf"]]
        return None if {"type": "null"} in kinds else _usual(schema["anyOf"][0])
    shape = resolved(schema)
    if "const" in shape or "enum" in shape:
        return shape.get("const", next(iter(shape.get("enum", ())), None))
    match shape.get("type"), shape.get("x-kind"):
        case "string", "moment":
            return MOMENT
        case "string", "usd_per_token" | "usd_each" | "factor":
            return "0"
        case "string", _:
            return "x" * shape.get("minLength", 0)
        case "integer" | "number", _:
            return shape.get("minimum", shape.get("exclusiveMinimum", -1) + 1)
        case "boolean", _:
            return False
        case "array", _:
            return []
        case "object", _:
            return _filled(schema, {}, "")
        case _:
            return None


def _typed(parameter: Json, text: str) -> Any:
    """The text of a query as what its schema speaks of."""
    kind = parameter["schema"].get("type")
    try:
        return json.loads(text) if kind in ("integer", "boolean", "number") else text
    except ValueError:
        return text
