"""Random lives of a shadow budget that is raised now and then, against a plain restatement of its rule."""

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from gwd import budgets
from gwd.budgets import Budget, BudgetScope, NewBudget, NewRaise
from gwd.core.clock import SystemClock, iso
from gwd.core.periods import Window, first_day
from gwd.core.spender import Scope, Spender, named_counter
from gwd.management import budgets as use_cases
from gwd.store.connection import Connection, open_connection, transaction
from gwd.store.migrations import migrate
from tests.support.money import (
    KEY,
    ORGANIZATION,
    USD,
    WORKSPACE,
    add,
    charge,
    hold,
    open_organization,
)
from tests.support.store import NOW_US

HOUR_US = 3_600_000_000
SPENDER = Spender(ORGANIZATION, WORKSPACE, KEY, user="ann", tags=("eu", "nightly"))
WHERE: dict[Scope, tuple[str, str]] = {
    "key": (KEY, KEY),
    "tag": ("nightly", named_counter(ORGANIZATION, "tag", "nightly")),
    "user": ("ann", named_counter(ORGANIZATION, "user", "ann")),
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), st.just(0)),
        st.tuples(st.just("settle"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
        st.tuples(st.just("raise"), st.integers(1, 30)),
        st.tuples(st.just("end"), st.just(0)),
        st.tuples(st.just("notice"), st.just(0)),
    ),
    min_size=5,
    max_size=40,
)


class Restated:
    """All that happened, in lists; every answer is summed from the first step."""

    def __init__(self, interval: Window, limit_nano: int) -> None:
        self.interval = interval
        self.limit_nano = limit_nano
        self.raised: tuple[int, int] | None = None
        self.charges: list[tuple[int, int]] = []
        self.late: dict[str, int] = {}
        self.costs: dict[str, int] = {}

    def admit(self, name: str, at_us: int) -> None:
        limit_nano = self.limit_nano
        if self.raised is not None and at_us < self.raised[1]:
            limit_nano = self.raised[0]
        if self.spent(at_us) >= limit_nano:
            self.late[name] = at_us

    def settle(self, name: str, cost_nano: int, at_us: int) -> None:
        self.charges.append((at_us, cost_nano))
        self.costs[name] = cost_nano

    def spent(self, at_us: int) -> int:
        return sum(cost for when, cost in self.charges if self._same(when, at_us))

    def counted(self, at_us: int) -> tuple[int, int]:
        late = [name for name, when in self.late.items() if self._same(when, at_us)]
        return len(late), sum(self.costs.get(name, 0) for name in late)

    def _same(self, one_us: int, other_us: int) -> bool:
        return first_day(self.interval, one_us) == first_day(self.interval, other_us)


class Life:
    """The same steps through the room's own functions, on a real file."""

    def __init__(self, connection: Connection, scope: Scope, interval: Window) -> None:
        self.connection = connection
        new = NewBudget(scope=scope, interval=interval, limit=Decimal(4), shadow=True)
        scope_id, spend_id = WHERE[scope]
        where = BudgetScope(scope=scope, scope_id=scope_id, spend_id=spend_id)
        self.id = budgets.create(connection, ORGANIZATION, new, where, now_us=NOW_US).id
        self.plain = Restated(interval, 4 * USD)
        self.at_us = NOW_US
        self.open: list[str] = []
        self.made = 0

    @property
    def budget(self) -> Budget:
        return budgets.get(self.connection, ORGANIZATION, self.id)

    def step(self, what: str, number: int) -> None:
        getattr(self, f"_{what}")(number)
        status = budgets.status_of(self.connection, self.budget, now_us=self.at_us)
        counted = status.would_refuse
        assert counted is not None
        assert (counted.requests, counted.charged_nano) == self.plain.counted(self.at_us)
        assert status.spent_nano == self.plain.spent(self.at_us)

    def _admit(self, _: int) -> None:
        name = f"gen-{self.made}"
        self.made += 1
        reached = budgets.check_hard(self.connection, SPENDER, now_us=self.at_us)
        assert hold(self.connection, name, 3 * USD, now_us=self.at_us) is not None
        budgets.count_would_refuse(self.connection, reached, name, at_us=self.at_us)
        self.plain.admit(name, self.at_us)
        self.open.append(name)

    def _settle(self, usd: int) -> None:
        if not self.open:
            return
        name = self.open.pop(usd % len(self.open))
        named = {"user_tag": "ann", "tags": '["eu","nightly"]'}
        charge(self.connection, name, usd * USD, now_us=self.at_us, **named)
        budgets.end_would_refuse(self.connection, SPENDER, name, charged_nano=usd * USD)
        self.plain.settle(name, usd * USD, self.at_us)

    def _wait(self, hours: int) -> None:
        self.at_us += hours * HOUR_US

    def _raise(self, hours: int) -> None:
        until_us = self.at_us + hours * HOUR_US
        new = NewRaise(limit=Decimal(5 + hours % 5), until=iso(until_us))
        raised = use_cases.raise_limit(
            self.connection, self.budget, new, by="key_boss", app_url="", now_us=self.at_us
        )
        assert raised.raised_until_us == until_us
        self.plain.raised = (5 + hours % 5) * USD, until_us

    def _end(self, _: int) -> None:
        budgets.end_raise(self.connection, self.budget, now_us=self.at_us)
        self.plain.raised = None

    def _notice(self, _: int) -> None:
        """What the job does changes no answer."""
        use_cases.end_lapsed_raises(self.connection, app_url="", now_us=self.at_us)


@settings(max_examples=60, deadline=None)
@given(
    scope=st.sampled_from(sorted(WHERE)),
    interval=st.sampled_from(["daily", "weekly", "monthly", "lifetime"]),
    steps=STEPS,
)
def test_what_is_counted_is_what_a_plain_sum_says(
    scope: Scope, interval: Window, steps: list[tuple[str, int]]
) -> None:
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "gwd.db")
        migrate(path, SystemClock())
        connection = open_connection(path, "writer")
        try:
            with transaction(connection, "IMMEDIATE"):
                open_organization(connection, now_us=NOW_US)
                add(connection, 1_000 * USD, now_us=NOW_US)
                life = Life(connection, scope, interval)
                for what, number in steps:
                    life.step(what, number)
        finally:
            connection.raw.close()
