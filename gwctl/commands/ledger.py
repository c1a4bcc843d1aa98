"""`gwctl ledger`: every movement of credit, and the proof that it adds up."""

from typing import Annotated

from gwctl import text, when
from gwctl.errors import CommandError, not_found
from gwctl.records import Resource, data, fetch, list_records
from gwctl.session import Session
from gwctl.tables import Column
from gwctl.tree import Noun
from gwctl.values import arg, opt

LEDGER = Resource(
    noun="ledger entry",
    path="/credits/ledger",
    id_prefix=("led_",),
    columns=(
        Column("TIME", "created_at", "time"),
        Column("TYPE", "type"),
        Column("KIND", "bucket"),
        Column("AMOUNT", "amount", "money"),
        Column("BALANCE", "balance_after", "money"),
        Column("GENERATION", "generation_id", "id"),
        Column("NOTE", "note", "note"),
        Column("ID", "id", "id"),
    ),
)

VERIFY_S = 600  # the whole ledger is read

ledger = Noun("ledger", "Every movement of credit, and its verification.")
NOUNS = [ledger]


@ledger.verb(
    "list",
    "gwctl ledger list --type charge --last 7d",
    "gwctl ledger list --all --jsonl > ledger.jsonl",
    lists=True,
)
def list_entries(
    session: Session,
    kind: Annotated[
        str | None,
        opt("--type", "TYPE", "purchase, grant, refund, reservation, release, settlement, …"),
    ] = None,
    last: Annotated[str | None, opt("--last", "SPAN", "Only the last 24h, 7d, …")] = None,
    start: Annotated[str | None, opt("--from", "TIME", "From this time on.")] = None,
    end: Annotated[str | None, opt("--to", "TIME", "Before this time.")] = None,
) -> None:
    """List ledger entries, newest first."""
    list_records(session, LEDGER, {"type": kind, **period(last, start, end)})


def period(last: str | None, start: str | None, end: str | None) -> dict[str, str | None]:
    """The `from` and `to` of a query, from --last, --from and --to."""
    first = last or start
    return {
        "from": when.past(first) if first else None,
        "to": when.past(end) if end else None,
    }


@ledger.verb(
    "show",
    "gwctl ledger show gen-6vR2abc",
    "gwctl ledger show gen-6vR2abc --json type,amount",
)
def show(
    session: Session, generation: Annotated[str, arg("GENERATION", "A generation id (gen-…).")]
) -> None:
    """Show what one generation moved: reservation, settlement, release, charges."""
    query = {"generation_id": generation}
    rows, total = fetch(session, LEDGER.path, query, everything=True)
    if not rows:
        raise not_found("generation", generation, do="gwctl activity list")
    session.out.records(rows, LEDGER.columns, total=total, noun=LEDGER.noun)


@ledger.verb("verify", "gwctl ledger verify", "gwctl ledger verify --json && echo sound")
def verify(session: Session) -> None:
    """Recompute everything and list the differences; exit 1 on any."""
    result = data(session.api.post("/ledger/verify", patience_s=VERIFY_S))
    differences = result.get("differences") or []
    sound = bool(result.get("ok")) and not differences
    if session.out.shape.machine:
        session.out.data(result)
    else:
        columns = (Column("DIFFERENCE", lambda row: row.get("message") or row),)
        rows = [d if isinstance(d, dict) else {"message": d} for d in differences]
        if rows:
            session.out.records(rows, columns, noun="difference")
        else:
            session.out.line(
                f"{text.counted(int(result.get('checked') or 0), 'entry')} checked, all add up"
            )
    if not sound:
        raise CommandError(
            f"the ledger does not add up: {text.counted(len(differences), 'difference')}",
            code="ledger_differs",
            do="stop inference, keep a copy of the database, and run gwd check on the node",
        )
