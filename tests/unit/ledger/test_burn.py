"""Which lots pay, as properties."""

from hypothesis import given
from hypothesis import strategies as st

from gwd.ledger.burn import (
    LOT_KINDS,
    Lot,
    burn,
    due,
    in_order,
    next_expiry_us,
    takeable_nano,
)
from gwd.ledger.low_balance import SEVERITY, level, rearms

KINDS = st.sampled_from(LOT_KINDS)


@st.composite
def lots(draw: st.DrawFn) -> list[Lot]:
    parts = draw(
        st.lists(
            st.tuples(KINDS, st.integers(1, 10**12), st.none() | st.integers(1, 20)), max_size=6
        )
    )
    names = draw(st.permutations([f"lot_{index}" for index in range(len(parts))]))
    return [Lot(name, *part) for name, part in zip(names, parts, strict=True)]


@given(lots(), st.integers(0, 10**13))
def test_burning_takes_exactly_the_amount_or_all_there_is(credit: list[Lot], amount: int) -> None:
    parts, shortfall = burn(credit, amount)
    assert sum(part for _, part in parts) + shortfall == amount
    assert all(0 < part <= lot.remaining_nano for lot, part in parts)
    if shortfall:
        assert sum(part for _, part in parts) == sum(lot.remaining_nano for lot in credit)


@given(lots(), st.integers(0, 10**13))
def test_a_lot_pays_only_when_all_before_it_are_empty(credit: list[Lot], amount: int) -> None:
    parts, _ = burn(credit, amount)
    touched = [lot for lot, _ in parts]
    assert touched == list(in_order(credit))[: len(touched)]
    assert all(part == lot.remaining_nano for lot, part in parts[:-1])


@given(lots())
def test_order_is_kind_then_expiry_then_name(credit: list[Lot]) -> None:
    def key(lot: Lot) -> tuple[int, float, str]:
        at = float("inf") if lot.expires_at_us is None else lot.expires_at_us
        return LOT_KINDS.index(lot.kind), at, lot.id

    assert list(in_order(credit)) == sorted(credit, key=key)


@given(lots(), st.integers(-(10**12), 10**13), st.integers(0, 21))
def test_only_what_is_due_and_free_expires(credit: list[Lot], free: int, at: int) -> None:
    parts = due(credit, free, at)
    taken = sum(part for _, part in parts)
    ripe = sum(
        lot.remaining_nano
        for lot in credit
        if lot.expires_at_us is not None and lot.expires_at_us <= at
    )
    assert all(lot.expires_at_us is not None and lot.expires_at_us <= at for lot, _ in parts)
    assert taken == max(0, min(free, ripe))


@given(lots(), st.integers(-(10**12), 10**13))
def test_refundable_is_purchased_credit_that_is_free(credit: list[Lot], free: int) -> None:
    purchased = [lot for lot in credit if lot.kind == "purchased"]
    most = sum(lot.remaining_nano for lot in purchased)
    assert takeable_nano(purchased, free) == max(0, min(most, free))


@given(lots())
def test_the_next_expiry_is_the_earliest(credit: list[Lot]) -> None:
    known = [lot.expires_at_us for lot in credit if lot.expires_at_us is not None]
    assert next_expiry_us(credit) == (min(known) if known else None)


def test_low_balance_is_told_once_and_again_when_empty() -> None:
    reported = 0
    heard = []
    for owned in (12, 9, 8, 10, 11, 9, 0, -5, 10, 11, 3):
        loud = level(owned, 10)
        if loud > reported:
            reported = loud
            heard.append((owned, SEVERITY[loud]))
        if rearms(owned, 10):
            reported = 0
    assert heard == [(9, "warning"), (9, "warning"), (0, "critical"), (3, "warning")]


def test_a_threshold_of_nothing_warns_at_the_end_alone() -> None:
    assert [level(owned, 0) for owned in (1, 0, -1)] == [0, 2, 2]
    assert [rearms(owned, 0) for owned in (1, 0, -1)] == [True, False, False]
