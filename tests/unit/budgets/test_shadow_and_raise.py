"""What a shadow budget counts and when a raise ends, on a real file with a clock that stands still."""

from decimal import Decimal
from itertools import count

import pytest

from gwd import alerts, budgets
from gwd.audit import service as audit
from gwd.budgets import Budget, PatchBudget
from gwd.core.clock import US_PER_DAY, US_PER_S, iso, us_from_iso
from gwd.core.errors import BudgetExceeded, BudgetOrderViolation, InvalidValue
from gwd.core.periods import Window
from gwd.core.spender import Spender
from gwd.management import budgets as use_cases
from gwd.store.connection import Connection
from tests.support.money import (
    KEY,
    ORGANIZATION,
    USD,
    WORKSPACE,
    add,
    charge,
    give_back,
    hold,
    open_organization,
)
from tests.support.store import connection

__all__ = ["connection"]

NOW_US = us_from_iso("2026-11-27T22:00:00Z")  # a Friday
MIDNIGHT_US = us_from_iso("2026-11-28T00:00:00Z")
APP = "http://app.example"
NUMBERS = count()


@pytest.fixture(autouse=True)
def _organization(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US - 60 * US_PER_DAY)
    add(connection, 1_000 * USD, now_us=NOW_US - 60 * US_PER_DAY)


def later(seconds: int) -> int:
    return NOW_US + seconds * US_PER_S


def make(
    connection: Connection,
    limit: str = "5",
    interval: Window = "daily",
    *,
    shadow: bool = False,
    kind: budgets.Kind = "hard",
    include_byok: bool = False,
) -> Budget:
    new = budgets.NewBudget(
        scope="organization",
        interval=interval,
        limit=Decimal(limit),
        kind=kind,
        shadow=shadow,
        include_byok=include_byok,
    )
    where = budgets.BudgetScope(scope="organization", scope_id=ORGANIZATION, spend_id=ORGANIZATION)
    return budgets.create(connection, ORGANIZATION, new, where, now_us=NOW_US)


def admit(connection: Connection, *, now_us: int = NOW_US) -> str:
    """As admission does: the rule, the hold, the count."""
    reached = budgets.check_hard(connection, Spender(ORGANIZATION, WORKSPACE, KEY), now_us=now_us)
    generation_id = f"gen-{next(NUMBERS)}"
    assert hold(connection, generation_id, USD, now_us=now_us) is not None
    if reached:
        budgets.count_would_refuse(connection, reached, generation_id, at_us=now_us)
    return generation_id


def settle(
    connection: Connection, generation_id: str, usd: str, *, now_us: int = NOW_US, byok: str = "0"
) -> None:
    cost_nano = int(Decimal(usd) * USD)
    charge(connection, generation_id, cost_nano, now_us=now_us)
    budgets.end_would_refuse(
        connection,
        Spender(ORGANIZATION, WORKSPACE, KEY),
        generation_id,
        charged_nano=cost_nano,
        byok_nano=int(Decimal(byok) * USD),
    )


def pay(connection: Connection, usd: str, *, now_us: int = NOW_US) -> None:
    settle(connection, admit(connection, now_us=now_us), usd, now_us=now_us)


def known(connection: Connection, budget: Budget) -> Budget:
    return budgets.get(connection, ORGANIZATION, budget.id)


def counted(connection: Connection, budget: Budget, *, now_us: int = NOW_US) -> tuple[int, str]:
    """How many it would have refused in this period, and what those cost in USD."""
    shown = budgets.record(budgets.status_of(connection, known(connection, budget), now_us=now_us))
    assert shown.would_refuse is not None
    return shown.would_refuse.requests, bytes(shown.would_refuse.cost).decode()


def raise_to(
    connection: Connection, budget: Budget, usd: str, until_us: int, *, now_us: int = NOW_US
) -> Budget:
    new = budgets.NewRaise(limit=Decimal(usd), until=iso(until_us))
    return use_cases.raise_limit(
        connection, known(connection, budget), new, by="key_boss", app_url=APP, now_us=now_us
    )


def refuses(connection: Connection, *, now_us: int) -> bool:
    try:
        budgets.check_hard(connection, Spender(ORGANIZATION, WORKSPACE, KEY), now_us=now_us)
    except BudgetExceeded:
        return True
    return False


def raised_alerts(connection: Connection) -> list[tuple[int, str]]:
    """Percent and severity of each alert about a budget, oldest first."""
    return connection.rows(
        "SELECT data ->> 'threshold_percent', severity FROM alert WHERE category = 'budget_threshold' ORDER BY rowid"
    )


def test_a_shadow_refuses_nothing_and_counts_from_the_request_after_the_limit(
    connection: Connection,
) -> None:
    shadow = make(connection, "5", shadow=True)
    pay(connection, "4.999999999")
    pay(connection, "0.000000001")
    assert counted(connection, shadow) == (0, "0"), "the request that reaches it completes"
    pay(connection, "2")
    under_way = admit(connection, now_us=NOW_US + US_PER_S)
    assert counted(connection, shadow) == (2, "2")
    settle(connection, under_way, "0.5")
    assert counted(connection, shadow) == (2, "2.5")
    status = budgets.status_of(connection, known(connection, shadow), now_us=NOW_US)
    shown = budgets.record(status).would_refuse
    assert shown is not None
    assert (shown.first_at, shown.last_at) == (iso(NOW_US), iso(NOW_US + US_PER_S))


def test_a_cost_goes_to_the_period_in_which_its_request_was_counted(
    connection: Connection,
) -> None:
    shadow = make(connection, "1", shadow=True)
    pay(connection, "1")
    last = admit(connection, now_us=MIDNIGHT_US - 1)
    first = admit(connection, now_us=MIDNIGHT_US)
    settle(connection, last, "3", now_us=MIDNIGHT_US)
    settle(connection, first, "4", now_us=MIDNIGHT_US)
    assert counted(connection, shadow, now_us=MIDNIGHT_US) == (0, "0"), "it came before 1 was spent"
    pay(connection, "7", now_us=MIDNIGHT_US)
    shown = budgets.record(
        budgets.status_of(connection, known(connection, shadow), now_us=MIDNIGHT_US)
    ).would_refuse
    assert shown is not None
    assert shown.last_period is not None
    assert (shown.requests, bytes(shown.cost)) == (1, b"7")
    assert (shown.last_period.requests, bytes(shown.last_period.cost)) == (1, b"3")


def test_a_request_that_fails_is_counted_and_costs_nothing(connection: Connection) -> None:
    shadow = make(connection, "1", shadow=True)
    pay(connection, "1")
    generation_id = admit(connection)
    give_back(connection, generation_id, now_us=NOW_US)
    budgets.end_would_refuse(connection, Spender(ORGANIZATION, WORKSPACE, KEY), generation_id)
    assert counted(connection, shadow) == (1, "0")
    assert connection.rows("SELECT * FROM budget_would_refuse_open") == []


def test_own_keys_count_as_the_budget_counts_them(connection: Connection) -> None:
    plain = make(connection, "2", shadow=True)
    including = make(connection, "3", "weekly", shadow=True, include_byok=True)
    pay(connection, "4")
    settle(connection, admit(connection), "0.5", byok="10")
    assert counted(connection, plain) == (1, "0.5")
    assert counted(connection, including) == (1, "10.5")


def test_switched_on_a_shadow_refuses_and_forgets_what_it_counted(connection: Connection) -> None:
    shadow = make(connection, "1", shadow=True)
    pay(connection, "1")
    pay(connection, "1")
    under_way = admit(connection)
    budgets.patch(connection, ORGANIZATION, shadow.id, PatchBudget(shadow=False), now_us=NOW_US)
    with pytest.raises(BudgetExceeded):
        admit(connection)
    settle(connection, under_way, "5")
    status = budgets.status_of(connection, known(connection, shadow), now_us=NOW_US)
    assert status.would_refuse is None
    budgets.patch(connection, ORGANIZATION, shadow.id, PatchBudget(shadow=True), now_us=NOW_US)
    assert counted(connection, shadow) == (0, "0")
    budgets.delete(connection, ORGANIZATION, shadow.id)


def test_what_refuses_hides_what_only_counts(connection: Connection) -> None:
    """A request that another budget refused was not let through: nothing is counted."""
    shadow = make(connection, "1", shadow=True)
    make(connection, "2", "weekly")
    pay(connection, "2")
    assert refuses(connection, now_us=NOW_US)
    assert counted(connection, shadow) == (0, "0")
    refusals = budgets.hard_refusals(
        connection, Spender(ORGANIZATION, WORKSPACE, KEY), now_us=NOW_US
    )
    assert [one.metadata and one.metadata["budget_interval"] for one in refusals] == ["weekly"]


def test_a_soft_budget_is_no_shadow(connection: Connection) -> None:
    with pytest.raises(InvalidValue) as refused:
        make(connection, kind="soft", shadow=True)
    assert refused.value.param == "shadow"
    soft = make(connection, kind="soft")
    with pytest.raises(InvalidValue):
        budgets.patch(connection, ORGANIZATION, soft.id, PatchBudget(shadow=True), now_us=NOW_US)


def test_a_raise_holds_until_its_moment_and_not_in_it(connection: Connection) -> None:
    budget = make(connection, "5", "monthly")
    until_us = NOW_US + 3_600 * US_PER_S
    pay(connection, "5")
    assert refuses(connection, now_us=NOW_US)
    raise_to(connection, budget, "8", until_us)
    assert not refuses(connection, now_us=until_us - 1)
    status = budgets.status_of(connection, known(connection, budget), now_us=until_us - 1)
    assert (status.limit_nano, status.remaining_nano, status.is_raised) == (8 * USD, 3 * USD, True)
    assert refuses(connection, now_us=until_us)
    status = budgets.status_of(connection, known(connection, budget), now_us=until_us)
    assert (status.limit_nano, status.remaining_nano, status.is_raised) == (5 * USD, 0, False)
    assert budgets.record(status).raised is None


def test_a_raised_limit_refuses_too_and_says_which_it_is(connection: Connection) -> None:
    budget = make(connection, "5", "monthly")
    raise_to(connection, budget, "8", NOW_US + US_PER_DAY)
    pay(connection, "8")
    with pytest.raises(BudgetExceeded, match="8 USD") as refused:
        admit(connection)
    assert refused.value.metadata is not None
    assert bytes(refused.value.metadata["budget_limit"]) == b"8"


def test_a_raise_goes_on_when_a_period_turns(connection: Connection) -> None:
    budget = make(connection, "1")
    raise_to(connection, budget, "3", MIDNIGHT_US + 3_600 * US_PER_S)
    pay(connection, "3")
    assert refuses(connection, now_us=MIDNIGHT_US - 1)
    pay(connection, "2", now_us=MIDNIGHT_US)
    assert not refuses(connection, now_us=MIDNIGHT_US)
    assert refuses(connection, now_us=MIDNIGHT_US + 3_600 * US_PER_S)


def test_a_limit_that_is_set_above_its_raise_holds(connection: Connection) -> None:
    budget = make(connection, "5", "monthly")
    raise_to(connection, budget, "8", NOW_US + US_PER_DAY)
    budgets.patch(connection, ORGANIZATION, budget.id, PatchBudget(limit=Decimal(9)), now_us=NOW_US)
    pay(connection, "8.5")
    assert not refuses(connection, now_us=NOW_US)
    pay(connection, "0.5")
    assert refuses(connection, now_us=NOW_US)


def test_a_clock_that_is_set_back_does_not_bring_a_raise_back(connection: Connection) -> None:
    budget = make(connection, "5", "monthly")
    until_us = NOW_US + 3_600 * US_PER_S
    raise_to(connection, budget, "8", until_us)
    pay(connection, "6", now_us=until_us)
    assert refuses(connection, now_us=NOW_US)


@pytest.mark.parametrize(
    ("limit", "until", "param"),
    [
        ("5", "2026-11-28T00:00:00Z", "limit"),
        ("4", "2026-11-28T00:00:00Z", "limit"),
        ("6", "2026-11-27T22:00:00Z", "until"),
        ("6", "2026-11-28T00:00:00", "until"),
        ("6", "tomorrow", "until"),
        ("6", "2027-11-29T00:00:00Z", "until"),
    ],
)
def test_a_raise_that_cannot_be_names_its_field(
    connection: Connection, limit: str, until: str, param: str
) -> None:
    budget = make(connection, "5", "monthly")
    new = budgets.NewRaise(limit=Decimal(limit), until=until)
    with pytest.raises(InvalidValue) as refused:
        use_cases.raise_limit(connection, budget, new, by="k", app_url=APP, now_us=NOW_US)
    assert refused.value.param == param
    assert known(connection, budget) == budget


def test_limits_in_force_shrink_as_the_window_narrows(connection: Connection) -> None:
    monthly, daily = make(connection, "50", "monthly"), make(connection, "5", "daily")
    with pytest.raises(BudgetOrderViolation):
        raise_to(connection, daily, "50", NOW_US + US_PER_DAY)
    raise_to(connection, monthly, "80", NOW_US + US_PER_DAY)
    assert raise_to(connection, daily, "50", NOW_US + US_PER_DAY).raised_nano == 50 * USD


def test_the_end_of_a_raise_is_written_down_once_and_told(connection: Connection) -> None:
    """Above the old limit by then: its last threshold is told, those it had told are not told again."""
    budget = make(connection, "10", "monthly")
    until_us = NOW_US + 3_600 * US_PER_S
    pay(connection, "9.5")
    standing = budgets.standing_crossing(connection, budget, now_us=NOW_US)
    assert standing is not None
    alerts.mark_once(
        connection,
        alerts.Mark(name=standing.crossing.mark, value=standing.crossing.threshold_percent),
        now_us=NOW_US,
    )
    raise_to(connection, budget, "20", until_us)
    assert use_cases.end_lapsed_raises(connection, app_url=APP, now_us=until_us - 1) == 0
    pay(connection, "2")
    assert use_cases.end_lapsed_raises(connection, app_url=APP, now_us=until_us) == 1
    assert use_cases.end_lapsed_raises(connection, app_url=APP, now_us=until_us) == 0
    assert raised_alerts(connection) == [(100, "critical")]
    lines, _ = audit.list_lines(connection, ORGANIZATION, audit.AuditFilter(), limit=9, offset=0)
    assert [(one.action, one.subject_id, one.actor_key_id) for one in lines] == [
        ("budget.end_raise", budget.id, None)
    ]
    assert lines[0].details["raised_by"] == "key_boss"
    assert lines[0].details["until"] == iso(until_us)


def test_raising_and_falling_back_below_a_told_threshold_tells_nothing(
    connection: Connection,
) -> None:
    budget = make(connection, "10", "monthly")
    pay(connection, "8.5")
    standing = budgets.standing_crossing(connection, budget, now_us=NOW_US)
    assert standing is not None
    told = alerts.Mark(name=standing.crossing.mark, value=standing.crossing.threshold_percent)
    alerts.mark_once(connection, told, now_us=NOW_US)
    for number in range(1, 3):
        raise_to(connection, budget, "16", later(number), now_us=later(number - 1))
        use_cases.end_lapsed_raises(connection, app_url=APP, now_us=later(number))
    assert raised_alerts(connection) == [], "half of 16 was reached when it was raised"


def test_another_raise_takes_the_place_of_one_and_a_lapsed_one_is_ended_first(
    connection: Connection,
) -> None:
    budget = make(connection, "5", "monthly")
    raise_to(connection, budget, "8", later(10))
    raise_to(connection, budget, "7", later(20))
    assert connection.rows("SELECT action FROM audit") == []
    again = raise_to(connection, budget, "9", later(40), now_us=later(30))
    assert (again.raised_nano, again.raised_until_us) == (9 * USD, later(40))
    assert connection.rows("SELECT action FROM audit") == [("budget.end_raise",)]


def test_the_forecast_goes_by_the_limit_in_force(connection: Connection) -> None:
    budget = make(connection, "2")
    pay(connection, "1.9")
    before = budgets.status_of(connection, budget, now_us=NOW_US).forecast
    assert before.exhausts_at_us is not None
    raised = raise_to(connection, budget, "3", NOW_US + US_PER_DAY)
    after = budgets.status_of(connection, raised, now_us=NOW_US).forecast
    assert after.exhausts_at_us is None
