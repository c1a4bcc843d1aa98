"""`gwctl prices`: the catalog's prices against the price book that the daemon ships."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from gwctl import time_input
from gwctl.changes import send
from gwctl.commands.price import history
from gwctl.records import data
from gwctl.session import Session
from gwctl.tables import Column, Record
from gwctl.text import counted
from gwctl.tree import Noun
from gwctl.values import flag, opt

prices = Noun("prices", "Prices of the catalog against the shipped price book.")
NOUNS = [prices]

_COLUMNS = (
    Column("MODEL", "model", name=True),
    Column("PRICE", "name"),
    Column("SO FAR", "old", "price"),
    Column("BOOK", "new", "price"),
    Column("%", "change_percent", "percent"),
    Column("FROM", "effective_at", "time", leaves=3),
    Column("30 DAYS SO FAR", "at_old", "money", leaves=2),
    Column("AT BOOK", "at_new", "money", leaves=2),
    Column("--accept", "accept", cut=False),
    Column("ENDPOINT", "endpoint_id", leaves=4),
)
_EFFECTIVE = opt("--effective", "TIME", "From when on; now otherwise.")
_EXTRAS = flag("--extras", "Also what the vendor sells apart and this node does not sell so far.")


@prices.verb("diff", "gwctl prices diff", "gwctl prices diff --effective 2026-12-01 --json")
def diff(
    session: Session,
    effective: Annotated[str | None, _EFFECTIVE] = None,
    extras: Annotated[bool, _EXTRAS] = False,
    new: Annotated[
        bool, flag("--new", "Name the models of the book that the catalog lacks.")
    ] = False,
) -> None:
    """Show where the catalog's prices are not the book's, and what that does to 30 days; exit 8 if they differ."""
    query: dict[str, Any] = {"extras": extras or None, "new": new or None}
    if effective is not None:
        query["effective_at"] = time_input.future(effective)
    found = data(session.api.get("/catalog/prices/diff", query))
    session.found_changes = bool(found["differences"])
    if session.out.shape.machine:
        session.out.data(found)
        return
    session.out.records(list(_rows(found["differences"])), _COLUMNS, noun="difference")
    for each in found["retirements"]:
        then = f", then {each['successor']}" if each["successor"] else ""
        session.out.note(f"{each['model']} is retired by its vendor on {each['retired_at']}{then}")
    if found["unknown"]:
        session.out.note(f"not in the book: {', '.join(found['unknown'])}")
    if new:
        session.out.note(f"not in the catalog: {', '.join(found['new'])}")


@prices.verb(
    "apply",
    "gwctl prices apply --dry-run",
    "gwctl prices apply --model openai/gpt-5 --accept openai/gpt-5",
    writes=True,
)
def apply(
    session: Session,
    models: Annotated[
        list[str] | None, opt("--model", "MODEL", "Only this model; repeatable.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        opt("--accept", "MODEL", "Its prices may change as much as they do; repeatable."),
    ] = None,
    effective: Annotated[str | None, _EFFECTIVE] = None,
    extras: Annotated[bool, _EXTRAS] = False,
) -> None:
    """Take the book's prices over, all or none of those meant.

    A change above 25 %, a price that appears or vanishes, and a price of zero want --accept with the model's name.
    """
    body: dict[str, Any] = {}
    if models:
        body["models"] = models
    if accept:
        body["accept"] = accept
    if effective is not None:
        body["effective_at"] = time_input.future(effective)
    if extras:
        body["extras"] = True
    reply = send(session, "POST", "/catalog/prices/apply", body, what="take prices over")
    if reply is None:
        return
    done = data(reply)
    if session.out.shape.machine:
        session.out.data(done)
        return
    session.out.records(list(_rows(done)), _COLUMNS, noun="difference")
    session.out.note(f"{counted(len(done), 'price')} taken over")


prices.verb(
    "history",
    "gwctl prices history openai/gpt-5",
    "gwctl prices history openai/gpt-5 --json effective_at,pricing",
)(history)


def _rows(differences: list[Record]) -> Iterator[Mapping[str, Any]]:
    """One line a price; what it comes to stands in the first of a model's."""
    for difference in differences:
        for number, each in enumerate(difference["classes"]):
            above = each["above_prompt_tokens"]
            name = f"{each['name']} above {above} tokens" if above else each["name"]
            effect = difference["last_30d"] if number == 0 else {}
            yield {
                **each,
                "name": name,
                "model": difference["model"],
                "endpoint_id": difference["endpoint_id"],
                "effective_at": difference["effective_at"],
                "accept": "; ".join(difference["reasons"]) if number == 0 else None,
                "at_old": effect.get("at_old"),
                "at_new": effect.get("at_new"),
            }
