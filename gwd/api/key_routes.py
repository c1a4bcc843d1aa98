"""The routes about keys and what they may spend: keys, budgets."""

from typing import Final

from gwd.api import (
    auth_key,
    budgets,
    keys,
)
from gwd.api.access import ANY_KEY, manage
from gwd.api.route import (
    Route,
    delete,
    get,
    list_,
    patch,
    post,
    put,
    walk,
)
from gwd.api.shapes import Deleted, Listed, Noted, One, Walked
from gwd.budgets import (
    BudgetRecord,
    NewBudget,
    PatchBudget,
    PutWorkspaceBudget,
    WorkspaceBudgetRecord,
)
from gwd.keys.fields import CreateKey, PatchKey
from gwd.keys.record import KeyRecord
from gwd.keys.rotation import RotateKey

KEY_ROUTES: Final[tuple[Route, ...]] = (
    get(
        "/auth/key",
        ANY_KEY,
        auth_key.show,
        answers=One[auth_key.OwnKeyRecord],
    ),
    get(
        "/key",
        ANY_KEY,
        auth_key.show,
        answers=One[auth_key.OwnKeyRecord],
    ),
    # keys
    walk(
        "/keys",
        manage("keys.read"),
        keys.list_,
        *keys.FILTERS,
        page=100,
        answers=Walked[KeyRecord],
        fails=(404,),
    ),
    post(
        "/keys",
        manage("keys.write"),
        keys.create,
        CreateKey,
        "key.create",
        answers=keys.CreatedKey,
        status=201,
        also=200,
        fails=(404,),
    ),
    get(
        "/keys/<key>",
        manage("keys.read"),
        keys.get,
        answers=One[KeyRecord],
    ),
    patch(
        "/keys/<key>",
        manage("keys.write"),
        keys.patch,
        PatchKey,
        "key.patch",
        answers=Noted[KeyRecord],
        fails=(409,),
    ),
    delete(
        "/keys/<key>",
        manage("keys.write"),
        keys.delete,
        "key.delete",
        answers=keys.DeletedKey,
    ),
    post(
        "/keys/<key>/rotate",
        manage("keys.write"),
        keys.rotate,
        RotateKey,
        "key.rotate",
        answers=keys.SuccessorKey,
        status=201,
    ),
    # budgets
    list_(
        "/budgets",
        manage("budgets.read"),
        budgets.list_,
        *budgets.FILTERS,
        answers=Listed[BudgetRecord],
    ),
    post(
        "/budgets",
        manage("budgets.write"),
        budgets.create,
        NewBudget,
        "budget.create",
        answers=One[BudgetRecord],
        status=201,
        fails=(404,),
    ),
    get(
        "/budgets/<budget>",
        manage("budgets.read"),
        budgets.get,
        answers=One[BudgetRecord],
    ),
    patch(
        "/budgets/<budget>",
        manage("budgets.write"),
        budgets.patch,
        PatchBudget,
        "budget.patch",
        answers=One[BudgetRecord],
    ),
    delete(
        "/budgets/<budget>",
        manage("budgets.write"),
        budgets.delete,
        "budget.delete",
        answers=Deleted,
    ),
    list_(
        "/workspaces/<workspace>/budgets",
        manage("budgets.read"),
        budgets.list_of_workspace,
        answers=Listed[WorkspaceBudgetRecord],
    ),
    get(
        "/workspaces/<workspace>/budgets/<interval>",
        manage("budgets.read"),
        budgets.get_of_workspace,
        answers=One[WorkspaceBudgetRecord],
    ),
    put(
        "/workspaces/<workspace>/budgets/<interval>",
        manage("budgets.write"),
        budgets.put_of_workspace,
        PutWorkspaceBudget,
        "budget.put",
        answers=One[WorkspaceBudgetRecord],
    ),
    delete(
        "/workspaces/<workspace>/budgets/<interval>",
        manage("budgets.write"),
        budgets.delete_of_workspace,
        "budget.delete",
        answers=Deleted,
    ),
)
