"""/vendor-usage: what was sent to vendors by UTC day, to be laid beside a vendor's own export."""

from typing import Final

from gwd.activity import at_vendors
from gwd.api.management import Answer, Call, one
from gwd.api.query import Flag, Moment, Query
from gwd.catalog import endpoints
from gwd.core.clock import US_PER_DAY
from gwd.core.errors import Forbidden, InvalidValue, MissingParameter
from gwd.store import Connection

MAX_DAYS: Final = 31
QUERY: Final = (
    Query("from", Moment(), "The midnight (UTC) at which the first day begins.", required=True),
    Query("to", Moment(), "The midnight (UTC) at which the last day ends.", required=True),
    Query("all", Flag(), "The traffic of all organizations; for operators.", default=False),
)


def get(connection: Connection, call: Call) -> Answer:
    """What was sent to vendors in whole UTC days, 31 at most.

    One row for each day, provider, endpoint, and whether an organization's own vendor key served. A request counts on
    the day on which it was settled.
    """
    first_day, end_day = _day(call, "from"), _day(call, "to")
    if not first_day < end_day <= first_day + MAX_DAYS:
        raise InvalidValue(
            f"`to` must be later than `from`, by {MAX_DAYS} days at most: ask for longer stretches one by one",
            param="to",
        )
    everything = call.query["all"]
    if everything and call.caller.role != "operator":
        raise Forbidden(
            "all organizations are the operator's to ask for; leave `all` out", param="all"
        )
    return one(
        at_vendors.sums(
            connection,
            None if everything else call.organization_id,
            endpoints.upstream_models(connection),
            first_day=first_day,
            end_day=end_day,
            workspace_id=call.caller.workspace_id,
        )
    )


def _day(call: Call, name: str) -> int:
    at_us = call.query.get(name)
    if at_us is None:
        raise MissingParameter(
            f"`{name}` is required: a midnight such as 2026-11-01T00:00:00Z", param=name
        )
    day, rest = divmod(at_us, US_PER_DAY)
    if rest:
        raise InvalidValue(
            f"`{name}` must be a midnight in UTC, such as 2026-11-01T00:00:00Z", param=name
        )
    return int(day)
