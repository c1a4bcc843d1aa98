"""Client bytes to values, once, with errors that name the field; every inference body is read here.

A body is decoded to plain values first and converted to its typed shape second, so that fields the shape does not
know are still at hand (`extras`).
"""

import re
from typing import Any, Final, TypeVar

import msgspec

from gwd.core.errors import (
    InvalidJson,
    InvalidRequest,
    InvalidValue,
    MissingParameter,
)
from gwd.core.structure import MAX_DEPTH, has_too_many_elements, is_too_deep, may_be_too_deep

_MAX_EXACT: Final = 2.0**53
_BOM: Final = b"\xef\xbb\xbf"
_AT: Final = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_MISSING: Final = re.compile(r"missing required field `(?P<field>[^`]+)`")

T = TypeVar("T")


def load(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises InvalidJson or InvalidRequest; never anything else."""
    body = body.removeprefix(_BOM)
    if has_too_many_elements(body):
        raise InvalidRequest("the body has too many elements; send fewer, larger ones")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidJson(f"the body is not valid JSON: {_reason(error)}") from None
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be a JSON object")
    if may_be_too_deep(body) and is_too_deep(value):
        raise InvalidRequest(f"the body is nested too deeply; at most {MAX_DEPTH} levels")
    return value


def typed(value: object, shape: type[T], *, strict: bool = True) -> T:
    """`value` as `shape`; not `strict`, a number may be a text.

    Raises MissingParameter or InvalidValue with `param` set to the field's path.
    """
    try:
        try:
            return msgspec.convert(value, shape, strict=strict)
        except msgspec.ValidationError as error:
            if "got `float`" not in str(error):
                raise
            return msgspec.convert(_whole(value), shape, strict=strict)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def typed_at(path: str, value: object, shape: type[T]) -> T:
    """`value` as `shape`. Raises what `typed` raises, with `path` in front of the field's own."""
    try:
        return typed(value, shape)
    except InvalidRequest as error:
        if error.param:
            raise type(error)(
                error.message.replace(f"`{error.param}`", f"`{path}.{error.param}`", 1),
                param=f"{path}.{error.param}",
            ) from None
        raise type(error)(f"`{path}`: {error.message}", param=path) from None


def extras(value: dict[str, Any], known: frozenset[str]) -> dict[str, Any] | None:
    """The fields that the typed shape does not know, or None."""
    if value.keys() <= known:
        return None
    return {name: field for name, field in value.items() if name not in known}


def field_names(shape: type[msgspec.Struct]) -> frozenset[str]:
    """The JSON names a shape knows, its tag included."""
    info = msgspec.structs.fields(shape)
    tag = shape.__struct_config__.tag_field
    return frozenset(field.encode_name for field in info) | ({tag} if tag else frozenset())


def _whole(value: Any) -> Any:
    """The value with 100.0 as 100: languages with one kind of number write whole ones so."""
    match value:
        case dict():
            return {name: _whole(field) for name, field in value.items()}
        case list():
            return [_whole(item) for item in value]
        case float() if value.is_integer() and abs(value) < _MAX_EXACT:
            return int(value)
        case _:
            return value


def _invalid(text: str) -> InvalidRequest:
    found = _AT.search(text)
    path = found["path"] if found else ""
    what = text[: found.start()] if found else text
    missing = _MISSING.search(what)
    if missing:
        name = f"{path}.{missing['field']}" if path else missing["field"]
        return MissingParameter(f"`{name}` is required", param=name)
    return InvalidValue(f"`{path}`: {what}" if path else what, param=path or None)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error)
