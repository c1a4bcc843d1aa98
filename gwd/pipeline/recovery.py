"""Holds that outlived their process: settled for what was delivered, or given back (reliability.md 2.4).

Runs at start, before the socket opens, for holds of earlier boots; and as the sweeper of the running node, for holds
older than any request may be. Running it twice changes nothing.
"""

from typing import Final

import msgspec

from gwd.activity.row import GenerationRow
from gwd.core.errors import UpstreamFailed
from gwd.ledger import service as ledger
from gwd.ledger.service import OpenReservation
from gwd.pipeline import progress as checkpoints
from gwd.pipeline.admission import Context
from gwd.pipeline.settlement import charged_row, settle
from gwd.pipeline.ticket import error_columns, identity
from gwd.pricing.cost import cost
from gwd.store import Connection

_decoder: Final = msgspec.json.Decoder(Context)


def recover(connection: Connection, *, boot_id: str, app_url: str, now_us: int) -> int:
    """Resolve every open hold of another boot; returns how many there were."""
    found = ledger.open_reservations(connection, other_than_boot=boot_id)
    for reservation in found:
        resolve(connection, reservation, app_url=app_url, now_us=now_us)
    return len(found)


def sweep(
    connection: Connection, *, older_than_us: int, live: frozenset[str], app_url: str, now_us: int
) -> int:
    """Resolve holds that no running generation owns and that are older than any request may be."""
    found = [
        reservation
        for reservation in ledger.open_reservations(connection)
        if reservation.created_at_us < older_than_us and reservation.generation_id not in live
    ]
    for reservation in found:
        resolve(connection, reservation, app_url=app_url, now_us=now_us)
    return len(found)


def resolve(
    connection: Connection, reservation: OpenReservation, *, app_url: str, now_us: int
) -> None:
    """End one hold by its last checkpoint: nothing delivered releases, anything delivered is billed."""
    assert reservation.context is not None
    context = _decoder.decode(reservation.context)
    error = UpstreamFailed("the gateway stopped while this request was running")
    if reservation.progress is None:
        row = GenerationRow(
            **identity(context.ticket),
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
    )
    row = charged_row(
        context.ticket,
        progress.usage,
        charged,
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
