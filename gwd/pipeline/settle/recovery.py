"""Holds that outlived their process: settled for what was delivered, or given back.

Runs at start, before the socket opens, for holds of earlier boots; and as the sweeper of the running node, for holds
older than any request may be. Running it twice changes nothing. Each hold is resolved by itself: one that cannot be is
reported and stays open, the others go on.
"""

import logging
from collections.abc import Container, Iterable
from typing import Final

import msgspec

from gwd import ledger, proof
from gwd.activity.row import GenerationRow
from gwd.alerts import node_alerts
from gwd.core.clock import Clock
from gwd.core.errors import StorageUnavailable, UpstreamFailed
from gwd.ledger import OpenReservation, quarantine
from gwd.pipeline.admit.admission import Context
from gwd.pipeline.admit.identity import error_columns, identity_columns
from gwd.pipeline.settle import progress as checkpoints
from gwd.pipeline.settle.settlement import charged_row, settle
from gwd.pricing.cost import cost
from gwd.store import Connection, Store

SHOWN: Final = 5

log = logging.getLogger(__name__)

_decoder: Final = msgspec.json.Decoder(Context)


async def begin(store: Store, clock: Clock, *, boot_id: str, app_url: str) -> str | None:
    """At start: resolve the holds of earlier boots, then look at the books. Gives back why they are not in order.

    All accounts are looked over; recomputed are those of organizations that had holds, or all after a quarantine.
    """
    holds = await store.read(ledger.open_reservations, other_than_boot=boot_id)
    failed = await _resolve_all(store, clock, holds, app_url=app_url)
    if holds:
        log.info("resolved %d of %d holds of an earlier run", len(holds) - len(failed), len(holds))
    earlier = await store.read(quarantine.noted)
    found = await store.read(proof.look_over)
    names = {hold.organization_id for hold in holds} if earlier is None else (None,)
    for name in names:
        found += (await store.read(proof.verify, name, boot_id=boot_id)).differences
    if found:
        log.error("the ledger does not add up: %s", found[:SHOWN])
        return f"the ledger does not add up: {found[0].message}"
    if failed:
        return f"{len(failed)} holds of an earlier run cannot be resolved, {failed[0]} for one"
    if earlier is not None:
        await store.write(_lift)
        log.warning("the ledger is in order again; an earlier run found: %s", earlier)
    return None


def _lift(connection: Connection) -> None:
    quarantine.lift(connection)
    node_alerts.in_order(connection)


async def sweep(
    store: Store, clock: Clock, *, older_than_us: int, live: Container[str], app_url: str
) -> int:
    """Resolve holds that no running generation owns and that are older than any request may be; how many were."""
    holds = [
        hold
        for hold in await store.read(ledger.open_reservations, created_before_us=older_than_us)
        if hold.generation_id not in live
    ]
    failed = await _resolve_all(store, clock, holds, app_url=app_url)
    return len(holds) - len(failed)


async def _resolve_all(
    store: Store, clock: Clock, holds: Iterable[OpenReservation], *, app_url: str
) -> list[str]:
    """The generations whose holds could not be resolved. Raises StorageUnavailable when nothing can be written."""
    now_us = clock.now_us()
    writings = [
        (hold, store.submit(resolve, hold, app_url=app_url, now_us=now_us)) for hold in holds
    ]
    failed = []
    for hold, writing in writings:
        try:
            await writing
        except StorageUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with this one, the others go on
            log.error("the hold of %s cannot be resolved: %r", hold.generation_id, error)
            failed.append(hold.generation_id)
    return failed


def resolve(
    connection: Connection, reservation: OpenReservation, *, app_url: str, now_us: int
) -> None:
    """End one hold by its last checkpoint: nothing delivered releases, anything delivered is billed."""
    assert reservation.context is not None
    context = _decoder.decode(reservation.context)
    error = UpstreamFailed("the gateway stopped while this request was running")
    if reservation.progress is None:
        row = GenerationRow(
            **identity_columns(context.identity),
            status="failed",
            **error_columns(error),
            settled_at=now_us,
        )
        settle(connection, row, charged=False, app_url=app_url, now_us=now_us)
        return
    progress = checkpoints.decode(reservation.progress)
    served = progress.served
    charged = cost(
        progress.usage,
        served.price,
        byok_fee_bps=served.fee_bps if served.byok else None,
        insured=progress.usage.output_total == 0,
        applied=progress.applied,
    )
    row = charged_row(
        context.identity,
        progress.usage,
        charged,
        applied=progress.applied,
        served=served,
        fields={
            "status": "incomplete",
            "finish_reason": "error",
            **error_columns(error),
            "attempts": progress.attempts,
            "settled_at": now_us,
        },
    )
    settle(connection, row, charged=True, app_url=app_url, now_us=now_us)
