"""`gwctl webhook`: where alerts go, and what became of each delivery."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from gwctl.changes import act, create_record, print_secret, report, send
from gwctl.errors import usage
from gwctl.records import Resource, address, data, fetch, find
from gwctl.session import Session
from gwctl.tables import Column, Record
from gwctl.tree import Noun
from gwctl.values import arg, body, names, one_of, opt
from gwctl.verbs import add_delete, add_list, add_show, add_switches


def _state(record: Record) -> str:
    return "enabled" if record.get("enabled", True) else "disabled"


DESTINATIONS = Resource(
    noun="webhook",
    path="/notifications/destinations",
    id_prefix=("dst_",),
    names=("name", "url", "address"),
    shown_once="signing_secret",
    created="Webhook created. This is its signing secret.",
    summary=lambda record: (
        f"webhook {record.get('name') or record.get('url')}"
        f"   id {record.get('id')}   verify X-GW-Signature with it"
    ),
    columns=(
        Column("NAME", "name", name=True),
        Column("TYPE", "type"),
        Column("TO", lambda row: row.get("url") or row.get("address")),
        Column("EVENTS", lambda row: row.get("events") or "all"),
        Column("STATE", _state, "state"),
        Column("FAILURES", "consecutive_failures", "count"),
        Column("LAST", "last_delivery.at", "time"),
        Column("ID", "id", "id", leaves=1),
    ),
)
_DELIVERIES = (
    Column("TIME", "created_at", "time"),
    Column("EVENT", "type"),
    Column("STATUS", "status", "state"),
    Column("ANSWER", "response_status"),
    Column("ATTEMPT", "attempt"),
    Column("NEXT", "next_attempt_at", "time"),
    Column("ERROR", "error"),
    Column("ID", "id", "id", name=True),
)

webhook = Noun("webhook", "Where alerts go: webhooks, chat channels, mail; and their deliveries.")
NOUNS = [webhook]

_NAME = arg("NAME", "Its name, address or id.")

add_list(webhook, DESTINATIONS)
add_show(webhook, DESTINATIONS, "ops")


@webhook.verb(
    "add",
    "gwctl webhook add https://hooks.example.com/gw --name ops --event budget_threshold",
    "SECRET=$(gwctl webhook add https://hooks.example.com/gw -q)",
    writes=True,
)
def add(
    session: Session,
    target: Annotated[str, arg("TARGET", "URL of a webhook or chat channel, or a mail address.")],
    name: Annotated[str | None, opt("--name", "NAME", "A name for it.")] = None,
    kind: Annotated[
        str | None, opt("--type", "TYPE", "webhook (the default), chat or email.")
    ] = None,
    event: Annotated[
        list[str] | None,
        opt("--event", "CATEGORY", "Only these alerts; repeatable. All otherwise."),
    ] = None,
) -> None:
    """Add a destination; a webhook's signing secret is shown once."""
    chosen = one_of("--type", kind, ("webhook", "chat", "email"))
    chosen = chosen or ("webhook" if "://" in target else "email")
    if (chosen == "email") == ("://" in target):
        raise usage(f"{target!r} does not fit --type {chosen}", do="a URL, or a mail address")
    wanted = {
        "type": chosen,
        "address" if chosen == "email" else "url": target,
        "name": name or name_of(target),
        "events": names(event),
    }
    if chosen == "webhook":
        create_record(session, DESTINATIONS, body(wanted))
        return
    reply = send(session, "POST", DESTINATIONS.path, body(wanted), what=f"add {chosen} {target}")
    if reply is not None:
        report(session, data(reply), f"{chosen} {wanted['name']} added")


def name_of(target: str) -> str:
    """A name for a destination that was given none: its host, or the address itself."""
    return urlsplit(target).hostname or target


@webhook.verb("test", "gwctl webhook test ops", "gwctl webhook test ops --json", writes=True)
def test(session: Session, reference: Annotated[str, _NAME]) -> None:
    """Send a test alert and show what came of it."""
    act(session, DESTINATIONS, reference, "test", done="was sent a test alert")


add_switches(webhook, DESTINATIONS, "ops", on={}, off={"enabled": False})


@webhook.verb(
    "enable", "gwctl webhook enable ops", "gwctl webhook enable ops --dry-run", writes=True
)
def enable(session: Session, reference: Annotated[str, _NAME]) -> None:
    """Enable a destination again; its failures are counted from zero."""
    act(session, DESTINATIONS, reference, "enable", done="enabled")


@webhook.verb(
    "rotate-secret",
    "gwctl webhook rotate-secret ops",
    "SECRET=$(gwctl webhook rotate-secret ops -q)",
    writes=True,
)
def rotate_secret(session: Session, reference: Annotated[str, _NAME]) -> None:
    """Make a new signing secret, shown once; the old one stops at once."""
    record = find(session, DESTINATIONS, reference)
    path = f"{address(DESTINATIONS, record)}/rotate-secret"
    reply = send(session, "POST", path, what=f"rotate the secret of {DESTINATIONS.title(record)}")
    if reply is not None:
        reply = {**reply, "data": reply.get("data") or record}
        print_secret(session, DESTINATIONS, reply, "Signing secret replaced.")


add_delete(webhook, DESTINATIONS, "ops")


@webhook.verb(
    "deliveries",
    "gwctl webhook deliveries ops",
    "gwctl webhook deliveries ops --json id,status,response_status",
    lists=True,
)
def deliveries(session: Session, reference: Annotated[str, _NAME]) -> None:
    """List deliveries to one destination."""
    path = f"{address(DESTINATIONS, find(session, DESTINATIONS, reference))}/deliveries"
    rows, total = fetch(session, path, limit=session.limit, everything=session.everything)
    session.out.records(rows, _DELIVERIES, total=total, noun="delivery")


@webhook.verb(
    "redeliver",
    "gwctl webhook redeliver dlv_6vR2abc",
    "gwctl webhook redeliver dlv_6vR2abc --json",
    writes=True,
)
def redeliver(
    session: Session, delivery: Annotated[str, arg("DELIVERY", "Delivery id (dlv_…).")]
) -> None:
    """Send a delivery again, signed anew."""
    from gwctl.client import quote

    path = f"/notifications/deliveries/{quote(delivery)}/redeliver"
    reply: Any = send(session, "POST", path, what=f"send {delivery} again")
    if reply is not None:
        report(session, data(reply), f"{delivery} will be sent again")
