"""The order in which the parts of several tool calls go out."""

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

Part = TypeVar("Part")


def in_order(rows: Sequence[Sequence[Part]], *, interleave: bool) -> Iterator[Part]:
    """One row after the other, or one part of each row in turn."""
    if not interleave:
        yield from chain.from_iterable(rows)
        return
    missing = object()
    for turn in zip_longest(*rows, fillvalue=missing):
        for part in turn:
            if part is not missing:
                yield part  # type: ignore[misc]
