"""Writing generations and reading them back: one by id, the last minute for rate windows; lists are in `lists`."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gwd.activity import day_sums
from gwd.activity.lists import LOOK_US, number_at
from gwd.activity.row import COLUMNS, SELECT, GenerationRow, row_of
from gwd.core.clock import US_PER_DAY, US_PER_S
from gwd.core.errors import GenerationNotFound
from gwd.ledger import ledger_time_us
from gwd.store import Connection, maintains_cache

_INSERT: Final = (
    # Without their names, of which there are a thousand characters: the text is looked up for every request.
    f"INSERT INTO generation VALUES ({','.join('?' * len(COLUMNS))})"  # noqa: S608
    " ON CONFLICT (id) DO NOTHING"
)
_COUNT_REFUSAL: Final = (
    "UPDATE generation SET occurrences = occurrences + ? WHERE organization_id = ? AND rowid >= ?"
    " AND created_at >= ? AND created_at < ? AND key_id = ? AND error_code = ? AND status = 'refused'"
    " RETURNING workspace_id, model, settled_at"
)
_NOTE_FORGOTTEN: Final = (
    f"INSERT INTO senders_forgotten SELECT organization_id, settled_at / {US_PER_DAY} + 1 FROM generation WHERE id = ?"  # noqa: S608
    " ON CONFLICT DO UPDATE SET before_day = MAX(before_day, excluded.before_day)"
)
_NONE: Final = 1 << 62
_LAST_OF_EACH: Final = (
    "SELECT id, (SELECT MAX(rowid) FROM generation WHERE organization_id = organization.id)"
    " FROM organization"
)
_COUNTS: Final = (
    "SELECT COALESCE(SUM(status <> 'refused'), 0), COALESCE(SUM(status IN ('failed', 'incomplete')), 0),"
    " COALESCE(SUM(occurrences * (status = 'refused')), 0), COUNT(ttft_ms) FROM generation"
    " WHERE rowid >= ? AND created_at >= ?"
)
_TTFT_AT: Final = (
    "SELECT ttft_ms FROM generation WHERE rowid >= ? AND created_at >= ? AND ttft_ms IS NOT NULL"
    " ORDER BY ttft_ms LIMIT 1 OFFSET ?"
)


@maintains_cache
def write(connection: Connection, row: GenerationRow) -> None:
    """Write a generation once, and count it for its day; a second write of the same id changes nothing (recovery may
    run twice).

    Lists are walked and cut by time in the order in which rows are written, so a refusal has ledger time as well: a
    clock that was set back does not put it before what was written earlier.
    """
    if row.status == "refused":
        at_us = ledger_time_us(connection, row.organization_id, now_us=row.settled_at)
        row = msgspec.structs.replace(row, settled_at=at_us)
    if connection.execute(_INSERT, msgspec.structs.astuple(row)):
        day_sums.add(connection, row)


def count_refusal(connection: Connection, row: GenerationRow) -> None:
    """Write a refusal that repeats: one row per key, code and second, with the number of occurrences."""
    second = row.created_at // US_PER_S * US_PER_S
    counted = connection.rows(
        _COUNT_REFUSAL,
        (
            row.occurrences,
            row.organization_id,
            number_at(connection, row.organization_id, second - LOOK_US),
            second,
            second + US_PER_S,
            row.key_id,
            row.error_code,
        ),
    )
    for workspace_id, model, settled_us in counted:
        same = msgspec.structs.replace(row, workspace_id=workspace_id, model=model)
        day_sums.count_refusals(connection, same, settled_us)
    if not counted:
        write(connection, row)


def get(connection: Connection, organization_id: str, generation_id: str) -> GenerationRow:
    """Raises GenerationNotFound, for a foreign or unknown id and for one that is not settled yet."""
    found = connection.row(
        f"{SELECT} WHERE id = ? AND organization_id = ?",
        (generation_id, organization_id),
    )
    if found is None:
        raise GenerationNotFound(
            "no such generation; one that is still running appears when it is settled",
            retry_after_s=1,
        )
    return row_of(found)


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What the node did in a stretch of time: dispatched requests, those that failed, and what was refused."""

    requests: int
    errors: int
    refusals: int
    p50_ttft_ms: int | None


def traffic(connection: Connection, since_us: int) -> Traffic:
    """Of all organizations since a moment."""
    first = _number_since(connection, since_us)
    counts = connection.row(_COUNTS, (first, since_us))
    assert counts is not None
    requests, errors, refusals, timed = counts
    middle = connection.row(_TTFT_AT, (first, since_us, timed // 2))
    return Traffic(
        requests=requests,
        errors=errors,
        refusals=refusals,
        p50_ttft_ms=None if middle is None else middle[0],
    )


class OldSenders(msgspec.Struct, frozen=True):
    """Old records that still say who and what was asking, and the row number before which none is left once they
    are forgotten."""

    generation_ids: list[str]
    clean_before: int


def old_senders(
    connection: Connection,
    organization_id: str,
    *,
    clean_before: int,
    before_us: int,
    at_most: int,
) -> OldSenders:
    """Look on from row number `clean_before`, to the end of the history: not for the writer."""
    found = connection.rows(
        "SELECT id FROM generation INDEXED BY generation_by_organization"
        " WHERE organization_id = ? AND rowid >= ? AND created_at < ?"
        " AND COALESCE(user_tag, session_id, referer, title, user_agent, tags) IS NOT NULL LIMIT ?",
        (organization_id, clean_before, before_us, at_most),
    )
    if len(found) < at_most:
        clean_before = _first_kept(connection, organization_id, clean_before, before_us)
    return OldSenders([str(row[0]) for row in found], clean_before)


def _first_kept(
    connection: Connection, organization_id: str, clean_before: int, before_us: int
) -> int:
    """The first row number from `clean_before` on that is too young to be forgotten, else the last of all."""
    row = connection.row(
        "SELECT rowid FROM generation INDEXED BY generation_by_organization"
        " WHERE organization_id = ? AND rowid >= ? AND created_at >= ? ORDER BY rowid LIMIT 1",
        (organization_id, clean_before, before_us),
    )
    if row is None:
        row = connection.row(
            "SELECT COALESCE(MAX(rowid), ?) FROM generation INDEXED BY generation_by_organization"
            " WHERE organization_id = ?",
            (clean_before, organization_id),
        )
    assert row is not None
    return int(row[0])


def forget_senders(connection: Connection, generation_ids: Sequence[str]) -> None:
    """Drop who and what was asking from these records; amounts, tokens, prices and receipts stay.

    Which days may have lost names is noted: spend of tags and users is not held against those.
    """
    for generation_id in generation_ids:
        connection.execute(_NOTE_FORGOTTEN, (generation_id,))
    connection.execute_many(
        "UPDATE generation SET user_tag = NULL, session_id = NULL, referer = NULL, title = NULL, user_agent = NULL,"
        " tags = NULL WHERE id = ?",
        [(generation_id,) for generation_id in generation_ids],
    )


def admitted_since(connection: Connection, since_us: int) -> list[tuple[str, int]]:
    """(family, created_at) of what the rate limit let through: what its windows are seeded with at start."""
    return [
        (str(row[0]), int(row[1]))
        for row in connection.rows(
            "SELECT family_id, created_at FROM generation WHERE rowid >= ? AND created_at >= ?"
            " AND (error_code IS NULL OR error_code <> 'rate_limit_exceeded') ORDER BY created_at",
            (_number_since(connection, since_us), since_us),
        )
    ]


def _number_since(connection: Connection, since_us: int) -> int:
    """A row number before which nothing ended since a moment, whatever the organization.

    Each organization's times are in order, and all are one clock's but for what a clock that was set back left ahead.
    """
    first = None
    for organization_id, last in connection.rows(_LAST_OF_EACH):
        number = last and number_at(connection, organization_id, since_us - LOOK_US)
        if number and number <= last and (first is None or number < first):
            first = number
    return _NONE if first is None else first
