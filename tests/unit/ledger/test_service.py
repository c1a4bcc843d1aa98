"""Rules of holds, settlements and credit, on a real file."""

import apsw
import pytest

from gwd import ledger
from gwd.core.errors import Conflict, GenerationNotFound, InvalidValue, NotFound
from gwd.ledger import reports
from gwd.store.connection import Connection
from tests.support.money import (
    BOOT,
    KEY,
    ORGANIZATION,
    USD,
    add,
    charge,
    give_back,
    hold,
    open_organization,
)
from tests.support.store import NOW_US, Seen, connection

__all__ = ["connection"]

HOUR_US = 3_600_000_000


@pytest.fixture(autouse=True)
def _organization(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US)


def available(connection: Connection) -> int:
    return ledger.balance(connection, ORGANIZATION, now_us=NOW_US).available_nano


def assert_sound(connection: Connection) -> None:
    assert ledger.verify(connection, ORGANIZATION, boot_id=BOOT).differences == ()


def test_a_hold_moves_free_credit_and_gives_back_what_is_left(connection: Connection) -> None:
    add(connection, 10 * USD, now_us=NOW_US)
    assert hold(connection, "gen-1", 3 * USD, now_us=NOW_US) == 7 * USD
    credit = ledger.balance(connection, ORGANIZATION, now_us=NOW_US)
    assert (credit.owned_nano, credit.reserved_nano, credit.available_nano) == (
        10 * USD,
        3 * USD,
        7 * USD,
    )
    assert_sound(connection)


def test_a_hold_larger_than_what_is_free_changes_nothing(connection: Connection) -> None:
    add(connection, 10 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 8 * USD, now_us=NOW_US)
    assert hold(connection, "gen-2", 2 * USD + 1, now_us=NOW_US) is None
    assert available(connection) == 2 * USD
    assert ledger.open_reservation(connection, "gen-2") is None
    assert_sound(connection)


def test_a_hold_of_exactly_what_is_free_is_taken(connection: Connection) -> None:
    add(connection, 10 * USD, now_us=NOW_US)
    assert hold(connection, "gen-1", 10 * USD, now_us=NOW_US) == 0
    assert_sound(connection)


def test_a_free_request_holds_nothing_and_still_ends_once(connection: Connection) -> None:
    assert hold(connection, "gen-1", 0, now_us=NOW_US) == 0
    assert charge(connection, "gen-1", 0, now_us=NOW_US).first
    assert not charge(connection, "gen-1", 0, now_us=NOW_US).first
    assert_sound(connection)


def test_a_generation_is_held_once(connection: Connection) -> None:
    add(connection, 10 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 1 * USD, now_us=NOW_US)
    connection.execute("SAVEPOINT twice")
    with pytest.raises(apsw.ConstraintError):
        hold(connection, "gen-1", 1 * USD, now_us=NOW_US)
    connection.execute("ROLLBACK TO twice")
    assert available(connection) == 9 * USD
    assert_sound(connection)


def test_settling_charges_the_exact_cost_and_frees_the_rest(connection: Connection) -> None:
    add(connection, 10 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 3 * USD, now_us=NOW_US)
    settlement = charge(connection, "gen-1", 123_456_789, now_us=NOW_US + 5)
    assert settlement == ledger.Settlement(
        generation_id="gen-1",
        organization_id=ORGANIZATION,
        first=True,
        hold_nano=3 * USD,
        charged_nano=123_456_789,
        balance_after_nano=10 * USD - 123_456_789,
        owned_after_nano=10 * USD - 123_456_789,
        at_us=NOW_US + 5,
    )
    assert_sound(connection)


def test_settling_twice_returns_the_first_result_and_changes_nothing(
    connection: Connection,
) -> None:
    add(connection, 10 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 3 * USD, now_us=NOW_US)
    first = charge(connection, "gen-1", 1 * USD, now_us=NOW_US + 5)
    second = charge(connection, "gen-1", 2 * USD, now_us=NOW_US + 9)
    assert not second.first
    assert (second.charged_nano, second.balance_after_nano, second.at_us) == (
        first.charged_nano,
        first.balance_after_nano,
        first.at_us,
    )
    assert available(connection) == 9 * USD
    assert_sound(connection)


def test_settling_what_was_released_charges_nothing(connection: Connection) -> None:
    add(connection, 10 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 3 * USD, now_us=NOW_US)
    give_back(connection, "gen-1", now_us=NOW_US)
    late = ledger.settle(connection, "gen-1", 2 * USD, now_us=NOW_US)
    assert (late.first, late.charged_nano) == (False, 0)
    assert available(connection) == 10 * USD
    assert_sound(connection)


def test_releasing_what_was_settled_gives_back_nothing(connection: Connection) -> None:
    add(connection, 10 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 3 * USD, now_us=NOW_US)
    charge(connection, "gen-1", 1 * USD, now_us=NOW_US)
    late = ledger.release(connection, "gen-1", now_us=NOW_US)
    assert late is not None
    assert (late.first, late.charged_nano) == (False, 1 * USD)
    assert available(connection) == 9 * USD
    assert_sound(connection)


def test_a_generation_that_held_nothing_has_nothing_to_end(connection: Connection) -> None:
    assert ledger.release(connection, "gen-unknown", now_us=NOW_US) is None
    with pytest.raises(GenerationNotFound):
        ledger.settle(connection, "gen-unknown", 1, now_us=NOW_US)


def test_credit_is_consumed_promotional_then_granted_then_purchased(
    connection: Connection,
) -> None:
    """Promotional credit, then granted, then purchased."""
    add(connection, 5 * USD, now_us=NOW_US)
    add(connection, 2 * USD, now_us=NOW_US, kind="granted")
    add(connection, 1 * USD, now_us=NOW_US, kind="promotional")
    hold(connection, "gen-1", 4 * USD, now_us=NOW_US)
    charge(connection, "gen-1", 4 * USD, now_us=NOW_US)
    charges = ledger.list_entries(
        connection, ORGANIZATION, ledger.LedgerFilter(type="charge"), limit=10, offset=0
    )
    assert [(entry.bucket, entry.amount_nano) for entry in reversed(charges.rows)] == [
        ("promotional", 1 * USD),
        ("granted", 2 * USD),
        ("purchased", 1 * USD),
    ]
    assert_sound(connection)


def test_within_a_kind_the_credit_that_expires_first_pays_first(connection: Connection) -> None:
    add(connection, 1 * USD, now_us=NOW_US)
    late = add(connection, 1 * USD, now_us=NOW_US, expires_at_us=NOW_US + 2 * HOUR_US)
    early = add(connection, 1 * USD, now_us=NOW_US, expires_at_us=NOW_US + HOUR_US)
    hold(connection, "gen-1", 2 * USD, now_us=NOW_US)
    charge(connection, "gen-1", 2 * USD, now_us=NOW_US)
    charges = ledger.list_entries(
        connection, ORGANIZATION, ledger.LedgerFilter(type="charge"), limit=10, offset=0
    )
    assert [entry.lot_id for entry in reversed(charges.rows)] == [early.lot_id, late.lot_id]
    assert_sound(connection)


def test_a_cost_above_the_hold_is_charged_exactly_and_becomes_debt(
    connection: Connection,
) -> None:
    add(connection, 2 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 1 * USD, now_us=NOW_US)
    settlement = charge(connection, "gen-1", 5 * USD, now_us=NOW_US)
    assert settlement.balance_after_nano == -3 * USD
    assert hold(connection, "gen-2", 1, now_us=NOW_US) is None
    assert_sound(connection)


def test_new_credit_pays_debt_first(connection: Connection) -> None:
    add(connection, 2 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 1 * USD, now_us=NOW_US)
    charge(connection, "gen-1", 5 * USD, now_us=NOW_US)
    entry = add(connection, 4 * USD, now_us=NOW_US)
    assert (entry.amount_nano, entry.balance_after_nano) == (4 * USD, 1 * USD)
    credit = ledger.balance(connection, ORGANIZATION, now_us=NOW_US)
    assert credit.purchased_nano == 1 * USD
    assert credit.total_credits_nano == 6 * USD
    assert_sound(connection)


def test_a_purchase_reference_counts_once(connection: Connection) -> None:
    first = add(connection, 2 * USD, now_us=NOW_US, reference="pay_1")
    again = add(connection, 2 * USD, now_us=NOW_US + 1, reference="pay_1")
    assert again == first
    assert available(connection) == 2 * USD
    with pytest.raises(Conflict, match="pay_1"):
        add(connection, 3 * USD, now_us=NOW_US, reference="pay_1")
    assert_sound(connection)


def test_only_purchased_credit_is_refundable(connection: Connection) -> None:
    add(connection, 5 * USD, now_us=NOW_US, kind="granted")
    add(connection, 3 * USD, now_us=NOW_US)
    with pytest.raises(InvalidValue, match="at most 3 USD"):
        refund(connection, 3 * USD + 1)
    assert refund(connection, 3 * USD) == 3 * USD
    credit = ledger.balance(connection, ORGANIZATION, now_us=NOW_US)
    assert (credit.granted_nano, credit.purchased_nano) == (5 * USD, 0)
    assert credit.total_credits_nano == 5 * USD
    assert_sound(connection)


def test_held_credit_is_not_refundable(connection: Connection) -> None:
    add(connection, 3 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 2 * USD, now_us=NOW_US)
    with pytest.raises(InvalidValue, match="at most 1 USD"):
        refund(connection, 2 * USD)
    assert_sound(connection)


def test_a_refund_takes_from_several_lots(connection: Connection) -> None:
    add(connection, 3 * USD, now_us=NOW_US)
    add(connection, 3 * USD, now_us=NOW_US)
    assert refund(connection, 5 * USD) == 5 * USD
    assert available(connection) == 1 * USD
    assert_sound(connection)


def test_expired_credit_is_gone_before_the_next_hold(connection: Connection) -> None:
    add(connection, 3 * USD, now_us=NOW_US, kind="promotional", expires_at_us=NOW_US + HOUR_US)
    add(connection, 1 * USD, now_us=NOW_US)
    assert hold(connection, "gen-1", 4 * USD, now_us=NOW_US + HOUR_US) is None
    assert hold(connection, "gen-2", 1 * USD, now_us=NOW_US + HOUR_US) == 0
    assert_sound(connection)


def test_balance_and_free_credit_leave_out_what_is_due_to_expire(connection: Connection) -> None:
    add(connection, 3 * USD, now_us=NOW_US, kind="promotional", expires_at_us=NOW_US + HOUR_US)
    add(connection, 1 * USD, now_us=NOW_US)
    later = NOW_US + HOUR_US
    assert ledger.free_nano(connection, ORGANIZATION, now_us=later - 1) == 4 * USD
    assert ledger.free_nano(connection, ORGANIZATION, now_us=later) == 1 * USD
    credit = ledger.balance(connection, ORGANIZATION, now_us=later)
    assert (credit.owned_nano, credit.promotional_nano) == (1 * USD, 0)
    assert [entry.amount_nano for entry in expire(connection, later)] == [3 * USD]
    assert expire(connection, later) == ()
    assert ledger.balance(connection, ORGANIZATION, now_us=later) == credit
    assert_sound(connection)


def test_expiry_never_takes_credit_from_under_a_hold(connection: Connection) -> None:
    add(connection, 3 * USD, now_us=NOW_US, expires_at_us=NOW_US + HOUR_US)
    hold(connection, "gen-1", 2 * USD, now_us=NOW_US)
    later = NOW_US + HOUR_US
    assert [entry.amount_nano for entry in expire(connection, later)] == [1 * USD]
    charge(connection, "gen-1", 1 * USD, now_us=later)
    assert ledger.free_nano(connection, ORGANIZATION, now_us=later) == 0
    assert [entry.amount_nano for entry in expire(connection, later)] == [1 * USD]
    assert available(connection) == 0
    assert_sound(connection)


def test_ledger_time_never_goes_back(connection: Connection) -> None:
    add(connection, 3 * USD, now_us=NOW_US + HOUR_US)
    hold(connection, "gen-1", 1 * USD, now_us=NOW_US)
    assert charge(connection, "gen-1", 1, now_us=NOW_US - HOUR_US).at_us == NOW_US + HOUR_US
    assert_sound(connection)


def test_a_past_expiry_is_refused(connection: Connection) -> None:
    with pytest.raises(InvalidValue) as refused:
        add(connection, 1, now_us=NOW_US, expires_at_us=NOW_US)
    assert refused.value.param == "expires_at"


def test_an_organization_without_account_is_not_found(connection: Connection) -> None:
    with pytest.raises(NotFound):
        hold(connection, "gen-1", 1, now_us=NOW_US, organization_id="org_other")
    with pytest.raises(NotFound):
        ledger.balance(connection, "org_other", now_us=NOW_US)


def test_entries_are_append_only(connection: Connection) -> None:
    add(connection, 3 * USD, now_us=NOW_US)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        connection.execute("UPDATE entry SET amount_nano = 1")
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        connection.execute("DELETE FROM entry")


def test_checkpoints_stay_with_the_open_hold_alone(connection: Connection) -> None:
    add(connection, 3 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 1 * USD, now_us=NOW_US)
    hold(connection, "gen-2", 1 * USD, now_us=NOW_US)
    charge(connection, "gen-2", 1, now_us=NOW_US)
    ledger.checkpoint(connection, [("gen-1", b"12"), ("gen-2", b"34"), ("gen-3", b"56")])
    opened = ledger.open_reservations(connection)
    assert [(one.generation_id, one.progress) for one in opened] == [("gen-1", b"12")]


def test_recovery_sees_the_holds_of_earlier_runs_only(connection: Connection) -> None:
    add(connection, 3 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 1 * USD, now_us=NOW_US, boot_id="boot_0")
    hold(connection, "gen-2", 1 * USD, now_us=NOW_US + 1)
    found = ledger.open_reservations(connection, other_than_boot=BOOT)
    assert [one.generation_id for one in found] == ["gen-1"]
    aged = ledger.open_reservations(connection, created_before_us=NOW_US + 1)
    assert [one.generation_id for one in aged] == ["gen-1"]
    differences = ledger.verify(connection, boot_id=BOOT).differences
    assert [one.invariant for one in differences] == ["I18"]


def test_open_holds_count_for_the_whole_family(connection: Connection) -> None:
    add(connection, 9 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 1 * USD, now_us=NOW_US)
    hold(connection, "gen-2", 2 * USD, now_us=NOW_US)
    hold(connection, "gen-3", 4 * USD, now_us=NOW_US, family_id="key_other")
    give_back(connection, "gen-1", now_us=NOW_US)
    assert ledger.held_by_family(connection, KEY) == 2 * USD
    assert ledger.open_count(connection, KEY) == 1


def test_signed_amounts_add_up_to_the_balance_after(connection: Connection) -> None:
    add(connection, 9 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 2 * USD, now_us=NOW_US)
    charge(connection, "gen-1", 1 * USD, now_us=NOW_US)
    refund(connection, 1 * USD)
    found = ledger.list_entries(connection, ORGANIZATION, ledger.LedgerFilter(), limit=50, offset=0)
    entries = found.rows
    assert found.total == len(entries) == 5
    running = 0
    for entry in reversed(entries):
        running += entry.signed_nano
        assert entry.balance_after_nano == running
    assert running == 7 * USD


def test_entries_are_filtered_by_type_generation_and_time(connection: Connection) -> None:
    add(connection, 9 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 2 * USD, now_us=NOW_US + 10)
    charge(connection, "gen-1", 1 * USD, now_us=NOW_US + 20)

    def types(wanted: ledger.LedgerFilter) -> list[str]:
        found = ledger.list_entries(connection, ORGANIZATION, wanted, limit=50, offset=0)
        return [entry.type for entry in found.rows]

    assert types(ledger.LedgerFilter(generation_id="gen-1")) == [
        "charge",
        "settlement",
        "reservation",
    ]
    assert types(ledger.LedgerFilter(type="purchase")) == ["purchase"]
    assert types(ledger.LedgerFilter(from_us=NOW_US + 10, to_us=NOW_US + 20)) == ["reservation"]
    with pytest.raises(InvalidValue):
        types(ledger.LedgerFilter(type="gift"))


def test_what_recovery_needs_goes_with_the_end_of_the_hold(connection: Connection) -> None:
    """Nothing is left of it, and what stays of the reservation is no longer than it was."""
    add(connection, 9 * USD, now_us=NOW_US)
    for number in range(3):
        hold(connection, f"gen-{number}", 1 * USD, now_us=NOW_US)
    ledger.checkpoint(connection, [("gen-0", b"far"), ("gen-1", b"farther"), ("gen-none", b"x")])
    charge(connection, "gen-0", 1 * USD, now_us=NOW_US + 1)
    give_back(connection, "gen-1", now_us=NOW_US + 1)
    kept = connection.rows("SELECT generation_id, context, progress FROM reservation_context")
    assert kept == [("gen-2", b"{}", None)]
    ledger.checkpoint(connection, [("gen-0", b"late"), ("gen-2", b"far")])
    [opened] = ledger.open_reservations(connection)
    assert (opened.generation_id, opened.context, opened.progress) == ("gen-2", b"{}", b"far")


def test_entries_of_many_are_looked_for_page_by_page(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page looks at seven entries; types of which there are few are found at once."""
    monkeypatch.setattr(reports, "LOOKED", 7)
    add(connection, 9 * USD, now_us=NOW_US)
    for number in range(10):
        hold(connection, f"gen-{number}", 1 * USD, now_us=NOW_US + number)
        if number % 5 == 0:
            charge(connection, f"gen-{number}", 1 * USD, now_us=NOW_US + number)
        else:
            give_back(connection, f"gen-{number}", now_us=NOW_US + number)

    def walk(wanted: ledger.LedgerFilter, way: str, place: str | None) -> list[list[str | None]]:
        pages = []
        while True:
            given = {} if place is None else {way: place}
            page = ledger.list_entries(
                connection, ORGANIZATION, wanted, limit=50, offset=0, **given
            )
            pages.append([entry.generation_id for entry in page.rows])
            if page.reached is None:
                return pages
            place = page.reached

    charges = ledger.LedgerFilter(type="charge")
    assert walk(charges, "after", None) == [[], ["gen-5"], ["gen-0"], []]
    assert walk(charges, "before", "entry-1") == [["gen-0"], ["gen-5"], [], []]
    releases = [f"gen-{number}" for number in (9, 8, 7, 6, 4, 3, 2, 1)]
    assert walk(ledger.LedgerFilter(type="release"), "after", None) == [releases]
    assert walk(ledger.LedgerFilter(type="purchase"), "after", None) == [[None]]
    assert walk(ledger.LedgerFilter(generation_id="gen-0"), "after", None) == [["gen-0"] * 3]
    found = ledger.list_entries(connection, ORGANIZATION, charges, limit=50, offset=0)
    assert found.total is None
    with pytest.raises(InvalidValue) as refused:
        ledger.list_entries(connection, ORGANIZATION, charges, limit=50, offset=1)
    assert refused.value.param == "offset"


def test_lists_of_entries_are_answered_by_an_index(connection: Connection) -> None:
    """Neither the whole history nor a sorted page: by number, and by type where a type is rare."""
    add(connection, 9 * USD, now_us=NOW_US)
    for wanted in (
        ledger.LedgerFilter(),
        ledger.LedgerFilter(type="charge", workspace_id="ws_default"),
        ledger.LedgerFilter(type="release"),
        ledger.LedgerFilter(type="clock", from_us=NOW_US),
        ledger.LedgerFilter(generation_id="gen-0"),
    ):
        for way in ("after", "before"):
            seen = Seen(connection)
            ledger.list_entries(
                seen,  # type: ignore[arg-type]
                ORGANIZATION,
                wanted,
                limit=50,
                offset=0,
                **{way: "entry-1"},
            )
            pages = [plan for plan in seen.plans if "entry" in plan]
            assert pages
            assert all(plan.startswith("SEARCH entry USING") for plan in pages), pages
            assert not [plan for plan in seen.plans if "B-TREE" in plan], seen.plans


def refund(connection: Connection, amount_nano: int) -> int:
    entries = ledger.refund(connection, ORGANIZATION, amount_nano=amount_nano, now_us=NOW_US)
    assert all(entry.bucket == "purchased" for entry in entries)
    return sum(entry.amount_nano for entry in entries)


def expire(connection: Connection, now_us: int) -> tuple[ledger.Entry, ...]:
    return ledger.expire(connection, ORGANIZATION, now_us=now_us)
