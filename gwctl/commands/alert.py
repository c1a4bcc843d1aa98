"""`gwctl alert`: alerts raised, and who hears of which."""

from collections.abc import Callable
from typing import Annotated, Any

from gwctl import time_input
from gwctl.changes import patch_record
from gwctl.commands.webhook import DESTINATIONS, SEVERITIES
from gwctl.errors import not_found, usage
from gwctl.records import Resource, data, find, list_records, show_record
from gwctl.session import Session
from gwctl.tables import Column, Record, of
from gwctl.text import parse_time
from gwctl.tree import Noun
from gwctl.values import CLEAR, arg, body, flag, names, one_of, opt, thresholds

ROLES = ("member", "billing", "admin", "owner")

ALERTS = Resource(
    noun="alert",
    path="/notifications/events",
    id_prefix=("evt_",),
    by_path=True,
    columns=of(
        "AlertRecord",
        Column("TIME", "created_at"),
        Column("SEVERITY", "severity", "state"),
        Column("TYPE", "type"),
        Column("TITLE", "title"),
        Column("ID", "id", leaves=1),
    ),
)


def _state(row: Record) -> str:
    if not row.get("enabled"):
        return "disabled"
    until = parse_time(row.get("muted_until"))
    is_muted = until is not None and until > time_input.utc_now()
    return f"muted until {row['muted_until']}" if is_muted else "enabled"


def _listed(name: str, *, null: str, empty: str) -> Callable[[Record], Any]:
    """A column of a list, where no list and an empty one are two things."""

    def value(row: Record) -> Any:
        found = row.get(name)
        return null if found is None else found or empty

    return value


SETTINGS = Resource(
    noun="alert category",
    path="/notifications/alerts",
    names=("category",),
    columns=of(
        "AlertSetting",
        Column("CATEGORY", "category", name=True),
        Column("STATE", _state, "state"),
        Column("THRESHOLDS", _listed("thresholds", null="all", empty="none")),
        Column("CHANNELS", _listed("channels", null="all", empty="none")),
        Column("EMAIL", _listed("email_roles", null="nobody", empty="nobody")),
    ),
)

alert = Noun("alert", "Alerts raised, and who hears of which.")
NOUNS = [alert]

_CATEGORY = arg("CATEGORY", "What they are about, such as budget_threshold.")


@alert.verb("list", "gwctl alert list", "gwctl alert list --json type,title,created_at", lists=True)
def list_alerts(
    session: Session,
    kind: Annotated[str | None, opt("--type", "TYPE", "Only this type.")] = None,
    category: Annotated[str | None, opt("--category", "CATEGORY", "Only this category.")] = None,
    severity: Annotated[
        str | None, opt("--severity", "SEVERITY", "info, warning or critical.")
    ] = None,
    since: Annotated[str | None, opt("--from", "TIME", "Only those since.")] = None,
    until: Annotated[
        str | None, opt("--to", "TIME", "Only those before; a day is meant whole.")
    ] = None,
) -> None:
    """List alerts, newest first."""
    query = {
        "type": kind,
        "category": category,
        "severity": one_of("--severity", severity, SEVERITIES),
        "from": None if since is None else time_input.past(since),
        "to": None if until is None else time_input.end_of(until),
    }
    list_records(session, ALERTS, query)


@alert.verb("show", "gwctl alert show evt_6vR2abc", "gwctl alert show evt_6vR2abc --json")
def show(session: Session, reference: Annotated[str, arg("ALERT", "Its id (evt_…).")]) -> None:
    """Show one alert with all its fields."""
    show_record(session, ALERTS, reference)


@alert.verb(
    "settings",
    "gwctl alert settings",
    "gwctl alert settings budget_threshold --thresholds 80,100 --channel ops",
    writes=True,
)
def settings(
    session: Session,
    category: Annotated[str | None, arg("CATEGORY", "Which to change; none lists all.")] = None,
    enable: Annotated[bool | None, flag("--enable/--disable", "Tell anybody or not.")] = None,
    percents: Annotated[
        str | None, opt("--thresholds", "PERCENTS", "For example 50,80,100; none for all.")
    ] = None,
    channel: Annotated[
        list[str] | None, opt("--channel", "NAME", "Destination; repeatable; none for all.")
    ] = None,
    email: Annotated[
        list[str] | None,
        opt("--email-role", "ROLE", "Who gets mail; repeatable; nobody; or none for the default."),
    ] = None,
) -> None:
    """Show or change which alerts are told, when and to whom."""
    if category is None:
        rows = data(session.api.get(SETTINGS.path))
        session.out.records(rows, SETTINGS.columns, noun="category")
        return
    channels = names(channel)
    if isinstance(channels, list):
        channels = [str(find(session, DESTINATIONS, name)["id"]) for name in channels]
    roles = names(email)
    if roles == ["nobody"]:
        roles = []
    for role in roles if isinstance(roles, list) else []:
        one_of("--email-role", role, (*ROLES, "nobody"))
    changes = body(
        {
            "enabled": enable,
            "thresholds": thresholds("--thresholds", percents),
            "channels": channels,
            "email_roles": roles,
        }
    )
    found = _setting(session, category)
    if changes:
        patch_record(session, SETTINGS, found, changes, named={"category": category})
    else:
        session.out.record(found, "AlertSetting")


@alert.verb(
    "mute",
    "gwctl alert mute price_change --for 7d",
    "gwctl alert mute price_change --end",
    writes=True,
)
def mute(
    session: Session,
    category: Annotated[str, _CATEGORY],
    span: Annotated[str | None, opt("--for", "TIME", "For so long, such as 24h or 7d.")] = None,
    end: Annotated[bool, flag("--end", "Tell them again from now on.")] = False,
) -> None:
    """Tell nobody of the alerts of a category for a while; they stay on record."""
    if (span is None) != end:
        raise usage("--for or --end is missing", do="for example --for 24h")
    until = CLEAR if span is None else time_input.future(span)
    found = _setting(session, category)
    patch_record(
        session, SETTINGS, found, body({"muted_until": until}), named={"category": category}
    )


def _setting(session: Session, category: str) -> Record:
    rows = data(session.api.get(SETTINGS.path))
    found = next((row for row in rows if row.get("category") == category), None)
    if found is None:
        raise not_found("alert category", category, do="gwctl alert settings")
    return dict(found)
