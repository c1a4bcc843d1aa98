"""What moved an organization's credit before, in and after a stretch of time, and where the ledger stood at its end.

Entries that are no request's are few and have an index of their own: they are summed. What requests were charged is
counted by day (`gwd.spend`), and nothing else that they do changes what is owned.
"""

from typing import Final, NamedTuple, get_args

from gwd.ledger import account
from gwd.ledger.book import EntryType
from gwd.ledger.reports import IS_OF_CREDIT, REQUEST_TYPES, seq_at
from gwd.ledger.service import held_in_organization
from gwd.store.connection import Connection

CREDIT_TYPES: Final[tuple[EntryType, ...]] = tuple(
    name for name in get_args(EntryType) if name not in REQUEST_TYPES
)
"""The entries that are no request's, each a line of a statement."""

_MOVED: Final = f"""
    SELECT type, COUNT(*) FILTER (WHERE created_at >= ?2 AND created_at < ?3),
        COALESCE(SUM(nano) FILTER (WHERE created_at < ?2), 0),
        COALESCE(SUM(nano) FILTER (WHERE created_at >= ?2 AND created_at < ?3), 0),
        COALESCE(SUM(nano) FILTER (WHERE created_at >= ?3), 0)
    FROM (SELECT type, created_at, CASE to_account WHEN 'pool' THEN amount_nano ELSE -amount_nano END AS nano
        FROM entry WHERE organization_id = ?1 AND {IS_OF_CREDIT})
    GROUP BY type"""  # noqa: S608
_SET_BACKS: Final = f"""
    SELECT seq FROM entry WHERE organization_id = ? AND type = 'clock' AND {IS_OF_CREDIT} ORDER BY seq"""  # noqa: S608
_ENTRY: Final = "SELECT seq, id, hash, created_at FROM entry WHERE organization_id = ? AND seq = ?"
_FREE: Final = "SELECT balance_after_nano FROM entry WHERE organization_id = ? AND seq = ?"
_HOLD_FROM_BEFORE: Final = """
    SELECT 1 FROM reservation WHERE state = 'open' AND organization_id = ? AND created_at < ? LIMIT 1"""


class Movements(NamedTuple):
    """What the entries of one type changed of what is owned, in nano-USD; `entries` is how many are of the stretch."""

    type: EntryType
    entries: int
    before_nano: int
    nano: int
    after_nano: int


class LastEntry(NamedTuple):
    """An entry by which a stretch of the ledger ends."""

    seq: int
    id: str
    hash: bytes
    created_at_us: int


def moved(
    connection: Connection, organization_id: str, *, from_us: int, to_us: int
) -> list[Movements]:
    """All that was no request's, one for each of CREDIT_TYPES, by ledger time; `to_us` is exclusive."""
    found = {
        row[0]: Movements(*row)
        for row in connection.rows(_MOVED, (organization_id, from_us, to_us))
    }
    return [found.get(name, Movements(name, 0, 0, 0, 0)) for name in CREDIT_TYPES]


def owned_nano(connection: Connection, organization_id: str) -> int:
    """What is owned by the last entry: what it left free, and all open holds. What is due to expire still counts."""
    last_seq = account.stored(connection, organization_id).last_seq
    row = connection.row(_FREE, (organization_id, last_seq))
    free_nano = 0 if row is None else int(row[0])
    return free_nano + held_in_organization(connection, organization_id)[0]


def last_entry_before(connection: Connection, organization_id: str, at_us: int) -> LastEntry | None:
    """The last entry whose ledger time is before `at_us`; None where there is none."""
    end = account.stored(connection, organization_id).last_seq + 1
    found = 0
    # Times are in order from each entry that set them back to the next.
    turns = [row[0] for row in connection.rows(_SET_BACKS, (organization_id,))]
    for first, next_turn in zip([1, *turns], [*turns, end], strict=True):
        behind = seq_at(connection, organization_id, at_us, first, next_turn)
        if behind > first:
            found = behind - 1
    row = connection.row(_ENTRY, (organization_id, found))
    return None if row is None else LastEntry(*row)


def holds_from_before(connection: Connection, organization_id: str, at_us: int) -> bool:
    """Whether a request that began before `at_us` holds credit still."""
    return connection.row(_HOLD_FROM_BEFORE, (organization_id, at_us)) is not None
