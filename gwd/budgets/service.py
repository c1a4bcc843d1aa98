"""Budgets as records: create, get, list, patch, delete, and the workspace form with one hard budget per interval.

A raise holds for a time beside the limit that was set, which it does not change.
"""

from decimal import Decimal
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType
from peewee import ModelSelect

from gwd.budgets import shadow
from gwd.budgets.status import Budget, Kind
from gwd.budgets.tables import BudgetRow
from gwd.core.clock import US_PER_DAY, TimeError, us_from_iso
from gwd.core.errors import AlreadyExists, BudgetOrderViolation, InvalidValue, NotFound
from gwd.core.ids import mint
from gwd.core.inputs import MomentInput, PercentInput, UsdInput
from gwd.core.money import MoneyError, nano_from_usd, usd_text
from gwd.core.periods import WINDOWS, Window
from gwd.core.spender import Scope
from gwd.spend.thresholds import DEFAULT_THRESHOLDS
from gwd.store.connection import Connection

MAX_THRESHOLDS: Final = 10
MAX_RAISE_DAYS: Final = 366


class BudgetScope(msgspec.Struct, frozen=True, kw_only=True):
    """What a budget is for, resolved by the caller: `spend_id` is the counter of its spending."""

    scope: Scope
    scope_id: str
    spend_id: str


Limit = Annotated[
    UsdInput, Meta(description="The most that may be spent in an interval; more than 0.")
]
WithByok = Annotated[
    bool, Meta(description="Whether requests on the owner's own vendor keys count.")
]
Shadow = Annotated[
    bool,
    Meta(
        description="Whether a hard budget only counts what it would refuse. False switches it on, and forgets what was"
        " counted."
    ),
]
Thresholds = Annotated[
    tuple[PercentInput, ...],
    Meta(
        max_length=MAX_THRESHOLDS,
        description="At which percentages of the limit an alert is raised.",
    ),
]


class NewBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new budget."""

    scope: Annotated[Scope, Meta(description="Whose spending it limits.")]
    interval: Annotated[
        Window, Meta(description="How often it starts anew, in UTC; `lifetime` never does.")
    ]
    limit: Limit
    kind: Annotated[
        Kind,
        Meta(description="`hard` refuses requests once it is used up, `soft` only raises alerts."),
    ] = "hard"
    scope_id: Annotated[
        str | None,
        Meta(
            description="The workspace, by id or slug, the key, the tag, or the user as requests name them. Null for"
            " the organization itself."
        ),
    ] = None
    include_byok: WithByok = False
    alert_thresholds: Thresholds = DEFAULT_THRESHOLDS
    shadow: Shadow = False


class PatchBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a budget: absent is unchanged. What it is for stays; make another one."""

    limit: Limit | UnsetType = UNSET
    include_byok: WithByok | UnsetType = UNSET
    alert_thresholds: Thresholds | UnsetType = UNSET
    shadow: Shadow | UnsetType = UNSET


class NewRaise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A higher limit for a time. Another one takes its place."""

    limit: Annotated[
        UsdInput,
        Meta(
            description="What may be spent in the interval meanwhile; more than the budget's limit."
        ),
    ]
    until: Annotated[
        MomentInput,
        Meta(
            description="From when on the old limit holds again, with an offset; within 366 days."
        ),
    ]


class PutWorkspaceBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The hard budget of a workspace for one interval."""

    limit_usd: Limit
    include_byok_in_budgets: Annotated[
        WithByok | UnsetType,
        Meta(
            description="Whether requests on the owner's own vendor keys count. Absent is unchanged, and for a new"
            " budget what the workspace says."
        ),
    ] = UNSET


class BudgetFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which budgets to list; `scope_id` matches a key by its id or its family."""

    scope: str | None = None
    scope_id: str | None = None
    interval: str | None = None
    kind: str | None = None


def create(
    connection: Connection,
    organization_id: str,
    new: NewBudget,
    where: BudgetScope,
    *,
    now_us: int,
) -> Budget:
    """Raises InvalidValue, AlreadyExists, or BudgetOrderViolation."""
    limit_nano = limit_of(new.limit, "limit")
    budget = Budget(
        id=mint("bud_"),
        organization_id=organization_id,
        scope=where.scope,
        scope_id=where.scope_id,
        spend_id=where.spend_id,
        interval=new.interval,
        kind=new.kind,
        limit_nano=limit_nano,
        include_byok=new.include_byok,
        alert_thresholds=_thresholds(new.alert_thresholds),
        created_at_us=now_us,
        updated_at_us=now_us,
        shadow=new.shadow,
    )
    _check_shadow(budget)
    siblings = _siblings(connection, budget)
    for sibling in siblings:
        if sibling.interval == budget.interval:
            raise AlreadyExists(
                f"this {budget.scope} already has a {budget.kind} {budget.interval} budget ({sibling.id}); patch it",
                param="interval",
            )
    _check_order(budget, siblings, "limit")
    values = msgspec.structs.asdict(budget)
    values["created_at"] = values.pop("created_at_us")
    values["updated_at"] = values.pop("updated_at_us")
    values["raised_until"] = values.pop("raised_until_us")
    connection.run(BudgetRow.insert(**values))
    return budget


def get(connection: Connection, organization_id: str, budget_id: str) -> Budget:
    """Raises NotFound for an unknown id and for another organization's."""
    row = connection.first(
        _select().where(BudgetRow.id == budget_id, BudgetRow.organization_id == organization_id)
    )
    if row is None:
        raise NotFound("no such budget")
    return _budget(row)


def list_budgets(
    connection: Connection, organization_id: str, wanted: BudgetFilter, *, limit: int, offset: int
) -> tuple[list[Budget], int]:
    """Budgets in the order they were made, and how many there are in all."""
    query = _select().where(BudgetRow.organization_id == organization_id)
    if wanted.scope is not None:
        query = query.where(BudgetRow.scope == wanted.scope)
    if wanted.scope_id is not None:
        query = query.where(
            (BudgetRow.scope_id == wanted.scope_id) | (BudgetRow.spend_id == wanted.scope_id)
        )
    if wanted.interval is not None:
        query = query.where(BudgetRow.interval == wanted.interval)
    if wanted.kind is not None:
        query = query.where(BudgetRow.kind == wanted.kind)
    page = query.order_by(BudgetRow.created_at, BudgetRow.id).limit(limit).offset(offset)
    return [_budget(row) for row in connection.run(page)], connection.count(query)


def patch(
    connection: Connection,
    organization_id: str,
    budget_id: str,
    changes: PatchBudget,
    *,
    now_us: int,
) -> Budget:
    """Raises NotFound, InvalidValue or BudgetOrderViolation."""
    return _change(
        connection, get(connection, organization_id, budget_id), changes, "limit", now_us
    )


def delete(connection: Connection, organization_id: str, budget_id: str) -> None:
    """Raises NotFound."""
    shadow.forget(connection, get(connection, organization_id, budget_id).id)
    deleted = connection.run(
        BudgetRow.delete().where(
            BudgetRow.id == budget_id, BudgetRow.organization_id == organization_id
        )
    )
    if deleted != 1:
        raise NotFound("no such budget")


def raise_limit(
    connection: Connection, known: Budget, new: NewRaise, *, by: str, now_us: int, at_us: int
) -> Budget:
    """Raise a budget's limit for a time; `by` is the key that asks, `at_us` ledger time, from which the end counts.

    The order of limits is that of the limits in force. Raises InvalidValue or BudgetOrderViolation.
    """
    limit_nano = limit_of(new.limit, "limit")
    if limit_nano <= known.limit_nano:
        raise InvalidValue(
            f"limit must be more than the budget's own of {usd_text(known.limit_nano)} USD; patch the budget to"
            " lower it",
            param="limit",
        )
    raised = msgspec.structs.replace(
        known,
        raised_nano=limit_nano,
        raised_until_us=_until_us(new.until, at_us),
        raised_by=by,
        updated_at_us=now_us,
    )
    siblings = _siblings(connection, known)
    _check_order(_in_force(raised, at_us), [_in_force(each, at_us) for each in siblings], "limit")
    _write_raise(connection, raised)
    return raised


def end_raise(connection: Connection, known: Budget, *, now_us: int) -> Budget:
    """The budget without its raise."""
    budget = msgspec.structs.replace(
        known, raised_nano=None, raised_until_us=None, raised_by=None, updated_at_us=now_us
    )
    _write_raise(connection, budget)
    return budget


def lapsed_raises(connection: Connection, *, now_us: int) -> list[Budget]:
    """The budgets of every organization whose raise is over and has not been taken away, oldest end first."""
    query = _select().where(BudgetRow.raised_until <= now_us)
    return [_budget(row) for row in connection.run(query.order_by(BudgetRow.raised_until))]


def put_of_workspace(
    connection: Connection,
    organization_id: str,
    workspace_id: str,
    interval: Window,
    body: PutWorkspaceBudget,
    *,
    now_us: int,
) -> Budget:
    """Create the workspace's hard budget of that interval, or change the one there is."""
    known = _of_workspace(connection, organization_id, workspace_id, interval)
    if known is not None:
        changes = PatchBudget(limit=body.limit_usd, include_byok=body.include_byok_in_budgets)
        return _change(connection, known, changes, "limit_usd", now_us)
    new = NewBudget(
        scope="workspace",
        interval=interval,
        limit=body.limit_usd,
        include_byok=body.include_byok_in_budgets is True,
    )
    where = BudgetScope(scope="workspace", scope_id=workspace_id, spend_id=workspace_id)
    return create(connection, organization_id, new, where, now_us=now_us)


def get_of_workspace(
    connection: Connection, organization_id: str, workspace_id: str, interval: Window
) -> Budget:
    """The workspace's hard budget of that interval. Raises NotFound."""
    budget = _of_workspace(connection, organization_id, workspace_id, interval)
    if budget is None:
        raise NotFound("no such budget")
    return budget


def delete_of_workspace(
    connection: Connection, organization_id: str, workspace_id: str, interval: Window
) -> None:
    """Delete the workspace's hard budget of that interval, if there is one."""
    budget = _of_workspace(connection, organization_id, workspace_id, interval)
    if budget is not None:
        delete(connection, organization_id, budget.id)


def _change(
    connection: Connection, known: Budget, changes: PatchBudget, param: str, now_us: int
) -> Budget:
    limit = changes.limit
    include_byok = changes.include_byok
    thresholds = changes.alert_thresholds
    is_shadow = known.shadow if isinstance(changes.shadow, UnsetType) else changes.shadow
    budget = msgspec.structs.replace(
        known,
        limit_nano=known.limit_nano if isinstance(limit, UnsetType) else limit_of(limit, param),
        include_byok=known.include_byok if isinstance(include_byok, UnsetType) else include_byok,
        alert_thresholds=known.alert_thresholds
        if isinstance(thresholds, UnsetType)
        else _thresholds(thresholds),
        updated_at_us=now_us,
        shadow=is_shadow,
    )
    _check_shadow(budget)
    _check_order(budget, _siblings(connection, budget), param)
    if known.shadow and not is_shadow:
        shadow.forget(connection, budget.id)
    connection.run(
        BudgetRow.update(
            limit_nano=budget.limit_nano,
            include_byok=budget.include_byok,
            alert_thresholds=budget.alert_thresholds,
            shadow=budget.shadow,
            updated_at=now_us,
        ).where(BudgetRow.id == budget.id)
    )
    return budget


def _write_raise(connection: Connection, budget: Budget) -> None:
    connection.run(
        BudgetRow.update(
            raised_nano=budget.raised_nano,
            raised_until=budget.raised_until_us,
            raised_by=budget.raised_by,
            updated_at=budget.updated_at_us,
        ).where(BudgetRow.id == budget.id)
    )


def _in_force(budget: Budget, at_us: int) -> Budget:
    return msgspec.structs.replace(budget, limit_nano=budget.limit_at(at_us))


def _until_us(text: str, at_us: int) -> int:
    try:
        until_us = us_from_iso(text)
    except TimeError as error:
        raise InvalidValue(f"until {error}", param="until") from None
    if until_us <= at_us:
        raise InvalidValue("until lies in the past; name a later time", param="until")
    if until_us > at_us + MAX_RAISE_DAYS * US_PER_DAY:
        raise InvalidValue(
            f"until is more than {MAX_RAISE_DAYS} days away; patch the budget to raise it for good",
            param="until",
        )
    return until_us


def _check_shadow(budget: Budget) -> None:
    if budget.shadow and budget.kind != "hard":
        raise InvalidValue(
            f"shadow is for hard budgets; a {budget.kind} one refuses nothing", param="shadow"
        )


def limit_of(usd: Decimal, param: str) -> int:
    """A limit in nano-USD. Raises InvalidValue for one that is no amount or nothing."""
    try:
        limit_nano = nano_from_usd(usd)
    except MoneyError as error:
        raise InvalidValue(f"{param} {error}", param=param) from None
    if limit_nano == 0:
        raise InvalidValue(
            f"{param} must be more than 0 USD; disable the key or delete the budget instead",
            param=param,
        )
    return limit_nano


def _thresholds(percents: tuple[int, ...]) -> tuple[int, ...]:
    if any(not 1 <= percent <= 100 for percent in percents):
        raise InvalidValue(
            "alert_thresholds must be whole percentages from 1 to 100", param="alert_thresholds"
        )
    return tuple(sorted(set(percents)))


def _check_order(budget: Budget, siblings: list[Budget], param: str) -> None:
    """Limits strictly shrink as the window narrows: lifetime > monthly > weekly > daily."""
    breadth = WINDOWS.index(budget.interval)
    for sibling in siblings:
        other = WINDOWS.index(sibling.interval)
        if other == breadth:
            continue
        broad, narrow = (budget, sibling) if breadth > other else (sibling, budget)
        if broad.limit_nano <= narrow.limit_nano:
            raise BudgetOrderViolation(
                f"the {broad.interval} limit ({usd_text(broad.limit_nano)} USD) must be larger than the"
                f" {narrow.interval} limit ({usd_text(narrow.limit_nano)} USD) of the same {budget.scope}",
                param=param,
            )


def _siblings(connection: Connection, budget: Budget) -> list[Budget]:
    query = _select().where(
        BudgetRow.spend_id == budget.spend_id,
        BudgetRow.kind == budget.kind,
        BudgetRow.id != budget.id,
    )
    return [_budget(row) for row in connection.run(query)]


def _of_workspace(
    connection: Connection, organization_id: str, workspace_id: str, interval: Window
) -> Budget | None:
    row = connection.first(
        _select().where(
            BudgetRow.organization_id == organization_id,
            BudgetRow.scope == "workspace",
            BudgetRow.scope_id == workspace_id,
            BudgetRow.interval == interval,
            BudgetRow.kind == "hard",
        )
    )
    return None if row is None else _budget(row)


def _select() -> "ModelSelect[BudgetRow]":
    return BudgetRow.select()


def _budget(row: BudgetRow) -> Budget:
    return msgspec.convert(
        {
            "id": row.id,
            "organization_id": row.organization_id,
            "scope": row.scope,
            "scope_id": row.scope_id,
            "spend_id": row.spend_id,
            "interval": row.interval,
            "kind": row.kind,
            "limit_nano": row.limit_nano,
            "include_byok": row.include_byok,
            "alert_thresholds": row.alert_thresholds,
            "created_at_us": row.created_at,
            "updated_at_us": row.updated_at,
            "shadow": row.shadow,
            "raised_nano": row.raised_nano,
            "raised_until_us": row.raised_until,
            "raised_by": row.raised_by,
        },
        Budget,
    )
