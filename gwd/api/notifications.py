"""/notifications: where an organization is told of alerts, of which, and how each delivery went."""

from typing import Annotated, Final, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.alerts import categories, deliveries, destinations, notices, queue, samples
from gwd.alerts.categories import AlertSetting, PatchAlertSetting
from gwd.alerts.deliveries import DeliveryFilter, Status
from gwd.alerts.destinations import (
    MAX_OVERLAP_S,
    DestinationInput,
    DestinationPatch,
    DestinationRecord,
    NewSecret,
)
from gwd.alerts.service import raise_to
from gwd.api.management import Answer, Call, deleted, listed, one, walked
from gwd.api.query import Query, Text, Words
from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import InvalidValue
from gwd.core.fields import Count, Secret
from gwd.core.inputs import MomentInput
from gwd.outbound.guard import check_url
from gwd.store import Connection

DELIVERY_FILTERS: Final = (
    Query("status", Words(get_args(Status)), "Only deliveries that stand like this."),
    Query("type", Text(), "Only deliveries of alerts of this type."),
    Query("event_id", Text(), "Only deliveries of this alert."),
)
BY_DESTINATION: Final = Query("destination_id", Text(), "Only deliveries to this destination.")


class SignedDestination(msgspec.Struct, frozen=True, kw_only=True):
    """A destination, and what signs its deliveries."""

    data: DestinationRecord
    signing_secret: Annotated[
        Secret | UnsetType,
        Meta(description="Only of a webhook: what signs its deliveries, shown this once."),
    ] = UNSET

    def __repr__(self) -> str:
        return f"SignedDestination(data={self.data!r}, signing_secret=***)"


class RotateSecretInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the secret before stays good."""

    overlap_s: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_OVERLAP_S,
            description="For so many seconds deliveries are signed with the secret before, too: `v1=…,v1=…`.",
        ),
    ] = 0


class SampleInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a destination is tried with."""

    type: Annotated[
        str | None,
        Meta(
            description="A type of alert, of which a sample is sent, marked as a test. Null is `alert.test`."
        ),
    ] = None


class RedeliverInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which deliveries of a destination are sent again; each alert once."""

    from_: Annotated[MomentInput, Meta(description="Deliveries put in the queue since.")] = (
        msgspec.field(name="from")
    )
    to: Annotated[MomentInput | None, Meta(description="And before. Null is now.")] = None
    status: Annotated[
        Status | None, Meta(description="Only those that stand like this. Null is all.")
    ] = "failed"


class Redelivered(msgspec.Struct, frozen=True, kw_only=True):
    """How many were put in the queue again."""

    count: Annotated[Count, Meta(description="How many alerts are sent again.")]


# --- destinations


def list_destinations(connection: Connection, call: Call) -> Answer:
    """Where the organization is told of alerts."""
    limit, offset = call.page()
    records, total = destinations.list_(
        connection, call.organization_id, limit=limit, offset=offset
    )
    return listed(records, total)


def get_destination(connection: Connection, call: Call) -> Answer:
    """One destination."""
    return one(destinations.get(connection, call.organization_id, call.path["destination"]))


async def check_address(call: Call) -> None:
    """What a name resolves to now is judged like at each delivery."""
    body: DestinationInput | DestinationPatch = call.body
    if isinstance(body.url, str):
        await check_url(body.url, call.node.outbound, param="url")


def create_destination(connection: Connection, call: Call) -> Answer:
    """Add a destination.

    The signing secret of a webhook is shown here, once.
    """
    made = destinations.create(
        connection,
        call.node.vault,
        call.organization_id,
        call.body,
        rules=call.node.outbound,
        sends_mail=call.node.channels.sends_mail,
        now_us=call.now_us,
    )
    return _signed(made, {"type": made.record.type, "name": made.record.name}, status=201)


def patch_destination(connection: Connection, call: Call) -> Answer:
    """Change a destination; a webhook keeps its signing secret at another address."""
    record = destinations.patch(
        connection,
        call.node.vault,
        call.organization_id,
        call.path["destination"],
        call.body,
        rules=call.node.outbound,
        now_us=call.now_us,
    )
    changed = [
        name for name in call.body.__struct_fields__ if getattr(call.body, name) is not UNSET
    ]
    return one(record, subject=("destination", record.id), details={"changed": changed})


def enable_destination(connection: Connection, call: Call) -> Answer:
    """Enable a destination, and forget its failures; what waits for it goes out."""
    return _switched(connection, call, enabled=True)


def disable_destination(connection: Connection, call: Call) -> Answer:
    """Disable a destination; what is raised meanwhile is not sent to it."""
    return _switched(connection, call, enabled=False)


def rotate_secret(connection: Connection, call: Call) -> Answer:
    """Give a webhook a new signing secret, shown here, once.

    The one before ends at once, or after an overlap in which deliveries carry both signatures.
    """
    body: RotateSecretInput = call.body
    made = destinations.rotate_secret(
        connection,
        call.node.vault,
        call.organization_id,
        call.path["destination"],
        overlap_s=body.overlap_s,
        now_us=call.now_us,
    )
    return _signed(made, {"overlap_s": body.overlap_s})


def delete_destination(connection: Connection, call: Call) -> Answer:
    """Delete a destination; its deliveries stay on record."""
    destinations.delete(
        connection, call.organization_id, call.path["destination"], now_us=call.now_us
    )
    return deleted("destination", call.path["destination"])


async def test_destination(call: Call) -> Answer:
    """Send a test to a destination now, enabled or not, and tell how it went.

    It is one attempt, which says nothing for or against the destination.
    """
    node = call.node
    message = await node.store.write(_make_test, call)
    outcome = await node.channels.send(message)
    [delivery_id] = message.delivery_ids
    await node.store.write(queue.note_single, delivery_id, outcome, now_us=node.clock.now_us())
    record = await node.store.read(deliveries.get, call.organization_id, delivery_id)
    return one(
        record,
        subject=("destination", call.path["destination"]),
        details={"delivery_id": delivery_id, "status": record.status},
    )


# --- deliveries


def list_deliveries(connection: Connection, call: Call) -> Answer:
    """Deliveries of alerts, newest first."""
    return _deliveries(connection, call, call.query.get("destination_id"))


def list_of_destination(connection: Connection, call: Call) -> Answer:
    """Deliveries to one destination, newest first."""
    destinations.get(connection, call.organization_id, call.path["destination"])
    return _deliveries(connection, call, call.path["destination"])


def get_delivery(connection: Connection, call: Call) -> Answer:
    """One delivery."""
    return one(deliveries.get(connection, call.organization_id, call.path["delivery"]))


def redeliver(connection: Connection, call: Call) -> Answer:
    """Send an alert again to whom it went, as a new delivery of the same event."""
    record = deliveries.redeliver(
        connection, call.organization_id, call.path["delivery"], now_us=call.now_us
    )
    return one(
        record,
        status=201,
        subject=("delivery", record.id),
        details={"again": call.path["delivery"], "event_id": record.event_id},
    )


def redeliver_range(connection: Connection, call: Call) -> Answer:
    """Send again what went to a destination in a stretch of time, each alert once, oldest first."""
    body: RedeliverInput = call.body
    destinations.get(connection, call.organization_id, call.path["destination"])
    count = deliveries.redeliver_range(
        connection,
        call.organization_id,
        DeliveryFilter(
            destination_id=call.path["destination"],
            status=body.status,
            from_us=_moment(body.from_, "from"),
            to_us=None if body.to is None else _moment(body.to, "to"),
        ),
        now_us=call.now_us,
    )
    return one(
        Redelivered(count=count),
        subject=("destination", call.path["destination"]),
        details={"count": count, "from": body.from_, "to": body.to, "status": body.status},
    )


# --- what is told to whom


def list_settings(connection: Connection, call: Call) -> Answer:
    """Who hears of the alerts of each category."""
    rows = categories.list_settings(connection, call.organization_id)
    return listed(rows, len(rows))


def patch_setting(connection: Connection, call: Call) -> Answer:
    """Change who hears of the alerts of one category."""
    body: PatchAlertSetting = call.body
    setting: AlertSetting = categories.patch_setting(connection, call.organization_id, body)
    changed = [
        name
        for name in body.__struct_fields__
        if name != "category" and getattr(body, name) is not UNSET
    ]
    return one(
        setting,
        subject=("alert_setting", body.category),
        details={"changed": changed},
    )


# --- small steps


def _signed(made: NewSecret, details: dict[str, object], *, status: int = 200) -> Answer:
    return Answer(
        body=SignedDestination(data=made.record, signing_secret=made.secret or UNSET),
        status=status,
        subject=("destination", made.record.id),
        details=details,
        replay=SignedDestination(data=made.record),
    )


def _switched(connection: Connection, call: Call, *, enabled: bool) -> Answer:
    record = destinations.switch(
        connection,
        call.organization_id,
        call.path["destination"],
        enabled=enabled,
        now_us=call.now_us,
    )
    return one(record, subject=("destination", record.id), details={"enabled": enabled})


def _make_test(connection: Connection, call: Call) -> queue.Message:
    """A test alert with one delivery that the queue does not take."""
    found = destinations.get(connection, call.organization_id, call.path["destination"])
    body: SampleInput = call.body
    if body.type is None:
        alert = notices.test(destination_id=found.id, name=found.name, app_url=call.node.app_url)
    else:
        made = samples.sample(body.type, app_url=call.node.app_url, now_us=call.now_us)
        if made is None:
            raise InvalidValue(f"`type` must be one of {', '.join(samples.TYPES)}", param="type")
        alert = made
    delivery_id = raise_to(connection, call.organization_id, alert, found.id, now_us=call.now_us)
    message = queue.single(connection, delivery_id)
    assert message is not None
    return message


def _deliveries(connection: Connection, call: Call, destination_id: str | None) -> Answer:
    asked = call.walk()
    rows, total = deliveries.list_(
        connection,
        call.organization_id,
        DeliveryFilter(
            destination_id=destination_id,
            event_id=call.query.get("event_id"),
            status=call.query.get("status"),
            type=call.query.get("type"),
            from_us=call.query.get("from"),
            to_us=call.query.get("to"),
        ),
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
    )
    return walked(asked, rows, total, deliveries.record, lambda row: row.id)


def _moment(text: str, param: str) -> int:
    try:
        return us_from_iso(text)
    except TimeError as error:
        raise InvalidValue(f"`{param}` {error}", param=param) from None
