"""/workspaces by id or slug, and who is in them."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.api.management import Answer, Call, deleted, listed, one
from gwd.api.shapes import Deleted
from gwd.core.fields import Count, Secret
from gwd.core.patches import named
from gwd.keys import record as keys
from gwd.keys.record import NamedKey
from gwd.management import policies, teams
from gwd.management.teams import CreateTeam
from gwd.orgs import workspaces
from gwd.orgs.workspace_record import (
    WorkspaceMemberRecord,
    WorkspaceRecord,
    member_record,
    record,
)
from gwd.orgs.workspaces import PatchWorkspace
from gwd.store import Connection

UserIds = Annotated[
    list[str],
    Meta(
        min_length=1,
        max_length=workspaces.MAX_AT_ONCE,
        description="Members of the organization: usr_… ids.",
    ),
]


class AddMembers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Members for a workspace."""

    user_ids: UserIds
    is_lead: Annotated[bool, Meta(description="Whether they lead the workspace.")] = False


class RemoveMembers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Members that leave a workspace."""

    user_ids: UserIds


class CreatedWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """A new workspace, with the management key of its lead if it has one."""

    data: WorkspaceRecord
    management_key: Annotated[
        Secret | UnsetType | None,
        Meta(
            description="Only with `lead_user_id`: the lead's secret, shown this once; null when the request is"
            " repeated."
        ),
    ] = UNSET

    def __repr__(self) -> str:
        return f"CreatedWorkspace(data={self.data!r}, management_key=***)"


class DeletedWorkspace(Deleted, frozen=True, kw_only=True):
    """A workspace that is gone, and the keys that ended with it."""

    keys_ended: Annotated[
        list[NamedKey] | UnsetType,
        Meta(description="Only where expired keys were in it; they stay refused for good."),
    ] = UNSET
    vendor_keys_deleted: Annotated[
        Count | UnsetType,
        Meta(
            description="Only where own vendor keys were for it alone: how many, deleted with it."
        ),
    ] = UNSET


class AddedMembers(msgspec.Struct, frozen=True, kw_only=True):
    """Those who were added or became leads; who was in already is not among them."""

    data: list[WorkspaceMemberRecord]
    added_count: Annotated[Count, Meta(description="How many they are.")]


class RemovedMembers(msgspec.Struct, frozen=True, kw_only=True):
    """How many were taken out, and the keys of theirs that still work in the workspace."""

    removed_count: Annotated[
        Count, Meta(description="How many were taken out; who was not in is not counted.")
    ]
    keys_left: Annotated[
        list[NamedKey] | UnsetType,
        Meta(description="Only where keys of theirs still work in the workspace."),
    ] = UNSET


def create(connection: Connection, call: Call) -> Answer:
    """Make a workspace.

    With `lead_user_id` the lead's management key comes along, shown here, once.
    """
    body: CreateTeam = call.body
    made = teams.create(connection, body, change=call.change, issuing=call.node.issuing)
    workspace = made.workspace
    policies.require_known_model(
        connection, workspace.default_text_model, param="default_text_model"
    )
    shown = CreatedWorkspace(data=record(workspace))
    answer = shown
    if made.lead_key is not None:
        answer = msgspec.structs.replace(shown, management_key=made.lead_key.plaintext)
        shown = msgspec.structs.replace(shown, management_key=None)
    return Answer(
        status=201,
        body=answer,
        replay=shown,
        subject=("workspace", workspace.id),
        details={
            "name": workspace.name,
            "slug": workspace.slug,
            "lead_user_id": body.lead_user_id,
        },
    )


def list_(connection: Connection, call: Call) -> Answer:
    """The workspaces of the organization."""
    limit, offset = call.page()
    found, total = workspaces.list_workspaces(
        connection, call.organization_id, limit=limit, offset=offset
    )
    return listed([record(workspace) for workspace in found], total)


def get(connection: Connection, call: Call) -> Answer:
    """One workspace."""
    return one(record(workspaces.get(connection, call.organization_id, call.path["workspace"])))


def patch(connection: Connection, call: Call) -> Answer:
    """Change a workspace."""
    body: PatchWorkspace = call.body
    before = workspaces.get(connection, call.organization_id, call.path["workspace"])
    changed = workspaces.patch(
        connection,
        call.organization_id,
        call.path["workspace"],
        body,
        actor=call.caller,
        now_us=call.now_us,
    )
    if changed.default_text_model != before.default_text_model:
        policies.require_known_model(
            connection, changed.default_text_model, param="default_text_model"
        )
    return one(record(changed), subject=("workspace", changed.id), details=named(body))


def delete(connection: Connection, call: Call) -> Answer:
    """Delete a workspace in which no key lives.

    Refused while live keys are in it; expired ones in it are named, they are refused for good.
    """
    gone = teams.delete(connection, call.path["workspace"], change=call.change)
    workspace = gone.workspace
    ended = [keys.named(key) for key in gone.ended]
    return deleted(
        "workspace",
        workspace.id,
        body=DeletedWorkspace(
            id=workspace.id,
            keys_ended=ended or UNSET,
            vendor_keys_deleted=gone.vendor_keys or UNSET,
        ),
        details={
            "name": workspace.name,
            "slug": workspace.slug,
            "keys_ended": [key.id for key in gone.ended],
            "vendor_keys_deleted": gone.vendor_keys,
        },
    )


def list_members(connection: Connection, call: Call) -> Answer:
    """Who is in a workspace."""
    limit, offset = call.page()
    found, total = workspaces.list_members(
        connection, call.organization_id, call.path["workspace"], limit=limit, offset=offset
    )
    return listed([member_record(member) for member in found], total)


def add_members(connection: Connection, call: Call) -> Answer:
    """Bring members of the organization into a workspace.

    `data` are those who were added or became leads; who was in already is not counted.
    """
    body: AddMembers = call.body
    workspace = workspaces.get(connection, call.organization_id, call.path["workspace"])
    added = workspaces.add_members(
        connection,
        call.organization_id,
        workspace.id,
        body.user_ids,
        actor=call.caller,
        lead=body.is_lead,
        now_us=call.now_us,
    )
    there = workspaces.members_among(connection, call.organization_id, workspace.id, added)
    return Answer(
        body=AddedMembers(data=[member_record(member) for member in there], added_count=len(added)),
        subject=("workspace", workspace.id),
        details={"user_ids": added, "is_lead": body.is_lead},
    )


def remove_members(connection: Connection, call: Call) -> Answer:
    """Take members out of a workspace.

    Names the keys of theirs that still work in the workspace.
    """
    asked: RemoveMembers = call.body
    removed = teams.remove_members(
        connection, call.path["workspace"], asked.user_ids, change=call.change
    )
    left = [keys.named(key) for key in removed.keys_left]
    return Answer(
        body=RemovedMembers(removed_count=len(removed.user_ids), keys_left=left or UNSET),
        subject=("workspace", removed.workspace_id),
        details={"user_ids": removed.user_ids},
    )
