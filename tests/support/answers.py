"""Whether a body is what its route says it answers: nothing unknown in it, nothing missing, each value of its kind.

Decoding it into the type would read over unknown fields, fill in defaults, and take anything for the `Raw` of an
amount: so the type is walked here.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from gwd.core.clock import TimeError, us_from_iso

Seen = set[tuple[str, str]]
"""(struct, field) of every field that was met in a body."""


def differences(body: bytes, answers: Any, seen: Seen | None = None) -> list[str]:
    """What is wrong with a body, by place; empty for one that is as declared."""
    met: Seen = set() if seen is None else seen
    return list(_differences(msgspec.json.decode(body), inspect.type_info(answers), "$", met))


def sometimes(answers: Any) -> Seen:
    """(struct, field) of every field in an answer that may be left out."""
    found: Seen = set()
    for struct in structs_in(answers):
        found |= {(struct.cls.__name__, field.name) for field in struct.fields if _optional(field)}
    return found


def structs_in(answers: Any) -> list[inspect.StructType]:
    """Every struct in an answer, its own included."""
    return list(_structs(inspect.type_info(answers), set()))


def kind_of(info: inspect.Type) -> str | None:
    """Which kind of field a type is, null or absent aside."""
    bare, kind = _bare(info)
    if isinstance(bare, inspect.UnionType):
        return next((found for one in bare.types if (found := kind_of(one))), kind)
    return kind


def undescribed(answers: Any) -> list[str]:
    """Every field in an answer of which no sentence says what it is; `data` is what its envelope is named for."""
    return [
        f"{struct.cls.__name__}.{field.name}"
        for struct in structs_in(answers)
        for field in struct.fields
        if field.name != "data" and not _sentence(field.type)
    ]


def _sentence(info: inspect.Type) -> str:
    said: str = ""
    while isinstance(info, inspect.Metadata):
        said = said or (info.extra_json_schema or {}).get("description", "")
        info = info.type
    return said


def _differences(value: Any, info: inspect.Type, where: str, seen: Seen) -> Iterator[str]:
    bare, kind = _bare(info)
    if isinstance(bare, inspect.UnionType):
        yield from _differences(value, _chosen(value, bare), where, seen)
    elif not _is_like(value, bare):
        yield f"{where} is no {type(bare).__name__}: {value!r}"
    elif isinstance(bare, inspect.StructType):
        yield from _fields(value, bare, where, seen)
    elif isinstance(bare, inspect.DictType):
        for name, held in value.items():
            yield from _differences(held, bare.value_type, f"{where}.{name}", seen)
    elif isinstance(bare, inspect.CollectionType):
        for number, held in enumerate(value):
            yield from _differences(held, bare.item_type, f"{where}[{number}]", seen)
    elif kind == "moment" and not _is_moment(value):
        yield f"{where} is no time in UTC: {value}"


def _is_like(value: Any, bare: inspect.Type) -> bool:
    """Whether a JSON value is of a type, and within its limits."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match bare:
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, dict)
        case inspect.CollectionType():
            return isinstance(value, list)
        case inspect.RawType() | inspect.FloatType():
            return is_number
        case inspect.AnyType():
            return True
        case inspect.LiteralType():
            return any(value == one and type(value) is type(one) for one in bare.values)
        case _:
            try:
                msgspec.convert(value, _SCALARS[type(bare)])
            except msgspec.ValidationError:
                return False
            return _within(value, bare)


_SCALARS: dict[type[inspect.Type], Any] = {
    inspect.NoneType: None,
    inspect.BoolType: bool,
    inspect.IntType: int,
    inspect.StrType: str,
}


def _within(value: Any, bare: inspect.Type) -> bool:
    if isinstance(bare, inspect.IntType):
        return (bare.ge is None or value >= bare.ge) and (bare.le is None or value <= bare.le)
    if isinstance(bare, inspect.StrType):
        return (bare.pattern is None or re.search(bare.pattern, value) is not None) and (
            bare.max_length is None or len(value) <= bare.max_length
        )
    return True


def _bare(info: inspect.Type) -> tuple[inspect.Type, str | None]:
    """A type without what is said of it, and the kind of field that it is."""
    kind = None
    while isinstance(info, inspect.Metadata):
        kind = (info.extra_json_schema or {}).get("x-kind", kind)
        info = info.type
    return info, kind


def _fields(
    value: dict[str, Any], info: inspect.StructType, where: str, seen: Seen
) -> Iterator[str]:
    known = {field.encode_name: field for field in info.fields}
    for name in value:
        if name not in known and name != info.tag_field:
            yield f"{where}.{name} is not in {info.cls.__name__}"
    for name, field in known.items():
        if name in value:
            seen.add((info.cls.__name__, field.name))
            yield from _differences(value[name], field.type, f"{where}.{name}", seen)
        elif not _optional(field):
            yield f"{where}.{name} of {info.cls.__name__} is missing"


def _optional(field: inspect.Field) -> bool:
    """A field that is left out while it is UNSET; every other default is sent."""
    return (
        not field.required
        and field.default is msgspec.NODEFAULT
        and field.default_factory is msgspec.NODEFAULT
    )


def _chosen(value: Any, union: inspect.UnionType) -> inspect.Type:
    """The member of a union that a value is like; the last one where it is like none."""
    return next(
        (member for member in union.types if _is_like(value, _bare(member)[0])), union.types[-1]
    )


def _structs(info: inspect.Type, known: set[type]) -> Iterator[inspect.StructType]:
    info, _ = _bare(info)
    if isinstance(info, inspect.UnionType):
        for member in info.types:
            yield from _structs(member, known)
    elif isinstance(info, inspect.CollectionType):
        yield from _structs(info.item_type, known)
    elif isinstance(info, inspect.DictType):
        yield from _structs(info.value_type, known)
    elif isinstance(info, inspect.StructType) and info.cls not in known:
        known.add(info.cls)
        yield info
        for field in info.fields:
            yield from _structs(field.type, known)


def _is_moment(text: str | None) -> bool:
    if text is None:
        return False
    try:
        us_from_iso(text)
    except TimeError:
        return False
    return text.endswith("Z")
