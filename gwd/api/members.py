"""/organization/members: who belongs to the organization, and with which role."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from gwd.api.management import Answer, Call, deleted, listed, one
from gwd.api.query import Flag, Query
from gwd.api.shapes import Deleted
from gwd.core.fields import Count
from gwd.keys.key import Key
from gwd.keys.record import NamedKey, named
from gwd.management import people
from gwd.orgs import members
from gwd.orgs.members import PatchMember
from gwd.store import Connection

KEEP_KEYS = Query(
    "keep_keys",
    Flag(),
    "The member's inference keys live on, owned by the organization.",
    default=False,
)


class DepartedMember(Deleted, frozen=True, kw_only=True):
    """A person who left, and what became of their keys and invitations."""

    keys_disabled: Annotated[
        list[NamedKey] | UnsetType, Meta(description="Only where keys of theirs were disabled.")
    ] = UNSET
    keys_kept: Annotated[
        list[NamedKey] | UnsetType,
        Meta(description="Only where `keep_keys` left inference keys of theirs working."),
    ] = UNSET
    keys_made_for_others: Annotated[
        list[NamedKey] | UnsetType,
        Meta(
            description="Only where keys of others work that the person made, and may know the secret of."
        ),
    ] = UNSET
    invitations_revoked: Annotated[
        Count | UnsetType, Meta(description="Only where open invitations of theirs were revoked.")
    ] = UNSET


def list_(connection: Connection, call: Call) -> Answer:
    """The members of the organization."""
    limit, offset = call.page()
    found, total = members.list_members(
        connection, call.organization_id, limit=limit, offset=offset
    )
    return listed([members.record(member) for member in found], total)


def get(connection: Connection, call: Call) -> Answer:
    """One member."""
    return one(members.record(members.get(connection, call.organization_id, call.path["user"])))


def patch(connection: Connection, call: Call) -> Answer:
    """Give a member another role.

    Another role; keys and open invitations above it follow at once.
    """
    body: PatchMember = call.body
    changed = people.patch(connection, call.path["user"], body, change=call.change)
    return one(
        members.record(changed.member),
        subject=("member", changed.member.id),
        details={"role": changed.member.role, "was": changed.was},
    )


def delete(connection: Connection, call: Call) -> Answer:
    """Remove a member from the organization.

    The person leaves and their keys stop at once; with `keep_keys` their inference keys live on.

    The answer names them, and the keys of others that the person made and may know.
    """
    gone = people.remove(
        connection, call.path["user"], change=call.change, keep_keys=call.query["keep_keys"]
    )
    member, keys = gone.member, gone.keys
    return deleted(
        "member",
        member.id,
        body=DepartedMember(
            id=member.id,
            keys_disabled=_named(keys.disabled),
            keys_kept=_named(keys.kept),
            keys_made_for_others=_named(keys.made),
            invitations_revoked=gone.invitations_revoked or UNSET,
        ),
        details={
            "email": member.email,
            "role": member.role,
            "keys_disabled": len(keys.disabled),
            "keys_kept": [key.id for key in keys.kept],
            "invitations_revoked": gone.invitations_revoked,
        },
    )


def _named(keys: list[Key]) -> list[NamedKey] | UnsetType:
    return [named(key) for key in keys] or UNSET
