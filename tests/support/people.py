"""The cast: one organization with people of every role, and the callers they are."""

from gwd.core.caller import Caller, Role
from gwd.keys.fields import CreateKey
from gwd.keys.service import IssuedKey, Issuing, create
from gwd.orgs import members, organizations
from gwd.orgs.members import MemberRole, NewMember
from gwd.orgs.organizations import CreatedOrganization, CreateOrganization
from gwd.store import Connection
from tests.support.store import NOW_US

ISSUING = Issuing(pepper=b"p" * 32, rate_limit_ceiling=600)


def organization(connection: Connection, name: str = "Acme") -> CreatedOrganization:
    """An organization with its owner."""
    return organizations.create(
        connection,
        CreateOrganization(name=name, owner_email=f"owner@{name.lower()}.example"),
        now_us=NOW_US,
    )


def caller(
    made: CreatedOrganization,
    role: Role,
    *,
    user_id: str | None = None,
    workspace_id: str | None = None,
    key_id: str = "mk_test",
) -> Caller:
    """A management key with a role, of the owner unless somebody else is named."""
    return Caller(
        kind="management",
        key_id=key_id,
        key_name=role,
        family_id=key_id,
        organization_id=made.organization.id,
        workspace_id=workspace_id,
        user_id=user_id or made.owner_id,
        role=role,
    )


def person(
    connection: Connection, made: CreatedOrganization, role: MemberRole, name: str | None = None
) -> Caller:
    """A new member with this role, and the management key they would call with."""
    member = members.join(
        connection,
        made.organization.id,
        NewMember(email=f"{name or role}@acme.example", role=role),
        now_us=NOW_US,
    )
    return caller(made, role, user_id=member.id)


def issued(
    connection: Connection,
    made: CreatedOrganization,
    new: CreateKey,
    *,
    actor: Caller | None = None,
) -> IssuedKey:
    """A key created by the owner unless somebody else is named."""
    return create(
        connection,
        made.organization.id,
        new,
        actor=actor or caller(made, "owner"),
        issuing=ISSUING,
        now_us=NOW_US,
    )
