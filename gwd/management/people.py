"""Members of an organization: a new role or a departure, with everything that hangs on it.

Neither reaches past a key that the caller could not change: the operator is not ended by way of his member.
"""

import msgspec

from gwd.keys import cascades
from gwd.keys.cascades import EndedKeys
from gwd.management import invitations
from gwd.management.change import Change
from gwd.orgs import members
from gwd.orgs.members import Member, MemberRole, PatchMember
from gwd.orgs.rights import require
from gwd.store import Connection


class ChangedMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member with another role, and the role before."""

    member: Member
    was: MemberRole


def patch(
    connection: Connection, user_id: str, changes: PatchMember, *, change: Change
) -> ChangedMember:
    """Give a member another role. Management keys and open invitations above it are lowered and revoked."""
    require(change.actor, "members.write")
    organization_id, now_us = change.organization_id, change.now_us
    before = members.get(connection, organization_id, user_id)
    member = members.change_role(
        connection, organization_id, user_id, changes.role, actor=change.actor
    )
    _require_keys_within(connection, user_id, change)
    led = members.workspaces_led(connection, user_id)
    cascades.lower_roles(
        connection, organization_id, user_id, member.role, but_in=led, now_us=now_us
    )
    invitations.end_those_above(connection, organization_id, user_id, member.role, now_us=now_us)
    return ChangedMember(member=member, was=before.role)


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """A member who left, what became of their keys, and how many of their open invitations were revoked."""

    member: Member
    keys: EndedKeys
    invitations_revoked: int


def remove(
    connection: Connection, user_id: str, *, change: Change, keep_keys: bool = False
) -> Departure:
    """Remove a member: their keys stop at once, with `keep_keys` all but their inference keys.

    Their open invitations are revoked.
    """
    require(change.actor, "members.write")
    organization_id, now_us = change.organization_id, change.now_us
    member = members.remove(connection, organization_id, user_id, actor=change.actor, now_us=now_us)
    _require_keys_within(connection, user_id, change)
    ended = cascades.end_with_member(
        connection, organization_id, user_id, keep=keep_keys, now_us=now_us
    )
    revoked = invitations.end_those_above(connection, organization_id, user_id, None, now_us=now_us)
    return Departure(member=member, keys=ended, invitations_revoked=revoked)


def _require_keys_within(connection: Connection, user_id: str, change: Change) -> None:
    held = cascades.of_member(connection, change.organization_id, user_id)
    cascades.require_none_above(change.actor, held, whose="This member")
