"""/operator/clock: what is thought of the machine's clock, and the operator's word that it is right."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd import ledger
from gwd.api.management import Answer, Call, one
from gwd.api.node import Node
from gwd.core.clock import US_PER_S, iso, iso_or_none
from gwd.core.errors import InvalidValue
from gwd.core.fields import Moment
from gwd.core.node_clock import SMALL_US, Standing, State
from gwd.store import Connection

REPAIR: Final = "stop the node and run gwd clock --mend --by NAME --why TEXT"
_WHAT: Final = {
    "ok": "the machine's clock is believed",
    "doubted": "the machine's clock has jumped: credit does not expire by it yet",
    "held": "the machine's clock is too far off: the node goes on from the time before",
}
_DO: Final = (
    "set the machine's clock right; if it is right: gwctl server clock --accept;"
    " left alone, it is believed once it has lasted for an hour"
)


class AcceptClock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's word that the machine's clock is right."""

    accept: Annotated[bool, Meta(description="Must be true.", extra_json_schema={"const": True})]
    reason: Annotated[str | None, Meta(description="Why, for the audit trail.")] = None


class ClockRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is thought of the machine's clock, and which time the node goes by."""

    state: Annotated[
        State,
        Meta(
            description="`ok`: it is believed; `doubted`: it has jumped, and credit does not expire by it yet; `held`:"
            " it is too far off, and the node goes on from the time before."
        ),
    ]
    message: Annotated[str, Meta(description="The same in words.")]
    do: Annotated[str, Meta(description="What helps; empty when all is well.")]
    machine: Annotated[Moment, Meta(description="What the machine's clock says.")]
    used: Annotated[Moment, Meta(description="The time that the node goes by.")]
    credit_expires_by: Annotated[Moment, Meta(description="The time by which credit expires.")]
    since: Annotated[
        Moment | None,
        Meta(description="Since when it is not believed, by the machine's clock; null when it is."),
    ]
    until: Annotated[
        Moment | None,
        Meta(
            description="When it will be believed by itself, by the machine's clock; null when it is."
        ),
    ]
    left_s: Annotated[
        int | None,
        Meta(description="Seconds until it is believed by itself; null when it is."),
    ]
    ledger_ahead_s: Annotated[
        int,
        Meta(
            ge=0,
            description="How many seconds the last ledger entry lies in the future; 0 for none.",
        ),
    ]


async def show(call: Call) -> Answer:
    """What is thought of the machine's clock."""
    return one(await record(call.node))


async def accept(call: Call) -> Answer:
    """Say that the machine's clock is right.

    Everything goes by it from now on.
    """
    body: AcceptClock = call.body
    if not body.accept:
        raise InvalidValue("accept must be true; to see the clock use GET", param="accept")
    before = call.node.clock.standing()
    call.node.clock.accept()
    return one(
        await record(call.node),
        subject=("node", None),
        details={
            "state": before.state,
            "machine": iso(before.machine_us),
            "used": iso(before.used_us),
            "reason": body.reason,
        },
    )


async def record(node: Node) -> ClockRecord:
    now = node.clock.standing()
    ahead_us = await node.store.read(_ahead_us, now)
    what, remedy = _WHAT[now.state], "" if now.state == "ok" else _DO
    if ahead_us and now.state == "ok":
        what = "the ledger's last entry lies in the future: the clock was ahead"
        remedy = REPAIR
    return ClockRecord(
        state=now.state,
        message=what,
        do=remedy,
        machine=iso(now.machine_us),
        used=iso(now.used_us),
        credit_expires_by=iso(now.due_us),
        since=iso_or_none(now.since_us),
        until=iso_or_none(now.until_us),
        left_s=now.left_s,
        ledger_ahead_s=ahead_us // US_PER_S,
    )


def _ahead_us(connection: Connection, now: Standing) -> int:
    """How far the last entry lies ahead of the machine's clock; 0 within a small step."""
    last_us = ledger.last_time_us(connection)
    ahead_us = 0 if last_us is None else last_us - now.machine_us
    return ahead_us if ahead_us > SMALL_US else 0
