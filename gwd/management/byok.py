"""Own vendor keys where rooms meet: the workspace, API keys, people and models that they name, and who may set them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gwd.core.caller import Caller
from gwd.core.errors import Forbidden, InvalidValue, NotFound
from gwd.core.patches import named
from gwd.credentials import own
from gwd.credentials.own import CreateVendorKey
from gwd.credentials.vault import Vault
from gwd.keys import service as keys
from gwd.management.change import Change
from gwd.orgs import checks, members, workspaces
from gwd.orgs.policy import checked_models
from gwd.orgs.rights import require
from gwd.store import Connection


def create(connection: Connection, vault: Vault, new: CreateVendorKey, *, change: Change) -> Any:
    """The row of a new key of the caller's organization."""
    actor = change.actor
    require(actor, "byok.write")
    _require_reference(actor, new.key_ref)
    given = {
        **msgspec.structs.asdict(new),
        "name": new.provider if new.name is None else new.name,
        "workspace_id": actor.workspace_id if new.workspace_id is None else new.workspace_id,
    }
    columns = _checked(connection, actor, given)
    return own.create(connection, vault, change.organization_id, new, columns, now_us=change.now_us)


def patch(
    connection: Connection, vault: Vault, key_id: str, body: msgspec.Struct, *, change: Change
) -> Any:
    """The row of a changed key."""
    row = reached(connection, key_id, actor=change.actor)
    given = named(body)
    _require_reference(change.actor, given.get("key_ref"))
    if "name" in given and given["name"] is None:
        given["name"] = row.provider
    columns = _checked(connection, change.actor, given)
    return own.patch(connection, vault, row, given, columns, now_us=change.now_us)


def delete(connection: Connection, key_id: str, *, change: Change) -> Any:
    """Delete a key; gives back the row it had."""
    row = reached(connection, key_id, actor=change.actor)
    own.delete(connection, row, now_us=change.now_us)
    return row


def reached(connection: Connection, key_id: str, *, actor: Caller) -> Any:
    """The row of a key that the actor may change: a lead those of its workspace."""
    require(actor, "byok.write")
    row = own.get(connection, actor.organization_id, key_id)
    _require_within(actor, row.workspace_id)
    return row


def _require_reference(actor: Caller, key_ref: str | None) -> None:
    if key_ref is not None and actor.role != "operator":
        raise Forbidden(
            "`key_ref` makes the daemon read its own environment and files, which only the operator may; send `key`.",
            param="key_ref",
        )


def _require_within(actor: Caller, workspace_id: str | None) -> None:
    if actor.workspace_id not in (None, workspace_id):
        raise Forbidden(
            "This management key is bound to one workspace: it changes the vendor keys of that workspace only.",
            param="workspace_id",
        )


def _checked(connection: Connection, actor: Caller, given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that the fields set, each checked; what they name must be the organization's."""
    columns: dict[str, Any] = {}
    for name, value in given.items():
        match name:
            case "name":
                columns[name] = checks.name(value)
            case "workspace_id":
                columns[name] = _workspace(connection, actor, value)
            case "allowed_models":
                columns[name] = checked_models(value)
            case "allowed_api_key_hashes":
                columns[name] = _hashes(connection, actor, value)
            case "allowed_user_ids":
                columns[name] = _users(connection, actor, value)
            case "provider" | "key" | "key_ref" | "base_url":
                pass  # the secret and where it goes: of one piece, in the room of credentials
            case _:
                columns[name] = value
    return columns


def _workspace(connection: Connection, actor: Caller, ref: str | None) -> str | None:
    workspace_id = None
    if ref is not None:
        try:
            workspace_id = workspaces.get(connection, actor.organization_id, ref).id
        except NotFound:
            raise InvalidValue(
                f"`workspace_id`: no workspace {ref!r} in this organization; GET /workspaces lists them",
                param="workspace_id",
            ) from None
    _require_within(actor, workspace_id)
    return workspace_id


def _hashes(connection: Connection, actor: Caller, refs: list[str] | None) -> list[str] | None:
    """API keys by hash or id, as hashes."""
    param = "allowed_api_key_hashes"
    found = []
    for index, ref in enumerate(checks.allow_list(refs, param=param) or ()):
        try:
            found.append(keys.get(connection, actor.organization_id, ref, actor=actor).hash)
        except NotFound:
            raise InvalidValue(
                f"`{param}`: no API key {ref} in reach; GET /keys lists them with their hashes",
                param=f"{param}[{index}]",
            ) from None
    return None if refs is None else list(dict.fromkeys(found))


def _users(connection: Connection, actor: Caller, ids: list[str] | None) -> list[str] | None:
    param = "allowed_user_ids"
    kept = checks.allow_list(ids, param=param)
    for index, user_id in enumerate(kept or ()):
        if members.current_role(connection, actor.organization_id, user_id) is None:
            raise InvalidValue(
                f"`{param}`: no member {user_id} in this organization; GET /organization/members lists them",
                param=f"{param}[{index}]",
            )
    return kept
