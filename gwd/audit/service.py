"""The audit trail: one line per change, appended in the transaction of the change."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from gwd.audit import chain
from gwd.audit.tables import AuditTable
from gwd.core.caller import Caller, Role
from gwd.core.clock import iso
from gwd.core.fields import Id, Moment
from gwd.core.ids import mint
from gwd.store import Connection, walk

Details = dict[str, Any]

_INSERT: Final = (
    "INSERT INTO audit (organization_id, seq, id, actor_key_id, actor_user_id, actor_role, action, subject_type,"
    " subject_id, details, address, request_id, created_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change came from: the client's address, the id of its request, and whether it was made on the page."""

    address: str | None = None
    request_id: str | None = None
    by_page: bool = False


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One change. `actor_key_id` is null for what the node did by itself."""

    id: str
    organization_id: str | None
    actor_key_id: str | None
    actor_user_id: str | None
    actor_role: str | None
    action: str
    subject_type: str
    subject_id: str | None
    details: Details
    address: str | None
    request_id: str | None
    created_at: int


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One change: who made it, from where, and what it was about. It holds no secret."""

    id: Annotated[Id, Meta(description="`aud_…`")]
    organization_id: Annotated[
        Id | None, Meta(description="The organization that was changed; null for the node itself.")
    ]
    actor_key_id: Annotated[
        Id | None,
        Meta(
            description="The key that asked for it; null for what the node or its machine's owner did."
        ),
    ]
    actor_user_id: Annotated[
        Id | None, Meta(description="The member whose key it is; null for none.")
    ]
    actor_role: Annotated[
        Role | None, Meta(description="The role the key had then; null without a key.")
    ]
    action: Annotated[str, Meta(description="What was done, such as `key.create`.")]
    subject_type: Annotated[str, Meta(description="What kind of thing it was done to.")]
    subject_id: Annotated[
        Id | None, Meta(description="Which one; null for the node, of which there is one.")
    ]
    details: Annotated[
        dict[str, Any],
        Meta(
            description="What was said of it, by field; amounts whose names end in `_nano` are nano-USD."
        ),
    ]
    address: Annotated[
        str | None, Meta(description="The client's address; null for what came from no client.")
    ]
    request_id: Annotated[
        str | None,
        Meta(description="The `x-request-id` of the request; null for what came from none."),
    ]
    created_at: Annotated[Moment, Meta(description="When it happened.")]


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The query of GET /audit; `from_us` inclusive, `to_us` exclusive. `action` may end in `.*`.

    `actor` is a key or a member.
    """

    action: str | None = None
    subject_type: str | None = None
    subject_id: str | None = None
    actor: str | None = None
    actor_key_id: str | None = None
    actor_user_id: str | None = None
    from_us: int | None = None
    to_us: int | None = None


def record(
    connection: Connection,
    actor: Caller | None,
    action: str,
    subject_type: str,
    subject_id: str | None,
    details: Details,
    *,
    now_us: int,
    organization_id: str | None = None,
    origin: Origin | None = None,
) -> str:
    """Append one line and give back its id. The organization is the actor's unless another one is changed."""
    line_id = mint("aud_")
    from_where = origin or Origin()
    owner = organization_id or (actor.organization_id if actor else None)
    rest = (
        line_id,
        actor.key_id if actor else None,
        actor.user_id if actor else None,
        actor.role if actor else None,
        action,
        subject_type,
        subject_id,
        msgspec.json.encode(details).decode(),
        from_where.address,
        from_where.request_id,
        now_us,
    )
    seq, hash_ = chain.append(connection, owner or chain.NODE, rest)
    connection.execute(_INSERT, (owner, seq, *rest, hash_))
    return line_id


def list_lines(
    connection: Connection,
    organization_id: str,
    wanted: AuditFilter,
    *,
    limit: int,
    offset: int,
    after: str | None = None,
    before: str | None = None,
) -> tuple[list[AuditLine], int | None]:
    """The organization's lines that match, newest first; on from a line that is named without a count."""
    query = AuditTable.select().where(AuditTable.organization_id == organization_id)
    for name in ("subject_type", "subject_id", "actor_key_id", "actor_user_id"):
        value = getattr(wanted, name)
        if value is not None:
            query = query.where(getattr(AuditTable, name) == value)
    if wanted.actor is not None:
        query = query.where(
            (AuditTable.actor_key_id == wanted.actor) | (AuditTable.actor_user_id == wanted.actor)
        )
    if wanted.action is not None:
        family = wanted.action.removesuffix("*")
        matches = (
            AuditTable.action == wanted.action
            if family == wanted.action
            else AuditTable.action.startswith(family)
        )
        query = query.where(matches)
    if wanted.from_us is not None:
        query = query.where(AuditTable.created_at >= wanted.from_us)
    if wanted.to_us is not None:
        query = query.where(AuditTable.created_at < wanted.to_us)
    rows, total = walk.page(
        connection,
        query,
        AuditTable,
        organization_id,
        limit=limit,
        offset=offset,
        after=after,
        before=before,
    )
    lines = [
        AuditLine(**{name: getattr(row, name) for name in AuditLine.__struct_fields__})
        for row in rows
    ]
    return lines, total


def line_record(line: AuditLine) -> AuditRecord:
    """The line as the API shows it."""
    same: dict[str, Any] = msgspec.structs.asdict(line)
    return AuditRecord(**{**same, "created_at": iso(line.created_at)})
