"""/organization/invitations, and /invitations/accept by which an invited person becomes a member."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from gwd.api.management import Answer, Call, OpenCall, one, walked
from gwd.api.shapes import Deleted
from gwd.core.clock import iso
from gwd.core.errors import NotFound
from gwd.core.fields import Id, Moment, Secret
from gwd.management import invitations
from gwd.management.invitations import (
    AcceptInvitation,
    CreateInvitation,
    Invitation,
    InvitationRecord,
    LookUpInvitation,
)
from gwd.orgs import members, organizations, workspaces
from gwd.orgs.members import MemberRecord, MemberRole
from gwd.store import Connection

HOW_TO_ACCEPT: Final = """You are invited to a gateway. To accept, on a machine with gwctl:

    gwctl member accept --url {0}

and give it this page's address. Without gwctl, send the token of the address once:

    curl -X POST {0}/invitations/accept -H 'content-type: application/json' -d '{{"token": "…"}}'

The answer holds your management key. It is shown once.
"""
"""For programs that open the address of an invitation."""


class SentInvitation(msgspec.Struct, frozen=True, kw_only=True):
    """A new invitation, with the address that the person opens."""

    data: InvitationRecord
    accept_url: Annotated[
        Secret | None,
        Meta(
            description="Where the person accepts; it holds the token and is shown this once, null when the request is"
            " repeated."
        ),
    ]

    def __repr__(self) -> str:
        return f"SentInvitation(data={self.data!r}, accept_url=***)"


class JoinedMember(MemberRecord, frozen=True, kw_only=True):
    """The person who joined, and where."""

    organization_id: Annotated[Id, Meta(description="The organization the person belongs to now.")]
    workspace_ids: Annotated[
        list[Id], Meta(description="The workspaces that the invitation named; may be empty.")
    ]
    is_lead: Annotated[bool, Meta(description="Whether the person leads the workspace.")]


class JoinedOrganization(msgspec.Struct, frozen=True, kw_only=True):
    """The new member, with a management key of their own."""

    data: JoinedMember
    management_key: Annotated[Secret, Meta(description="The member's secret, shown this once.")]

    def __repr__(self) -> str:
        return f"JoinedOrganization(data={self.data!r}, management_key=***)"


class OpenInvitation(msgspec.Struct, frozen=True, kw_only=True):
    """What an invitation offers, for the person who holds its token."""

    organization_name: Annotated[str, Meta(description="The organization that invites.")]
    invited_by: Annotated[
        str | None, Meta(description="Who asked, by name or address; null if no member did.")
    ]
    email: Annotated[str, Meta(description="The address of the person.")]
    role: Annotated[MemberRole, Meta(description="The role the person will have.")]
    workspace_names: Annotated[
        list[str], Meta(description="The workspaces the person will be in; may be empty.")
    ]
    is_lead: Annotated[bool, Meta(description="Whether the person will lead the workspace.")]
    expires_at: Annotated[Moment, Meta(description="From when on it cannot be accepted.")]


def create(connection: Connection, call: Call) -> Answer:
    """Invite a person.

    `accept_url` holds the token and is shown here, once.
    """
    body: CreateInvitation = call.body
    sent = invitations.create(
        connection,
        body,
        change=call.change,
        pepper=call.node.issuing.pepper,
        app_url=call.node.app_url,
    )
    shown = invitations.record(sent.invitation, now_us=call.now_us)
    invitation = sent.invitation
    return Answer(
        status=201,
        body=SentInvitation(data=shown, accept_url=sent.accept_url),
        replay=SentInvitation(data=shown, accept_url=None),
        subject=("invitation", invitation.id),
        details={
            "email": invitation.email,
            "role": invitation.role,
            "workspace_ids": invitation.workspace_ids,
        },
    )


def list_(connection: Connection, call: Call) -> Answer:
    """The invitations of the organization, newest first."""
    asked = call.walk()
    found, total = invitations.list_invitations(
        connection,
        call.organization_id,
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
    )
    return walked(
        asked,
        found,
        total,
        lambda one: invitations.record(one, now_us=call.now_us),
        lambda one: one.id,
    )


def get(connection: Connection, call: Call) -> Answer:
    """One invitation."""
    found = invitations.get(connection, call.organization_id, call.path["invitation"])
    return one(invitations.record(found, now_us=call.now_us))


def revoke(connection: Connection, call: Call) -> Answer:
    """Revoke an invitation.

    The invitation stays on record, as revoked.
    """
    invitation_id = call.path["invitation"]
    ended = invitations.revoke(connection, invitation_id, change=call.change)
    body = Deleted(id=invitation_id)
    return Answer(body=body, subject=("invitation", invitation_id) if ended else None)


def look_up(connection: Connection, call: OpenCall) -> Answer:
    """What an invitation offers.

    Nothing is used up: the token still works afterwards.
    """
    body: LookUpInvitation = call.body
    found = invitations.look_up(
        connection, body.token, pepper=call.node.issuing.pepper, now_us=call.now_us
    )
    known = workspaces.names(connection, found.organization_id)
    return one(
        OpenInvitation(
            organization_name=organizations.name_of(connection, found.organization_id) or "",
            invited_by=_inviter(connection, found),
            email=found.email,
            role=found.role,
            workspace_names=[known[each] for each in found.workspace_ids if each in known],
            is_lead=found.is_lead,
            expires_at=iso(found.expires_at),
        )
    )


def accept(connection: Connection, call: OpenCall) -> Answer:
    """Join an organization by the token of an invitation.

    Join by token. The new member's management key is shown here, once.

    The token works once, so repeating this request is a 404: there is nothing to show again.
    """
    body: AcceptInvitation = call.body
    joined = invitations.accept(connection, body, issuing=call.node.issuing, now_us=call.now_us)
    member, invitation = joined.member, joined.invitation
    same: dict[str, Any] = msgspec.structs.asdict(members.record(member))
    return Answer(
        status=201,
        body=JoinedOrganization(
            data=JoinedMember(
                **same,
                organization_id=member.organization_id,
                workspace_ids=invitation.workspace_ids,
                is_lead=invitation.is_lead,
            ),
            management_key=joined.issued.plaintext,
        ),
        actor=joined.actor,
        subject=("invitation", invitation.id),
        details={"email": member.email, "role": member.role, "user_id": member.id},
    )


def _inviter(connection: Connection, invitation: Invitation) -> str | None:
    """Who asked, as people know them; None if no member did, or one who left."""
    if invitation.invited_by is None:
        return None
    try:
        member = members.get(connection, invitation.organization_id, invitation.invited_by)
    except NotFound:
        return None
    name = " ".join(part for part in (member.first_name, member.last_name) if part)
    return name or member.email
