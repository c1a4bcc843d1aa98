"""Provider keys: an organization's own keys at vendors, what they served, and the fee for that."""

from datetime import date
from typing import Any, Final

from gwd.page.answer import Done, Shown
from gwd.page.ask import Ask, Doing
from gwd.page.by_day import question, rows
from gwd.page.request import Field
from gwd.page.table import Act, Page
from gwd.page.views.keys import workspaces
from gwd.page.words import DID

_PATH: Final = "/settings/provider-keys"
_ONE: Final = f"{_PATH}/<provider_key>"
DID["answered"] = "The vendor took the key: a test request went through."
DID["replaced"] = "The key is replaced; it is used from the next request on."
DID["key_off"] = "The key is not used any more."
DID["key_on"] = "The key is used again."


def provider_keys(ask: Ask) -> Shown:
    """All own keys, with what they served this month by provider."""
    values = {
        "found": ask.all("/byok"),
        "used": _used(ask),
        "fee": ask("/organization/settings")["data"]["byok_fee_percent"],
        "workspaces": workspaces(ask),
        "can": ask.may("byok.write"),
    }
    return Shown(template="provider-keys.html", values=values)


def provider_key(ask: Ask) -> Shown:
    """One own key."""
    found = ask("/byok/<byok>", byok=ask.path["provider_key"])["data"]
    values = {
        "found": found,
        "used": _used(ask).get(found["provider"]),
        "workspaces": workspaces(ask),
        "can": ask.may("byok.write"),
    }
    return Shown(template="provider-key.html", values=values, title=found["name"])


def new(ask: Ask) -> Shown:
    """The form for one more key."""
    providers = [(each["slug"], each["name"]) for each in ask.all("/catalog/providers")]
    return Shown(template="provider-key-new.html", values={"providers": providers})


def _used(ask: Ask) -> dict[str, Any]:
    """What own keys served this month, by provider."""
    first = date.fromisoformat(f"{ask.month}-01")
    own = [{"field": "byok", "operator": "eq", "value": True}]
    metrics = ("requests", "byok_cost", "cost")
    found = rows(ask, question(first, ask.today, metrics, ["provider"], filters=own))
    return {row["provider"]: row for row in found}


async def make(doing: Doing) -> Done:
    form = doing.form
    body = {
        "provider": form.text("provider"),
        "key": form.or_none("key"),
        "is_fallback": form.flag("is_fallback"),
        "is_required": form.flag("is_required"),
    }
    if form.text("name"):
        body["name"] = form.text("name")
    made = await doing.send("POST", "/byok", body, once=form.or_none("once"))
    return Done(path=f"{_PATH}/{made['data']['id']}", did="made")


async def replace(doing: Doing) -> Done:
    return await _patch(doing, {"key": doing.form.or_none("key")}, did="replaced")


async def disable(doing: Doing) -> Done:
    return await _patch(doing, {"disabled": True}, did="key_off")


async def enable(doing: Doing) -> Done:
    return await _patch(doing, {"disabled": False}, did="key_on")


async def test(doing: Doing) -> Done:
    name = doing.path["provider_key"]
    await doing.send("POST", "/byok/<byok>/test", byok=name)
    return Done(path=f"{_PATH}/{name}", did="answered")


async def delete(doing: Doing) -> Done:
    await doing.send("DELETE", "/byok/<byok>", byok=doing.path["provider_key"])
    return Done(path=_PATH, did="deleted")


async def _patch(doing: Doing, body: dict[str, Any], *, did: str) -> Done:
    name = doing.path["provider_key"]
    await doing.send("PATCH", "/byok/<byok>", body, byok=name)
    return Done(path=f"{_PATH}/{name}", did=did)


PAGES: Final = (
    Page(
        path=_PATH,
        title="Provider keys",
        view=provider_keys,
        right="byok.read",
        nav="Provider keys",
        icon="provider-keys",
        is_setting=True,
    ),
    Page(
        path=f"{_PATH}/new",
        title="New provider key",
        view=new,
        right="byok.write",
        under=_PATH,
        noun="provider key",
    ),
    Page(
        path=_ONE,
        title="Provider key",
        view=provider_key,
        right="byok.read",
        under=_PATH,
        noun="provider key",
    ),
)
_SECRET: Final = Field("key", 4_000)
ACTS: Final = (
    Act(
        path=f"{_PATH}/new",
        do=make,
        right="byok.write",
        fields=(
            *(Field("provider", 100), _SECRET, Field("name", 1_000)),
            *(Field("is_fallback", 1), Field("is_required", 1)),
        ),
        form=f"{_PATH}/new",
    ),
    Act(path=f"{_ONE}/replace", do=replace, right="byok.write", fields=(_SECRET,), form=_ONE),
    Act(path=f"{_ONE}/disable", do=disable, right="byok.write", form=_ONE),
    Act(path=f"{_ONE}/enable", do=enable, right="byok.write", form=_ONE),
    Act(path=f"{_ONE}/test", do=test, right="byok.write", form=_ONE),
    Act(path=f"{_ONE}/delete", do=delete, right="byok.write", form=_ONE),
)
