"""Request bodies: unpacked, measured, and for management read strictly: unknown and duplicate fields are errors."""

import json
import zlib
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec.inspect import DecimalType, Metadata, StructType, Type, UnionType, type_info

from gwd.api.limits import within
from gwd.core import numbers
from gwd.core.errors import (
    InvalidJson,
    InvalidRequest,
    InvalidValue,
    MissingParameter,
    RequestTooLarge,
    UnknownParameter,
    UnsupportedMediaType,
)

MAX_MANAGEMENT_BYTES: Final = 1024 * 1024
_WINDOW: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_BOM: Final = b"\xef\xbb\xbf"
_MAX_DIGITS: Final = 18  # what a column of the store and every calculation can hold
_MAX_EXPONENT: Final = 30
_NO_NUMBER: Final = Decimal("Infinity")  # stands for a number that was not even read

_Place = tuple[
    "_Place | None", str | int
]  # the field that holds a field, and its name or index there

T = TypeVar("T", bound=msgspec.Struct)


def decoded_body(body: bytes, headers: Mapping[str, str], *, max_bytes: int) -> bytes:
    """The body, decompressed. Raises RequestTooLarge (by its decompressed size) and UnsupportedMediaType."""
    content_type = headers.get("content-type", "")
    if content_type and _kind(content_type) in (
        "multipart/form-data",
        "application/x-www-form-urlencoded",
    ):
        raise UnsupportedMediaType("send JSON with content-type: application/json")
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        if len(body) > max_bytes:
            raise too_large(max_bytes)
        return body
    if encoding not in _WINDOW:
        raise UnsupportedMediaType(
            f"content-encoding `{encoding[:50]}` is not understood; use gzip, deflate or none"
        )
    try:
        return _inflate(body, _WINDOW[encoding], max_bytes)
    except zlib.error:
        if encoding != "deflate":
            raise InvalidRequest(f"the body is not valid {encoding}") from None
    try:
        return _inflate(body, -15, max_bytes)  # some clients send raw deflate under that name
    except zlib.error:
        raise InvalidRequest("the body is not valid deflate") from None


def strict(body: bytes, shape: type[T]) -> T:
    """A management body as `shape`. Raises the 400 that names the field."""
    if not body:
        body = b"{}"
    try:
        value = json.loads(
            body.removeprefix(_BOM).decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_int=_whole,
            parse_float=_decimal,
            parse_constant=_no_constants,
        )
        _check(value, None)
    except (UnicodeError, json.JSONDecodeError, RecursionError) as error:
        raise InvalidJson(f"the body is not valid JSON: {_reason(error)}") from None
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be a JSON object")
    for name in _number_fields(shape) & value.keys():
        if isinstance(value[name], str):
            value[name] = _number(value[name], name)
    try:
        return msgspec.convert(value, shape, strict=True)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), shape) from None


def around(body: bytes, shape: type[T]) -> T:
    """A body that holds a request to a model in a `Raw` field: that is left for its dialect to read.

    Raises the 400 that names the field.
    """
    try:
        return msgspec.json.decode(body.removeprefix(_BOM) or b"{}", type=shape)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), shape) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidJson(f"the body is not valid JSON: {error}") from None


def too_large(max_bytes: int) -> RequestTooLarge:
    """The 413 that says how much is taken."""
    return RequestTooLarge(f"the body is larger than {max_bytes} bytes; send less")


def _inflate(body: bytes, window: int, max_bytes: int) -> bytes:
    stream = zlib.decompressobj(window)
    data = stream.decompress(body, max_bytes + 1)
    if len(data) > max_bytes:
        raise too_large(max_bytes)
    if not stream.eof:
        raise zlib.error("truncated")
    return data


def _kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise InvalidRequest(f"`{twice}` is given twice", param=twice)
    return value


def _no_constants(name: str) -> Any:
    raise InvalidJson(f"the body is not valid JSON: {name} is not a JSON number")


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MAX_DIGITS else _NO_NUMBER


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return _NO_NUMBER


@cache
def _number_fields(shape: type[msgspec.Struct]) -> frozenset[str]:
    """The fields that hold a number and take it as a text, too."""
    found = type_info(shape)
    if not isinstance(found, StructType):
        return frozenset()
    return frozenset(field.encode_name for field in found.fields if _holds_a_number(field.type))


def _holds_a_number(kind: Type) -> bool:
    match kind:
        case UnionType():
            return any(map(_holds_a_number, kind.types))
        case Metadata():
            return _holds_a_number(kind.type)
        case _:
            return isinstance(kind, DecimalType)


def _number(text: str, name: str) -> Decimal:
    number = numbers.read(text)
    if number is None:
        hint = numbers.hint(text) or "write a number such as 12.50"
        raise InvalidValue(f"`{name}`: {text[:50]!r} is not a number; {hint}", param=name)
    return number


def _check(value: Any, place: _Place | None) -> None:
    """Every text can be stored and every number counted with. Raises the error that names the field."""
    if isinstance(value, str):
        if not value.isascii():
            value.encode("utf-8")
        if "\0" in value:
            raise _odd(place, "text must not contain the NUL character")
    elif isinstance(value, dict):
        for name, each in value.items():
            _check(name, place)
            _check(each, (place, name))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            _check(each, (place, index))
    elif isinstance(value, Decimal) and not _is_countable(value):
        raise _odd(place, "the number is too large or too fine")


def _is_countable(value: Decimal) -> bool:
    return value.is_finite() and (not value or abs(value.adjusted()) <= _MAX_EXPONENT)


def _odd(place: _Place | None, what: str) -> InvalidValue:
    path = ""
    while place is not None:
        place, name = place
        path = (f"[{name}]" if isinstance(name, int) else f".{name}") + path
    path = path.lstrip(".")
    return InvalidValue(f"`{path}`: {what}" if path else what, param=path or None)


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno} column {error.colno}"
    return (
        "it is nested too deeply" if isinstance(error, RecursionError) else "it is not UTF-8 text"
    )


def _invalid(text: str, shape: type[msgspec.Struct]) -> InvalidRequest:
    what, _, where = text.partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    if "unknown field" in what:
        name = what.rsplit("`", 2)[-2]
        name = f"{path}.{name}" if path else name
        return UnknownParameter(f"unknown field `{name}`; check its spelling", param=name)
    if "missing required field" in what:
        name = what.rsplit("`", 2)[-2]
        name = f"{path}.{name}" if path else name
        return MissingParameter(f"`{name}` is required", param=name)
    limit = within(what, path, shape)
    if limit is not None:
        return InvalidValue(f"`{path}` {limit}", param=path)
    return InvalidValue(f"`{path}`: {what}" if path else what, param=path or None)
