"""/workspaces by id or slug, and who is in them."""

from typing import Any

import msgspec

from gwd.api.management import Answer, Call, deleted, listed, one
from gwd.keys import endings
from gwd.management import teams
from gwd.management.teams import CreateTeam
from gwd.orgs import workspaces
from gwd.orgs.workspaces import PatchWorkspace
from gwd.store import Connection


class AddMembers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """POST /workspaces/{id}/members/add; `is_lead` makes them leads of the workspace."""

    user_ids: list[str]
    is_lead: bool = False


class RemoveMembers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """POST /workspaces/{id}/members/remove."""

    user_ids: list[str]


def create(connection: Connection, call: Call) -> Answer:
    """With `lead_user_id` the lead's management key comes along, shown here, once."""
    body: CreateTeam = call.body
    made = teams.create(connection, body, change=call.change, issuing=call.node.issuing)
    shown: dict[str, Any] = {"data": workspaces.record(made.workspace)}
    if made.lead_key is None:
        return Answer(status=201, body=shown)
    return Answer(
        status=201,
        body={**shown, "management_key": made.lead_key.plaintext},
        replay={**shown, "management_key": None},
    )


def list_(connection: Connection, call: Call) -> Answer:
    limit, offset = call.page()
    found, total = workspaces.list_workspaces(
        connection, call.organization_id, limit=limit, offset=offset
    )
    return listed([workspaces.record(workspace) for workspace in found], total)


def get(connection: Connection, call: Call) -> Answer:
    found = workspaces.get(connection, call.organization_id, call.path["workspace"])
    return one(workspaces.record(found))


def patch(connection: Connection, call: Call) -> Answer:
    body: PatchWorkspace = call.body
    changed = teams.patch(connection, call.path["workspace"], body, change=call.change)
    return one(workspaces.record(changed))


def delete(connection: Connection, call: Call) -> Answer:
    """Refused while live keys are in it; expired ones in it are named, they are refused for good."""
    gone = teams.delete(connection, call.path["workspace"], change=call.change)
    return deleted(None, gone.workspace.id, keys_ended=[endings.named(key) for key in gone.ended])


def list_members(connection: Connection, call: Call) -> Answer:
    limit, offset = call.page()
    found, total = workspaces.list_members(
        connection, call.organization_id, call.path["workspace"], limit=limit, offset=offset
    )
    return listed([workspaces.member_record(member) for member in found], total)


def add_members(connection: Connection, call: Call) -> Answer:
    """`data` are those who were added or became leads; who was in already is not counted."""
    body: AddMembers = call.body
    added = teams.add_members(
        connection,
        call.path["workspace"],
        body.user_ids,
        lead=body.is_lead,
        change=call.change,
    )
    shown = [
        workspaces.member_record(member)
        for member in workspaces.members_among(
            connection, call.organization_id, call.path["workspace"], added
        )
    ]
    return Answer(body={"data": shown, "added_count": len(added)})


def remove_members(connection: Connection, call: Call) -> Answer:
    """Names the keys of theirs that still work in the workspace."""
    asked: RemoveMembers = call.body
    removed = teams.remove_members(
        connection, call.path["workspace"], asked.user_ids, change=call.change
    )
    body: dict[str, Any] = {"removed_count": len(removed.user_ids)}
    if removed.keys_left:
        body["keys_left"] = [endings.named(key) for key in removed.keys_left]
    return Answer(body=body)
