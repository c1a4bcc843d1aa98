"""What a node knows of the time, and the repair of its books after a clock that was ahead: ledger, top-ups, audit."""

from typing import Final

from gwd import ledger, topup
from gwd.audit import service as audit
from gwd.core.clock import iso
from gwd.core.errors import InvalidValue
from gwd.store import Connection

_BELIEVED: Final = "clock_believed"


def last_known_us(connection: Connection) -> int | None:
    """The latest time that this database has seen: of a ledger entry, or of a node that ran; None for a new node."""
    kept = connection.row("SELECT value FROM node_fact WHERE name = ?", (_BELIEVED,))
    known = (ledger.last_time_us(connection), None if kept is None else int(bytes(kept[0])))
    return max((at_us for at_us in known if at_us is not None), default=None)


def keep_time(connection: Connection, at_us: int) -> None:
    """The node runs and believes its clock."""
    connection.execute(
        "INSERT INTO node_fact (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_BELIEVED, str(at_us).encode()),
    )


def repair_time(
    connection: Connection, *, by: str, why: str, now_us: int
) -> tuple[ledger.TimeRepair, ...]:
    """Set back the ledger time of every organization whose last entry lies in the future; nothing else is touched.

    Raises InvalidValue without a name and a reason, or when it is the present clock that cannot be right.
    """
    by, why = by.strip(), why.strip()
    if not by or not why:
        raise InvalidValue("say who mends the time, and why: --by NAME --why TEXT", param="why")
    begun_us = _begun_us(connection)
    if begun_us is not None and now_us < begun_us:
        raise InvalidValue(
            f"the machine's clock says {iso(now_us)}, before this node was made ({iso(begun_us)});"
            " set the clock right first",
            param="clock",
        )
    repairs = tuple(
        ledger.set_back(connection, found, actor=by, why=why, now_us=now_us)
        for found in ledger.ahead(connection, now_us=now_us)
    )
    for done in repairs:
        audit.record(
            connection,
            None,
            "clock.mend",
            "ledger",
            done.organization_id,
            {
                "from": iso(done.from_us),
                "to": iso(done.to_us),
                "restored_nano": done.restored_nano,
                "by": by,
                "why": why,
            },
            organization_id=done.organization_id,
            now_us=now_us,
        )
    topup.forget_the_future(connection, now_us=now_us)
    connection.execute(
        "DELETE FROM node_fact WHERE name = ? AND CAST(value AS INTEGER) > ?", (_BELIEVED, now_us)
    )
    return repairs


def _begun_us(connection: Connection) -> int | None:
    """The time of the first entry of all: as much of the past as is certain."""
    row = connection.row("SELECT MIN(created_at) FROM entry WHERE seq = 1")
    return None if row is None else row[0]
