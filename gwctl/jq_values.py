"""What the operators and functions of `--jq` do to values; no parsing here."""

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from gwctl import jsontext
from gwctl.errors import CommandError


def fault(message: str) -> CommandError:
    return CommandError(f"--jq: {message}", code="jq")


def truth(value: object) -> bool:
    return value is not None and value is not False


def get(value: Any, key: Any) -> Any:
    match value, key:
        case None, _:
            return None
        case dict(), str():
            return value.get(key)
        case list(), int() if not isinstance(key, bool):
            return value[key] if -len(value) <= key < len(value) else None
        case _:
            raise fault(f"cannot take {jsontext.dumps(key)} of {kind(value)}")


def each(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return iter(value.values())
    if isinstance(value, list):
        return iter(value)
    raise fault(f"cannot go through {kind(value)}")


def combine(operator: str, first: Any, second: Any) -> Any:
    match operator:
        case "==" | "!=":
            return (first == second and rank(first) == rank(second)) == (operator == "==")
        case "<" | "<=" | ">" | ">=":
            one, two = (
                (order(first), order(second))
                if operator[0] == "<"
                else (order(second), order(first))
            )
            return one < two or (operator.endswith("=") and one == two)
        case "and":
            return truth(first) and truth(second)
        case "or":
            return truth(first) or truth(second)
        case _:
            return _arithmetic(operator, first, second)


def _arithmetic(operator: str, first: Any, second: Any) -> Any:
    if operator == "+" and (first is None or second is None):
        return second if first is None else first
    if operator == "+" and type(first) is type(second) and isinstance(first, str | list):
        return first + second
    if operator == "+" and isinstance(first, dict) and isinstance(second, dict):
        return first | second
    if rank(first) != 3 or rank(second) != 3:
        raise fault(f"cannot use {operator} on {kind(first)} and {kind(second)}")
    if operator == "/":
        if second == 0:
            raise fault("division by zero")
        return Decimal(first) / Decimal(second)
    return {"+": first + second, "-": first - second}.get(operator, first * second)


def rank(value: object) -> int:
    """jq's order of kinds: null, false, true, numbers, strings, arrays, objects."""
    match value:
        case None:
            return 0
        case bool():
            return 2 if value else 1
        case int() | Decimal():
            return 3
        case str():
            return 4
        case list():
            return 5
        case _:
            return 6


def order(value: Any) -> Any:
    match value:
        case list():
            return (5, [order(item) for item in value])
        case dict():
            return (6, sorted(value), [order(value[key]) for key in sorted(value)])
        case None | bool():
            return (rank(value), 0)
        case _:
            return (rank(value), value)


def kind(value: object) -> str:
    return ("null", "a boolean", "a boolean", "a number", "text", "an array", "an object")[
        rank(value)
    ]


def _length(value: Any) -> Any:
    if value is None:
        return 0
    if rank(value) == 3:
        return abs(value)
    if isinstance(value, bool):
        raise fault("a boolean has no length")
    return len(value)


def items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise fault(f"needs an array, got {kind(value)}")
    return value


def _add(value: Any) -> Any:
    total = None
    for item in each(value):
        total = _arithmetic("+", total, item)
    return total


def _keys(value: Any) -> list[Any]:
    return list(range(len(value))) if isinstance(value, list) else sorted(value or {})


def to_text(value: Any) -> str:
    return value if isinstance(value, str) else jsontext.dumps(value)


def _to_number(value: Any) -> Any:
    try:
        return value if rank(value) == 3 else Decimal(str(value))
    except InvalidOperation:
        raise fault(f"{value!r} is not a number") from None


def _unique(value: Any) -> list[Any]:
    kept: list[Any] = []
    for item in sorted(items(value), key=order):
        if not kept or order(kept[-1]) != order(item):
            kept.append(item)
    return kept


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "length": _length,
    "keys": _keys,
    "add": _add,
    "not": lambda value: not truth(value),
    "sort": lambda value: sorted(items(value), key=order),
    "unique": _unique,
    "reverse": lambda value: items(value)[::-1],
    "first": lambda value: get(items(value), 0),
    "last": lambda value: get(items(value), -1),
    "min": lambda value: min(items(value), key=order, default=None),
    "max": lambda value: max(items(value), key=order, default=None),
    "tostring": to_text,
    "tonumber": _to_number,
    "to_entries": lambda value: [{"key": k, "value": v} for k, v in (value or {}).items()],
}
