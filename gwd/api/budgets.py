"""/budgets with their raises and simulation, and the same by workspace and interval under /workspaces/{id}/budgets."""

from typing import Final, get_args

import msgspec
from msgspec import UNSET

from gwd import budgets
from gwd.alerts import threshold_alerts
from gwd.api.management import Answer, Call, deleted, listed, one
from gwd.api.query import Query, Text, Words
from gwd.budgets import Budget, BudgetFilter, BudgetScope, NewBudget, NewRaise, PatchBudget
from gwd.budgets import PutWorkspaceBudget as PutBudget
from gwd.core import tags
from gwd.core.caller import Caller
from gwd.core.errors import Forbidden, InvalidValue, MissingParameter, NotFound
from gwd.core.periods import WINDOWS, Window
from gwd.core.spender import Scope, named_counter
from gwd.dialects.extensions import MAX_NAME
from gwd.keys import service as keys
from gwd.management import budgets as use_cases
from gwd.orgs import workspaces
from gwd.orgs.workspaces import Workspace
from gwd.store import Connection

FILTERS: Final = (
    Query("scope", Words(get_args(Scope)), "Only budgets of this scope."),
    Query("scope_id", Text(), "Only budgets of this organization, workspace, key, tag or user."),
    Query("interval", Words(WINDOWS), "Only budgets of this interval."),
    Query("kind", Words(get_args(budgets.Kind)), "Only hard or only soft budgets."),
)


def create(connection: Connection, call: Call) -> Answer:
    """Make a budget."""
    body: NewBudget = call.body
    where = _scope(connection, call, body.scope, body.scope_id)
    _require_reach(connection, call.caller, where.scope, where.scope_id)
    budget = budgets.create(connection, call.organization_id, body, where, now_us=call.now_us)
    return _changed(connection, call, budget, status=201)


def list_(connection: Connection, call: Call) -> Answer:
    """The budgets of the organization."""
    limit, offset = call.page()
    wanted = BudgetFilter(**{each.name: call.query.get(each.name) for each in FILTERS})
    found, total = budgets.list_budgets(
        connection, call.organization_id, wanted, limit=limit, offset=offset
    )
    standing = [budgets.status_of(connection, budget, now_us=call.now_us) for budget in found]
    return listed([budgets.record(status) for status in standing], total)


def get(connection: Connection, call: Call) -> Answer:
    """One budget, with what is spent of it."""
    budget = budgets.get(connection, call.organization_id, call.path["budget"])
    return one(budgets.record(budgets.status_of(connection, budget, now_us=call.now_us)))


def patch(connection: Connection, call: Call) -> Answer:
    """Change a budget.

    `shadow` false switches on a budget that only counted; what it would have refused goes into the audit line.
    """
    body: PatchBudget = call.body
    known = _in_reach(connection, call)
    counted = budgets.status_of(connection, known, now_us=call.now_us).would_refuse
    budget = budgets.patch(connection, call.organization_id, known.id, body, now_us=call.now_us)
    more: dict[str, object] = {}
    if counted is not None and not budget.shadow:
        more = {
            "would_refuse": counted.requests,
            "would_refuse_nano": counted.cost_nano(include_byok=known.include_byok),
        }
    return _changed(connection, call, budget, details=_details(budget) | more)


def raise_(connection: Connection, call: Call) -> Answer:
    """Raise a budget's limit for a time.

    From `until` on the old limit holds again by itself. A raise that holds already is replaced. `limit` of the budget
    stays what it is, so that a file that says it finds nothing to change.
    """
    body: NewRaise = call.body
    raised = use_cases.raise_limit(
        connection,
        _in_reach(connection, call),
        body,
        by=call.caller.key_id,
        app_url=call.node.app_url,
        now_us=call.now_us,
    )
    return one(
        budgets.record(budgets.status_of(connection, raised, now_us=call.now_us)),
        status=201,
        subject=("budget", raised.id),
        details=use_cases.raise_details(raised),
    )


def end_raise(connection: Connection, call: Call) -> Answer:
    """End a raise before its time."""
    known = _in_reach(connection, call)
    if known.raised_until_us is None:
        raise NotFound("this budget is not raised")
    budget = budgets.end_raise(connection, known, now_us=call.now_us)
    return _changed(connection, call, budget, details=use_cases.raise_details(known))


def simulate(connection: Connection, call: Call) -> Answer:
    """What a hard budget would have refused, had it been there.

    Read from the records of its last periods; nothing is made. In each period a request counts as spent when it ended,
    and as one to be refused if it came after the limit was reached. Spending is taken as it was, also of requests that
    the budget would have refused in the period before.
    """
    body: use_cases.SimulateBudget = call.body
    where = _scope(connection, call, body.scope, body.scope_id)
    return one(
        use_cases.simulate(connection, call.organization_id, body, where, now_us=call.now_us)
    )


def delete(connection: Connection, call: Call) -> Answer:
    """Delete a budget."""
    known = _in_reach(connection, call)
    budgets.delete(connection, call.organization_id, known.id)
    return deleted("budget", known.id)


def list_of_workspace(connection: Connection, call: Call) -> Answer:
    """The hard budgets of a workspace, one per interval."""
    limit, offset = call.page()
    wanted = BudgetFilter(scope="workspace", scope_id=_workspace(connection, call).id, kind="hard")
    found, total = budgets.list_budgets(
        connection, call.organization_id, wanted, limit=limit, offset=offset
    )
    standing = [budgets.status_of(connection, budget, now_us=call.now_us) for budget in found]
    return listed([budgets.workspace_record(status) for status in standing], total)


def get_of_workspace(connection: Connection, call: Call) -> Answer:
    """The hard budget of a workspace for one interval."""
    workspace = _workspace(connection, call)
    budget = budgets.get_of_workspace(
        connection, call.organization_id, workspace.id, _interval(call)
    )
    standing = budgets.status_of(connection, budget, now_us=call.now_us)
    return one(budgets.workspace_record(standing))


def put_of_workspace(connection: Connection, call: Call) -> Answer:
    """Make or change the hard budget of a workspace for one interval.

    Create or change; a new one counts own provider keys as the workspace says, unless the body does.
    """
    body: PutBudget = call.body
    workspace, interval = _workspace(connection, call), _interval(call)
    workspaces.require_within(call.caller, workspace.id)
    if body.include_byok_in_budgets is UNSET and not _has(connection, workspace, interval):
        body = msgspec.structs.replace(
            body, include_byok_in_budgets=workspace.include_byok_in_budgets
        )
    budget = budgets.put_of_workspace(
        connection, call.organization_id, workspace.id, interval, body, now_us=call.now_us
    )
    standing = budgets.status_of(connection, budget, now_us=call.now_us)
    return one(
        budgets.workspace_record(standing),
        subject=("budget", budget.id),
        details=_details(budget),
    )


def delete_of_workspace(connection: Connection, call: Call) -> Answer:
    """Delete the hard budget of a workspace for one interval.

    Deleting what is not there is no error; then `id` is null.
    """
    workspace, interval = _workspace(connection, call), _interval(call)
    workspaces.require_within(call.caller, workspace.id)
    if not _has(connection, workspace, interval):
        return deleted("budget", None)
    budget = budgets.get_of_workspace(connection, call.organization_id, workspace.id, interval)
    budgets.delete(connection, call.organization_id, budget.id)
    return deleted("budget", budget.id)


def _changed(
    connection: Connection,
    call: Call,
    budget: Budget,
    *,
    status: int = 200,
    details: dict[str, object] | None = None,
) -> Answer:
    standing = budgets.status_of(connection, budget, now_us=call.now_us)
    threshold_alerts.raise_standing_budget(
        connection, budget, app_url=call.node.app_url, now_us=call.now_us
    )
    return one(
        budgets.record(standing),
        status=status,
        subject=("budget", budget.id),
        details=_details(budget) if details is None else details,
    )


def _details(budget: Budget) -> dict[str, object]:
    return {
        "scope": budget.scope,
        "scope_id": budget.scope_id,
        "interval": budget.interval,
        "kind": budget.kind,
        "limit_nano": budget.limit_nano,
        "shadow": budget.shadow,
    }


def _in_reach(connection: Connection, call: Call) -> Budget:
    """The budget that the path names, which the caller may write."""
    known = budgets.get(connection, call.organization_id, call.path["budget"])
    _require_reach(connection, call.caller, known.scope, known.scope_id)
    return known


def _scope(connection: Connection, call: Call, scope: Scope, named: str | None) -> BudgetScope:
    """The scope that a body names, which must be in the organization."""
    organization_id = call.organization_id
    if scope == "organization":
        if named not in (None, organization_id):
            raise InvalidValue(
                "`scope_id` of scope organization is the organization itself; leave it out",
                param="scope_id",
            )
        scope_id = spend_id = organization_id
    elif named is None:
        raise MissingParameter(
            f"`scope_id` is required: the {scope} that the budget is for", param="scope_id"
        )
    elif scope == "workspace":
        scope_id = spend_id = workspaces.get(connection, organization_id, named).id
    elif scope == "tag" or scope == "user":
        scope_id = _name(scope, named)
        spend_id = named_counter(organization_id, scope, scope_id)
    else:
        key = keys.get(connection, organization_id, named, actor=call.caller)
        scope_id, spend_id = key.id, key.family_id
    return BudgetScope(scope=scope, scope_id=scope_id, spend_id=spend_id)


def _name(scope: Scope, named: str) -> str:
    """A tag or a user as requests name them."""
    if scope == "tag":
        return tags.checked_one(named, param="scope_id")
    if not 1 <= len(named) <= MAX_NAME:
        raise InvalidValue(
            f"`scope_id` of scope user must have 1 to {MAX_NAME} characters, as `user` of requests",
            param="scope_id",
        )
    return named


def _require_reach(connection: Connection, caller: Caller, scope: Scope, scope_id: str) -> None:
    """A lead writes the budgets of its workspace and of the keys in it."""
    if caller.workspace_id is None:
        return
    workspace_id = scope_id
    if scope == "key":
        found = keys.workspace_of(connection, caller.organization_id, scope_id)
        workspace_id = found or ""
    if scope not in ("workspace", "key") or workspace_id != caller.workspace_id:
        raise Forbidden(
            "This management key is bound to one workspace: it writes the budgets of that workspace"
            " and of the keys in it."
        )


def _workspace(connection: Connection, call: Call) -> Workspace:
    return workspaces.get(connection, call.organization_id, call.path["workspace"])


def _interval(call: Call) -> Window:
    for window in WINDOWS:
        if call.path["interval"] == window:
            return window
    raise InvalidValue(f"the interval must be one of {', '.join(WINDOWS)}", param="interval")


def _has(connection: Connection, workspace: Workspace, interval: Window) -> bool:
    try:
        budgets.get_of_workspace(connection, workspace.organization_id, workspace.id, interval)
    except NotFound:
        return False
    return True
