"""Credits: is there enough, what moved it, adding some, paying some back, and automatic top-up."""

from typing import Any, Final

from gwd.page.answer import Done, Shown
from gwd.page.ask import Ask, Doing
from gwd.page.balance import MOVES, balance
from gwd.page.request import Field
from gwd.page.table import Act, Page
from gwd.page.words import DID

_MOST_MOVES: Final = 10
_A_PAGE: Final = 50
_BOOKING: Final = (Field("amount", 100), Field("reference", 1_000), Field("note", 4_000))
_TOPUP: Final = (
    *(
        Field("enabled", 1),
        Field("threshold", 100),
        Field("amount", 100),
        Field("monthly_cap", 100),
    ),
    Field("hook_url", 4_000),
)
DID["booked"] = "It is booked."


def credits(ask: Ask) -> Shown:  # noqa: A001 - the page's own name
    """Available, held, forecast and top-up; movements and what is left of each kind."""
    values = {
        "credits": ask("/credits")["data"],
        "topup": ask("/credits/auto-topup")["data"],
        "balance": balance(ask, ask.month),
        "moves": _moves(ask),
        "can_book": _may_book(ask),
        "can_set": ask.may("credits.write"),
        "sees_ledger": ask.may("ledger.read"),
    }
    return Shown(template="credits.html", values=values)


def add(ask: Ask) -> Shown:
    """The form that books a payment."""
    return Shown(template="credits-add.html", values={"can_book": _may_book(ask)})


def refund(ask: Ask) -> Shown:
    """The form that books a refund."""
    values = {"credits": ask("/credits")["data"], "can_book": _may_book(ask)}
    return Shown(template="credits-refund.html", values=values)


def topup(ask: Ask) -> Shown:
    """The form of automatic top-up."""
    return Shown(
        template="credits-topup.html", values={"topup": ask("/credits/auto-topup")["data"]}
    )


def ledger(ask: Ask) -> Shown:
    """Entries of the ledger, newest first."""
    wanted = {
        "type": ask.query.or_none("type"),
        "generation_id": ask.query.or_none("generation"),
        "after": ask.query.or_none("after"),
        "limit": _A_PAGE,
    }
    found = ask("/credits/ledger", query=wanted)
    values = {
        "entries": found["data"],
        "next": found["next"],
        "type": ask.query.text("type"),
        "generation": ask.query.text("generation"),
        "types": (*MOVES, "reservation", "release", "settlement", "charge"),
    }
    return Shown(template="ledger.html", values=values)


def _may_book(ask: Ask) -> bool:
    """Purchases are booked by owners and billing, where the node lets them, else by its operator."""
    self_service = ask.visit.node.settings.credits.self_service
    return ask.may("credits.write") and (self_service or ask.may("credits.grant"))


def _moves(ask: Ask) -> list[Any]:
    """The newest entries that are no request's."""
    if not ask.may("ledger.read"):
        return []
    found = [
        entry
        for kind in MOVES
        for entry in ask("/credits/ledger", query={"type": kind, "limit": _MOST_MOVES})["data"]
    ]
    return sorted(found, key=lambda entry: str(entry["created_at"]), reverse=True)[:_MOST_MOVES]


async def purchase(doing: Doing) -> Done:
    form = doing.form
    body = {name: form.or_none(name) for name in ("reference", "note")}
    body["amount"] = form.text("amount")
    await doing.send("POST", "/credits/purchases", body, once=form.or_none("once"))
    return Done(path="/settings/credits", did="booked")


async def pay_back(doing: Doing) -> Done:
    form = doing.form
    body = {
        "amount": form.text("amount"),
        "note": form.text("note"),
        "reference": form.or_none("reference"),
    }
    await doing.send("POST", "/credits/refunds", body, once=form.or_none("once"))
    return Done(path="/settings/credits", did="booked")


async def set_topup(doing: Doing) -> Done | Shown:
    """A new hook has a new signing secret, which is shown once."""
    form = doing.form
    body: dict[str, Any] = {
        name: form.or_none(name) for name in ("threshold", "amount", "monthly_cap", "hook_url")
    }
    body["enabled"] = form.flag("enabled")
    known = (await doing.send("GET", "/credits/auto-topup"))["data"]
    if body["hook_url"] == known["hook_url"]:
        del body["hook_url"]
    found = await doing.send("PATCH", "/credits/auto-topup", body)
    secret = found.get("signing_secret")
    if secret is None:
        return Done(path="/settings/credits", did="saved")
    return Shown(template="credits-secret.html", values={"secret": secret}, title="Signing secret")


PAGES: Final = (
    Page(
        path="/settings/credits",
        title="Credits",
        view=credits,
        right="credits.read",
        nav="Credits",
        icon="credits",
        is_setting=True,
    ),
    Page(
        path="/settings/credits/add",
        title="Add credits",
        view=add,
        right="credits.write",
        under="/settings/credits",
    ),
    Page(
        path="/settings/credits/refund",
        title="Refund",
        view=refund,
        right="credits.write",
        under="/settings/credits",
    ),
    Page(
        path="/settings/credits/top-up",
        title="Automatic top-up",
        view=topup,
        right="credits.write",
        under="/settings/credits",
    ),
    Page(
        path="/settings/credits/ledger",
        title="Ledger",
        view=ledger,
        right="ledger.read",
        query=(Field("type", 20), Field("generation", 100), Field("after", 100)),
        under="/settings/credits",
        noun="entry",
    ),
)
ACTS: Final = (
    Act(
        path="/settings/credits/add",
        do=purchase,
        right="credits.write",
        fields=_BOOKING,
        form="/settings/credits/add",
        asks_again=True,
    ),
    Act(
        path="/settings/credits/refund",
        do=pay_back,
        right="credits.write",
        fields=_BOOKING,
        form="/settings/credits/refund",
        asks_again=True,
    ),
    Act(
        path="/settings/credits/top-up",
        do=set_topup,
        right="credits.write",
        fields=_TOPUP,
        form="/settings/credits/top-up",
        asks_again=True,
    ),
)
