"""`gwctl alert`: alerts raised, and which are sent where."""

from typing import Annotated

from gwctl.changes import patch_record
from gwctl.commands.webhook import DESTINATIONS
from gwctl.errors import not_found
from gwctl.records import Resource, data, find, list_records
from gwctl.session import Session
from gwctl.tables import Column
from gwctl.tree import Noun
from gwctl.values import arg, body, flag, names, opt, thresholds

ALERTS = Resource(
    noun="alert",
    path="/notifications/events",
    id_prefix=("evt_",),
    columns=(
        Column("TIME", "created_at", "time"),
        Column("SEVERITY", "severity", "state"),
        Column("TYPE", "type"),
        Column("TITLE", "title"),
        Column("ID", "id", "id", leaves=1),
    ),
)
SETTINGS = Resource(
    noun="alert category",
    path="/notifications/alerts",
    names=("category",),
    columns=(
        Column("CATEGORY", "category", name=True),
        Column("STATE", lambda row: "enabled" if row.get("enabled") else "disabled", "state"),
        Column("THRESHOLDS", "thresholds"),
        Column("CHANNELS", lambda row: row.get("channels") or "all"),
        Column("EMAIL", "email_roles"),
    ),
)

alert = Noun("alert", "Alerts raised, and their settings.")
NOUNS = [alert]


@alert.verb("list", "gwctl alert list", "gwctl alert list --json type,title,created_at", lists=True)
def list_alerts(
    session: Session,
    kind: Annotated[str | None, opt("--type", "TYPE", "Only this type.")] = None,
) -> None:
    """List alerts, newest first."""
    list_records(session, ALERTS, {"type": kind})


@alert.verb(
    "settings",
    "gwctl alert settings",
    "gwctl alert settings budget_threshold --thresholds 80,100 --channel ops",
    writes=True,
)
def settings(
    session: Session,
    category: Annotated[str | None, arg("CATEGORY", "Which to change; none lists all.")] = None,
    enable: Annotated[bool | None, flag("--enable/--disable", "Send them or not.")] = None,
    percents: Annotated[
        str | None, opt("--thresholds", "PERCENTS", "For example 50,80,100.")
    ] = None,
    channel: Annotated[
        list[str] | None, opt("--channel", "NAME", "Destination; repeatable; none for all.")
    ] = None,
    email: Annotated[
        list[str] | None, opt("--email-role", "ROLE", "Who gets mail; repeatable.")
    ] = None,
) -> None:
    """Show or change which alerts are sent, when and where."""
    rows = data(session.api.get(SETTINGS.path))
    if category is None:
        session.out.records(rows, SETTINGS.columns, noun="category")
        return
    found = next((row for row in rows if row.get("category") == category), None)
    if found is None:
        raise not_found("alert category", category, do="gwctl alert settings")
    channels = names(channel)
    if isinstance(channels, list):
        channels = [str(find(session, DESTINATIONS, name)["id"]) for name in channels]
    changes = body(
        {
            "enabled": enable,
            "thresholds": thresholds("--thresholds", percents),
            "channels": channels,
            "email_roles": names(email),
        }
    )
    if changes:
        patch_record(session, SETTINGS, found, changes, named={"category": category})
    else:
        session.out.record(found)
