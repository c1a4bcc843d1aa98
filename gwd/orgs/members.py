"""Members of an organization: their roles, and the rule that the last owner stays."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gwd.core.caller import Caller, Role
from gwd.core.clock import iso
from gwd.core.errors import AlreadyExists, Conflict, Forbidden, NotFound
from gwd.core.fields import Id, Moment
from gwd.core.ids import mint
from gwd.orgs import checks
from gwd.orgs.rights import rank, require_grant
from gwd.orgs.tables import MemberRow, WorkspaceMemberRow
from gwd.store import Connection

MemberRole = Literal["member", "billing", "admin", "owner"]


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A person in an organization. `email` is empty where none was given."""

    id: str
    organization_id: str
    email: str
    first_name: str | None
    last_name: str | None
    role: MemberRole
    joined_at: int


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A person in an organization."""

    id: Annotated[Id, Meta(description="`usr_…`")]
    email: Annotated[
        str | None,
        Meta(description="The address the person was invited at; null if none is known."),
    ]
    first_name: Annotated[str | None, Meta(description="As the person gave it; null for none.")]
    last_name: Annotated[str | None, Meta(description="As the person gave it; null for none.")]
    role: Annotated[MemberRole, Meta(description="What the person may do in the organization.")]
    joined_at: Annotated[Moment, Meta(description="When the person became a member.")]


class NewMember(msgspec.Struct, frozen=True, kw_only=True):
    """A person who joins."""

    email: str
    role: MemberRole
    first_name: str | None = None
    last_name: str | None = None


class PatchMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another role for a member."""

    role: Annotated[
        MemberRole, Meta(description="What the member may do, never more than whoever sets it.")
    ]


def current_role(connection: Connection, organization_id: str, user_id: str) -> MemberRole | None:
    """The role a member has now; None once they are gone. Plain SQL: authentication asks."""
    row = connection.row(
        "SELECT role FROM member WHERE id = ? AND organization_id = ? AND removed_at IS NULL",
        (user_id, organization_id),
    )
    return None if row is None else row[0]


def role_within(
    connection: Connection, organization_id: str, user_id: str, workspace_id: str | None
) -> MemberRole | None:
    """The role a member has in one workspace: at least admin where they lead. Without one, in the organization."""
    role = current_role(connection, organization_id, user_id)
    if role is None or workspace_id is None or rank(role) >= rank("admin"):
        return role
    return "admin" if workspace_id in workspaces_led(connection, user_id) else role


def workspaces_led(connection: Connection, user_id: str) -> list[str]:
    """The workspaces a member leads."""
    rows = connection.rows(
        "SELECT workspace_id FROM workspace_member WHERE user_id = ? AND is_lead = 1", (user_id,)
    )
    return [row[0] for row in rows]


def get(connection: Connection, organization_id: str, user_id: str) -> Member:
    """One member; foreign, removed and absent ones are the same NotFound."""
    row = connection.first(_present(organization_id).where(MemberRow.id == user_id))
    if row is None:
        raise NotFound("No such member.")
    return _member(row)


def find_by_email(connection: Connection, organization_id: str, email: str) -> Member | None:
    """The member with this address, already in lower case."""
    row = connection.first(_present(organization_id).where(MemberRow.email == email))
    return None if row is None else _member(row)


def list_members(
    connection: Connection, organization_id: str, *, limit: int, offset: int
) -> tuple[list[Member], int]:
    """All members, in the order they joined."""
    query = _present(organization_id).order_by(MemberRow.joined_at, MemberRow.id)
    rows = connection.run(query.limit(limit).offset(offset))
    return [_member(row) for row in rows], connection.count(query)


def emails_of_roles(connection: Connection, organization_id: str, roles: list[str]) -> list[str]:
    """The addresses of everyone with one of the roles, sorted; members without an address are left out."""
    query = (
        _present(organization_id)
        .where(MemberRow.role.in_(roles) & (MemberRow.email != ""))
        .order_by(MemberRow.email)
    )
    return [row.email for row in connection.run(query)]


def join(connection: Connection, organization_id: str, new: NewMember, *, now_us: int) -> Member:
    """Add a person; whoever calls has checked that somebody was entitled to grant the role."""
    if find_by_email(connection, organization_id, new.email) is not None:
        raise AlreadyExists(f"{new.email} is a member already.", param="email")
    user_id = mint("usr_")
    connection.run(
        MemberRow.insert(
            id=user_id,
            organization_id=organization_id,
            email=new.email,
            first_name=checks.optional_text(new.first_name, param="first_name"),
            last_name=checks.optional_text(new.last_name, param="last_name"),
            role=new.role,
            joined_at=now_us,
        )
    )
    return get(connection, organization_id, user_id)


def change_role(
    connection: Connection, organization_id: str, user_id: str, role: MemberRole, *, actor: Caller
) -> Member:
    """Give a member another role: at most the actor's own, and the last owner stays one."""
    member = get(connection, organization_id, user_id)
    _require_above(actor, member)
    require_grant(actor, role)
    if member.role == "owner" and role != "owner":
        _require_other_owner(connection, organization_id, user_id, "demoted")
    connection.run(MemberRow.update(role=role).where(MemberRow.id == user_id))
    return get(connection, organization_id, user_id)


def remove(
    connection: Connection, organization_id: str, user_id: str, *, actor: Caller, now_us: int
) -> Member:
    """Take a person out of the organization and its workspaces. Their keys are the caller's to disable."""
    member = get(connection, organization_id, user_id)
    _require_above(actor, member)
    if member.role == "owner":
        _require_other_owner(connection, organization_id, user_id, "removed")
    connection.run(MemberRow.update(removed_at=now_us).where(MemberRow.id == user_id))
    connection.run(WorkspaceMemberRow.delete().where(WorkspaceMemberRow.user_id == user_id))
    return member


def record(member: Member) -> MemberRecord:
    """The member as the API shows it."""
    return MemberRecord(
        id=member.id,
        email=member.email or None,
        first_name=member.first_name,
        last_name=member.last_name,
        role=member.role,
        joined_at=iso(member.joined_at),
    )


def _require_above(actor: Caller, member: Member) -> None:
    """Admins write members, but not owners; a lead writes nobody."""
    role: Role = member.role
    if actor.role is None or actor.workspace_id is not None or rank(role) > rank(actor.role):
        raise Forbidden(
            f"A member with the role {role} can be changed by that role or a higher one only."
        )


def _require_other_owner(
    connection: Connection, organization_id: str, user_id: str, what: str
) -> None:
    others = _present(organization_id).where(
        (MemberRow.role == "owner") & (MemberRow.id != user_id)
    )
    if not connection.count(others):
        raise Conflict(f"The last owner cannot be {what}; make another member an owner first.")


def _present(organization_id: str) -> Any:
    return MemberRow.select().where(
        (MemberRow.organization_id == organization_id) & MemberRow.removed_at.is_null()
    )


def _member(row: MemberRow) -> Member:
    return Member(**{name: getattr(row, name) for name in Member.__struct_fields__})
