"""Deliveries on record: what was told to whom, how it went, and sending again."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.alerts.service import enqueue
from gwd.alerts.tables import DeliveryTable, DestinationTable
from gwd.core.clock import iso
from gwd.core.errors import Conflict, InvalidValue, NotFound
from gwd.core.fields import Count, Id, Milliseconds, Moment
from gwd.store import Connection, walk

Status = Literal["pending", "delivered", "failed", "expired"]
AGAIN_AT_MOST: Final = 1_000


class DeliveryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One alert on its way to one destination or person."""

    id: Annotated[
        Id, Meta(description="`dlv_…`; the same at every attempt: X-GW-Delivery-Id of a webhook.")
    ]
    event_id: Annotated[Id, Meta(description="The alert.")]
    type: Annotated[str, Meta(description="The alert's type.")]
    destination_id: Annotated[
        Id | None, Meta(description="The destination; null for mail to a member.")
    ]
    recipient: Annotated[
        str | None, Meta(description="The member's mail address; null for a destination.")
    ]
    attempt: Annotated[Count, Meta(description="How many attempts were made.")]
    status: Annotated[Status, Meta(description="How it stands.")]
    response_status: Annotated[
        int | None, Meta(description="What the receiver answered last; null where nothing.")
    ]
    error: Annotated[str | None, Meta(description="Why the last attempt failed; else null.")]
    latency_ms: Annotated[
        Milliseconds | None, Meta(description="How long the last attempt took; null before one.")
    ]
    next_attempt_at: Annotated[
        Moment | None, Meta(description="When it is tried next; null where it is not.")
    ]
    finished_at: Annotated[
        Moment | None, Meta(description="When it was delivered or given up; null before.")
    ]
    created_at: Annotated[Moment, Meta(description="When it was put in the queue.")]


class DeliveryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a list of deliveries; `from_us` inclusive, `to_us` exclusive."""

    destination_id: str | None = None
    event_id: str | None = None
    status: Status | None = None
    type: str | None = None
    from_us: int | None = None
    to_us: int | None = None


def get(connection: Connection, organization_id: str, delivery_id: str) -> DeliveryRecord:
    return record(_row(connection, organization_id, delivery_id))


def list_(
    connection: Connection,
    organization_id: str,
    wanted: DeliveryFilter,
    *,
    limit: int,
    offset: int,
    after: str | None = None,
    before: str | None = None,
) -> tuple[list[Any], int | None]:
    """Newest first; on from a delivery that is named without a count."""
    return walk.page(
        connection,
        _matching(organization_id, wanted),
        DeliveryTable,
        organization_id,
        limit=limit,
        offset=offset,
        after=after,
        before=before,
    )


def redeliver(
    connection: Connection, organization_id: str, delivery_id: str, *, now_us: int
) -> DeliveryRecord:
    """Send the alert again to whom it went, as a new delivery of the same event. Raises NotFound and Conflict."""
    row = _row(connection, organization_id, delivery_id)
    if row.destination_id is not None and _is_enabled(connection, row.destination_id) is None:
        raise Conflict("its destination was deleted; nothing can be sent there again")
    return get(connection, organization_id, _again(connection, row, now_us=now_us))


def redeliver_range(
    connection: Connection, organization_id: str, wanted: DeliveryFilter, *, now_us: int
) -> int:
    """The same for each event of a list once, oldest first; gives back how many. Raises InvalidValue for too many."""
    query = _matching(organization_id, wanted)
    rows = list(connection.run(query.order_by(DeliveryTable.created_at).limit(AGAIN_AT_MOST + 1)))
    if len(rows) > AGAIN_AT_MOST:
        raise InvalidValue(
            f"more than {AGAIN_AT_MOST} deliveries fit; narrow `from` and `to`", param="from"
        )
    newest = {(row.event_id, row.addressee): row for row in rows}
    for row in newest.values():
        _again(connection, row, now_us=now_us)
    return len(newest)


def record(row: Any) -> DeliveryRecord:
    """The row as the API shows it."""
    return DeliveryRecord(
        id=row.id,
        event_id=row.event_id,
        type=row.type,
        destination_id=row.destination_id,
        recipient=row.recipient,
        attempt=row.attempt,
        status=row.status,
        response_status=row.response_status,
        error=row.error,
        latency_ms=row.latency_ms,
        next_attempt_at=_iso(row.next_attempt_at),
        finished_at=_iso(row.finished_at),
        created_at=iso(row.created_at),
    )


def _again(connection: Connection, row: Any, *, now_us: int) -> str:
    """What is for a disabled destination waits until it is enabled."""
    is_due = row.destination_id is None or bool(_is_enabled(connection, row.destination_id))
    return enqueue(
        connection,
        row.organization_id,
        row.event_id,
        row.type,
        destination_id=row.destination_id,
        recipient=row.recipient,
        now_us=now_us,
        is_due=is_due,
    )


def _is_enabled(connection: Connection, destination_id: str) -> bool | None:
    """None where it was deleted."""
    row = connection.first(
        DestinationTable.select(DestinationTable.enabled).where(
            DestinationTable.id == destination_id
        )
    )
    return None if row is None else row.enabled


def _matching(organization_id: str, wanted: DeliveryFilter) -> Any:
    query = DeliveryTable.select().where(DeliveryTable.organization_id == organization_id)
    for name in ("destination_id", "event_id", "status", "type"):
        value = getattr(wanted, name)
        if value is not None:
            query = query.where(getattr(DeliveryTable, name) == value)
    if wanted.from_us is not None:
        query = query.where(DeliveryTable.created_at >= wanted.from_us)
    if wanted.to_us is not None:
        query = query.where(DeliveryTable.created_at < wanted.to_us)
    return query


def _row(connection: Connection, organization_id: str, delivery_id: str) -> Any:
    row = connection.first(
        DeliveryTable.select().where(
            (DeliveryTable.id == delivery_id) & (DeliveryTable.organization_id == organization_id)
        )
    )
    if row is None:
        raise NotFound("No such delivery.")
    return row


def _iso(at_us: int | None) -> str | None:
    return None if at_us is None else iso(at_us)
