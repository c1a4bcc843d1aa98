"""`gwctl ledger`: every movement of credit, and the proof that it adds up."""

from pathlib import Path
from typing import Annotated, Any

from gwctl import jsontext, text, time_input
from gwctl.errors import CommandError, not_found, usage
from gwctl.files import read_standard_input, read_text
from gwctl.records import Resource, data, fetch, list_records
from gwctl.session import Session
from gwctl.tables import Column, of
from gwctl.tree import Noun
from gwctl.values import arg, flag, opt

LEDGER = Resource(
    noun="ledger entry",
    path="/credits/ledger",
    id_prefix=("led_",),
    columns=of(
        "EntryRecord",
        Column("TIME", "created_at"),
        Column("TYPE", "type"),
        Column("KIND", "bucket", leaves=2),
        Column("AMOUNT", "amount"),
        Column("BALANCE", "balance_after"),
        Column("GENERATION", "generation_id", name=True),
        Column("NOTE", "note", "note", leaves=1),
        Column("ID", "id", leaves=3),
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
        "from": time_input.past(first) if first else None,
        "to": time_input.end_of(end) if end else None,
    }


def tell_days(session: Session, start: str | None, end: str | None) -> None:
    """Days are those of UTC, and the last one belongs to the range: said where somebody named one."""
    parts = []
    if start and time_input.names_a_day(start):
        parts.append(f"from {time_input.past(start)[:10]}")
    if end and time_input.names_a_day(end):
        parts.append(f"up to and including {time_input.past(end)[:10]}")
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


@ledger.verb(
    "verify",
    "gwctl ledger verify",
    "gwctl ledger verify --json && echo sound",
    "gwctl ledger verify --head head-of-october.json",
)
def verify(
    session: Session,
    head: Annotated[
        Path | None,
        opt("--head", "FILE", "What `gwctl ledger head` printed once; it must be part of today's."),
    ] = None,
    everything: Annotated[
        bool, flag("--all", "All organizations, and the node (operator).")
    ] = False,
) -> None:
    """Recompute everything and list the differences; exit 1 on any."""
    asked: dict[str, Any] = {"all": True} if everything else {}
    if head is not None:
        asked["head"] = _kept(head)
    result = data(session.api.post("/ledger/verify", asked or None, patience_s=VERIFY_S))
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


@ledger.verb(
    "head",
    "gwctl ledger head > head-of-october.json",
    "gwctl ledger head --all > head-of-october.json",
)
def head_(
    session: Session,
    everything: Annotated[
        bool, flag("--all", "All organizations, and the node (operator).")
    ] = False,
) -> None:
    """Print where the books end now, signed by the node.

    Keep it where nobody who may write the node's database can: ledger verify --head proves later that nothing before
    it was rewritten or cut off.
    """
    found = data(session.api.get("/ledger/head", {"all": "true"} if everything else None))
    session.out.data(found)


def _kept(path: Path) -> Any:
    given = read_standard_input("head_file") if str(path) == "-" else read_text(path, "head_file")
    try:
        return jsontext.loads(given)
    except ValueError:
        raise usage(
            f"{path} is no JSON",
            do="give the file that gwctl ledger head printed",
            code="head_file",
        ) from None
