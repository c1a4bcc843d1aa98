"""The filters of `--jq`: functions from one value to its outputs, and how they combine."""

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from gwctl.errors import CommandError
from gwctl.jq_values import combine, each, fault, get, items, kind, order, to_text, truth

Filter = Callable[[Any], Iterator[Any]]


def identity(value: Any) -> Iterator[Any]:
    yield value


def literal(constant: object) -> Filter:
    return lambda _: iter([constant])


def pipe(left: Filter, right: Filter) -> Filter:
    return lambda value: (out for middle in left(value) for out in right(middle))


def alternative(left: Filter, right: Filter) -> Filter:
    def outputs(value: Any) -> Iterator[Any]:
        good = [out for out in quiet(left)(value) if truth(out)]
        return iter(good) if good else right(value)

    return outputs


def quiet(inner: Filter) -> Filter:
    def outputs(value: Any) -> Iterator[Any]:
        try:
            yield from inner(value)
        except CommandError:
            return

    return outputs


def field(key: Filter) -> Filter:
    return lambda value: (get(value, wanted) for wanted in key(value))


def cut(low: Filter | None, high: Filter | None) -> Filter:
    def outputs(value: Any) -> Iterator[Any]:
        if not isinstance(value, list | str):
            raise fault(f"cannot cut a piece of {kind(value)}")
        lows = [None] if low is None else list(low(value))
        highs = [None] if high is None else list(high(value))
        yield from (value[first:last] for first, last in product(lows, highs))

    return outputs


def make_object(entries: list[tuple[str, Filter]]) -> Filter:
    def outputs(value: Any) -> Iterator[Any]:
        columns = [list(inner(value)) for _, inner in entries]
        for row in product(*columns):
            yield dict(zip((key for key, _ in entries), row, strict=True))

    return outputs


def binary(operator: str, left: Filter, right: Filter) -> Filter:
    def outputs(value: Any) -> Iterator[Any]:
        for second, first in product(list(right(value)), list(left(value))):
            yield combine(operator, first, second)

    return outputs


def plain_function(apply: Callable[[Any], Any]) -> Filter:
    return lambda value: iter([apply(value)])


def select(condition: Filter) -> Filter:
    return lambda value: (value for kept in condition(value) if truth(kept))


def map_(inner: Filter) -> Filter:
    return lambda value: iter([[out for item in each(value) for out in inner(item)]])


def sort_by(key: Filter) -> Filter:
    return lambda value: iter(
        [sorted(items(value), key=lambda item: [order(out) for out in key(item)])]
    )


def has(key: Filter) -> Filter:
    return lambda value: (
        wanted in value if isinstance(value, dict) else 0 <= wanted < len(items(value))
        for wanted in key(value)
    )


def text_test(test: Callable[[str, str], bool]) -> Callable[[Filter], Filter]:
    return lambda argument: (
        lambda value: (test(to_text(value), to_text(out)) for out in argument(value))
    )


def join(separator: Filter) -> Filter:
    def texts(items: Iterable[Any]) -> list[str]:
        return ["" if item is None else to_text(item) for item in items]

    return lambda value: (str(out).join(texts(items(value))) for out in separator(value))


WITH_ARGUMENT: dict[str, Callable[[Filter], Filter]] = {
    "select": select,
    "map": map_,
    "sort_by": sort_by,
    "has": has,
    "join": join,
    "startswith": text_test(str.startswith),
    "endswith": text_test(str.endswith),
    "contains": text_test(lambda text, part: part in text),
}
