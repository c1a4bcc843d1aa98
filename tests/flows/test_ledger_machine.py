"""Random lives of one organization's credit against a small model: every invariant after every step.

The broken variants at the end show that this machine has teeth.
"""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import apsw
import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gwd import budgets, ledger, spend
from gwd.activity import day_sums
from gwd.activity import service as activity
from gwd.activity.row import GenerationRow
from gwd.core.clock import US_PER_DAY, SystemClock
from gwd.core.errors import (
    AlreadyExists,
    BudgetExceeded,
    BudgetOrderViolation,
    Conflict,
    InvalidValue,
    StatementMismatch,
)
from gwd.core.money import MAX_NANO
from gwd.core.periods import WINDOWS, Window, first_day, period_end_us
from gwd.core.spender import Scope, Spender, named_counter
from gwd.ledger.book import Book
from gwd.store.connection import Connection, open_connection
from gwd.store.migrations import migrate
from tests.support.ledger_model import LedgerModel, ModelHold
from tests.support.money import (
    ORGANIZATION,
    WORKSPACE,
    add,
    charge,
    differences_of_analytics,
    give_back,
    hold,
    open_organization,
)
from tests.support.statements import check_statements
from tests.support.store import NOW_US

UNIT = 1_000_000
HOUR_US = 3_600_000_000

AMOUNTS = st.integers(0, 50).map(lambda units: units * UNIT) | st.integers(1, 60 * UNIT)
CREDIT = st.integers(1, 100).map(lambda units: units * UNIT)
EXPIRIES = st.none() | st.sampled_from([1, HOUR_US, US_PER_DAY, 40 * US_PER_DAY])
CLOCK_STEPS = st.sampled_from(
    [
        1,
        1_000_000,
        -1_000_000,
        HOUR_US,
        -HOUR_US,
        US_PER_DAY,
        -US_PER_DAY,
        7 * US_PER_DAY,
        -31 * US_PER_DAY,
        400 * US_PER_DAY,
    ]
)
LIMITS = st.sampled_from(["0.02", "0.05", "0.1", "0.2"])
SCOPES = st.sampled_from(["organization", "workspace", "key", "tag", "user"])
SENDERS = st.sampled_from(
    [(None, ()), ("ann", ()), (None, ("nightly",)), ("ann", ("eu", "nightly"))]
)
Sender = tuple[str | None, tuple[str, ...]]
NAMED = {
    "tag": named_counter(ORGANIZATION, "tag", "nightly"),
    "user": named_counter(ORGANIZATION, "user", "ann"),
}
PICKS = st.integers(0, 10**6)
LIVES_OF_USAGE = 60
WORK = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["demo/a", "demo/b"]),
        "tokens_input": st.integers(0, 9),
        "tokens_output": st.integers(0, 9),
    }
)


class LedgerMachine(RuleBasedStateMachine):
    """One organization with one workspace, keys that rotate, and a daemon that crashes."""

    connection: ClassVar[Connection]

    def __init__(self) -> None:
        super().__init__()
        self.connection.execute("BEGIN IMMEDIATE")
        self.now = NOW_US
        self.boot = 0
        self.count = 0
        self.families = ["key_a", "key_b"]
        self.rotations = {"key_a": 0, "key_b": 0}
        self.limits: dict[tuple[str, Window], int] = {}
        self.senders: dict[str, Sender] = {}
        open_organization(self.connection, now_us=self.now)
        self.model = LedgerModel(last_at=self.now)

    def teardown(self) -> None:
        """The statements of all months of a life are what its entries and records come to."""
        try:
            check_statements(self.connection, ORGANIZATION, now_us=self.now)
        finally:
            self.connection.execute("ROLLBACK")

    @initialize(amount=CREDIT)
    def begin(self, amount: int) -> None:
        self.purchase(amount, None, None)

    # --- credit ---------------------------------------------------------------------------------

    @rule(
        amount=CREDIT,
        expires_in=EXPIRIES,
        reference=st.none() | st.sampled_from(["pay_1", "pay_2"]),
    )
    def purchase(self, amount: int, expires_in: int | None, reference: str | None) -> None:
        known = self.model.purchases.get(reference or "")
        expires_at = self._expiry(expires_in)
        if known is not None and known != amount:
            with pytest.raises(Conflict):
                self._add("purchased", amount, expires_at, reference)
            return
        entry = self._add("purchased", amount, expires_at, reference)
        if known is not None:
            assert entry.amount_nano == known
            return
        if reference is not None:
            self.model.purchases[reference] = amount
        assert entry.lot_id is not None
        self.model.add(entry.lot_id, "purchased", amount, expires_at, self.now)

    @rule(kind=st.sampled_from(["promotional", "granted"]), amount=CREDIT, expires_in=EXPIRIES)
    def grant(self, kind: ledger.LotKind, amount: int, expires_in: int | None) -> None:
        expires_at = self._expiry(expires_in)
        entry = self._add(kind, amount, expires_at, None)
        assert entry.lot_id is not None
        self.model.add(entry.lot_id, kind, amount, expires_at, self.now)

    @rule(amount=CREDIT)
    def refund(self, amount: int) -> None:
        self.model.expire(self.now)
        if amount > self.model.refundable():
            with pytest.raises(InvalidValue):
                ledger.refund(self.connection, ORGANIZATION, amount_nano=amount, now_us=self.now)
            return
        ledger.refund(self.connection, ORGANIZATION, amount_nano=amount, now_us=self.now)
        self.model.refund(amount, self.now)

    @rule()
    def expire(self) -> None:
        due = self.model.due(self.now)
        entries = ledger.expire(self.connection, ORGANIZATION, now_us=self.now)
        assert sum(entry.amount_nano for entry in entries) == due
        self.model.expire(self.now)
        assert ledger.expire(self.connection, ORGANIZATION, now_us=self.now) == ()

    # --- requests -------------------------------------------------------------------------------

    @rule(amounts=st.lists(AMOUNTS, min_size=1, max_size=3), pick=PICKS, sender=SENDERS)
    def reserve(self, amounts: list[int], pick: int, sender: Sender) -> None:
        """Requests of one key and one sender that arrive together."""
        family = self.families[pick % len(self.families)]
        spender = Spender(ORGANIZATION, WORKSPACE, family, *sender)
        assert self._refused(spender) == self._reached(spender)
        if self._reached(spender) is not None:
            return
        names = [self._next_name() for _ in amounts]
        answers = self.hold_together(list(zip(names, amounts, strict=True)), family)
        for name, amount, answer in zip(names, amounts, answers, strict=True):
            named = tuple(spender.named_counters)
            wanted = ModelHold(amount, family, f"boot_{self.boot}", named)
            self.senders[name] = sender
            assert self.model.reserve(name, wanted, self.now) == answer

    @precondition(lambda self: self.model.holds)
    @rule(pick=PICKS, cost=AMOUNTS)
    def settle(self, pick: int, cost: int) -> None:
        name = self._pick_open(pick)
        settlement = charge(self.connection, name, cost, now_us=self.now, **self._names(name))
        assert settlement.first
        self.model.end(name, cost, (ORGANIZATION, WORKSPACE), self.now)
        assert settlement.at_us == self.model.last_at
        assert settlement.balance_after_nano == self.model.free

    @precondition(lambda self: self.model.holds)
    @rule(pick=PICKS, cost=AMOUNTS)
    def settle_for_a_client_that_left(self, pick: int, cost: int) -> None:
        name = self._pick_open(pick)
        self.settle_cancelled(name, cost)
        self.model.end(name, cost, (ORGANIZATION, WORKSPACE), self.now)

    @precondition(lambda self: self.model.holds)
    @rule(pick=PICKS)
    def release(self, pick: int) -> None:
        name = self._pick_open(pick)
        give_back(self.connection, name, now_us=self.now)
        self.model.end(name, 0, (), self.now)

    @precondition(lambda self: self.model.ended)
    @rule(pick=PICKS, cost=AMOUNTS)
    def end_again(self, pick: int, cost: int) -> None:
        """I15: the second settlement or release gives back the first result."""
        name = self._pick_ended(pick)
        for late in (
            ledger.settle(self.connection, name, cost, now_us=self.now),
            ledger.release(self.connection, name, now_us=self.now),
        ):
            assert late is not None
            assert (late.first, late.charged_nano) == (False, self.model.ended[name])

    @precondition(lambda self: self.model.ended)
    @rule(pick=PICKS, cost=AMOUNTS)
    def end_again_although_its_end_was_forgotten(self, pick: int, cost: int) -> None:
        """I5: the index decides even when the cached state is wrong."""
        name = self._pick_ended(pick)
        self.connection.execute("SAVEPOINT step")
        self.connection.execute(
            "UPDATE reservation SET state = 'open' WHERE generation_id = ?", (name,)
        )
        try:
            ledger.settle(self.connection, name, cost, now_us=self.now)
        except (apsw.ConstraintError, ledger.LedgerBroken):
            self.connection.execute("ROLLBACK TO step")
        self.connection.execute("RELEASE step")

    @precondition(lambda self: self.model.holds)
    @rule(pick=PICKS, cost=AMOUNTS)
    def checkpoint(self, pick: int, cost: int) -> None:
        name = self._pick_open(pick)
        ledger.checkpoint(self.connection, [(name, b"%d" % cost)])
        self.model.holds[name].progress = cost

    # --- the world ------------------------------------------------------------------------------

    @rule(pick=PICKS)
    def rotate(self, pick: int) -> None:
        """A new key takes the place of an old one: same family, other id."""
        self.rotations[self.families[pick % len(self.families)]] += 1

    @rule(step=CLOCK_STEPS)
    def set_clock(self, step: int) -> None:
        self.now = max(NOW_US, self.now + step)

    @rule(window=st.sampled_from(["daily", "weekly", "monthly"]), before=st.booleans())
    def go_to_the_edge(self, window: Window, before: bool) -> None:
        edge = period_end_us(window, self.now)
        assert edge is not None
        self.now = edge - 1 if before else edge

    @rule()
    def crash_and_recover(self) -> None:
        self.boot += 1
        found = ledger.open_reservations(self.connection, other_than_boot=f"boot_{self.boot}")
        assert {one.generation_id for one in found} == set(self.model.holds)
        for one in found:
            name, progress = one.generation_id, self.model.holds[one.generation_id].progress
            assert one.progress == (None if progress is None else b"%d" % progress)
            if progress is None:
                give_back(self.connection, name, now_us=self.now)
                self.model.end(name, 0, (), self.now)
            else:
                charge(self.connection, name, progress, now_us=self.now, **self._names(name))
                self.model.end(name, progress, (ORGANIZATION, WORKSPACE), self.now)

    @rule(scope=SCOPES, interval=st.sampled_from(WINDOWS), limit=LIMITS)
    def make_budget(self, scope: Scope, interval: Window, limit: str) -> None:
        counter = self._counters()[scope]
        where = budgets.BudgetScope(scope=scope, scope_id=counter, spend_id=counter)
        new = budgets.NewBudget(scope=scope, interval=interval, limit=Decimal(limit))
        try:
            budget = budgets.create(self.connection, ORGANIZATION, new, where, now_us=self.now)
        except AlreadyExists:
            assert (scope, interval) in self.limits
            return
        except BudgetOrderViolation:
            return
        self.limits[scope, interval] = budget.limit_nano
        mine = [self.limits.get((scope, window)) for window in WINDOWS]
        known = [nano for nano in mine if nano is not None]
        assert all(narrow < broad for narrow, broad in pairwise(known))

    # --- what a broken gateway would do otherwise -----------------------------------------------

    def hold_together(self, wanted: list[tuple[str, int]], family: str) -> list[bool]:
        return [self._hold(name, amount, family) is not None for name, amount in wanted]

    def settle_cancelled(self, name: str, cost: int) -> None:
        charge(self.connection, name, cost, now_us=self.now, **self._names(name))

    # --- always ---------------------------------------------------------------------------------

    @invariant()
    def books_add_up(self) -> None:
        """I1 to I9, I11, I12, I16 to I18."""
        found = ledger.verify(self.connection, ORGANIZATION, boot_id=f"boot_{self.boot}")
        assert found.differences == ()

    @invariant()
    def books_are_those_of_the_model(self) -> None:
        model = self.model
        row = self.connection.row(
            "SELECT -funding_nano, pool_nano, held_nano, spent_nano, expired_nano, debt_nano, last_at"
            " FROM account WHERE organization_id = ?",
            (ORGANIZATION,),
        )
        assert row == (
            model.added,
            model.free,
            model.held,
            model.spent,
            model.expired,
            model.debt,
            model.last_at,
        )
        lots = self.connection.rows(
            "SELECT id, remaining_nano FROM lot WHERE organization_id = ?", (ORGANIZATION,)
        )
        assert dict(lots) == {lot.id: lot.remaining for lot in model.lots}
        credit = ledger.balance(self.connection, ORGANIZATION, now_us=self.now)
        assert credit.available_nano == model.free - model.due(self.now)
        assert credit.available_nano == ledger.free_nano(
            self.connection, ORGANIZATION, now_us=self.now
        )

    @invariant()
    def spend_and_holds_are_those_of_the_family(self) -> None:
        at = self.model.at(self.now)
        for scope in (ORGANIZATION, WORKSPACE, *self.families, *NAMED.values()):
            totals = spend.totals(self.connection, scope, WINDOWS, at_us=at)
            for window, (charged, _) in totals.items():
                assert charged == self.model.total(scope, first_day(window, at))
        for family in self.families:
            holds = [one for one in self.model.holds.values() if one.family == family]
            assert ledger.held_by_family(self.connection, family) == sum(
                one.amount for one in holds
            )
            assert ledger.open_count(self.connection, family) == len(holds)

    def _names(self, name: str) -> dict[str, Any]:
        """What the record of a request says of its sender."""
        user, tags = self.senders[name]
        return {"user_tag": user, "tags": msgspec.json.encode(tags).decode() if tags else None}

    def _counters(self) -> dict[Scope, str]:
        """The counters that budgets are made for, the widest first."""
        known: dict[Scope, str] = {"organization": ORGANIZATION, "workspace": WORKSPACE}
        return {**known, "key": "key_a", "tag": NAMED["tag"], "user": NAMED["user"]}

    def _refused(self, spender: Spender) -> tuple[str, str] | None:
        """The budget that refuses a request of the spender now."""
        try:
            budgets.check_hard(self.connection, spender, now_us=self.now)
        except BudgetExceeded as refusal:
            metadata = refusal.metadata or {}
            scope = str(metadata.get("budget_subject", metadata["budget_scope"]))
            return scope.partition(":")[0], metadata["budget_interval"]
        return None

    def _reached(self, spender: Spender) -> tuple[str, Window] | None:
        """The budget that the model says must refuse: broad scopes and intervals first."""
        at = self.model.at(self.now)
        for scope, counter in self._counters().items():
            if counter not in spender.counters:
                continue
            for window in reversed(WINDOWS):
                limit = self.limits.get((scope, window))
                if limit is not None and self.model.total(counter, first_day(window, at)) >= limit:
                    return scope, window
        return None

    def _add(
        self, kind: ledger.LotKind, amount: int, expires_at: int | None, reference: str | None
    ) -> ledger.Entry:
        return add(
            self.connection,
            amount,
            now_us=self.now,
            kind=kind,
            expires_at_us=expires_at,
            reference=reference,
        )

    def _hold(self, name: str, amount: int, family: str) -> int | None:
        return hold(
            self.connection,
            name,
            amount,
            now_us=self.now,
            family_id=family,
            key_id=f"{family}_{self.rotations[family]}",
            boot_id=f"boot_{self.boot}",
        )

    def _expiry(self, expires_in: int | None) -> int | None:
        return None if expires_in is None else self.model.at(self.now) + expires_in

    def _next_name(self) -> str:
        self.count += 1
        return f"gen-{self.count}"

    def _pick_open(self, pick: int) -> str:
        return list(self.model.holds)[pick % len(self.model.holds)]

    def _pick_ended(self, pick: int) -> str:
        return list(self.model.ended)[pick % len(self.model.ended)]


class UsageMachine(LedgerMachine):
    """Lives in which requests differ: models, tokens, own vendor keys, refusals, keys that go."""

    def __init__(self) -> None:
        super().__init__()
        self.rotations = Counter(self.rotations)

    def teardown(self) -> None:
        """Once a life, since it reads everything: analytics, records and charges say the same."""
        try:
            assert differences_of_analytics(self.connection, from_us=NOW_US) == []
        finally:
            super().teardown()

    @precondition(lambda self: self.model.holds)
    @rule(pick=PICKS, cost=AMOUNTS, work=WORK, listed=st.none() | AMOUNTS)
    def settle_with_usage(
        self, pick: int, cost: int, work: dict[str, Any], listed: int | None
    ) -> None:
        """With a list price an own vendor key served: what is charged is the fee for that."""
        name = self._pick_open(pick)
        if listed is not None:
            own = {"byok": True, "cost_completion_nano": listed, "cost_platform_fee_nano": cost}
            work = work | own
        work = work | self._names(name)
        assert charge(self.connection, name, cost, now_us=self.now, **work).first
        self.model.end(name, cost, (ORGANIZATION, WORKSPACE), self.now)

    @rule(pick=PICKS, model=st.none() | st.just("demo/a"), occurrences=st.integers(1, 3))
    def refuse(self, pick: int, model: str | None, occurrences: int) -> None:
        """The gateway says no before anything is held."""
        family = self.families[pick % len(self.families)]
        refusal = GenerationRow(
            id=self._next_name(),
            organization_id=ORGANIZATION,
            workspace_id=WORKSPACE,
            key_id=f"{family}_{self.rotations[family]}",
            family_id=family,
            dialect="messages",
            model=model,
            status="refused",
            error_code="rate_limit_exceeded",
            occurrences=occurrences,
            created_at=self.now,
            settled_at=self.now,
        )
        activity.count_refusal(self.connection, refusal)

    @rule()
    def delete_key(self) -> None:
        """A key without a budget goes, with what it has open, and another is made."""
        self.count += 1
        self.families[1] = f"key_{self.count}"


class OwnKeysOutsideTheSums(UsageMachine):
    """Broken: the sums by day know nothing of requests on own vendor keys."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = pytest.MonkeyPatch()
        added = day_sums.add
        self._patch.setattr(
            day_sums, "add", lambda connection, row: None if row.byok else added(connection, row)
        )

    def teardown(self) -> None:
        self._patch.undo()
        super().teardown()


_conditional = Book.save_if_free


def _save_without_condition(book: Book, connection: Connection, needed_nano: int) -> bool:
    return _conditional(book, connection, -MAX_NANO)


class CheckOutsideTheTransaction(LedgerMachine):
    """Broken: each request reads the balance first and writes later, without a condition."""

    def hold_together(self, wanted: list[tuple[str, int]], family: str) -> list[bool]:
        free = ledger.free_nano(self.connection, ORGANIZATION, now_us=self.now)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Book, "save_if_free", _save_without_condition)
            return [
                amount <= free and self._hold(name, amount, family) is not None
                for name, amount in wanted
            ]


class SettlementLostOnCancellation(LedgerMachine):
    """Broken: the settlement belongs to the handler, and goes with it."""

    def settle_cancelled(self, name: str, cost: int) -> None:
        pass


class WithoutTheIndex(LedgerMachine):
    """Broken: nothing but the code remembers that a reservation has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.connection.execute("DROP INDEX one_end")


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    path: Path = tmp_path_factory.mktemp("machine") / "gwd.db"
    migrate(str(path), SystemClock())
    opened = open_connection(str(path), "writer")
    LedgerMachine.connection = opened
    yield opened
    opened.raw.close()


def settings_of(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=50,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.slow
@pytest.mark.usefixtures("connection")
def test_no_life_of_credit_breaks_an_invariant() -> None:
    run_state_machine_as_test(LedgerMachine, settings=settings_of(500))


@pytest.mark.usefixtures("connection")
def test_in_no_life_do_analytics_and_the_ledger_differ() -> None:
    run_state_machine_as_test(UsageMachine, settings=settings_of(LIVES_OF_USAGE))


@pytest.mark.parametrize(
    "broken",
    [
        WithoutTheIndex,
        CheckOutsideTheTransaction,
        SettlementLostOnCancellation,
        OwnKeysOutsideTheSums,
    ],
)
@pytest.mark.usefixtures("connection")
def test_the_machine_finds_a_broken_ledger(broken: type[LedgerMachine]) -> None:
    found = settings(
        settings_of(300),
        phases=[Phase.generate],
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
    )
    with pytest.raises((AssertionError, ledger.LedgerBroken, StatementMismatch)):
        run_state_machine_as_test(broken, settings=found)
