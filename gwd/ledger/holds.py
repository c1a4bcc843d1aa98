"""Holds and records against the entries that they name: what was reserved, how it ended, what it was charged.

Read in chunks, so that a long history takes no more memory than a short one.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from gwd.ledger.replay import Replay
from gwd.store.connection import Connection, Row

CHUNK: Final = 2_000

Wrong = Callable[[str, str], None]

_HOLDS: Final = f"""
    SELECT e.seq, e.generation_id, e.amount_nano, e.key_id, e.workspace_id, e.created_at,
        r.organization_id, r.amount_nano, r.key_id, r.workspace_id, r.created_at,
        r.state, r.boot_id, r.opened_seq, r.ended_seq, r.closed_at, x.type, x.generation_id, x.created_at,
        g.family_id, r.family_id
    FROM entry AS e LEFT JOIN reservation AS r USING (generation_id)
    LEFT JOIN entry AS x ON x.organization_id = e.organization_id AND x.seq = r.ended_seq
    LEFT JOIN generation AS g ON g.id = e.generation_id
    WHERE e.organization_id = ? AND e.seq > ? AND e.type = 'reservation' ORDER BY e.seq LIMIT {CHUNK}"""  # noqa: S608
_RECORDS: Final = f"""
    SELECT g.rowid, g.id, g.status, g.cost_total_nano, g.cost_platform_fee_nano, g.insured, g.byok,
        g.cost_prompt_nano + g.cost_cache_read_nano + g.cost_cache_write_nano + g.cost_completion_nano
            + g.cost_reasoning_nano + g.cost_request_fee_nano + g.cost_web_search_nano + g.cost_platform_fee_nano,
        g.settled_at, g.key_id, g.workspace_id, r.generation_id, r.organization_id = g.organization_id,
        x.type, x.created_at, x.key_id, x.workspace_id,
        (SELECT COALESCE(SUM(c.amount_nano), 0) FROM entry AS c WHERE c.organization_id = g.organization_id
            AND c.seq > r.ended_seq AND c.seq <= r.last_seq AND c.type = 'charge' AND c.generation_id = g.id),
        COALESCE(r.last_seq - r.ended_seq, 0)
    FROM generation AS g LEFT JOIN reservation AS r ON r.generation_id = g.id
    LEFT JOIN entry AS x ON x.organization_id = g.organization_id AND x.seq = r.ended_seq AND x.generation_id = g.id
    WHERE g.organization_id = ? AND g.rowid > ? ORDER BY g.rowid LIMIT {CHUNK}"""  # noqa: S608
_STRAY_HOLDS: Final = """
    SELECT r.organization_id, r.generation_id FROM reservation AS r
    LEFT JOIN entry AS e ON e.organization_id = r.organization_id AND e.seq = r.opened_seq
    WHERE (?1 IS NULL OR r.organization_id = ?1)
        AND (e.type IS NOT 'reservation' OR e.generation_id IS NOT r.generation_id)"""


class _HoldRow(NamedTuple):
    """A reservation of the ledger (`entry_…`), its row (`held_…`), the entry that ended it, and its record's key."""

    seq: int
    name: str
    entry_nano: int
    entry_key: str | None
    entry_workspace: str | None
    entry_at: int
    organization_id: str | None
    held_nano: int
    held_key: str | None
    held_workspace: str | None
    held_at: int
    state: str
    boot_id: str
    opened_seq: int
    ended_seq: int | None
    closed_at: int | None
    end_type: str | None
    end_name: str | None
    end_at: int | None
    recorded_for: str | None
    held_for: str | None


class _RecordRow(NamedTuple):
    """A generation's record, its reservation, the entry that ended it (`end_…`), and its charges in the ledger."""

    rowid: int
    name: str
    status: str
    total_nano: int
    fee_nano: int
    insured: int
    byok: int
    parts_nano: int
    settled_at: int | None
    key_id: str | None
    workspace_id: str | None
    is_held: str | None
    is_own: int | None
    end: str | None
    end_at: int | None
    end_key: str | None
    end_workspace: str | None
    charged_nano: int
    pieces: int


_ENDED: Final = {
    "succeeded": ("settlement",),
    "incomplete": ("settlement",),
    "failed": ("release",),
    "cancelled": ("release", "settlement"),
}
"""The entries that may end the hold of a generation of each status."""


def check_holds(
    connection: Connection, replay: Replay, wrong: Wrong, *, boot_id: str | None
) -> None:
    """Each reservation of the ledger has its row, which says what its entries say."""
    for row in map(_HoldRow._make, _walk(connection, _HOLDS, replay.organization_id)):
        if row.organization_id != replay.organization_id:
            wrong("I3", f"{row.name} is reserved in the ledger alone")
            continue
        _check_hold(row, wrong)
        _check_state(row, wrong, is_open=row.name in replay.open, boot_id=boot_id)


def _check_hold(row: _HoldRow, wrong: Wrong) -> None:
    if row.held_nano != row.entry_nano:
        wrong("I3", f"{row.name} holds {row.held_nano}, its entry another amount")
    if (row.held_key, row.held_workspace) != (row.entry_key, row.entry_workspace):
        wrong("I17", f"{row.name} is held for another key or workspace than its entry says")
    if row.held_at != row.entry_at:
        wrong("I12", f"{row.name} was not reserved at the time of its entry")
    if row.opened_seq != row.seq:
        wrong("I5", f"{row.name} names entry {row.opened_seq} as its reservation, not {row.seq}")


def _check_state(row: _HoldRow, wrong: Wrong, *, is_open: bool, boot_id: str | None) -> None:
    name = row.name
    if (row.state == "open") != is_open:
        wrong("I5", f"{name} is {row.state}, its entries say otherwise")
    elif is_open:
        if boot_id is not None and row.boot_id != boot_id:
            wrong("I18", f"{name} is held by a run of the daemon that is over")
    elif row.end_type not in ("settlement", "release") or row.end_name != name:
        wrong("I5", f"{name} names entry {row.ended_seq} as its end, which is none of it")
    elif row.closed_at != row.end_at:
        wrong("I12", f"{name} did not end at the time of its entry")
    if not is_open and row.recorded_for is None:
        wrong("I17", f"{name} held credit and has no record")
    elif row.recorded_for is not None and row.recorded_for != row.held_for:
        wrong("I17", f"{name} is held for another key than its record says")


def check_records(connection: Connection, replay: Replay, wrong: Wrong) -> None:
    """Each generation cost what its parts say and the ledger charged, and ended as its status says."""
    charges = 0
    for row in map(_RecordRow._make, _walk(connection, _RECORDS, replay.organization_id)):
        name, total_nano, charged_nano = row.name, row.total_nano, row.charged_nano
        charges += row.pieces
        own_nano = row.fee_nano if row.byok else row.parts_nano
        owed_nano = 0 if row.insured or row.status == "failed" else own_nano
        if total_nano != owed_nano:
            wrong("I11", f"the parts of {name} add up to {owed_nano}, not {total_nano}")
        if total_nano != charged_nano:
            wrong("I17", f"{name} cost {total_nano}, the ledger charged {charged_nano}")
        if row.is_held and not row.is_own:
            wrong("I17", f"{name} is recorded for another organization than held credit for it")
        if row.is_held and row.status == "refused":
            wrong("I17", f"{name} was refused, but holds or held credit")
        _check_end(row, wrong)
    if charges != replay.charges:
        wrong("I17", f"records explain {charges} charges, the ledger has {replay.charges}")


def _check_end(row: _RecordRow, wrong: Wrong) -> None:
    name, status = row.name, row.status
    if status in _ENDED and row.end not in _ENDED[status]:
        wrong("I17", f"{name} {status} without a {_ENDED[status][0]}")
    if row.end is None:
        return
    if row.settled_at != row.end_at:
        wrong("I12", f"{name} is not recorded at the time of its last entry")
    if (row.key_id, row.workspace_id) != (row.end_key, row.end_workspace):
        wrong("I17", f"{name} is recorded for another key or workspace than paid for it")


def stray_holds(connection: Connection, organization_id: str | None) -> list[Row]:
    """(organization, generation) of holds that the entry they name does not know; of all, or of one organization."""
    return connection.rows(_STRAY_HOLDS, (organization_id,))


def _walk(connection: Connection, sql: str, organization_id: str) -> Iterator[Row]:
    last = 0
    while rows := connection.rows(sql, (organization_id, last)):
        yield from rows
        last = rows[-1][0]
