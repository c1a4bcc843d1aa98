"""/generation and /generations: what became of requests, refusals included."""

from typing import Any, Final

from gwd.activity import lists
from gwd.activity import service as activity
from gwd.activity.record import record
from gwd.activity.row import STATUSES, GenerationRow
from gwd.api.management import Answer, Call, one, walked
from gwd.api.query import BETWEEN, Flag, Query, Text, Words
from gwd.core.caller import Caller
from gwd.core.errors import GenerationNotFound, MissingParameter
from gwd.keys import admission
from gwd.keys import service as keys
from gwd.orgs import rights
from gwd.orgs.rights import Right
from gwd.store import Connection

_PREFIXES = ("gen-", "msg_", "resp_")
BY_ID: Final = Query(
    "id",
    Text(),
    "The id of a generation, gen-…; one that begins msg_ or resp_ serves, too.",
    required=True,
)
FILTERS: Final = (
    Query("key_id", Text(), "Only requests of this key."),
    Query("model", Text(), "Only requests for this model or that it served."),
    Query("status", Words(STATUSES), "Only requests that ended so."),
    Query("user", Text(), "Only requests with this `user` in their body."),
    Query("session_id", Text(), "Only requests of this session."),
    Query("app", Text(), "Only requests of this application."),
    Query(
        "tag", Text(), "Only requests with this tag, their own, their key's or their workspace's."
    ),
    Query("workspace_id", Text(), "Only requests of this workspace's keys."),
    Query("error_code", Text(), "Only requests that ended with this error."),
)
COUNT: Final = Query(
    "count",
    Flag(),
    "Whether to count all that match; without it the answer comes sooner.",
    default=True,
)


def get(connection: Connection, call: Call) -> Answer:
    """What became of one request.

    By the id of any dialect: gen-, msg_ and resp_ ids share their suffix.
    """
    row = activity.get(connection, call.organization_id, named_in(call))
    if not may_see(connection, call.caller, row, "activity.read"):
        raise GenerationNotFound(
            "no such generation; one that is still running appears when it is settled",
            retry_after_s=1,
        )
    return one(record(row, _key_name(connection, row.key_id)))


def named_in(call: Call) -> str:
    """The generation that a query names, by the id of any dialect."""
    text = call.query.get("id")
    if not text:
        raise MissingParameter("`id` is required: the id of a generation, gen-…", param="id")
    for prefix in _PREFIXES:
        text = text.removeprefix(prefix)
    return f"gen-{text}"


def list_(connection: Connection, call: Call) -> Answer:
    """What became of requests, those that ended last first.

    `from` and `to` are the times between which they ended, as in the ledger.
    """
    asked = call.walk()
    filters: dict[str, Any] = {
        each.name: call.query[each.name] for each in (*FILTERS, *BETWEEN) if each.name in call.query
    }
    reach = rights.require(call.caller, "activity.read")
    if call.caller.workspace_id is not None:
        filters["workspace_id"] = call.caller.workspace_id
    own = None
    if reach == "own":
        own = keys.ids_of_user(connection, call.organization_id, call.caller.user_id or "")
    found = lists.list_(
        connection,
        call.organization_id,
        filters,
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
        key_ids=own,
        count=call.query["count"],
    )
    names = {key_id: _key_name(connection, key_id) for key_id in {row.key_id for row in found.rows}}
    return walked(
        asked,
        found.rows,
        found.total,
        lambda row: record(row, names[row.key_id]),
        lambda row: row.id,
        reached=found.reached,
    )


def may_see(connection: Connection, caller: Caller, row: GenerationRow, right: Right) -> bool:
    """An inference key sees its workspace's records, a management key what its right reaches."""
    if caller.kind == "inference" or caller.workspace_id is not None:
        return row.workspace_id == caller.workspace_id
    match rights.allowed(caller, right):
        case "all":
            return True
        case "own":
            own = keys.ids_of_user(connection, caller.organization_id, caller.user_id or "")
            return row.key_id in own
        case _:
            return False


def _key_name(connection: Connection, key_id: str) -> str | None:
    state = admission.state(connection, key_id)
    return state.name if state else None
