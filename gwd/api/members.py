"""/organization/members: who belongs to the organization, and with which role."""

from gwd.api.management import Answer, Call, deleted, listed, one
from gwd.keys import endings
from gwd.management import people
from gwd.orgs import members
from gwd.orgs.members import PatchMember
from gwd.store import Connection


def list_(connection: Connection, call: Call) -> Answer:
    limit, offset = call.page()
    found, total = members.list_members(
        connection, call.organization_id, limit=limit, offset=offset
    )
    return listed([members.record(member) for member in found], total)


def get(connection: Connection, call: Call) -> Answer:
    return one(members.record(members.get(connection, call.organization_id, call.path["user"])))


def patch(connection: Connection, call: Call) -> Answer:
    """Another role; keys and open invitations above it follow at once."""
    body: PatchMember = call.body
    member = people.patch(connection, call.path["user"], body, change=call.change)
    return one(members.record(member))


def delete(connection: Connection, call: Call) -> Answer:
    """The person leaves and their keys stop at once; with `keep_keys` their inference keys live on.

    The answer names them, and the keys of others that the person made and may know.
    """
    gone = people.remove(
        connection, call.path["user"], change=call.change, keep_keys=call.flag("keep_keys")
    )
    return deleted(
        None,
        gone.member.id,
        keys_disabled=[endings.named(key) for key in gone.keys.disabled],
        keys_kept=[endings.named(key) for key in gone.keys.kept],
        keys_made_for_others=[endings.named(key) for key in gone.keys.made],
        invitations_revoked=gone.invitations_revoked,
    )
