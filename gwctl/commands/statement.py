"""`gwctl statement`: what a month came to, from its opening to its closing balance."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from gwctl import comma_separated
from gwctl.client import quote
from gwctl.errors import usage
from gwctl.records import data
from gwctl.session import Session
from gwctl.tables import Column
from gwctl.time_input import utc_now
from gwctl.tree import Noun
from gwctl.values import arg, flag, opt

top = Noun("", "What a month came to.")
NOUNS = [top]

NAMES = (
    *("section", "id", "name", "count", "tokens_prompt", "tokens_completion", "amount"),
    "workspace",
)
COLUMNS = (
    Column("SECTION", "section", name=True),
    Column("NAME", "name", cut=False),
    Column("COUNT", "count", "count"),
    Column("TOKENS IN", "tokens_prompt", "count", leaves=2),
    Column("OUT", "tokens_completion", "count", leaves=2),
    Column("AMOUNT", "amount", "each"),
    Column("ID", "id", leaves=3),
)


@top.verb(
    "statement",
    "gwctl statement 2026-11",
    "gwctl statement 2026-11 --csv --out november.csv",
)
def statement(
    session: Session,
    month: Annotated[
        str | None, arg("[YYYY-MM]", "The month (UTC); the last one otherwise.")
    ] = None,
    csv_: Annotated[bool, flag("--csv", "Comma separated values.")] = False,
    target: Annotated[
        Path | None, opt("--out", "FILE", "Write to this file, whole or not at all.")
    ] = None,
) -> None:
    """Show a month: balances, movements, charges by workspace with its keys, and by model."""
    if csv_ and session.out.shape.machine:
        raise usage("--csv and --json exclude each other", do="give one of them")
    found = data(session.api.get(f"/statements/{quote(month or _last_month())}"))
    rows = list(_rows(found))
    with session.out.into(target):
        if session.out.shape.machine:
            session.out.data(found)
        elif csv_:
            session.out.block(comma_separated.title(NAMES) + comma_separated.lines(rows, NAMES))
        else:
            session.out.records(rows, COLUMNS, noun="line")
    if not found["closed"]:
        session.out.note(f"{found['month']} is not closed; these are its numbers so far")


def _last_month() -> str:
    return (utc_now().replace(day=1) - timedelta(days=1)).strftime("%Y-%m")


def _rows(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines of a statement from the opening to the closing balance, then what the charges are made of.

    A workspace's line is the subtotal of the keys that follow it.
    """
    yield {"section": "opening balance", "amount": found["opening_balance"]}
    for each in found["movements"]:
        yield {
            "section": "movement",
            "name": each["type"],
            "count": each["entries"],
            "amount": each["amount"],
        }
    yield _charged("charges", found["charges"])
    yield {"section": "closing balance", "amount": found["closing_balance"]}
    for workspace in found["workspaces"]:
        id_, name = workspace["workspace_id"], workspace["workspace_name"]
        yield _charged("workspace", workspace, id_, name)
        for each in found["keys"]:
            if each["workspace_id"] == id_:
                line = _charged("key", each, each["family_id"], each["key_name"])
                yield {**line, "workspace": name}
    for each in found["models"]:
        name = "fees for own keys" if each["byok"] else each["model"]
        yield _charged("model", each, None, name)


def _charged(
    section: str, record: dict[str, Any], id_: str | None = None, name: str | None = None
) -> dict[str, Any]:
    counts = {field: record[field] for field in ("tokens_prompt", "tokens_completion")}
    return {
        "section": section,
        "id": id_,
        "name": name,
        "count": record["requests"],
        **counts,
        "amount": record["charged"],
    }
