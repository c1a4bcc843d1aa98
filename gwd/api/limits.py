"""The limits that a body's type sets, in words: a value outside of them is told both ends, not the one it passed."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

_PASSED: Final = re.compile(r"Expected `(?:int|float|str|array|object)` (?:of length )?[<>]=? ")
_INDEX: Final = re.compile(r"\[\d+\]")


def within(what: str, path: str, shape: type[msgspec.Struct]) -> str | None:
    """What the field at `path` must be, where `what` (msgspec's words) says that it passed a limit; else None."""
    if _PASSED.match(what) is None:
        return None
    return _limits(shape).get(_INDEX.sub("[...]", path))


@cache
def _limits(shape: type[msgspec.Struct]) -> dict[str, str]:
    return dict(_of(inspect.type_info(shape), ""))


def _of(kind: inspect.Type, path: str) -> Iterator[tuple[str, str]]:
    text = _in_words(kind)
    if text:
        yield path, text
    match kind:
        case inspect.UnionType():
            for each in kind.types:
                yield from _of(each, path)
        case inspect.Metadata():
            yield from _of(kind.type, path)
        case inspect.StructType():
            for field in kind.fields:
                yield from _of(field.type, f"{path}.{field.encode_name}".lstrip("."))
        case inspect.ListType() | inspect.VarTupleType():
            yield from _of(kind.item_type, f"{path}[...]")
        case inspect.DictType():
            yield from _of(kind.value_type, f"{path}[...]")
        case _:
            pass


def _in_words(kind: inspect.Type) -> str:
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return _ends("must be", kind.ge, kind.le, "")
        case inspect.StrType():
            return _ends("must have", kind.min_length, kind.max_length, " characters")
        case inspect.ListType() | inspect.VarTupleType() | inspect.DictType():
            return _ends("must have", kind.min_length, kind.max_length, " items")
        case _:
            return ""


def _ends(verb: str, least: Any, most: Any, unit: str) -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f"{verb} at least {least}{unit}"
    if least is None:
        return f"{verb} at most {most}{unit}"
    return f"{verb} from {least} to {most}{unit}"
