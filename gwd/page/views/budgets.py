"""Budgets: what will refuse, and when; making, changing, raising and deleting one."""

from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from gwd.core.errors import InvalidValue
from gwd.page.answer import Done, Shown
from gwd.page.ask import Ask, Doing
from gwd.page.request import Field, Form
from gwd.page.table import Act, Page
from gwd.page.views.keys import workspaces
from gwd.page.words import DID

_HOURS: Final = {"1": "1 hour", "24": "24 hours", "72": "3 days", "168": "7 days"}
_SUBJECTS: Final = {
    "organization": None,
    "workspace": "workspace",
    "key": "key",
    "tag": "subject",
    "user": "subject",
}
"""Which field says what a budget of a scope is for."""
_RULES: Final = (
    Field("limit", 100),
    Field("alert_thresholds", 200),
    Field("include_byok", 1),
    Field("shadow", 1),
)
_NEW: Final = (
    *_RULES,
    *(
        Field("scope", 20),
        Field("workspace", 100),
        Field("key", 100),
        Field("interval", 20),
        Field("kind", 10),
        Field("subject", 1_000),
    ),
)
DID["raised"] = "The limit is raised for a time; then the old one holds again by itself."
DID["raise_ended"] = "The raise has ended; the old limit holds."


def budgets(ask: Ask) -> Shown:
    """All budgets; the note names the hard one that is reached first."""
    found = [_standing(ask, each) for each in ask.all("/budgets")]
    ahead = [
        each
        for each in found
        if each["kind"] == "hard"
        and not each["shadow"]
        and each["forecast"]["exhausts_at"] is not None
    ]
    first = min(ahead, key=lambda each: str(each["forecast"]["exhausts_at"]), default=None)
    return Shown(template="budgets.html", values={"budgets": found, "first": first, **_names(ask)})


def budget(ask: Ask) -> Shown:
    """One budget with what can be done about it."""
    found = _standing(ask, ask("/budgets/<budget>", budget=ask.path["budget"])["data"])
    names = _names(ask)
    values = {
        "budget": found,
        "hours": list(_HOURS.items()),
        "can": _may_change(ask, found),
        **names,
    }
    return Shown(template="budget.html", values=values, title=f"Budget of {name_of(found, names)}")


def new(ask: Ask) -> Shown:
    """The form for a new budget."""
    return Shown(template="budget-new.html", values=_names(ask) | {"known": None})


def edit(ask: Ask) -> Shown:
    """The form for another limit."""
    found = ask("/budgets/<budget>", budget=ask.path["budget"])["data"]
    return Shown(template="budget-edit.html", values=_names(ask) | {"known": found})


def name_of(budget: Any, names: Any) -> str:
    """What a budget is for, as people call it."""
    if budget["scope"] == "organization":
        return "the organization"
    scope_id: str = budget["scope_id"]
    names_of: dict[str, str] = names.get(f"{budget['scope']}s", {})
    return names_of.get(scope_id, scope_id)


def _names(ask: Ask) -> dict[str, Any]:
    every = {"include_disabled": "true", "include_expired": "true"}
    keys = {
        each["id"]: each["name"]
        for each in ask.all("/keys", query=every)
        if each["type"] == "inference"
    }
    return {"keys": keys, "workspaces": workspaces(ask)}


def _standing(ask: Ask, budget: Any) -> Any:
    """The record, with how far it is over and whether it is reached before it starts anew."""
    limit, spent = Decimal(budget["limit_in_force"]), Decimal(budget["spend"])
    return budget | {
        "over": spent - limit if spent > limit else None,
        "is_reached": spent >= limit,
        "refuses": budget["kind"] == "hard" and not budget["shadow"],
    }


def _may_change(ask: Ask, budget: Any) -> bool:
    """Whoever is bound to a workspace changes that workspace's budgets."""
    caller = ask.visit.caller
    if not ask.may("budgets.write"):
        return False
    return caller.workspace_id is None or caller.workspace_id == budget["scope_id"]


async def make(doing: Doing) -> Done:
    form = doing.form
    scope = form.text("scope") or "organization"
    if scope not in _SUBJECTS:
        raise InvalidValue(f"`scope` must be one of {', '.join(_SUBJECTS)}", param="scope")
    field = _SUBJECTS[scope]
    scope_id = None if field is None else form.or_none(field)
    if field is not None and scope_id is None:
        raise InvalidValue(f"Say which {scope} the budget is for.", param=field)
    body = _rules(form) | {
        "scope": scope,
        "scope_id": scope_id,
        "interval": form.text("interval"),
        "kind": form.text("kind"),
    }
    made = await doing.send("POST", "/budgets", body, once=form.or_none("once"))
    return Done(path=f"/budgets/{made['data']['id']}", did="made")


async def change(doing: Doing) -> Done:
    budget_id, body = doing.path["budget"], _rules(doing.form)
    known = (await doing.send("GET", "/budgets/<budget>", budget=budget_id))["data"]
    if known["kind"] == "soft":
        del body["shadow"]
    await doing.send("PATCH", "/budgets/<budget>", body, budget=budget_id)
    return Done(path=f"/budgets/{budget_id}", did="saved")


async def raise_limit(doing: Doing) -> Done:
    form, budget_id = doing.form, doing.path["budget"]
    if form.text("hours") not in _HOURS:
        raise InvalidValue(f"`hours` must be one of {', '.join(_HOURS)}", param="hours")
    until = doing.now + timedelta(hours=int(form.text("hours")))
    body = {"limit": form.text("raised"), "until": f"{until:%Y-%m-%dT%H:%M:%SZ}"}
    try:
        await doing.send(
            "POST", "/budgets/<budget>/raise", body, once=form.or_none("once"), budget=budget_id
        )
    except InvalidValue as error:
        raise InvalidValue(error.message, param="raised") from None
    return Done(path=f"/budgets/{budget_id}", did="raised")


async def end_raise(doing: Doing) -> Done:
    budget_id = doing.path["budget"]
    await doing.send("DELETE", "/budgets/<budget>/raise", budget=budget_id)
    return Done(path=f"/budgets/{budget_id}", did="raise_ended")


async def delete(doing: Doing) -> Done:
    await doing.send("DELETE", "/budgets/<budget>", budget=doing.path["budget"])
    return Done(path="/budgets", did="deleted")


def _rules(form: Form) -> dict[str, Any]:
    body: dict[str, Any] = {
        "limit": form.text("limit"),
        "include_byok": form.flag("include_byok"),
        "shadow": form.flag("shadow"),
    }
    if form.text("alert_thresholds"):
        body["alert_thresholds"] = form.wholes("alert_thresholds")
    return body


PAGES: Final = (
    Page(path="/budgets", title="Budgets", view=budgets, right="budgets.read", nav="Budgets", icon="budgets"),
    Page(path="/budgets/new", title="New budget", view=new, right="budgets.write", under="/budgets", noun="budget"),
    Page(path="/budgets/<budget>", title="Budget", view=budget, right="budgets.read", under="/budgets", noun="budget"),
    Page(
        path="/budgets/<budget>/edit", title="Edit", view=edit, right="budgets.write", under="/budgets", noun="budget"
    ),
)  # fmt: skip
ACTS: Final = (
    Act(path="/budgets/new", do=make, right="budgets.write", fields=_NEW, form="/budgets/new"),
    Act(path="/budgets/<budget>/edit", do=change, right="budgets.write", fields=_RULES, form="/budgets/<budget>/edit"),
    Act(
        path="/budgets/<budget>/raise",
        do=raise_limit,
        right="budgets.write",
        fields=(Field("raised", 100), Field("hours", 10)),
        form="/budgets/<budget>",
    ),
    Act(path="/budgets/<budget>/end-raise", do=end_raise, right="budgets.write", form="/budgets/<budget>"),
    Act(path="/budgets/<budget>/delete", do=delete, right="budgets.write", form="/budgets/<budget>"),
)  # fmt: skip
