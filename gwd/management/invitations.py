"""Invitations: a person joins with a role, workspaces and a management key of their own.

A token is shown once, inside `accept_url`; only its keyed digest is stored. An invitation lives seven days, and a
person's open invitations end with the rights they were made with.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.core import links
from gwd.core.caller import Caller
from gwd.core.clock import US_PER_DAY, iso
from gwd.core.errors import AlreadyExists, Conflict, Forbidden, InvalidValue, NotFound
from gwd.core.fields import Id, Moment
from gwd.core.ids import mint, random_base62
from gwd.core.inputs import TextInput
from gwd.keys import secret
from gwd.keys.service import IssuedKey, Issuing, ManagementKey, issue_management_key
from gwd.management.change import Change
from gwd.management.tables import InvitationTable
from gwd.orgs import checks, members, workspaces
from gwd.orgs.members import Member, MemberRole, NewMember
from gwd.orgs.rights import rank, require, require_grant
from gwd.orgs.settings import is_deleted
from gwd.store import Connection, walk

LIFE_US: Final = 7 * US_PER_DAY
TOKEN_LENGTH: Final = 43
MAX_WORKSPACES: Final = 100

_GONE: Final = "This invitation does not exist, was used, was revoked, or has expired."

Status = Literal["pending", "accepted", "revoked", "expired"]


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation on record; its state follows from its times."""

    id: str
    organization_id: str
    email: str
    role: MemberRole
    workspace_ids: list[str]
    is_lead: bool
    invited_by: str | None
    created_at: int
    expires_at: int
    accepted_at: int | None
    revoked_at: int | None


class InvitationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A person who was asked to join. The token that opens it is never in it."""

    id: Annotated[Id, Meta(description="`inv_…`")]
    email: Annotated[str, Meta(description="The address of the person.")]
    role: Annotated[MemberRole, Meta(description="The role the person will have.")]
    workspace_ids: Annotated[
        list[Id], Meta(description="The workspaces the person will be in; may be empty.")
    ]
    is_lead: Annotated[
        bool, Meta(description="Whether the person will lead the one workspace that is named.")
    ]
    status: Annotated[Status, Meta(description="What became of it by now.")]
    invited_by: Annotated[
        Id | None, Meta(description="The member who asked; null if no member did.")
    ]
    created_at: Annotated[Moment, Meta(description="When it was made.")]
    expires_at: Annotated[
        Moment, Meta(description="From when on it cannot be accepted, seven days later.")
    ]


class CreateInvitation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An invitation of a person."""

    email: Annotated[
        str,
        Meta(
            description="The person's address.",
            extra_json_schema={"maxLength": checks.EMAIL_LENGTH},
        ),
    ]
    role: Annotated[
        MemberRole,
        Meta(description="What the person may do, never more than whoever invites."),
    ] = "member"
    workspace_ids: Annotated[
        list[str],
        Meta(
            max_length=MAX_WORKSPACES,
            description="Workspaces that the person enters, by id or slug.",
        ),
    ] = []
    is_lead: Annotated[
        bool,
        Meta(
            description="Whether the person leads the one workspace that is named: a member whose management key is an"
            " admin's, bound to that workspace."
        ),
    ] = False


class LookUpInvitation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The token of an invitation that is only looked at."""

    token: Annotated[str, Meta(description="The token at the end of the invitation's address.")]


class AcceptInvitation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The token of an invitation; it is the credential."""

    token: Annotated[str, Meta(description="The token at the end of the invitation's address.")]
    first_name: Annotated[
        TextInput | None, Meta(description="The person's first name, if it shall be known.")
    ] = None
    last_name: Annotated[
        TextInput | None, Meta(description="The person's last name, if it shall be known.")
    ] = None


class SentInvitation(msgspec.Struct, frozen=True, kw_only=True):
    """A new invitation with its token, which exists only here and is shown once."""

    invitation: Invitation
    accept_url: str

    def __repr__(self) -> str:
        return f"SentInvitation(invitation={self.invitation!r}, accept_url=***)"


class AcceptedInvitation(msgspec.Struct, frozen=True, kw_only=True):
    """The new member with their management key, and as the caller who acted."""

    invitation: Invitation
    member: Member
    issued: IssuedKey
    actor: Caller


def create(
    connection: Connection, new: CreateInvitation, *, change: Change, pepper: bytes, app_url: str
) -> SentInvitation:
    """Invite a person with at most the actor's own role; a lead invites members into its own workspace."""
    actor, organization_id = change.actor, change.organization_id
    require(actor, "invitations.write")
    require_grant(actor, new.role)
    email = checks.email(new.email)
    workspace_ids = _workspaces(connection, new, actor)
    if new.is_lead and (len(workspace_ids) != 1 or new.role != "member"):
        raise InvalidValue(
            "A lead has the role member and leads exactly one workspace; name it in workspace_ids.",
            param="is_lead",
        )
    if actor.workspace_id is not None and new.role != "member":
        raise Forbidden("A lead invites people with the role member only.", param="role")
    if members.find_by_email(connection, organization_id, email) is not None:
        raise AlreadyExists(f"{email} is a member already.", param="email")
    if connection.count(
        _open(organization_id, change.now_us).where(InvitationTable.email == email)
    ):
        raise AlreadyExists(
            f"{email} has an open invitation; revoke it before sending another.", param="email"
        )
    token = random_base62(TOKEN_LENGTH)
    invitation_id = mint("inv_")
    connection.run(
        InvitationTable.insert(
            id=invitation_id,
            organization_id=organization_id,
            email=email,
            role=new.role,
            workspace_ids=workspace_ids,
            is_lead=new.is_lead,
            token_digest=_digest(token, pepper),
            invited_by=actor.user_id,
            created_at=change.now_us,
            expires_at=change.now_us + LIFE_US,
        )
    )
    return SentInvitation(
        invitation=get(connection, organization_id, invitation_id),
        accept_url=links.invitation(app_url, token),
    )


def get(connection: Connection, organization_id: str, invitation_id: str) -> Invitation:
    """One invitation; foreign and absent ones are the same NotFound."""
    row = connection.first(
        InvitationTable.select().where(
            (InvitationTable.id == invitation_id)
            & (InvitationTable.organization_id == organization_id)
        )
    )
    if row is None:
        raise NotFound("No such invitation.")
    return _invitation(row)


def list_invitations(
    connection: Connection,
    organization_id: str,
    *,
    limit: int,
    offset: int,
    after: str | None = None,
    before: str | None = None,
) -> tuple[list[Invitation], int | None]:
    """All invitations whatever became of them, newest first; on from one that is named without a count."""
    rows, total = walk.page(
        connection,
        InvitationTable.select().where(InvitationTable.organization_id == organization_id),
        InvitationTable,
        organization_id,
        limit=limit,
        offset=offset,
        after=after,
        before=before,
    )
    return [_invitation(row) for row in rows], total


def revoke(connection: Connection, invitation_id: str, *, change: Change) -> bool:
    """End an open invitation; false if it was ended before, which is harmless. An accepted one is a conflict."""
    actor = change.actor
    require(actor, "invitations.write")
    invitation = get(connection, change.organization_id, invitation_id)
    if actor.workspace_id is not None and invitation.workspace_ids != [actor.workspace_id]:
        raise Forbidden("A lead revokes invitations into its own workspace only.")
    if actor.role is None or rank(invitation.role) > rank(actor.role):
        raise Forbidden(f"An invitation as {invitation.role} is revoked by that role or above.")
    if invitation.accepted_at is not None:
        raise Conflict("The invitation was accepted; remove the member instead.")
    if invitation.revoked_at is not None:
        return False
    _end(connection, [invitation.id], change.now_us)
    return True


def accept(
    connection: Connection, accepted: AcceptInvitation, *, issuing: Issuing, now_us: int
) -> AcceptedInvitation:
    """Join by token. Unknown, used, revoked and expired tokens are the same NotFound, and those of what was deleted."""
    digest = _digest(accepted.token, issuing.pepper)
    claimed = connection.row(
        "UPDATE invitation SET accepted_at = ? WHERE token_digest = ? AND accepted_at IS NULL"
        " AND revoked_at IS NULL AND expires_at > ? RETURNING id, organization_id",
        (now_us, digest, now_us),
    )
    if claimed is None or is_deleted(connection, claimed[1]):
        raise NotFound(_GONE)
    invitation = get(connection, claimed[1], claimed[0])
    organization_id = invitation.organization_id
    person = NewMember(
        email=invitation.email,
        role=invitation.role,
        first_name=accepted.first_name,
        last_name=accepted.last_name,
    )
    member = members.join(connection, organization_id, person, now_us=now_us)
    led = _enter(connection, invitation, member, now_us)
    issued = _first_key(connection, member, led, issuing=issuing, now_us=now_us)
    return AcceptedInvitation(
        invitation=invitation, member=member, issued=issued, actor=_as_caller(member, issued)
    )


def look_up(connection: Connection, token: str, *, pepper: bytes, now_us: int) -> Invitation:
    """An open invitation by its token, which stays as it is. The same NotFound as `accept`."""
    row = connection.row(
        "SELECT id, organization_id FROM invitation WHERE token_digest = ? AND accepted_at IS NULL"
        " AND revoked_at IS NULL AND expires_at > ?",
        (_digest(token, pepper), now_us),
    )
    if row is None or is_deleted(connection, row[1]):
        raise NotFound(_GONE)
    return get(connection, row[1], row[0])


def end_those_above(
    connection: Connection,
    organization_id: str,
    user_id: str,
    role: MemberRole | None,
    *,
    now_us: int,
) -> int:
    """Revoke a person's open invitations to roles they may not grant any more (None: to any); gives back how many."""
    rows = connection.run(
        _open(organization_id, now_us).where(InvitationTable.invited_by == user_id)
    )
    ended = [
        row.id
        for row in rows
        if role is None or rank(role) < rank("admin") or rank(row.role) > rank(role)
    ]
    _end(connection, ended, now_us)
    return len(ended)


def status(invitation: Invitation, now_us: int) -> Status:
    """What became of an invitation; derived from the clock, never stored."""
    if invitation.accepted_at is not None:
        return "accepted"
    if invitation.revoked_at is not None:
        return "revoked"
    return "expired" if invitation.expires_at <= now_us else "pending"


def record(invitation: Invitation, *, now_us: int) -> InvitationRecord:
    """The invitation as the API shows it."""
    return InvitationRecord(
        id=invitation.id,
        email=invitation.email,
        role=invitation.role,
        workspace_ids=invitation.workspace_ids,
        is_lead=invitation.is_lead,
        status=status(invitation, now_us),
        invited_by=invitation.invited_by,
        created_at=iso(invitation.created_at),
        expires_at=iso(invitation.expires_at),
    )


def _workspaces(connection: Connection, new: CreateInvitation, actor: Caller) -> list[str]:
    """The ids of the workspaces named; a lead's own when it names none."""
    if not new.workspace_ids and actor.workspace_id is not None:
        return [actor.workspace_id]
    found = [workspaces.get(connection, actor.organization_id, ref) for ref in new.workspace_ids]
    for workspace in found:
        workspaces.require_within(actor, workspace.id)
    return list(dict.fromkeys(workspace.id for workspace in found))


def _enter(
    connection: Connection, invitation: Invitation, member: Member, now_us: int
) -> str | None:
    """Bring the member into the workspaces that still exist; the one they lead, if any."""
    led = None
    for workspace_id in invitation.workspace_ids:
        try:
            workspace = workspaces.get(connection, invitation.organization_id, workspace_id)
        except NotFound:
            continue
        workspaces.enter(
            connection, workspace.id, member.id, is_lead=invitation.is_lead, now_us=now_us
        )
        led = workspace.id if invitation.is_lead else None
    return led


def _first_key(
    connection: Connection, member: Member, led: str | None, *, issuing: Issuing, now_us: int
) -> IssuedKey:
    """The member's management key: of their role, or an admin's bound to the workspace they lead."""
    return issue_management_key(
        connection,
        ManagementKey(
            organization_id=member.organization_id,
            user_id=member.id,
            role="admin" if led else member.role,
            workspace_id=led,
        ),
        issuing=issuing,
        now_us=now_us,
    )


def _as_caller(member: Member, issued: IssuedKey) -> Caller:
    """Whoever accepts acts as themselves, with the key they are given."""
    key = issued.key
    return Caller(
        kind="management",
        key_id=key.id,
        key_name=key.name,
        family_id=key.family_id,
        organization_id=key.organization_id,
        workspace_id=key.workspace_id,
        user_id=member.id,
        role=key.role,
    )


def _end(connection: Connection, invitation_ids: list[str], now_us: int) -> None:
    if invitation_ids:
        connection.run(
            InvitationTable.update(revoked_at=now_us).where(InvitationTable.id.in_(invitation_ids))
        )


def _open(organization_id: str, now_us: int) -> Any:
    return InvitationTable.select().where(
        (InvitationTable.organization_id == organization_id)
        & InvitationTable.accepted_at.is_null()
        & InvitationTable.revoked_at.is_null()
        & (InvitationTable.expires_at > now_us)
    )


def _digest(token: str, pepper: bytes) -> bytes:
    return secret.digest("invitation:" + token, pepper)


def _invitation(row: InvitationTable) -> Invitation:
    return Invitation(**{name: getattr(row, name) for name in Invitation.__struct_fields__})
