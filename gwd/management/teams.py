"""Workspaces where keys hang on them: made with a lead and the lead's key, left, deleted once no key lives in them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from gwd.core.errors import NotFound
from gwd.credentials import own
from gwd.keys import cascades
from gwd.keys import service as keys
from gwd.keys.key import Key
from gwd.keys.service import IssuedKey, Issuing, ManagementKey, issue_management_key
from gwd.management.change import Change
from gwd.orgs import members, workspaces
from gwd.orgs.rights import require
from gwd.orgs.workspaces import CreateWorkspace, Workspace
from gwd.store import Connection


class CreateTeam(CreateWorkspace, frozen=True, kw_only=True):
    """A new workspace, with its lead if one is named."""

    lead_user_id: Annotated[
        str | None,
        Meta(
            description="The member who leads it; the answer holds the lead's management key, once. Null is nobody."
        ),
    ] = None


class CreatedTeam(msgspec.Struct, frozen=True, kw_only=True):
    """A new workspace, and the key of its lead if it has one."""

    workspace: Workspace
    lead_key: IssuedKey | None


def create(
    connection: Connection, new: CreateTeam, *, change: Change, issuing: Issuing
) -> CreatedTeam:
    """A workspace; a lead gets an admin's key that is bound to it."""
    require(change.actor, "workspaces.create")
    organization_id, now_us = change.organization_id, change.now_us
    workspace = workspaces.create(
        connection, organization_id, new, created_by=change.actor.user_id, now_us=now_us
    )
    lead_key = None
    lead = new.lead_user_id
    if lead is not None:
        if members.current_role(connection, organization_id, lead) is None:
            raise NotFound("No such member.", param="lead_user_id")
        workspaces.enter(connection, workspace.id, lead, is_lead=True, now_us=now_us)
        lead_key = issue_management_key(
            connection,
            ManagementKey(
                organization_id=organization_id,
                role="admin",
                user_id=lead,
                workspace_id=workspace.id,
            ),
            issuing=issuing,
            now_us=now_us,
        )
    return CreatedTeam(workspace=workspace, lead_key=lead_key)


class DeletedTeam(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace that is gone; `ended` are its keys that no longer worked and now never will.

    `vendor_keys` is how many own vendor keys were for it alone; they are deleted.
    """

    workspace: Workspace
    ended: list[Key]
    vendor_keys: int


def delete(connection: Connection, ref: str, *, change: Change) -> DeletedTeam:
    """Delete a workspace in which no key lives; those that expired in it stay refused."""
    require(change.actor, "workspaces.create")
    organization_id, now_us = change.organization_id, change.now_us
    workspace = workspaces.get(connection, organization_id, ref)
    held = cascades.in_workspace(connection, organization_id, workspace.id)
    cascades.require_none_above(change.actor, held, whose="This workspace")
    live = keys.count_live(connection, organization_id, workspace_id=workspace.id, now_us=now_us)
    workspaces.delete(connection, organization_id, workspace.id, live_keys=live, now_us=now_us)
    vendor_keys = own.delete_all(connection, organization_id, workspace.id)
    return DeletedTeam(workspace=workspace, ended=held, vendor_keys=vendor_keys)


class RemovedFromTeam(msgspec.Struct, frozen=True, kw_only=True):
    """Who was taken out of a workspace, and their keys there that still work."""

    workspace_id: str
    user_ids: list[str]
    keys_left: list[Key]


def remove_members(
    connection: Connection, ref: str, user_ids: list[str], *, change: Change
) -> RemovedFromTeam:
    """Take members out of a workspace; a lead's key bound to it has the member's own role from then on."""
    require(change.actor, "workspaces.write")
    organization_id = change.organization_id
    workspace = workspaces.get(connection, organization_id, ref)
    removed = workspaces.remove_members(
        connection, organization_id, workspace.id, user_ids, actor=change.actor
    )
    left = cascades.usable_in_workspace(
        connection, organization_id, workspace.id, removed, now_us=change.now_us
    )
    return RemovedFromTeam(workspace_id=workspace.id, user_ids=removed, keys_left=left)
