"""The audit names what does not add up: each way of tampering is found, under the invariant it breaks."""

import pytest

from gwd import ledger
from gwd.store.connection import Connection
from tests.support.money import (
    BOOT,
    ORGANIZATION,
    USD,
    add,
    charge,
    give_back,
    hold,
    open_organization,
)
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

CHARGE = "WHERE organization_id = 'org_acme' AND type = 'charge'"


@pytest.fixture(autouse=True)
def _some_life(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US)
    add(connection, 10 * USD, now_us=NOW_US, expires_at_us=NOW_US + 1_000_000)
    add(connection, 10 * USD, now_us=NOW_US)
    hold(connection, "gen-1", 3 * USD, now_us=NOW_US)
    charge(connection, "gen-1", 2 * USD, now_us=NOW_US)
    hold(connection, "gen-2", 3 * USD, now_us=NOW_US)
    give_back(connection, "gen-2", now_us=NOW_US)
    hold(connection, "gen-3", 4 * USD, now_us=NOW_US)
    connection.execute("DROP TRIGGER entry_no_update")
    connection.execute("DROP TRIGGER entry_no_delete")


def test_untouched_books_add_up(connection: Connection) -> None:
    found = ledger.verify(connection, boot_id=BOOT)
    assert (found.ok, found.checked, found.differences) == (True, 8, ())


@pytest.mark.parametrize(
    ("invariant", "tampering"),
    [
        ("I1", "UPDATE account SET spent_nano = spent_nano + 1"),
        ("I1", "UPDATE entry SET to_account = 'expired' " + CHARGE),
        ("I2", "UPDATE account SET pool_nano = pool_nano + 1, funding_nano = funding_nano - 1"),
        ("I2", "UPDATE account SET next_expiry_at = NULL"),
        ("I2", "UPDATE entry SET balance_after_nano = 1 " + CHARGE),
        ("I3", "UPDATE reservation SET amount_nano = 1 WHERE generation_id = 'gen-3'"),
        ("I3", "DELETE FROM reservation WHERE generation_id = 'gen-3'"),
        ("I4", "UPDATE lot SET remaining_nano = remaining_nano - 1"),
        ("I4", "UPDATE account SET debt_nano = 1"),
        ("I5", "UPDATE reservation SET state = 'closed' WHERE generation_id = 'gen-3'"),
        (
            "I5",
            "UPDATE entry SET type = 'reservation', from_account = 'pool', to_account = 'held' WHERE seq = 7",
        ),
        ("I17", "UPDATE entry SET type = 'settlement' WHERE seq = 7"),
        ("I8", "UPDATE lot SET expires_at = CASE WHEN expires_at IS NULL THEN 1 END"),
        ("I11", "UPDATE generation SET cost_completion_nano = 1 WHERE id = 'gen-1'"),
        ("I12", "UPDATE spend SET charged_nano = 1 WHERE scope_id = 'key_one' AND day > 0"),
        ("I12", "DELETE FROM spend WHERE scope_id = 'ws_default'"),
        ("I12", "UPDATE entry SET created_at = 5 " + CHARGE),
        ("I16", "UPDATE entry SET amount_nano = 1 " + CHARGE),
        ("I16", "UPDATE entry SET note = 'gift' " + CHARGE),
        ("I16", "DELETE FROM entry " + CHARGE),
        ("I16", "DELETE FROM entry WHERE seq = 8"),
        ("I17", "UPDATE generation SET cost_total_nano = 0, insured = 1 WHERE id = 'gen-1'"),
        ("I17", "DELETE FROM generation WHERE id = 'gen-1'"),
        ("I17", "UPDATE generation SET status = 'succeeded' WHERE id = 'gen-2'"),
        ("I17", "UPDATE generation SET status = 'refused' WHERE id = 'gen-2'"),
        ("I18", "UPDATE reservation SET boot_id = 'boot_0' WHERE generation_id = 'gen-3'"),
    ],
)
def test_tampering_is_found(connection: Connection, invariant: str, tampering: str) -> None:
    assert connection.execute(tampering) > 0
    found = ledger.verify(connection, boot_id=BOOT)
    assert not found.ok
    assert invariant in {difference.invariant for difference in found.differences}
    assert {difference.organization_id for difference in found.differences} == {ORGANIZATION}


def test_a_second_charge_in_the_wrong_order_is_found(connection: Connection) -> None:
    """I8 with entries of an untouched form: an earlier lot still holds credit."""
    first, last = connection.rows("SELECT id FROM lot ORDER BY expires_at IS NULL")
    connection.execute("UPDATE entry SET lot_id = ? " + CHARGE, last)
    connection.execute(
        "UPDATE lot SET remaining_nano = remaining_nano + 2000000000 WHERE id = ?", first
    )
    connection.execute(
        "UPDATE lot SET remaining_nano = remaining_nano - 2000000000 WHERE id = ?", last
    )
    found = {difference.invariant for difference in ledger.verify(connection).differences}
    assert found == {"I8", "I16"}


def test_an_unknown_organization_has_no_books(connection: Connection) -> None:
    found = ledger.verify(connection, "org_none")
    assert [difference.message for difference in found.differences] == [
        "the organization has no account"
    ]
