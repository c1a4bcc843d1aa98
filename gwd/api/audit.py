"""GET /audit: who changed what in the organization."""

from gwd.api.management import Answer, Call, walked
from gwd.audit import service as audit
from gwd.audit.service import AuditFilter
from gwd.store import Connection

FILTERS = ("action", "subject_type", "subject_id", "actor", "actor_key_id", "actor_user_id")


def list_(connection: Connection, call: Call) -> Answer:
    """Newest first; `action` may end in `.*`, `actor` is a key or a member."""
    asked = call.walk()
    wanted = AuditFilter(
        **{name: call.query.get(name) for name in FILTERS},
        from_us=call.moment("from"),
        to_us=call.moment("to"),
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
