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
        Column("KIND", "bucket", leaves=2),
        Column("AMOUNT", "amount", "money"),
        Column("BALANCE", "balance_after", "money"),
        Column("GENERATION", "generation_id", "id", name=True),
        Column("NOTE", "note", "note", leaves=1),
        Column("ID", "id", "id", leaves=3),
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
    end: Annotated[
        str | None, opt("--to", "TIME", "Up to this time; a day is included (UTC).")
    ] = None,
) -> None:
    """List ledger entries, newest first."""
    list_records(session, LEDGER, {"type": kind, **period(session, last, start, end)})


def period(
    session: Session, last: str | None, start: str | None, end: str | None
) -> dict[str, str | None]:
    """The `from` and `to` of a query, from --last, --from and --to; a day's zone is told."""
    first = last or start
    tell_days(session, start if not last else None, end)
    return {
        "from": when.past(first) if first else None,
        "to": when.end_of(end) if end else None,
    }


def tell_days(session: Session, start: str | None, end: str | None) -> None:
    """Days are those of UTC, and the last one belongs to the range: said where somebody named one."""
    parts = []
    if start and when.names_a_day(start):
        parts.append(f"from {when.past(start)[:10]}")
    if end and when.names_a_day(end):
        parts.append(f"up to and including {when.past(end)[:10]}")
    if parts:
        session.out.note(f"{' '.join(parts)} (UTC)")


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
    # They all are of this one generation; a script still gets the column.
    columns = [c for c in LEDGER.columns if not (c.name and session.out.table)]
    session.out.records(rows, columns, total=total, noun=LEDGER.noun)


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
