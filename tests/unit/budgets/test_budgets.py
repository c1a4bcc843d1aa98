"""Rules of budgets on a real file, with charges that went through the ledger."""

from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from typing import Any

import msgspec
import pytest

from gwd import budgets, spend
from gwd.core.clock import US_PER_DAY, us_from_iso
from gwd.core.errors import (
    AlreadyExists,
    BudgetExceeded,
    BudgetOrderViolation,
    InvalidValue,
    NotFound,
)
from gwd.core.money import usd_json
from gwd.core.periods import Window
from gwd.core.spender import Scope, Spender, named_counter
from gwd.store.connection import Connection
from tests.support.money import ORGANIZATION, USD, WORKSPACE, add, charge, hold, open_organization
from tests.support.store import connection

__all__ = ["connection"]

NOW_US = us_from_iso("2026-11-27T22:00:00Z")  # a Friday
FAMILY = "key_first"
ROTATED = "key_second"
SPENDER = Spender(ORGANIZATION, WORKSPACE, FAMILY, user="ann", tags=("eu", "nightly"))
NUMBERS = count()


@pytest.fixture(autouse=True)
def _organization(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US - 60 * US_PER_DAY)
    add(connection, 1_000 * USD, now_us=NOW_US - 60 * US_PER_DAY)


def make(
    connection: Connection,
    scope: Scope = "organization",
    interval: Window = "monthly",
    limit: str = "5",
    *,
    kind: budgets.Kind = "hard",
    include_byok: bool = False,
    now_us: int = NOW_US,
) -> budgets.Budget:
    scope_id, spend_id = {
        "organization": (ORGANIZATION, ORGANIZATION),
        "workspace": (WORKSPACE, WORKSPACE),
        "key": (ROTATED, FAMILY),
        "tag": ("nightly", named_counter(ORGANIZATION, "tag", "nightly")),
        "user": ("ann", named_counter(ORGANIZATION, "user", "ann")),
    }[scope]
    new = budgets.NewBudget(
        scope=scope, interval=interval, limit=Decimal(limit), kind=kind, include_byok=include_byok
    )
    where = budgets.BudgetScope(scope=scope, scope_id=scope_id, spend_id=spend_id)
    return budgets.create(connection, ORGANIZATION, new, where, now_us=now_us)


def pay(connection: Connection, usd: str, *, now_us: int = NOW_US) -> None:
    cost_nano = int(Decimal(usd) * USD)
    generation_id = f"gen-{next(NUMBERS)}"
    hold(connection, generation_id, cost_nano, now_us=now_us, family_id=FAMILY)
    charge(
        connection, generation_id, cost_nano, now_us=now_us, user_tag="ann", tags='["eu","nightly"]'
    )


def check(connection: Connection, *, now_us: int = NOW_US) -> None:
    budgets.check_hard(connection, SPENDER, now_us=now_us)


def test_the_request_that_reaches_the_limit_completes_and_the_next_is_refused(
    connection: Connection,
) -> None:
    """A hard budget rejects once spent reaches the limit."""
    make(connection, limit="5")
    pay(connection, "4.999999999")
    check(connection)
    pay(connection, "0.000000001")
    with pytest.raises(BudgetExceeded) as refused:
        check(connection)
    assert "5 USD" in refused.value.message
    assert "2026-12-01T00:00:00Z" in refused.value.message


def test_the_refusal_carries_scope_interval_limit_reset_and_id(connection: Connection) -> None:
    """The metadata of budget_exceeded."""
    budget = make(connection, "workspace", "weekly", "2.5")
    pay(connection, "3")
    with pytest.raises(BudgetExceeded) as refused:
        check(connection)
    assert msgspec.json.decode(msgspec.json.encode(refused.value.metadata)) == {
        "budget_scope": "workspace",
        "budget_interval": "weekly",
        "budget_limit": 2.5,
        "budget_resets_at": "2026-11-30T00:00:00Z",
        "budget_id": budget.id,
    }


def test_a_lifetime_budget_never_resets(connection: Connection) -> None:
    make(connection, "key", "lifetime", "1")
    pay(connection, "1")
    with pytest.raises(BudgetExceeded, match="does not reset") as refused:
        check(connection, now_us=NOW_US + 400 * US_PER_DAY)
    assert refused.value.metadata is not None
    assert refused.value.metadata["budget_resets_at"] is None


def test_organization_comes_before_workspace_key_tag_and_user_and_broad_before_narrow(
    connection: Connection,
) -> None:
    """Which of several reached budgets is reported: the broadest scope, then the broadest interval."""
    for scope in ("user", "key", "tag", "workspace", "organization"):
        for interval, limit in (("daily", "0.1"), ("monthly", "0.3"), ("lifetime", "0.4")):
            make(connection, scope, interval, limit)  # type: ignore[arg-type]
    pay(connection, "1")
    seen = []
    for _ in range(15):
        with pytest.raises(BudgetExceeded) as refused:
            check(connection)
        assert refused.value.metadata is not None
        metadata = refused.value.metadata
        subject = metadata.get("budget_subject", metadata["budget_scope"])
        seen.append((subject, metadata["budget_interval"]))
        budgets.delete(connection, ORGANIZATION, refused.value.metadata["budget_id"])
    check(connection)
    assert seen == [
        (scope, interval)
        for scope in ("organization", "workspace", "key", "tag:nightly", "user:ann")
        for interval in ("lifetime", "monthly", "daily")
    ]


@pytest.mark.parametrize(("scope", "name"), [("tag", "nightly"), ("user", "ann")])
def test_a_tag_s_and_a_user_s_budget_counts_and_refuses_what_bears_the_name(
    connection: Connection, scope: Scope, name: str
) -> None:
    pay(connection, "1")
    budget = make(connection, scope, "daily", "3")
    status = budgets.status_of(connection, budget, now_us=NOW_US)
    assert status.spent_nano == 1 * USD, "what the period spent before it was made"
    pay(connection, "2")
    with pytest.raises(BudgetExceeded) as refused:
        check(connection)
    assert refused.value.metadata == {
        "budget_scope": "organization",
        "budget_interval": "daily",
        "budget_limit": usd_json(3 * USD),
        "budget_resets_at": "2026-11-28T00:00:00Z",
        "budget_id": budget.id,
        "budget_subject": f"{scope}:{name}",
    }
    assert f"of the {scope} {name} (3 USD)" in refused.value.message
    other = SPENDER._replace(user="ben", tags=("eu", "Nightly"))
    elsewhere = SPENDER._replace(organization_id="org_other")
    open_organization(connection, now_us=NOW_US, organization_id="org_other")
    for spender in (other, elsewhere, Spender(ORGANIZATION, WORKSPACE, FAMILY)):
        assert budgets.check_hard(connection, spender, now_us=NOW_US) == []
    budgets.check_hard(connection, SPENDER, now_us=NOW_US + US_PER_DAY)


def test_where_no_name_is_limited_names_cost_one_question_in_all(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked once and remembered; requests without a tag or user do not ask it."""
    asked: list[str] = []

    def noted(ask: Callable[..., Any]) -> Callable[..., Any]:
        def noting(sql: str, *values: Any) -> Any:
            asked.append(sql)
            return ask(sql, *values)

        return noting

    monkeypatch.setattr(connection, "row", noted(connection.row))
    monkeypatch.setattr(connection, "rows", noted(connection.rows))
    connection.cached_rows = defaultdict(dict)
    plain = Spender(ORGANIZATION, WORKSPACE, FAMILY)
    budgets.check_hard(connection, plain, now_us=NOW_US)
    of_budgets = [sql for sql in asked if "FROM budget" in sql]
    for spender in (SPENDER, plain, SPENDER._replace(user="ben"), SPENDER):
        budgets.check_hard(connection, spender, now_us=NOW_US)
    more = [sql for sql in asked if "FROM budget" in sql][len(of_budgets) :]
    assert len(of_budgets) == len(more) == 1
    assert "scope IN ('tag', 'user')" in more[0]


def test_a_soft_budget_refuses_nothing(connection: Connection) -> None:
    make(connection, kind="soft", limit="1")
    pay(connection, "5")
    check(connection)


def test_a_budget_made_mid_period_counts_what_was_spent_before(connection: Connection) -> None:
    pay(connection, "2", now_us=us_from_iso("2026-11-01T00:00:00Z"))
    make(connection, limit="2")
    with pytest.raises(BudgetExceeded):
        check(connection)


def test_a_budget_opens_again_with_its_next_period(connection: Connection) -> None:
    make(connection, limit="1")
    pay(connection, "5")
    with pytest.raises(BudgetExceeded):
        check(connection, now_us=us_from_iso("2026-11-30T23:59:59.999999Z"))
    check(connection, now_us=us_from_iso("2026-12-01T00:00:00Z"))


def test_a_clock_set_back_neither_opens_nor_doubles_a_period(connection: Connection) -> None:
    make(connection, interval="daily", limit="1")
    after = us_from_iso("2026-11-28T00:00:01Z")
    before = us_from_iso("2026-11-27T23:59:59Z")
    pay(connection, "1", now_us=after)
    with pytest.raises(BudgetExceeded, match="2026-11-29T00:00:00Z"):
        check(connection, now_us=before)
    with pytest.raises(BudgetExceeded):
        check(connection, now_us=after)


def test_own_key_requests_count_only_when_included(connection: Connection) -> None:
    make(connection, limit="1")
    make(connection, "workspace", limit="1", include_byok=True)
    spend.add(
        connection,
        (ORGANIZATION, WORKSPACE, FAMILY),
        charged_nano=0,
        byok_nano=1 * USD,
        at_us=NOW_US,
    )
    with pytest.raises(BudgetExceeded) as refused:
        check(connection)
    assert refused.value.metadata is not None
    assert refused.value.metadata["budget_scope"] == "workspace"


def test_every_hard_budget_that_is_reached_is_named_and_the_first_is_the_refusal(
    connection: Connection,
) -> None:
    make(connection, "key", limit="1")
    make(connection, "workspace", limit="9")
    make(connection, limit="2")
    make(connection, limit="1", kind="soft")
    pay(connection, "2")
    named = budgets.hard_refusals(connection, SPENDER, now_us=NOW_US)
    scopes = [each.metadata["budget_scope"] for each in named if each.metadata is not None]
    assert scopes == ["organization", "key"]
    with pytest.raises(BudgetExceeded) as refused:
        check(connection)
    assert refused.value.metadata == named[0].metadata


def test_another_organization_s_budget_does_not_count(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US, organization_id="org_other")
    make(connection, limit="1")
    pay(connection, "1")
    budgets.check_hard(connection, Spender("org_other", "ws_other", "key_other"), now_us=NOW_US)


def test_one_budget_per_scope_object_interval_and_kind(connection: Connection) -> None:
    first = make(connection, "key")
    with pytest.raises(AlreadyExists, match=first.id):
        make(connection, "key", limit="9")
    make(connection, "key", kind="soft")


@pytest.mark.parametrize(
    ("interval", "limit", "fine"),
    [
        ("lifetime", "5", False),
        ("lifetime", "5.000000001", True),
        ("weekly", "5", False),
        ("weekly", "4.999999999", True),
        ("daily", "6", False),
        ("daily", "0.01", True),
    ],
)
def test_limits_shrink_as_the_window_narrows(
    connection: Connection, interval: Window, limit: str, *, fine: bool
) -> None:
    """lifetime > monthly > weekly > daily."""
    make(connection, interval="monthly", limit="5")
    make(connection, interval=interval, limit="100", kind="soft")
    if fine:
        make(connection, interval=interval, limit=limit)
        return
    with pytest.raises(BudgetOrderViolation) as refused:
        make(connection, interval=interval, limit=limit)
    assert interval in refused.value.message
    assert "monthly" in refused.value.message


def test_a_patch_keeps_the_order_too(connection: Connection) -> None:
    make(connection, interval="lifetime", limit="50")
    daily = make(connection, interval="daily", limit="5")
    with pytest.raises(BudgetOrderViolation):
        budgets.patch(
            connection,
            ORGANIZATION,
            daily.id,
            budgets.PatchBudget(limit=Decimal(50)),
            now_us=NOW_US,
        )
    changed = budgets.patch(
        connection,
        ORGANIZATION,
        daily.id,
        budgets.PatchBudget(limit=Decimal("49.5"), alert_thresholds=(100, 75, 75)),
        now_us=NOW_US + 1,
    )
    assert changed == budgets.get(connection, ORGANIZATION, daily.id)
    assert (changed.limit_nano, changed.alert_thresholds) == (49_500_000_000, (75, 100))
    assert changed.updated_at_us == NOW_US + 1


@pytest.mark.parametrize("limit", ["0", "-1", "0.0000000001", "1000001"])
def test_a_limit_that_cannot_be_names_its_field(connection: Connection, limit: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        make(connection, limit=limit)
    assert refused.value.param == "limit"


def test_foreign_and_absent_budgets_look_the_same(connection: Connection) -> None:
    budget = make(connection)
    texts = set()
    for organization_id, budget_id in (("org_other", budget.id), (ORGANIZATION, "bud_none")):
        with pytest.raises(NotFound) as got:
            budgets.get(connection, organization_id, budget_id)
        with pytest.raises(NotFound) as deleted:
            budgets.delete(connection, organization_id, budget_id)
        texts |= {got.value.message, deleted.value.message}
    assert len(texts) == 1


def test_lists_are_filtered_and_counted(connection: Connection) -> None:
    make(connection)
    key = make(connection, "key", "daily", "1")
    make(connection, "key", "daily", "2", kind="soft")

    def ids(**wanted: str) -> list[str]:
        found, _ = budgets.list_budgets(
            connection, ORGANIZATION, budgets.BudgetFilter(**wanted), limit=50, offset=0
        )
        return [budget.id for budget in found]

    assert ids(scope="key", kind="hard") == [key.id]
    assert key.id in ids(scope_id=FAMILY)
    assert key.id in ids(scope_id=ROTATED)
    assert ids(interval="weekly") == []
    page, total_count = budgets.list_budgets(
        connection, ORGANIZATION, budgets.BudgetFilter(), limit=1, offset=1
    )
    assert (len(page), total_count) == (1, 3)


def test_the_record_shows_spend_rest_and_forecast(connection: Connection) -> None:
    budget = make(connection, interval="daily", limit="4")
    pay(connection, "1")
    found = budgets.record(budgets.status_of(connection, budget, now_us=NOW_US))
    assert msgspec.json.decode(msgspec.json.encode(found)) == {
        "id": budget.id,
        "scope": "organization",
        "scope_id": ORGANIZATION,
        "interval": "daily",
        "kind": "hard",
        "limit": 4,
        "spend": 1,
        "remaining": 3,
        "percent_used": 25.0,
        "period_start": "2026-11-27T00:00:00Z",
        "resets_at": "2026-11-28T00:00:00Z",
        "forecast": {"projected_spend": 1.09090909, "exhausts_at": None},
        "include_byok": False,
        "alert_thresholds": [50, 80, 90, 100],
        "created_at": "2026-11-27T22:00:00Z",
        "shadow": False,
        "limit_in_force": 4,
        "raised": None,
        "would_refuse": None,
        "updated_at": "2026-11-27T22:00:00Z",
    }


def test_the_workspace_form_puts_gets_and_deletes_the_hard_budget(connection: Connection) -> None:
    def put(limit: str) -> budgets.Budget:
        body = budgets.PutWorkspaceBudget(limit_usd=Decimal(limit))
        return budgets.put_of_workspace(
            connection, ORGANIZATION, WORKSPACE, "lifetime", body, now_us=NOW_US
        )

    first = put("5")
    second = put("7")
    assert first.id == second.id
    assert second == budgets.get_of_workspace(connection, ORGANIZATION, WORKSPACE, "lifetime")
    shown = budgets.workspace_record(budgets.status_of(connection, second, now_us=NOW_US))
    assert (shown.reset_interval, shown.workspace_id) == (None, WORKSPACE)
    assert bytes(shown.limit_usd) == b"7"
    for _ in range(2):
        budgets.delete_of_workspace(connection, ORGANIZATION, WORKSPACE, "lifetime")
    with pytest.raises(NotFound):
        budgets.get_of_workspace(connection, ORGANIZATION, WORKSPACE, "lifetime")


def test_a_charge_tells_which_budgets_it_took_over_a_threshold(connection: Connection) -> None:
    hard = make(connection, limit="10")
    soft = make(connection, "key", limit="100", kind="soft")
    pay(connection, "4")

    def crossed(usd: str) -> list[tuple[str, int, tuple[int, ...]]]:
        pay(connection, usd)
        found = budgets.crossed(
            connection,
            SPENDER,
            charged_nano=int(Decimal(usd) * USD),
            byok_nano=0,
            at_us=NOW_US,
        )
        return [
            (
                one.status.budget.id,
                one.crossing.threshold_percent,
                one.crossing.thresholds_crossed,
            )
            for one in found
        ]

    assert crossed("0.5") == []
    assert crossed("4") == [(hard.id, 80, (50, 80))]
    assert crossed("0.1") == []
    assert sorted(crossed("45")) == sorted([(hard.id, 100, (90, 100)), (soft.id, 50, (50,))])


def test_a_new_budget_tells_what_is_already_crossed(connection: Connection) -> None:
    pay(connection, "4.6")
    budget = make(connection, limit="5")
    standing = budgets.standing_crossing(connection, budget, now_us=NOW_US)
    assert standing is not None
    assert standing.crossing.thresholds_crossed == (50, 80, 90)
    assert (
        budgets.standing_crossing(connection, make(connection, "key", limit="50"), now_us=NOW_US)
        is None
    )


def test_a_key_s_report_lists_what_its_requests_count_against(connection: Connection) -> None:
    make(connection, "key", "daily", "1")
    make(connection, "organization", "lifetime", "9")
    standing = budgets.applicable(connection, SPENDER, now_us=NOW_US)
    shown = [budgets.key_record(status) for status in standing]
    assert [(one.scope, one.interval) for one in shown] == [
        ("organization", "lifetime"),
        ("key", "daily"),
    ]
