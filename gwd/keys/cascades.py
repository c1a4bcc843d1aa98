"""Keys that end or change with something else: their member, their workspace, their successor.

Whatever ends or changes a key asks for the rank that changing the key itself asks for; whoever removes something is
told which keys live on.
"""

from typing import Any

import msgspec

from gwd.core.caller import Caller, Role
from gwd.core.errors import Forbidden
from gwd.keys.fields import CreateKey
from gwd.keys.key import Key
from gwd.keys.service import get, key_of, live, reached
from gwd.keys.tables import KeyTable
from gwd.orgs import checks, workspaces
from gwd.orgs.rights import rank
from gwd.store import Connection


class DeletedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that is gone, and those of its rotation that live on."""

    key: Key
    predecessor: Key | None
    successor: Key | None


class EndedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the keys of a member who left; `made` are live keys of others that the member created."""

    disabled: list[Key]
    kept: list[Key]
    made: list[Key]


def existing(
    connection: Connection, organization_id: str, new: CreateKey, *, actor: Caller, now_us: int
) -> Key | None:
    """The newest live key in reach that a `CreateKey` with `if_absent` means: by name and kind, and by the workspace
    and the member where it names them."""
    query = _usable(
        reached(organization_id, actor, "keys.write").where(
            (KeyTable.name == checks.name(new.name)) & (KeyTable.kind == new.type)
        ),
        now_us,
    ).where(KeyTable.rotated_to.is_null())
    if new.workspace_id is not None:
        workspace = workspaces.get(connection, organization_id, new.workspace_id)
        query = query.where(KeyTable.workspace_id == workspace.id)
    if new.user_id is not None:
        query = query.where(KeyTable.user_id == new.user_id)
    row = connection.first(query.order_by(KeyTable.created_at.desc(), KeyTable.id))
    return None if row is None else key_of(row)


def delete(
    connection: Connection, organization_id: str, ref: str, *, actor: Caller, now_us: int
) -> DeletedKey:
    """Delete a key: its secret stops working at once, its history stays.

    The key before it in its rotation is followed by the key after it, or counts as not rotated where there is none.
    """
    key = get(connection, organization_id, ref, actor=actor, right="keys.write")
    connection.run(
        KeyTable.update(deleted_at=now_us, updated_at=now_us).where(KeyTable.id == key.id)
    )
    successor = connection.first(live(organization_id).where(KeyTable.id == key.rotated_to))
    predecessor = connection.first(live(organization_id).where(KeyTable.rotated_to == key.id))
    next_id = None if successor is None else successor.id
    if predecessor is not None:
        _link(connection, predecessor.id, rotated_to=next_id, updated_at=now_us)
    if successor is not None:
        before_id = None if predecessor is None else predecessor.id
        _link(connection, successor.id, rotated_from=before_id, updated_at=now_us)
    return DeletedKey(
        key=key,
        predecessor=None if predecessor is None else key_of(predecessor),
        successor=None if successor is None else key_of(successor),
    )


def of_member(connection: Connection, organization_id: str, user_id: str) -> list[Key]:
    """All keys of a person that were not deleted, whether or not they work now."""
    query = live(organization_id).where(KeyTable.user_id == user_id)
    return _all(connection, query)


def in_workspace(connection: Connection, organization_id: str, workspace_id: str) -> list[Key]:
    """All keys in a workspace that were not deleted, whether or not they work now."""
    query = live(organization_id).where(KeyTable.workspace_id == workspace_id)
    return _all(connection, query)


def usable_in_workspace(
    connection: Connection,
    organization_id: str,
    workspace_id: str,
    user_ids: list[str],
    *,
    now_us: int,
) -> list[Key]:
    """The keys of these people in a workspace that work now."""
    query = live(organization_id).where(
        (KeyTable.workspace_id == workspace_id) & KeyTable.user_id.in_(user_ids)
    )
    return _all(connection, _usable(query, now_us))


def count_usable(connection: Connection, organization_id: str, *, now_us: int) -> int:
    """How many keys of an organization work now."""
    return connection.count(_usable(live(organization_id), now_us))


def require_none_above(actor: Caller, keys: list[Key], *, whose: str) -> None:
    """Nobody ends or changes, by way of its member or workspace, a key that the caller could not change itself."""
    for key in keys:
        if key.role is not None and (actor.role is None or rank(key.role) > rank(actor.role)):
            raise Forbidden(
                f"{whose} has the management key {key.label} with the role {key.role}, above the caller's own"
                f" ({actor.role}); ask somebody with that role."
            )


def end_with_member(
    connection: Connection, organization_id: str, user_id: str, *, keep: bool, now_us: int
) -> EndedKeys:
    """Disable the keys of a person who leaves: all of them, or with `keep` all but inference keys.

    Management keys of somebody who is no member are refused in any case.
    """
    usable = _usable(live(organization_id), now_us)
    enabled = [key for key in of_member(connection, organization_id, user_id) if not key.disabled]
    kept = [key for key in enabled if keep and key.kind == "inference"]
    disabled = [key for key in enabled if key not in kept]
    if disabled:
        connection.run(
            KeyTable.update(disabled=True, updated_at=now_us).where(
                KeyTable.id.in_([key.id for key in disabled])
            )
        )
    made = usable.where(
        (KeyTable.creator_user_id == user_id)
        & (KeyTable.user_id.is_null() | (KeyTable.user_id != user_id))
    )
    return EndedKeys(disabled=disabled, kept=kept, made=_all(connection, made))


def lower_roles(
    connection: Connection,
    organization_id: str,
    user_id: str,
    role: Role,
    *,
    but_in: list[str],
    now_us: int,
) -> None:
    """Lower a person's management keys to the role they have now; none is raised.

    `but_in` are the workspaces the person leads: keys bound to those keep what a lead has.
    """
    above = [
        higher for higher in ("member", "billing", "admin", "owner") if rank(higher) > rank(role)
    ]
    connection.run(
        KeyTable.update(role=role, updated_at=now_us).where(
            (KeyTable.organization_id == organization_id)
            & (KeyTable.user_id == user_id)
            & (KeyTable.kind == "management")
            & KeyTable.role.in_(above)
            & (KeyTable.workspace_id.is_null() | KeyTable.workspace_id.not_in(but_in))
        )
    )


def _usable(query: Any, now_us: int) -> Any:
    return query.where(
        (KeyTable.disabled == False)  # noqa: E712 - peewee builds SQL from it
        & (KeyTable.expires_at.is_null() | (KeyTable.expires_at > now_us))
    )


def _all(connection: Connection, query: Any) -> list[Key]:
    return [key_of(row) for row in connection.run(query.order_by(KeyTable.created_at, KeyTable.id))]


def _link(connection: Connection, key_id: str, **fields: Any) -> None:
    connection.run(KeyTable.update(**fields).where(KeyTable.id == key_id))
