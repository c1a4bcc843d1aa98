"""Checks of plain fields that chat completions, responses and embeddings have in common, with their wordings."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gwd.demo.refusals import RefusedError
from gwd.demo.wire import Json, as_list, as_object, is_whole_number
from tests.vendor.schema_shape import misshapen

FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_NAME = 64
_ARTICLES = "aeiou"


def invalid_type(param: str, expected: str, value: object) -> RefusedError:
    got = kind_of(value)
    article = "an" if got[0] in _ARTICLES else "a"
    found = "null" if value is None else f"{article} {got}"
    return RefusedError(
        f"Invalid type for '{param}': expected {expected}, but got {found} instead.",
        code="invalid_type",
        param=param,
    )


def invalid_value(param: str, value: object, supported: Iterable[str]) -> RefusedError:
    listed = ", ".join(f"'{one}'" for one in supported)
    return RefusedError(
        f"Invalid value: '{value}'. Supported values are: {listed}.",
        code="invalid_value",
        param=param,
    )


def missing(param: str) -> RefusedError:
    return RefusedError(
        f"Missing required parameter: '{param}'.", code="missing_required_parameter", param=param
    )


def unknown_parameter(param: str) -> RefusedError:
    return RefusedError(f"Unknown parameter: '{param}'.", code="unknown_parameter", param=param)


def empty_array(param: str) -> RefusedError:
    return RefusedError(
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty "
        "array instead.",
        code="empty_array",
        param=param,
    )


def unsupported(param: str, remedy: str = "") -> RefusedError:
    return RefusedError(
        f"Unsupported parameter: '{param}' is not supported with this model.{remedy}",
        code="unsupported_parameter",
        param=param,
    )


def kind_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "decimal"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def known_keys(value: Json, allowed: frozenset[str], path: str) -> None:
    for name in value:
        if name not in allowed:
            raise unknown_parameter(f"{path}.{name}")


def need_text(value: object, param: str) -> str:
    if not isinstance(value, str):
        raise invalid_type(param, "a string", value)
    return value


def need_object(value: object, param: str) -> Json:
    if not isinstance(value, dict):
        raise invalid_type(param, "an object", value)
    return value


def need_list(value: object, param: str) -> list[Any]:
    if not isinstance(value, list):
        raise invalid_type(param, "an array", value)
    return value


def check_boolean(body: Json, name: str) -> None:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise invalid_type(name, "a boolean", value)


def check_number(body: Json, name: str, low: float, high: float) -> None:
    value = body.get(name)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid_type(name, "a decimal", value)
    if not low <= value <= high:
        side, sign, limit = ("below minimum", ">=", low)
        if value > high:
            side, sign, limit = ("above maximum", "<=", high)
        word = side.split()[0]
        raise RefusedError(
            f"Invalid '{name}': decimal {side} value. Expected a value {sign} {limit:g}, but got "
            f"{value} instead.",
            code=f"decimal_{word}_{'max' if value > high else 'min'}_value",
            param=name,
        )


def check_at_least(body: Json, name: str, low: int) -> None:
    value = body.get(name)
    if value is None:
        return
    if not is_whole_number(value):
        raise invalid_type(name, "an integer", value)
    if value < low:
        raise RefusedError(
            f"Invalid '{name}': integer below minimum value. Expected a value >= {low}, but got "
            f"{value} instead.",
            code="integer_below_min_value",
            param=name,
        )


def check_length(text: str, most: int, param: str) -> None:
    if len(text) > most:
        raise RefusedError(
            f"Invalid '{param}': string too long. Expected a string with maximum length {most}, but got "
            f"a string with length {len(text)} instead.",
            code="string_above_max_length",
            param=param,
        )


def check_function(function: Json, path: str) -> None:
    """Name and parameters of a function tool."""
    if "name" not in function:
        raise missing(f"{path}.name")
    check_name(need_text(function["name"], f"{path}.name"), f"{path}.name")
    parameters = function.get("parameters")
    if parameters is None:
        return
    parameters = need_object(parameters, f"{path}.parameters")
    if parameters.get("type", "object" if not parameters else None) != "object":
        raise RefusedError(
            f"Invalid schema for function '{function['name']}': schema must be a JSON Schema of "
            f"'type: \"object\"', got 'type: \"{parameters.get('type')}\"'.",
            code="invalid_function_parameters",
            param=f"{path}.parameters",
        )
    check_schema(
        parameters,
        strict=function.get("strict") is True,
        whose=f"function '{function['name']}'",
        code="invalid_function_parameters",
        param=f"{path}.parameters",
    )


def check_name(name: str, param: str) -> None:
    check_length(name, _MAX_NAME, param)
    if not FUNCTION_NAME.fullmatch(name):
        raise RefusedError(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches the "
            "pattern '^[a-zA-Z0-9_-]+$'.",
            code="invalid_value",
            param=param,
        )


def check_schema(schema: Json, *, strict: bool, whose: str, code: str, param: str) -> None:
    """Arrays need items; a strict object lists every property as required and closes itself."""
    if (wrong := misshapen(schema)) is not None:
        raise RefusedError(f"Invalid schema for {whose}: {wrong}.", code=code, param=param)
    for part, where in _parts_of(schema, ()):
        fault = _array_fault(part) or (_strict_fault(part) if strict else None)
        if fault is not None:
            raise RefusedError(
                f"Invalid schema for {whose}: In context={where}, {fault}", code=code, param=param
            )


def _array_fault(part: Json) -> str | None:
    if part.get("type") == "array" and "items" not in part and "prefixItems" not in part:
        return "array schema missing items."
    return None


def _strict_fault(part: Json) -> str | None:
    if part.get("type") != "object":
        return None
    if part.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    required = as_list(part.get("required"))
    for name in as_object(part.get("properties")):
        if name not in required:
            return (
                "'required' is required to be supplied and to be an array including every key in "
                f"properties. Missing '{name}'."
            )
    return None


def _parts_of(schema: Json, where: tuple[str, ...]) -> Iterator[tuple[Json, tuple[str, ...]]]:
    """The schema and every schema inside it, each with the way to it."""
    yield schema, where
    inner = [
        ((word, name), part)
        for word in ("properties", "$defs")
        for name, part in as_object(schema.get(word)).items()
    ]
    inner += [
        ((word, str(index)), part)
        for word in ("anyOf", "oneOf", "allOf")
        for index, part in enumerate(as_list(schema.get(word)))
    ]
    inner.append((("items", ""), schema.get("items")))
    for names, part in inner:
        if isinstance(part, dict):
            yield from _parts_of(part, (*where, *(name for name in names if name)))
