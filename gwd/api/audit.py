"""GET /audit: who changed what in the organization."""

from gwd.api.management import Answer, Call, walked
from gwd.api.query import Query, Text
from gwd.audit import service as audit
from gwd.audit.service import AuditFilter
from gwd.store import Connection

FILTERS = (
    Query("action", Text(), "Only this action; one that ends in `.*` matches all that begin so."),
    Query("subject_type", Text(), "Only what happened to this kind of thing, such as `key`."),
    Query("subject_id", Text(), "Only what happened to the thing with this id."),
    Query("actor", Text(), "Only what this key or member did."),
    Query("actor_key_id", Text(), "Only what was done with this management key."),
    Query("actor_user_id", Text(), "Only what this member did."),
)


def list_(connection: Connection, call: Call) -> Answer:
    """Who changed what, newest first.

    `action` may end in `.*`, `actor` is a key or a member.
    """
    asked = call.walk()
    wanted = AuditFilter(
        **{each.name: call.query.get(each.name) for each in FILTERS},
        from_us=call.query.get("from"),
        to_us=call.query.get("to"),
    )
    lines, total = audit.list_lines(
        connection,
        call.organization_id,
        wanted,
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
    )
    return walked(asked, lines, total, audit.line_record, lambda line: line.id)
