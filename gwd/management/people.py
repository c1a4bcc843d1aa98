"""Members of an organization: a new role or a departure, with everything that hangs on it."""

from gwd.keys import service as keys
from gwd.management import invitations
from gwd.management.change import Change, note
from gwd.orgs import members
from gwd.orgs.members import Member, PatchMember
from gwd.orgs.rights import require
from gwd.store import Connection


def patch(connection: Connection, user_id: str, changes: PatchMember, *, change: Change) -> Member:
    """Give a member another role. Management keys and open invitations above it are lowered and revoked."""
    require(change.actor, "members.write")
    organization_id, now_us = change.organization_id, change.now_us
    before = members.get(connection, organization_id, user_id)
    member = members.change_role(
        connection, organization_id, user_id, changes.role, actor=change.actor
    )
    led = members.workspaces_led(connection, user_id)
    keys.lower_roles(connection, organization_id, user_id, member.role, but_in=led, now_us=now_us)
    invitations.end_those_above(connection, organization_id, user_id, member.role, now_us=now_us)
    details = {"role": member.role, "was": before.role}
    note(connection, change, "member.patch", ("member", user_id), details)
    return member


def remove(connection: Connection, user_id: str, *, change: Change) -> Member:
    """Remove a member: their management keys stop at once, their open invitations are revoked."""
    require(change.actor, "members.write")
    organization_id, now_us = change.organization_id, change.now_us
    member = members.remove(connection, organization_id, user_id, actor=change.actor, now_us=now_us)
    disabled = keys.disable_management_keys(connection, organization_id, user_id, now_us=now_us)
    revoked = invitations.end_those_above(connection, organization_id, user_id, None, now_us=now_us)
    details = {
        "email": member.email,
        "role": member.role,
        "keys_disabled": disabled,
        "invitations_revoked": revoked,
    }
    note(connection, change, "member.remove", ("member", user_id), details)
    return member
