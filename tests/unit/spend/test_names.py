"""What tags and users spent: held against the records, and forgotten as those forget."""

from decimal import Decimal
from typing import Any

import pytest

from gwd import budgets, ledger, spend
from gwd.activity import service as activity
from gwd.core.clock import US_PER_DAY
from gwd.core.spender import named_counter
from gwd.store.connection import Connection
from tests.support.money import ORGANIZATION, USD, add, charge, hold, open_organization
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

OLD_US = NOW_US - 10 * US_PER_DAY
ANN = named_counter(ORGANIZATION, "user", "ann")
BEN = named_counter(ORGANIZATION, "user", "ben")
NIGHTLY = named_counter(ORGANIZATION, "tag", "nightly")


@pytest.fixture(autouse=True)
def _requests(connection: Connection) -> None:
    """One of ann's ten days ago and one now, one of ben's ten days ago, all nightly."""
    open_organization(connection, now_us=OLD_US)
    add(connection, 100 * USD, now_us=OLD_US)
    for name, user, at_us in (
        ("gen-1", "ann", OLD_US),
        ("gen-2", "ben", OLD_US),
        ("gen-3", "ann", NOW_US),
    ):
        hold(connection, name, USD, now_us=at_us)
        charge(connection, name, USD, now_us=at_us, user_tag=user, tags='["nightly"]')


def days(connection: Connection, counter: str) -> dict[int, int]:
    return dict(
        connection.rows("SELECT day, charged_nano FROM spend WHERE scope_id = ?", (counter,))
    )


def differences(connection: Connection) -> list[str]:
    return [one.message for one in ledger.verify(connection).differences]


def forget(connection: Connection) -> None:
    """As the job does."""
    before_us = NOW_US - US_PER_DAY
    where: dict[str, Any] = {"clean_before": 1, "before_us": before_us, "at_most": 100}
    old = activity.old_senders(connection, ORGANIZATION, **where)
    activity.forget_senders(connection, old.generation_ids)
    found = spend.old_names(connection, ORGANIZATION, before_us=before_us, at_most=100)
    spend.forget_names(connection, found)


def test_the_books_say_where_a_counter_is_not_what_its_requests_cost(
    connection: Connection,
) -> None:
    assert differences(connection) == []
    for change in (
        "UPDATE spend SET charged_nano = charged_nano + 1 WHERE scope_id = ? AND day = 0",
        "UPDATE spend SET byok_nano = 1 WHERE scope_id = ? AND day > 0",
        "DELETE FROM spend WHERE scope_id = ?",
    ):
        for counter in (ANN, NIGHTLY):
            connection.execute("SAVEPOINT before")
            connection.execute(change, (counter,))
            found = differences(connection)
            assert found, change
            assert all(counter in message for message in found)
            connection.execute("ROLLBACK TO before")
    connection.execute("INSERT INTO spend VALUES (?, 1, 0, 0)", ("org_gone:user:ann",))
    assert differences(connection) == ["spend of org_gone:user:ann belongs to nobody"]


def test_counters_are_forgotten_with_the_records_days_but_not_what_is_spent_since(
    connection: Connection,
) -> None:
    today = NOW_US // US_PER_DAY
    forget(connection)
    assert days(connection, ANN) == {0: 2 * USD, today: USD}
    assert days(connection, BEN) == {}
    assert days(connection, NIGHTLY) == {0: 3 * USD, today: USD}
    assert differences(connection) == []
    connection.execute("UPDATE spend SET charged_nano = 1 WHERE scope_id = ? AND day > 0", (ANN,))
    assert len(differences(connection)) == 1


def test_what_a_budget_is_for_is_not_forgotten(connection: Connection) -> None:
    where = budgets.BudgetScope(scope="user", scope_id="ben", spend_id=BEN)
    new = budgets.NewBudget(scope="user", interval="lifetime", limit=Decimal(5))
    made = budgets.create(connection, ORGANIZATION, new, where, now_us=NOW_US)
    forget(connection)
    assert budgets.status_of(connection, made, now_us=NOW_US).spent_nano == USD
    assert differences(connection) == []
    budgets.delete(connection, ORGANIZATION, made.id)
    forget(connection)
    assert days(connection, BEN) == {}
    assert differences(connection) == []
