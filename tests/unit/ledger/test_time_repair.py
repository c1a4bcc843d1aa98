"""Ledger time set back: the books go on from now, early expiry comes back, and verify takes this for nothing else."""

from typing import Any

import pytest

from gwd import ledger
from gwd.core.clock import US_PER_DAY
from gwd.core.errors import InvalidValue
from gwd.ledger import LedgerFilter, account
from gwd.ledger.book import Book
from gwd.management.time_repair import repair_time
from gwd.store.connection import Connection
from tests.support.money import ORGANIZATION, USD, add, charge, give_back, hold, open_organization
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

AHEAD_US = NOW_US + 400 * US_PER_DAY
EXPIRES_US = NOW_US + 30 * US_PER_DAY


def free(connection: Connection, now_us: int = NOW_US) -> int:
    return ledger.free_nano(connection, ORGANIZATION, now_us=now_us)


def repair(connection: Connection, now_us: int = NOW_US) -> tuple[ledger.TimeRepair, ...]:
    return repair_time(connection, by="ana", why="the time server was wrong", now_us=now_us)


def troubles(connection: Connection) -> list[tuple[str, str]]:
    found = ledger.verify(connection).differences
    return [(each.invariant, each.message) for each in found]


@pytest.fixture(autouse=True)
def _a_year_ahead(connection: Connection) -> None:
    """Five dollars that expire in a month, and ten that stay; then a clock that is more than a year ahead."""
    open_organization(connection, now_us=NOW_US)
    add(connection, 5 * USD, kind="promotional", expires_at_us=EXPIRES_US, now_us=NOW_US)
    add(connection, 10 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 3 * USD, now_us=NOW_US)
    charge(connection, "gen-1", 2 * USD, now_us=NOW_US)
    ledger.expire(connection, ORGANIZATION, now_us=AHEAD_US)
    hold(connection, "gen-2", 3 * USD, now_us=AHEAD_US)
    charge(connection, "gen-2", 1 * USD, now_us=AHEAD_US)


def test_time_goes_on_from_now_and_what_expired_too_early_is_back(connection: Connection) -> None:
    assert free(connection) == 9 * USD
    (done,) = repair(connection)
    assert (done.from_us, done.to_us, done.restored_nano) == (AHEAD_US, NOW_US, 3 * USD)
    assert free(connection) == 12 * USD
    assert ledger.last_time_us(connection) == NOW_US
    assert troubles(connection) == []
    # The restored credit expires at its own time, and pays first until then.
    hold(connection, "gen-3", 3 * USD, now_us=NOW_US + 1)
    charge(connection, "gen-3", 1 * USD, now_us=NOW_US + 1)
    taken = ledger.expire(connection, ORGANIZATION, now_us=EXPIRES_US)
    assert [(entry.type, entry.amount_nano) for entry in taken] == [("expiry", 2 * USD)]
    assert troubles(connection) == []
    assert repair(connection, EXPIRES_US) == ()


def test_the_entry_says_who_and_why_and_so_does_the_audit_trail(connection: Connection) -> None:
    repair(connection)
    found = ledger.list_entries(
        connection, ORGANIZATION, LedgerFilter(type="clock"), limit=9, offset=0
    )
    (entry,) = found.rows
    assert (entry.amount_nano, entry.actor, entry.created_at) == (0, "ana", NOW_US)
    assert "the time server was wrong" in (entry.note or "")
    rows = connection.rows("SELECT organization_id, details FROM audit WHERE action = 'clock.mend'")
    assert len(rows) == 1
    assert '"restored_nano":3000000000' in rows[0][1].replace(" ", "")


def test_repaired_twice_nothing_comes_back_twice(connection: Connection) -> None:
    repair(connection)
    hold(connection, "gen-3", 3 * USD, now_us=AHEAD_US)
    give_back(connection, "gen-3", now_us=AHEAD_US)
    (again,) = repair(connection, NOW_US + 1)
    # The hold of the second time ahead let the restored credit expire once more.
    assert again.restored_nano == 3 * USD
    assert free(connection) == 12 * USD
    assert troubles(connection) == []


def test_restored_credit_pays_debt_first(connection: Connection) -> None:
    hold(connection, "gen-3", 9 * USD, now_us=AHEAD_US)
    charge(connection, "gen-3", 11 * USD, now_us=AHEAD_US)
    assert free(connection) == -2 * USD
    repair(connection)
    assert free(connection) == USD
    assert troubles(connection) == []


def test_credit_whose_time_is_over_stays_expired(connection: Connection) -> None:
    (done,) = repair(connection, EXPIRES_US + 1)
    assert done.restored_nano == 0
    assert free(connection, EXPIRES_US + 1) == 9 * USD
    assert troubles(connection) == []


def test_lists_by_time_find_what_was_written_before_and_after(connection: Connection) -> None:
    repair(connection)
    hold(connection, "gen-3", USD, now_us=NOW_US + 5)

    def listed(from_us: int | None, to_us: int | None) -> list[str]:
        wanted = LedgerFilter(from_us=from_us, to_us=to_us)
        found = ledger.list_entries(connection, ORGANIZATION, wanted, limit=100, offset=0)
        assert found.total == len(found.rows)
        return [entry.type for entry in reversed(found.rows)]

    assert listed(AHEAD_US, None) == ["expiry", "reservation", "settlement", "charge"]
    assert listed(NOW_US + 1, AHEAD_US) == ["reservation"]
    assert listed(None, AHEAD_US) == [
        "grant", "purchase", "reservation", "settlement", "charge", "clock", "restoration", "reservation",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("by", "why", "now_us", "words"),
    [
        (" ", "a reason", NOW_US, "--by NAME --why TEXT"),
        ("ana", "", NOW_US, "--by NAME --why TEXT"),
        ("ana", "a reason", 0, "set the clock right first"),
    ],
)
def test_it_wants_a_name_a_reason_and_a_clock_that_can_be_right(
    connection: Connection, by: str, why: str, now_us: int, words: str
) -> None:
    with pytest.raises(InvalidValue, match=words):
        repair_time(connection, by=by, why=why, now_us=now_us)
    assert ledger.ahead(connection, now_us=NOW_US) != []


def book(connection: Connection, at_us: int) -> Book:
    made = Book(connection, ORGANIZATION, at_us)
    made.at_us = at_us
    return made


def older_entry(connection: Connection) -> None:
    made = book(connection, NOW_US)
    made.move("reservation", 0, generation_id="gen-9")
    made.save(connection)


def silent_set_back(connection: Connection) -> None:
    made = book(connection, NOW_US)
    made.move("clock", 0, actor="ana")
    made.save(connection)


def set_back_that_moves_money(connection: Connection) -> None:
    made = book(connection, NOW_US)
    made.move("clock", USD, actor="ana", note="why")
    made.save(connection)


def set_forward(connection: Connection) -> None:
    made = book(connection, AHEAD_US + 1)
    made.move("clock", 0, actor="ana", note="why")
    made.save(connection)


def restored(connection: Connection, made: Book, amount_nano: int) -> None:
    (lot_id,) = connection.row("SELECT id FROM lot WHERE kind = 'promotional'") or ("",)
    made.move("restoration", amount_nano, bucket="promotional", lot_id=lot_id, actor="ana")
    connection.execute(
        "UPDATE lot SET remaining_nano = remaining_nano + ? WHERE id = ?", (amount_nano, lot_id)
    )
    made.next_expiry_at = EXPIRES_US
    made.save(connection)


def restoration_without_a_repair(connection: Connection) -> None:
    restored(connection, book(connection, AHEAD_US), 3 * USD)


def too_much_restored(connection: Connection) -> None:
    made = book(connection, NOW_US)
    made.move("clock", 0, actor="ana", note="why")
    restored(connection, made, 4 * USD)


def restored_after_its_time(connection: Connection) -> None:
    made = book(connection, EXPIRES_US + 1)
    made.move("clock", 0, actor="ana", note="why")
    restored(connection, made, 3 * USD)


def time_of_an_entry_changed(connection: Connection) -> None:
    repair(connection)
    connection.execute("DROP TRIGGER entry_no_update")
    connection.execute("UPDATE entry SET created_at = created_at - 1 WHERE type = 'clock'")


@pytest.mark.parametrize(
    ("invariant", "tamper"),
    [
        ("I12", older_entry),
        ("I12", silent_set_back),
        ("I12", set_back_that_moves_money),
        ("I12", set_forward),
        ("I4", restoration_without_a_repair),
        ("I4", too_much_restored),
        ("I4", restored_after_its_time),
        ("I16", time_of_an_entry_changed),
    ],
)
def test_nothing_else_sets_the_time_back(
    connection: Connection, invariant: str, tamper: Any
) -> None:
    tamper(connection)
    assert invariant in {found[0] for found in troubles(connection)}


def test_credit_does_not_expire_by_a_ledger_that_is_ahead(connection: Connection) -> None:
    add(connection, USD, kind="granted", expires_at_us=AHEAD_US + US_PER_DAY, now_us=NOW_US)
    connection.execute("UPDATE account SET last_at = ?", (AHEAD_US + 2 * US_PER_DAY,))
    account.stored.invalidate(connection, ORGANIZATION)
    assert free(connection) == 10 * USD
    assert ledger.expire(connection, ORGANIZATION, now_us=NOW_US) == ()
    by_us = AHEAD_US + US_PER_DAY
    assert len(ledger.expire(connection, ORGANIZATION, now_us=by_us, due_us=by_us - 1)) == 0
    assert len(ledger.expire(connection, ORGANIZATION, now_us=by_us, due_us=by_us + 1)) == 1
