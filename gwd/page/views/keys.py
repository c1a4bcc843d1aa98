"""Keys: who may spend what; one key with its rules and history; making, changing, rotating, stopping one."""

from datetime import date
from typing import Any, Final

from gwd.core.errors import GatewayError, InvalidValue
from gwd.page import by_day
from gwd.page.answer import Done, Shown
from gwd.page.ask import Ask, Doing
from gwd.page.by_day import question, rows
from gwd.page.request import Field, Form
from gwd.page.table import Act, Page
from gwd.page.words import DID

_WINDOWS: Final = {
    "daily": "usage_daily",
    "weekly": "usage_weekly",
    "monthly": "usage_monthly",
    None: "usage",
}
_STATES: Final = {
    "active": {},
    "disabled": {"include_disabled": "true"},
    "all": {"include_disabled": "true", "include_expired": "true"},
}
_MOST_OF_FAMILY: Final = 20
_HISTORY: Final = 10
_RULES: Final = (
    Field("name", 1_000),
    Field("limit", 100),
    Field("limit_reset", 20),
    Field("allowed_models", 20_000),
    Field("rate_limit_per_minute", 100),
    Field("expires_at", 40),
)
DID["rotated"] = "The key is rotated."


def keys(ask: Ask) -> Shown:
    """The inference keys that match, newest first."""
    state = ask.query.text("state") or "disabled"
    wanted = {
        **_STATES.get(state, _STATES["disabled"]),
        "name": ask.query.or_none("name"),
        "workspace_id": ask.query.or_none("workspace"),
        "after": ask.query.or_none("after"),
        "limit": 50,
    }
    found = ask("/keys", query=wanted)
    shown = [key for key in found["data"] if key["type"] == "inference"]
    values = {
        "keys": [key | {"spent": spent(key), "state": state_of(ask, key)} for key in shown],
        "next": found["next"],
        "people": people(ask),
        "workspaces": workspaces(ask),
        "name": ask.query.text("name"),
        "workspace_id": ask.query.text("workspace"),
        "chosen": state if state in _STATES else "disabled",
    }
    return Shown(template="keys.html", values=values)


def key(ask: Ask) -> Shown:
    """One key: rotation, four figures, spend by day, rules with the budgets that hold, history."""
    record = ask("/keys/<key>", key=ask.path["key"])["data"]
    family = _family(ask, record)
    first = date.fromisoformat(f"{ask.month}-01")
    of_key = [{"field": "api_key", "operator": "in", "value": [each["id"] for each in family]}]
    month = rows(ask, question(first, ask.today, ["requests", "errors"], filters=of_key))[0]
    values = {
        "key": record | {"spent": spent(record), "state": state_of(ask, record)},
        "old": _older(ask, family),
        "spend": by_day.spend_by(ask, first, ask.today, "model", rest="models", filters=of_key),
        "month": month,
        "budgets": _budgets(ask, record),
        "people": people(ask),
        "workspaces": workspaces(ask),
        "history": _history(ask, [each["id"] for each in family[:2]]),
        "can": ask.may("keys.write"),
    }
    return Shown(template="key.html", values=values, title=record["name"])


def new(ask: Ask) -> Shown:
    """The form for a new key."""
    return Shown(template="key-new.html", values={"workspaces": workspaces(ask)})


def edit(ask: Ask) -> Shown:
    """The form for another name or other rules."""
    record = ask("/keys/<key>", key=ask.path["key"])["data"]
    return Shown(template="key-edit.html", values={"key": record}, title=record["name"])


def spent(record: Any) -> Any:
    """What counts against the limit of a key in its window."""
    name = _WINDOWS[record["limit_reset"]]
    own: Any = record[name] + (record[f"byok_{name}"] if record["include_byok_in_limit"] else 0)
    return own


def state_of(ask: Ask, record: Any) -> tuple[str, str] | None:
    """A word and its colour where a key is not plainly in use."""
    if record["disabled"]:
        return "disabled", ""
    if record["expires_at"] is not None and record["expires_at"] <= f"{ask.now:%Y-%m-%dT%H:%M:%SZ}":
        return "expired", ""
    if record["limit"] is not None and spent(record) >= record["limit"]:
        return "limit reached", "bad"
    if record["rotated_to"] is not None:
        return "rotated", "warn"
    return None


def people(ask: Ask) -> dict[str, str]:
    """The names of members by their ids."""
    return {
        each["id"]: " ".join(filter(None, (each["first_name"], each["last_name"])))
        or each["email"]
        or each["id"]
        for each in ask.all("/organization/members")
    }


def workspaces(ask: Ask) -> dict[str, str]:
    return {each["id"]: each["name"] for each in ask.all("/workspaces")}


def _family(ask: Ask, record: Any) -> list[Any]:
    """A key and those before it that still can be seen."""
    found = [record]
    while found[-1]["rotated_from"] is not None and len(found) < _MOST_OF_FAMILY:
        try:
            found.append(ask("/keys/<key>", key=found[-1]["rotated_from"])["data"])
        except GatewayError:
            break
    return found


def _older(ask: Ask, family: list[Any]) -> Any:
    """The key before, while it still works."""
    old = family[1] if len(family) > 1 else None
    return (
        old
        if old is not None and (state_of(ask, old) or ("",))[0] in ("rotated", "limit reached")
        else None
    )


def _budgets(ask: Ask, record: Any) -> list[Any]:
    """The budgets that its requests count against."""
    scopes = {record["id"], record["workspace_id"], record["organization_id"]}
    scopes |= {record["rotated_from"]} - {None}
    return [
        each
        for each in ask.all("/budgets")
        if each["scope_id"] in (record["tags"] if each["scope"] == "tag" else scopes)
    ]


def _history(ask: Ask, key_ids: list[str]) -> list[Any] | None:
    """What was changed of a key and of the one before it, newest first; None where the caller may not see it."""
    if not ask.may("audit.read"):
        return None
    found = [
        line
        for key_id in key_ids
        for line in ask("/audit", query={"subject_id": key_id, "limit": _HISTORY})["data"]
    ]
    return sorted(found, key=lambda line: str(line["created_at"]), reverse=True)[:_HISTORY]


async def make(doing: Doing) -> Shown:
    form = doing.form
    body = _rules(form)
    if form.text("workspace_id"):
        body["workspace_id"] = form.text("workspace_id")
    made = await doing.send("POST", "/keys", body, once=form.or_none("once"))
    return _shown_once(made, old=None)


async def change(doing: Doing) -> Done:
    """Another name or other rules. What the form cannot show exactly is sent only where it was changed."""
    key_id, body = doing.path["key"], _rules(doing.form)
    known = (await doing.send("GET", "/keys/<key>", key=key_id))["data"]
    if body["rate_limit_per_minute"] is None:
        del body["rate_limit_per_minute"]
    if doing.form.text("expires_at") == (known["expires_at"] or "")[:10]:
        del body["expires_at"]
    await doing.send("PATCH", "/keys/<key>", body, key=key_id)
    return Done(path=f"/keys/{key_id}", did="saved")


async def rotate(doing: Doing) -> Shown:
    form, key_id = doing.form, doing.path["key"]
    made = await doing.send(
        "POST",
        "/keys/<key>/rotate",
        {"overlap": form.text("overlap")},
        once=form.or_none("once"),
        key=key_id,
    )
    return _shown_once(made, old=made["previous"])


async def disable(doing: Doing) -> Done:
    return await _switch(doing, disabled=True, did="disabled")


async def enable(doing: Doing) -> Done:
    return await _switch(doing, disabled=False, did="enabled")


async def end_old(doing: Doing) -> Done:
    """End the key before at once; the one after it goes on."""
    key_id = doing.path["key"]
    successor = (await doing.send("GET", "/keys/<key>", key=key_id))["data"]
    if successor["rotated_from"] is None:
        raise InvalidValue("This key follows no other; there is no old key to end.", param="key")
    await doing.send("PATCH", "/keys/<key>", {"disabled": True}, key=successor["rotated_from"])
    return Done(path=f"/keys/{key_id}", did="ended")


async def delete(doing: Doing) -> Done:
    key_id = doing.path["key"]
    record = (await doing.send("GET", "/keys/<key>", key=key_id))["data"]
    if doing.form.text("confirm") != record["name"].strip():
        raise InvalidValue(
            "Type the name of the key exactly as it stands above to delete it.", param="confirm"
        )
    await doing.send("DELETE", "/keys/<key>", key=key_id)
    return Done(path="/keys", did="deleted")


async def _switch(doing: Doing, *, disabled: bool, did: str) -> Done:
    key_id = doing.path["key"]
    await doing.send("PATCH", "/keys/<key>", {"disabled": disabled}, key=key_id)
    return Done(path=f"/keys/{key_id}", did=did)


def _rules(form: Form) -> dict[str, Any]:
    """The fields of a key as its form has them; what is left empty is no rule."""
    expires = form.or_none("expires_at")
    return {
        "name": form.text("name"),
        "limit": form.or_none("limit"),
        "limit_reset": form.or_none("limit_reset"),
        "allowed_models": form.names("allowed_models") or None,
        "rate_limit_per_minute": form.whole("rate_limit_per_minute"),
        "expires_at": f"{expires}T00:00:00Z"
        if expires and len(expires) == len("2026-11-30")
        else expires,
    }


def _shown_once(made: Any, *, old: Any) -> Shown:
    return Shown(
        template="key-made.html",
        values={"secret": made["key"], "key": made["data"], "old": old},
        title=made["data"]["name"],
    )


PAGES: Final = (
    Page(
        path="/keys",
        title="Keys",
        view=keys,
        right="keys.read",
        query=(
            Field("name", 200),
            Field("workspace", 100),
            Field("state", 20),
            Field("after", 100),
        ),
        nav="Keys",
        icon="keys",
    ),
    Page(
        path="/keys/new", title="New key", view=new, right="keys.write", under="/keys", noun="key"
    ),
    Page(path="/keys/<key>", title="Key", view=key, right="keys.read", under="/keys", noun="key"),
    Page(
        path="/keys/<key>/edit",
        title="Edit",
        view=edit,
        right="keys.write",
        under="/keys",
        noun="key",
    ),
)
ACTS: Final = (
    Act(
        path="/keys/new",
        do=make,
        right="keys.write",
        fields=(*_RULES, Field("workspace_id", 100)),
        form="/keys/new",
    ),
    Act(path="/keys/<key>/edit", do=change, right="keys.write", fields=_RULES, form="/keys/<key>/edit"),
    Act(path="/keys/<key>/rotate", do=rotate, right="keys.write", fields=(Field("overlap", 20),), form="/keys/<key>"),
    Act(path="/keys/<key>/disable", do=disable, right="keys.write", form="/keys/<key>"),
    Act(path="/keys/<key>/enable", do=enable, right="keys.write", form="/keys/<key>"),
    Act(path="/keys/<key>/end-old", do=end_old, right="keys.write", form="/keys/<key>"),
    Act(
        path="/keys/<key>/delete",
        do=delete,
        right="keys.write",
        fields=(Field("confirm", 1_000),),
        form="/keys/<key>",
        asks_again=True,
    ),
)  # fmt: skip
