"""budgets: what an organization, workspace, key, tag or user may spend in a window, and what happens when it has.

Owns: budgets, the refusal of a hard one, what a shadow one would have refused, raises, thresholds crossed, the
forecast.
Does not own: the spend counters (spend), a key's own limit (keys), alerts and what was already alerted (alerts),
whether a workspace or key exists (its caller resolves the scope).
Invariants: one budget per scope object, interval and kind; limits of one scope and kind strictly fall from lifetime
over monthly and weekly to daily; a hard budget refuses when spent ≥ limit, never by an estimate; a shadow one counts by
the same rule, in the transaction that admits; a raise ends by ledger time, whoever notices it; a budget younger than
its period counts from the period's start; a key's budget follows its family through rotations.
Queries: peewee; what admission and settlement ask (`admission`) in plain SQL with named rows.
Speaks to: spend, ledger (its time), store, core.
"""

from gwd.budgets.admission import (
    BudgetCrossing,
    applicable,
    check_hard,
    count_would_refuse,
    crossed,
    end_would_refuse,
    hard_refusals,
    standing_crossing,
)
from gwd.budgets.record import (
    BudgetRecord,
    KeyBudgetRecord,
    WorkspaceBudgetRecord,
    WouldRefuseRecord,
    key_record,
    record,
    workspace_record,
)
from gwd.budgets.service import (
    BudgetFilter,
    BudgetScope,
    NewBudget,
    NewRaise,
    PatchBudget,
    PutWorkspaceBudget,
    create,
    delete,
    delete_of_workspace,
    end_raise,
    get,
    get_of_workspace,
    lapsed_raises,
    limit_of,
    list_budgets,
    patch,
    put_of_workspace,
    raise_limit,
)
from gwd.budgets.shadow import WouldRefuse
from gwd.budgets.status import Budget, BudgetStatus, Kind, status_of

__all__ = [
    "Budget",
    "BudgetCrossing",
    "BudgetFilter",
    "BudgetRecord",
    "BudgetScope",
    "BudgetStatus",
    "KeyBudgetRecord",
    "Kind",
    "NewBudget",
    "NewRaise",
    "PatchBudget",
    "PutWorkspaceBudget",
    "WorkspaceBudgetRecord",
    "WouldRefuse",
    "WouldRefuseRecord",
    "applicable",
    "check_hard",
    "count_would_refuse",
    "create",
    "crossed",
    "delete",
    "delete_of_workspace",
    "end_raise",
    "end_would_refuse",
    "get",
    "get_of_workspace",
    "hard_refusals",
    "key_record",
    "lapsed_raises",
    "limit_of",
    "list_budgets",
    "patch",
    "put_of_workspace",
    "raise_limit",
    "record",
    "standing_crossing",
    "status_of",
    "workspace_record",
]
