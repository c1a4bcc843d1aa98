"""What a limit would have refused in a stretch of time: read from the records, as a budget would have counted them."""

from typing import Final

import msgspec

from gwd import ledger
from gwd.activity.lists import number_at
from gwd.core.clock import US_PER_DAY
from gwd.core.spender import Scope
from gwd.store import Connection

_LIST_PRICE: Final = (
    "cost_prompt_nano + cost_cache_read_nano + cost_cache_write_nano + cost_completion_nano"
    " + cost_reasoning_nano + cost_request_fee_nano + cost_web_search_nano"
)
_COST: Final = f"cost_total_nano + CASE WHEN byok AND ? THEN {_LIST_PRICE} ELSE 0 END"
_OF: Final = {
    "organization": "organization_id = ?",
    "workspace": "organization_id = ? AND workspace_id = ?",
    "key": "organization_id = ? AND family_id = ?",
    "tag": "organization_id = ? AND EXISTS (SELECT 1 FROM json_each(generation.tags) WHERE value = ?)",
    "user": "organization_id = ? AND user_tag = ?",
}
_ADMITTED: Final = "generation INDEXED BY generation_by_organization WHERE {0} AND rowid >= ? AND status <> 'refused'"
_SPENT: Final = (
    f"SELECT COUNT(*), COALESCE(SUM({_COST}), 0) FROM {_ADMITTED} AND settled_at >= ? AND settled_at < ?"  # noqa: S608
    " AND rowid < ?"
)
_REACHED: Final = (
    "SELECT number, settled_at FROM"  # noqa: S608
    f" (SELECT rowid AS number, settled_at, SUM({_COST}) OVER (ORDER BY rowid) AS spent FROM {_ADMITTED}"
    " AND settled_at >= ? AND settled_at < ? AND rowid < ?)"
    " WHERE spent >= ? ORDER BY number LIMIT 1"
)
_PAST: Final = (
    f"SELECT COUNT(*), COALESCE(SUM({_COST}), 0), MIN(created_at), MAX(created_at) FROM {_ADMITTED}"  # noqa: S608
    " AND created_at >= ? AND created_at < ? AND rowid < ?"
)
_LATEST_END_US: Final = US_PER_DAY  # no request lasts longer
_NO_END: Final = 2**62


class PastLimit(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of a scope: what ended in it, and what came after its limit was reached. Nano-USD; None for none."""

    requests: int
    spent_nano: int
    reached_at_us: int | None = None
    refused: int = 0
    refused_nano: int = 0
    first_at_us: int | None = None
    last_at_us: int | None = None


def past_limit(
    connection: Connection,
    organization_id: str,
    scope: Scope,
    name: str,
    *,
    limit_nano: int,
    include_byok: bool,
    from_us: int,
    to_us: int,
) -> PastLimit:
    """What a limit would have refused from `from_us` until before `to_us`: requests that came once it was reached.

    `name` is what records have of the scope: an id, a key's family, a tag or a user.
    A request counts as spent when it ended, as one to be refused when it came. Refused requests are left aside.
    """
    ids = (organization_id,) if scope == "organization" else (organization_id, name)
    first, beyond = 1, _NO_END
    if not ledger.was_set_back(connection, organization_id):
        first = number_at(connection, organization_id, from_us)
        beyond = number_at(connection, organization_id, to_us + _LATEST_END_US)
    period = (*ids, first, from_us, to_us, beyond)
    row = connection.row(_SPENT.format(_OF[scope]), (include_byok, *period))
    assert row is not None
    spent = PastLimit(requests=row[0], spent_nano=row[1])
    reached = connection.row(_REACHED.format(_OF[scope]), (include_byok, *period, limit_nano))
    if reached is None:
        return spent
    number, reached_at_us = reached
    row = connection.row(
        _PAST.format(_OF[scope]), (include_byok, *ids, number + 1, reached_at_us, to_us, beyond)
    )
    assert row is not None
    refused, refused_nano, first_at_us, last_at_us = row
    return msgspec.structs.replace(
        spent,
        reached_at_us=reached_at_us,
        refused=refused,
        refused_nano=refused_nano,
        first_at_us=first_at_us,
        last_at_us=last_at_us,
    )
