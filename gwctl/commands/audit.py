"""`gwctl audit`: who changed what."""

from typing import Annotated

from gwctl.commands.ledger import period
from gwctl.records import Resource, list_records
from gwctl.session import Session
from gwctl.tables import Column, of
from gwctl.tree import Noun
from gwctl.values import opt

AUDIT = Resource(
    noun="audit entry",
    path="/audit",
    columns=of(
        "AuditRecord",
        Column("TIME", "created_at"),
        Column("WHO", lambda row: row.get("actor_user_id") or row.get("actor_key_id"), "id"),
        Column("ROLE", "actor_role"),
        Column("ACTION", "action"),
        Column("WHAT", lambda row: row.get("subject_id") or row.get("subject_type")),
        Column("FROM", "address"),
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
    action: Annotated[
        str | None, opt("--action", "ACTION", "Only this; key.* for all of a kind.")
    ] = None,
    actor: Annotated[str | None, opt("--actor", "ID", "Only by this key or member.")] = None,
    last: Annotated[str | None, opt("--last", "SPAN", "Only the last 24h, 7d, …")] = None,
    start: Annotated[str | None, opt("--from", "TIME", "From this time on.")] = None,
    end: Annotated[
        str | None, opt("--to", "TIME", "Up to this time; a day is included (UTC).")
    ] = None,
) -> None:
    """List changes, newest first."""
    query = {"action": action, "actor": actor, **period(session, last, start, end)}
    list_records(session, AUDIT, query)
