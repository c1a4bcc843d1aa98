"""JSON without loss: numbers are read as Decimal and written as they came, text ASCII-escaped."""

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from gwctl.text import plain


def loads(data: bytes | str) -> Any:
    """Parse JSON; every number with a fraction or exponent becomes an exact Decimal."""
    return json.loads(data, parse_float=Decimal, parse_constant=_no_number)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number in JSON")


def dumps(value: object, *, indent: int | None = None) -> str:
    """Write JSON; decimals keep all their digits and carry no exponent."""
    return _write(value, indent, 0)


def array(items: Iterable[object]) -> Iterator[str]:
    """A list as `dumps` writes it with an indent of two, item by item, and a line's end."""
    before = "[\n  "
    for item in items:
        yield before + dumps(item, indent=2).replace("\n", "\n  ")
        before = ",\n  "
    yield "[]\n" if before[0] == "[" else "\n]\n"


def _write(value: object, indent: int | None, depth: int) -> str:
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            # json.dumps leaves DEL alone: it is ASCII, but a terminal acts on it.
            return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")
        case int():
            return str(value)
        case Decimal():
            return plain(value)
        case float():
            return plain(Decimal(repr(value)))
        case dict():
            items = [
                f"{_write(str(k), None, 0)}: {_write(v, indent, depth + 1)}"
                for k, v in value.items()
            ]
            return _wrap("{", items, "}", indent, depth)
        case list() | tuple():
            return _wrap(
                "[", [_write(item, indent, depth + 1) for item in value], "]", indent, depth
            )
        case _:
            return _write(str(value), indent, depth)


def _wrap(opening: str, items: list[str], closing: str, indent: int | None, depth: int) -> str:
    if not items:
        return opening + closing
    if indent is None:
        return opening + ", ".join(items) + closing
    inner = "\n" + " " * (indent * (depth + 1))
    outer = "\n" + " " * (indent * depth)
    return opening + inner + ("," + inner).join(items) + outer + closing
