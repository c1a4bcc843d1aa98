"""`gwctl webhook`: where alerts go, and what became of each delivery."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from gwctl import time_input
from gwctl.changes import CALL_OUT_S, act, create_record, patch_record, print_secret, report, send
from gwctl.client import quote
from gwctl.errors import CommandError, usage
from gwctl.files import read_standard_input
from gwctl.records import Resource, address, data, find, show_list
from gwctl.session import Session
from gwctl.tables import Column, Record, of
from gwctl.tree import Noun
from gwctl.values import arg, body, names, one_of, opt
from gwctl.verbs import add_delete, add_list, add_show

TYPES = ("webhook", "chat", "email")
SEVERITIES = ("info", "warning", "critical")
FORMATS = ("slack", "teams")
STATUSES = ("pending", "delivered", "failed", "expired")

DESTINATIONS = Resource(
    noun="webhook",
    path="/notifications/destinations",
    id_prefix=("dst_",),
    names=("name", "url", "address"),
    shown_once="signing_secret",
    renewed_by="rotate-secret",
    created="Webhook created. This is its signing secret.",
    summary=lambda record: (
        f"webhook {record.get('name') or record.get('url')}"
        f"   id {record.get('id')}   verify X-GW-Signature with it"
    ),
    columns=of(
        "DestinationRecord",
        Column("NAME", "name", name=True),
        Column("TYPE", "type"),
        Column("TO", lambda row: row.get("url") or row.get("address")),
        Column("EVENTS", lambda row: row.get("events") or "all", leaves=1),
        Column("STATE", lambda row: "enabled" if row.get("enabled") else "disabled", "state"),
        Column("FAILURES", "consecutive_failures", leaves=1),
        Column("LAST", "last_delivery.at"),
        Column("ID", "id", leaves=2),
    ),
)
_DELIVERIES = of(
    "DeliveryRecord",
    Column("TIME", "created_at"),
    Column("EVENT", "type"),
    Column("STATUS", "status", "state"),
    Column("ANSWER", "response_status"),
    Column("ATTEMPT", "attempt", leaves=1),
    Column("NEXT", "next_attempt_at", leaves=1),
    Column("ERROR", "error"),
    Column("ID", "id", name=True),
)

webhook = Noun("webhook", "Where alerts go: webhooks, chat channels, mail; and their deliveries.")
NOUNS = [webhook]

_NAME = arg("NAME", "Its name, address or id.")
_TARGET = "URL of a webhook or chat channel, or a mail address; - reads it from stdin."
_EVENT = opt(
    "--event", "CATEGORY", "Only these alerts, such as budget_threshold; none for all; repeatable."
)
_LEAST = opt("--min-severity", "SEVERITY", "info (the default), warning or critical.")
_FORMAT = opt(
    "--format", "SHAPE", "Of a chat channel: slack or teams; none is what its address tells."
)

add_list(webhook, DESTINATIONS)
add_show(webhook, DESTINATIONS, "ops")


@webhook.verb(
    "add",
    "gwctl webhook add https://hooks.example.com/gw --name ops --event budget_threshold",
    "SECRET=$(gwctl webhook add https://hooks.example.com/gw -q)",
    "gwctl webhook add - --type chat --name team < address.txt",
    writes=True,
)
def add(
    session: Session,
    target: Annotated[str, arg("TARGET", _TARGET)],
    name: Annotated[str | None, opt("--name", "NAME", "A name for it.")] = None,
    kind: Annotated[
        str | None,
        opt("--type", "TYPE", "webhook, chat or email; what the target tells otherwise."),
    ] = None,
    event: Annotated[list[str] | None, _EVENT] = None,
    least: Annotated[str | None, _LEAST] = None,
    shape: Annotated[str | None, _FORMAT] = None,
) -> None:
    """Add a destination; a webhook's signing secret is shown once.

    Chat channels take Slack's shape (Mattermost and Rocket.Chat, too) or the card of a Teams
    workflow. Who knows a chat channel's address can write to it: give it with - on stdin.
    """
    target = _read(target)
    chosen = one_of("--type", kind, TYPES) or type_of(target)
    if (chosen == "email") == ("://" in target):
        raise usage(f"TARGET does not fit --type {chosen}", do="give a URL, or a mail address")
    wanted = {
        "type": chosen,
        "address" if chosen == "email" else "url": target,
        "name": name or name_of(target),
        "events": _events(event),
        "min_severity": one_of("--min-severity", least, SEVERITIES),
        "format": one_of("--format", shape, FORMATS, clear=True),
    }
    if chosen == "webhook":
        create_record(session, DESTINATIONS, body(wanted))
        return
    what = f"add {chosen} {wanted['name']}"
    reply = send(session, "POST", DESTINATIONS.path, body(wanted), what=what)
    if reply is not None:
        report(session, data(reply), f"{chosen} {wanted['name']} added")


def type_of(target: str) -> str:
    """What an address is, by its looks: chat workspaces have hosts that everybody knows."""
    if "://" not in target:
        return "email"
    host = urlsplit(target).hostname or ""
    chat = ("hooks.slack.com", ".logic.azure.com", ".api.powerplatform.com", ".webhook.office.com")
    return "chat" if host.endswith(chat) else "webhook"


def name_of(target: str) -> str:
    """A name for a destination that was given none: its host, or the address itself."""
    return urlsplit(target).hostname or target


def _read(target: str) -> str:
    """The target itself; `-` is what stands on standard input."""
    return read_standard_input("target").strip() if target == "-" else target


def _events(words: list[str] | None) -> Any:
    """`none` is the empty list, which means all."""
    found = names(words)
    return found if found is None or isinstance(found, list) else []


@webhook.verb(
    "update",
    "gwctl webhook update ops --event budget_threshold --event key_limit",
    "gwctl webhook update ops --target https://hooks.example.com/next --dry-run",
    writes=True,
)
def update(
    session: Session,
    reference: Annotated[str, _NAME],
    name: Annotated[str | None, opt("--name", "NAME", "Its name.")] = None,
    target: Annotated[
        str | None,
        opt("--target", "TARGET", _TARGET),
    ] = None,
    event: Annotated[list[str] | None, _EVENT] = None,
    least: Annotated[str | None, _LEAST] = None,
    shape: Annotated[str | None, _FORMAT] = None,
) -> None:
    """Change a destination; a webhook keeps its signing secret."""
    target = None if target is None else _read(target)
    changes = {
        "name": name,
        "url": target if target is not None and "://" in target else None,
        "address": target if target is not None and "://" not in target else None,
        "events": _events(event),
        "min_severity": one_of("--min-severity", least, SEVERITIES),
        "format": one_of("--format", shape, FORMATS, clear=True),
    }
    if not body(changes):
        raise usage("nothing to change was given", do="gwctl webhook update --help")
    before = find(session, DESTINATIONS, reference)
    hidden = ("url",) if before.get("type") == "chat" else ()
    patch_record(session, DESTINATIONS, before, body(changes), hidden=hidden)


@webhook.verb("test", "gwctl webhook test ops", "gwctl webhook test ops --json", writes=True)
def test(session: Session, reference: Annotated[str, _NAME]) -> None:
    """Send a test alert and show what came of it; exit 1 when it did not arrive."""
    _send_sample(session, reference, None)


@webhook.verb(
    "trigger",
    "gwctl webhook trigger ops model.deprecated",
    "gwctl webhook trigger ops alert.budget_threshold --json",
    writes=True,
)
def trigger(
    session: Session,
    reference: Annotated[str, _NAME],
    kind: Annotated[str, arg("TYPE", "A type of alert, such as model.deprecated.")],
) -> None:
    """Send a sample of an alert, marked as a test, and show what came of it."""
    _send_sample(session, reference, kind)


def _send_sample(session: Session, reference: str, kind: str | None) -> None:
    record = find(session, DESTINATIONS, reference)
    title = DESTINATIONS.title(record)
    reply = send(
        session,
        "POST",
        f"{address(DESTINATIONS, record)}/test",
        body({"type": kind}),
        what=f"send {kind or 'a test'} to {title}",
        patience_s=CALL_OUT_S,
    )
    if reply is None:
        return
    delivery = data(reply)
    if delivery.get("status") != "delivered":
        raise CommandError(
            f"{title} did not take it: {_outcome(delivery)}",
            code="not_delivered",
            do=f"mend the receiver, then gwctl webhook test {record.get('name') or reference}",
        )
    report(session, delivery, f"{delivery.get('type')} to {title}: {_outcome(delivery)}")


def _outcome(delivery: Record) -> str:
    answered, why = delivery.get("response_status"), delivery.get("error")
    parts = [str(delivery.get("status")), f"answered {answered}" if answered else "", why or ""]
    return ", ".join(part for part in parts if part)


@webhook.verb(
    "enable", "gwctl webhook enable ops", "gwctl webhook enable ops --dry-run", writes=True
)
def enable(session: Session, reference: Annotated[str, _NAME]) -> None:
    """Enable a destination again; its failures are counted from zero, and what waits goes out."""
    act(session, DESTINATIONS, reference, "enable", {}, done="enabled")


@webhook.verb(
    "disable", "gwctl webhook disable ops", "gwctl webhook disable ops --dry-run", writes=True
)
def disable(session: Session, reference: Annotated[str, _NAME]) -> None:
    """Disable a destination; it is told nothing until it is enabled."""
    act(session, DESTINATIONS, reference, "disable", {}, done="disabled")


@webhook.verb(
    "rotate-secret",
    "gwctl webhook rotate-secret ops",
    "SECRET=$(gwctl webhook rotate-secret ops --overlap 24h -q)",
    writes=True,
)
def rotate_secret(
    session: Session,
    reference: Annotated[str, _NAME],
    overlap: Annotated[
        str | None,
        opt("--overlap", "TIME", "For so long the old one signs as well, such as 24h; 7d at most."),
    ] = None,
) -> None:
    """Make a new signing secret, shown once; the old one stops at once unless --overlap is given."""
    record = find(session, DESTINATIONS, reference)
    path = f"{address(DESTINATIONS, record)}/rotate-secret"
    seconds = None if overlap is None else int(time_input.span(overlap).total_seconds())
    what = f"rotate the secret of {DESTINATIONS.title(record)}"
    reply = send(session, "POST", path, body({"overlap_s": seconds}), what=what)
    if reply is not None:
        print_secret(session, DESTINATIONS, reply, "Signing secret replaced.")


add_delete(webhook, DESTINATIONS, "ops")


@webhook.verb(
    "deliveries",
    "gwctl webhook deliveries ops",
    "gwctl webhook deliveries ops --status failed --json id,status,response_status",
    lists=True,
)
def deliveries(
    session: Session,
    reference: Annotated[str | None, arg("NAME", "Which destination; none lists all.")] = None,
    status: Annotated[
        str | None, opt("--status", "STATUS", "pending, delivered, failed or expired.")
    ] = None,
    kind: Annotated[str | None, opt("--type", "TYPE", "Only this type of alert.")] = None,
    since: Annotated[str | None, opt("--from", "TIME", "Only those since.")] = None,
    until: Annotated[
        str | None, opt("--to", "TIME", "Only those before; a day is meant whole.")
    ] = None,
) -> None:
    """List deliveries, newest first."""
    path = "/notifications/deliveries"
    if reference is not None:
        path = f"{address(DESTINATIONS, find(session, DESTINATIONS, reference))}/deliveries"
    query = {
        "status": one_of("--status", status, STATUSES),
        "type": kind,
        "from": None if since is None else time_input.past(since),
        "to": None if until is None else time_input.end_of(until),
    }
    show_list(session, path, query, _DELIVERIES, noun="delivery")


@webhook.verb(
    "redeliver",
    "gwctl webhook redeliver dlv_6vR2abc",
    "gwctl webhook redeliver ops --from 2h --status failed",
    writes=True,
)
def redeliver(
    session: Session,
    reference: Annotated[str, arg("DELIVERY|NAME", "A delivery (dlv_…), or a destination.")],
    since: Annotated[
        str | None, opt("--from", "TIME", "Of a destination: deliveries since, such as 2h.")
    ] = None,
    until: Annotated[str | None, opt("--to", "TIME", "And before; now otherwise.")] = None,
    status: Annotated[
        str | None,
        opt("--status", "STATUS", "Only those that stand like this; failed otherwise."),
    ] = None,
) -> None:
    """Send a delivery again, signed anew; or what went to a destination in a stretch of time."""
    if reference.startswith("dlv_"):
        path = f"/notifications/deliveries/{quote(reference)}/redeliver"
        reply = send(session, "POST", path, {}, what=f"send {reference} again")
        if reply is not None:
            report(session, data(reply), f"{reference} will be sent again")
        return
    if since is None:
        raise usage("--from is missing", do="--from 2h, or name one delivery (dlv_…)")
    record = find(session, DESTINATIONS, reference)
    wanted = {
        "from": time_input.past(since),
        "to": None if until is None else time_input.end_of(until),
        "status": one_of("--status", status, STATUSES),
    }
    title = DESTINATIONS.title(record)
    path = f"{address(DESTINATIONS, record)}/redeliver"
    reply = send(session, "POST", path, body(wanted), what=f"send to {title} again")
    if reply is not None:
        count = data(reply).get("count", 0)
        plural = "y" if count == 1 else "ies"
        report(session, data(reply), f"{count} deliver{plural} to {title} will be sent again")
