"""`gwctl prices`: the gateway's prices against the shipped price book."""

from typing import Annotated, Any

from gwctl import text
from gwctl.changes import report, send
from gwctl.records import data
from gwctl.session import Session
from gwctl.tables import Column
from gwctl.tree import Noun
from gwctl.values import opt

prices = Noun("prices", "Compare and apply the shipped, versioned price book.")
NOUNS = [prices]

_COLUMNS = (
    Column("MODEL", "model", name=True),
    Column("PRICE", lambda row: row.get("class") or row.get("field")),
    Column("NOW", lambda row: row.get("current", row.get("old")), "price"),
    Column("BOOK", lambda row: row.get("book", row.get("new")), "price"),
    Column("CHANGE", "change_percent", "percent"),
    Column("", lambda row: "needs --accept" if row.get("jump") else "", "note"),
)


def _differences(session: Session) -> list[Any]:
    found = data(session.api.get("/catalog/prices/diff"))
    if isinstance(found, dict):
        found = found.get("changes") or found.get("differences") or []
    return list(found)


@prices.verb("diff", "gwctl prices diff", "gwctl prices diff --json model,change_percent")
def diff(session: Session) -> None:
    """List where the catalog differs from the price book; exit 8 when it does."""
    rows = _differences(session)
    session.out.records(rows, _COLUMNS, noun="difference")
    session.found_changes = bool(rows)


@prices.verb(
    "apply",
    "gwctl prices apply --dry-run",
    "gwctl prices apply --accept openai/gpt-5",
    writes=True,
)
def apply(
    session: Session,
    accept: Annotated[
        list[str] | None,
        opt("--accept", "MODEL", "Take a large jump of this model too; repeatable."),
    ] = None,
) -> None:
    """Take over the price book; large jumps only with --accept."""
    rows = _differences(session)
    if not rows:
        session.out.note("the catalog has the prices of the book; nothing to change")
        return
    if session.dry_run:
        session.out.records(rows, _COLUMNS, noun="difference")
        session.found_changes = True
        return
    wanted = {"accept": accept} if accept else {}
    reply = send(session, "POST", "/catalog/prices/apply", wanted, what="apply the price book")
    report(session, data(reply), f"{text.counted(len(rows), 'price')} compared and applied")
