"""Which lots pay: pure arithmetic over lots, no database.

The order of lots is: promotional, granted, purchased; within a kind the earliest expiry first; then by id.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

LotKind = Literal["promotional", "granted", "purchased"]
LOT_KINDS: Final[tuple[LotKind, ...]] = ("promotional", "granted", "purchased")

_RANK: Final[dict[str, int]] = {kind: rank for rank, kind in enumerate(LOT_KINDS)}
_NEVER: Final = 1 << 62


class Lot(msgspec.Struct, frozen=True, gc=False):
    """Credit of one kind that still has something in it."""

    id: str
    kind: LotKind
    remaining_nano: int
    expires_at_us: int | None


Part = tuple[Lot, int]


def in_order(lots: Sequence[Lot]) -> Sequence[Lot]:
    """The lots in the order in which they pay."""
    return lots if len(lots) < 2 else sorted(lots, key=_precedence)


def burn(lots: Sequence[Lot], amount_nano: int) -> tuple[list[Part], int]:
    """How `amount_nano` is taken from the lots, first in order first, and what exceeds them all.

    A lot whose expiry has passed pays like any other while it still holds credit: what the sweep could not take
    from it was promised to a request when that request was admitted.
    """
    parts: list[Part] = []
    left = amount_nano
    for lot in in_order(lots):
        if left <= 0:
            break
        part = min(lot.remaining_nano, left)
        if part > 0:
            parts.append((lot, part))
            left -= part
    return parts, max(0, left)


def due(lots: Sequence[Lot], free_nano: int, at_us: int) -> list[Part]:
    """What expires at `at_us`: never more than is free, so that no hold loses its cover."""
    parts: list[Part] = []
    left = free_nano
    for lot in in_order(lots):
        if left <= 0:
            break
        if lot.expires_at_us is not None and lot.expires_at_us <= at_us:
            part = min(lot.remaining_nano, left)
            if part > 0:
                parts.append((lot, part))
                left -= part
    return parts


def takeable_nano(lots: Sequence[Lot], free_nano: int) -> int:
    """How much of these lots may be taken back: credit that no hold needs."""
    return max(0, min(sum(lot.remaining_nano for lot in lots), free_nano))


def next_expiry_us(lots: Sequence[Lot]) -> int | None:
    """The earliest expiry of a lot that still holds credit."""
    return min(
        (
            lot.expires_at_us
            for lot in lots
            if lot.expires_at_us is not None and lot.remaining_nano > 0
        ),
        default=None,
    )


def _precedence(lot: Lot) -> tuple[int, int, str]:
    expires_at_us = _NEVER if lot.expires_at_us is None else lot.expires_at_us
    return _RANK[lot.kind], expires_at_us, lot.id
