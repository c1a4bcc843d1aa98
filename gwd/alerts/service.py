"""Alerts: raised in the transaction of their cause, with one delivery for each destination and address it goes to."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.alerts.categories import ALWAYS, AlertSetting, Category, setting
from gwd.alerts.marks import Mark, mark_once
from gwd.alerts.tables import AlertTable
from gwd.core.clock import iso
from gwd.core.errors import NotFound
from gwd.core.fields import Id, Moment
from gwd.core.ids import mint
from gwd.orgs.members import emails_of_roles
from gwd.orgs.settings import settings
from gwd.store import Connection, walk

Severity = Literal["info", "warning", "critical"]
SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "critical")
"""From the least to the most."""

_ENQUEUE: Final = (
    "INSERT INTO delivery (id, event_id, organization_id, destination_id, recipient, addressee, type, attempt, status,"
    " next_attempt_at, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 'pending', ?, ?)"
)


class NewAlert(msgspec.Struct, frozen=True, kw_only=True):
    """What happened. `url` is absolute; `thresholds_crossed` are the percentages of an alert that has some."""

    category: Category
    type: str
    severity: Severity
    title: str
    message: str
    url: str
    data: dict[str, Any]
    thresholds_crossed: tuple[int, ...] = ()


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert on record."""

    id: str
    organization_id: str
    category: Category
    type: str
    severity: Severity
    title: str
    message: str
    url: str
    data: dict[str, Any]
    created_at: int


class AlertRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Something that people should hear of, in words for them and in fields for programs."""

    id: Annotated[Id, Meta(description="`evt_…`; the same in every delivery of the alert.")]
    type: Annotated[str, Meta(description="What happened, such as `alert.key_limit`.")]
    severity: Annotated[Severity, Meta(description="How much it matters.")]
    title: Annotated[str, Meta(description="What happened, in one line.")]
    message: Annotated[str, Meta(description="The same in full, with what helps.")]
    url: Annotated[str, Meta(description="Where to look or act.")]
    data: Annotated[
        dict[str, Any],
        Meta(
            description="What happened as fields, which depend on `type`; `organization_id` is always one."
        ),
    ]
    organization_id: Annotated[Id, Meta(description="The organization it is about.")]
    created_at: Annotated[Moment, Meta(description="When it was raised.")]


class AlertFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The query of GET /notifications/events; `from_us` inclusive, `to_us` exclusive."""

    category: Category | None = None
    type: str | None = None
    severity: Severity | None = None
    from_us: int | None = None
    to_us: int | None = None


def raise_(
    connection: Connection,
    organization_id: str,
    alert: NewAlert,
    *,
    now_us: int,
    once: Mark | None = None,
) -> str | None:
    """Write the alert and its deliveries; the id, or None if `once` says that it was told already.

    A category that is switched off is still on record, but goes nowhere; owners always hear that a destination was
    disabled.
    """
    if once is not None and not mark_once(connection, once, now_us=now_us):
        return None
    event_id = _insert(connection, organization_id, alert, now_us=now_us)
    wanted = setting(connection, organization_id, alert.category)
    if not wanted.is_heard(now_us):
        _mail_all_the_same(connection, organization_id, event_id, alert, now_us=now_us)
    if wanted.is_heard(now_us) and _is_wanted(wanted, alert.thresholds_crossed):
        destinations = _destinations(connection, organization_id, alert, wanted)
        addresses = _addresses(connection, organization_id, alert, wanted)
        # In one go: this runs within a settlement, and there may be many.
        connection.execute_many(
            _ENQUEUE,
            [
                _delivery(organization_id, event_id, alert.type, each, None, now_us, now_us)
                for each in destinations
            ]
            + [
                _delivery(organization_id, event_id, alert.type, None, each, now_us, now_us)
                for each in addresses
            ],
        )
    return event_id


def raise_to(
    connection: Connection,
    organization_id: str,
    alert: NewAlert,
    destination_id: str,
    *,
    now_us: int,
) -> str:
    """Write an alert for one destination alone; the id of its delivery, which the caller sends and no queue does."""
    event_id = _insert(connection, organization_id, alert, now_us=now_us)
    return enqueue(
        connection,
        organization_id,
        event_id,
        alert.type,
        destination_id=destination_id,
        now_us=now_us,
        is_due=False,
    )


def enqueue(
    connection: Connection,
    organization_id: str,
    event_id: str,
    alert_type: str,
    *,
    destination_id: str | None = None,
    recipient: str | None = None,
    now_us: int,
    is_due: bool = True,
) -> str:
    """Put one delivery of an alert in the queue: to a destination, or by email to a person."""
    assert (destination_id is None) != (recipient is None), "a delivery has one addressee"
    due_us = now_us if is_due else None
    row = _delivery(
        organization_id, event_id, alert_type, destination_id, recipient, due_us, now_us
    )
    connection.execute(_ENQUEUE, row)
    return row[0]


def list_events(
    connection: Connection,
    organization_id: str,
    wanted: AlertFilter,
    *,
    limit: int,
    offset: int,
    after: str | None = None,
    before: str | None = None,
) -> tuple[list[Alert], int | None]:
    """The history of raised alerts, newest first; on from an alert that is named without a count."""
    query = AlertTable.select().where(AlertTable.organization_id == organization_id)
    for name in ("category", "type", "severity"):
        value = getattr(wanted, name)
        if value is not None:
            query = query.where(getattr(AlertTable, name) == value)
    if wanted.from_us is not None:
        query = query.where(AlertTable.created_at >= wanted.from_us)
    if wanted.to_us is not None:
        query = query.where(AlertTable.created_at < wanted.to_us)
    rows, total = walk.page(
        connection,
        query,
        AlertTable,
        organization_id,
        limit=limit,
        offset=offset,
        after=after,
        before=before,
    )
    return [_of_row(row) for row in rows], total


def get(connection: Connection, organization_id: str, event_id: str) -> Alert:
    """One alert of an organization. Raises NotFound."""
    row = connection.first(
        AlertTable.select().where(
            (AlertTable.id == event_id) & (AlertTable.organization_id == organization_id)
        )
    )
    if row is None:
        raise NotFound("No such alert.")
    return _of_row(row)


def record(alert: Alert) -> AlertRecord:
    """The alert as the API shows it and as webhooks carry it."""
    return AlertRecord(
        id=alert.id,
        type=alert.type,
        severity=alert.severity,
        title=alert.title,
        message=alert.message,
        url=alert.url,
        data=alert.data,
        organization_id=alert.organization_id,
        created_at=iso(alert.created_at),
    )


def _insert(connection: Connection, organization_id: str, alert: NewAlert, *, now_us: int) -> str:
    event_id = mint("evt_")
    data = msgspec.json.encode({"organization_id": organization_id, **alert.data}).decode()
    connection.execute(
        "INSERT INTO alert (id, organization_id, category, type, severity, title, message, url, data, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            event_id,
            organization_id,
            alert.category,
            alert.type,
            alert.severity,
            alert.title,
            alert.message,
            alert.url,
            data,
            now_us,
        ),
    )
    return event_id


def _delivery(
    organization_id: str,
    event_id: str,
    alert_type: str,
    destination_id: str | None,
    recipient: str | None,
    due_us: int | None,
    now_us: int,
) -> tuple[str, str, str, str | None, str | None, str | None, str, int | None, int]:
    """The values of _ENQUEUE; the id is the first."""
    addressee = destination_id or recipient
    return (
        mint("dlv_"),
        event_id,
        organization_id,
        destination_id,
        recipient,
        addressee,
        alert_type,
        due_us,
        now_us,
    )


def records_of(connection: Connection, event_ids: Sequence[str]) -> dict[str, AlertRecord]:
    """Alerts by id, as the API shows them."""
    rows = connection.run(AlertTable.select().where(AlertTable.id.in_(event_ids)))
    return {row.id: record(_of_row(row)) for row in rows}


def _of_row(row: Any) -> Alert:
    return Alert(**{name: getattr(row, name) for name in Alert.__struct_fields__})


def _mail_all_the_same(
    connection: Connection, organization_id: str, event_id: str, alert: NewAlert, *, now_us: int
) -> None:
    """In silence, too, some hear of some."""
    for address in emails_of_roles(connection, organization_id, [*ALWAYS.get(alert.category, ())]):
        enqueue(connection, organization_id, event_id, alert.type, recipient=address, now_us=now_us)


def _is_wanted(wanted: AlertSetting, crossed: tuple[int, ...]) -> bool:
    return not crossed or wanted.thresholds is None or any(p in wanted.thresholds for p in crossed)


def _destinations(
    connection: Connection, organization_id: str, alert: NewAlert, wanted: AlertSetting
) -> list[str]:
    """Enabled destinations that subscribe to the category and severity; no subscription list means all categories."""
    rows = connection.rows(
        "SELECT id, events, min_severity FROM destination WHERE organization_id = ? AND enabled = 1"
        " ORDER BY created_at, id",
        (organization_id,),
    )
    return [
        destination_id
        for destination_id, events, least in rows
        if (events == "[]" or alert.category in msgspec.json.decode(events))
        and SEVERITIES.index(alert.severity) >= SEVERITIES.index(least)
        and (wanted.channels is None or destination_id in wanted.channels)
    ]


def _addresses(
    connection: Connection, organization_id: str, alert: NewAlert, wanted: AlertSetting
) -> list[str]:
    """People by role; alerts with a threshold go by mail from the organization's percentage on (80 by default)."""
    if alert.thresholds_crossed:
        lowest = settings(connection, organization_id).settings.alert_email_min_percent
        if max(alert.thresholds_crossed) < lowest:
            return []
    return emails_of_roles(connection, organization_id, [*wanted.email_roles])
