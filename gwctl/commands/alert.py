"""`gwctl alert`: alerts raised."""

from typing import Annotated

from gwctl.records import Resource, list_records
from gwctl.session import Session
from gwctl.tables import Column, of
from gwctl.tree import Noun
from gwctl.values import opt

ALERTS = Resource(
    noun="alert",
    path="/notifications/events",
    columns=of(
        "AlertRecord",
        Column("TIME", "created_at"),
        Column("SEVERITY", "severity", "state"),
        Column("TYPE", "type"),
        Column("TITLE", "title"),
        Column("ID", "id", leaves=1),
    ),
)

alert = Noun("alert", "Alerts raised.")
NOUNS = [alert]


@alert.verb("list", "gwctl alert list", "gwctl alert list --json type,title,created_at", lists=True)
def list_alerts(
    session: Session,
    kind: Annotated[str | None, opt("--type", "TYPE", "Only this type.")] = None,
) -> None:
    """List alerts, newest first."""
    list_records(session, ALERTS, {"type": kind})
