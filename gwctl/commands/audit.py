"""`gwctl audit`: who changed what."""

from typing import Annotated

from gwctl.commands.ledger import period
from gwctl.records import Resource, list_records
from gwctl.session import Session
from gwctl.tables import Column
from gwctl.tree import Noun
from gwctl.values import opt

AUDIT = Resource(
    noun="audit entry",
    path="/audit",
    columns=(
        Column("TIME", "created_at", "time"),
        Column("WHO", lambda row: row.get("actor_name") or row.get("actor") or row.get("key_id")),
        Column("ACTION", "action"),
        Column("WHAT", lambda row: row.get("target") or row.get("target_id")),
        Column("FROM", lambda row: row.get("address") or row.get("ip")),
        Column("REQUEST", "request_id", "id"),
    ),
)

audit = Noun("audit", "Who changed what.")
NOUNS = [audit]


@audit.verb(
    "list",
    "gwctl audit list --last 7d",
    "gwctl audit list --action key.create --json",
    lists=True,
)
def list_audit(
    session: Session,
    action: Annotated[str | None, opt("--action", "ACTION", "Only this action.")] = None,
    actor: Annotated[str | None, opt("--actor", "ID", "Only by this key or member.")] = None,
    last: Annotated[str | None, opt("--last", "SPAN", "Only the last 24h, 7d, …")] = None,
    start: Annotated[str | None, opt("--from", "TIME", "From this time on.")] = None,
    end: Annotated[str | None, opt("--to", "TIME", "Before this time.")] = None,
) -> None:
    """List changes, newest first."""
    query = {"action": action, "actor": actor, **period(last, start, end)}
    list_records(session, AUDIT, query)
