"""Keys as management sees them: create, get, list, patch; how they end is in `cascades`.

What a management key reaches is checked here for each key: members their own, a lead those of one workspace, the
rest all of the organization. A key out of reach is the same NotFound as one that is not there.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from gwd.core.caller import Caller, Role
from gwd.core.clock import US_PER_S
from gwd.core.errors import Conflict, Forbidden, InvalidValue, NotFound
from gwd.core.ids import mint
from gwd.core.patches import named
from gwd.keys import secret
from gwd.keys.fields import CreateKey as CreateKey
from gwd.keys.fields import KeyFilter as KeyFilter
from gwd.keys.fields import changeable, columns
from gwd.keys.key import Key
from gwd.keys.tables import KeyTable
from gwd.orgs import members, workspaces
from gwd.orgs.organizations import DEFAULT_WORKSPACE
from gwd.orgs.rights import Right, allowed, rank, require, require_grant
from gwd.store import Connection, cached, walk


class IssuedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key and its plaintext, which exists only here and is shown once."""

    key: Key
    plaintext: str

    def __repr__(self) -> str:
        return f"IssuedKey(key={self.key!r}, plaintext=***)"


class ManagementKey(msgspec.Struct, frozen=True, kw_only=True):
    """A management key for a person, or for the operator of the node."""

    organization_id: str
    role: Role
    user_id: str | None
    workspace_id: str | None = None
    name: str = "console"


class Issuing(msgspec.Struct, frozen=True, kw_only=True):
    """What a new secret needs from the node: the pepper of digests and the ceiling of rate limits."""

    pepper: bytes
    rate_limit_ceiling: int

    def __repr__(self) -> str:
        return f"Issuing(pepper=***, rate_limit_ceiling={self.rate_limit_ceiling})"


def create(
    connection: Connection,
    organization_id: str,
    new: CreateKey,
    *,
    actor: Caller,
    issuing: Issuing,
    now_us: int,
) -> IssuedKey:
    """A new key with its plaintext. A management key has at most the actor's role and its member's."""
    require(actor, "keys.write")
    checked = columns(changeable(new), rate_limit_ceiling=issuing.rate_limit_ceiling, now_us=now_us)
    user_id = _owner(organization_id, new, actor)
    workspace_id = _workspace(connection, organization_id, new, user_id, actor)
    belongs_to = _role_of_owner(connection, organization_id, user_id, workspace_id)
    role = _role(new, belongs_to, actor)
    key_id = mint("mk_" if new.type == "management" else "key_")
    return issue(
        connection,
        {
            **checked,
            "id": key_id,
            "family_id": key_id,
            "organization_id": organization_id,
            "workspace_id": workspace_id,
            "kind": new.type,
            "role": role,
            "user_id": user_id,
            "creator_user_id": actor.user_id,
        },
        issuing=issuing,
        now_us=now_us,
    )


def issue_management_key(
    connection: Connection, new: ManagementKey, *, issuing: Issuing, now_us: int
) -> IssuedKey:
    """The management key that comes with a new owner, member or lead; the use case has checked who may have it."""
    key_id = mint("mk_")
    row = {
        **msgspec.structs.asdict(new),
        "id": key_id,
        "family_id": key_id,
        "kind": "management",
        "creator_user_id": new.user_id,
    }
    return issue(connection, row, issuing=issuing, now_us=now_us)


def issue(
    connection: Connection, row: dict[str, Any], *, issuing: Issuing, now_us: int
) -> IssuedKey:
    """Write the row of a key that was checked already, with a fresh secret."""
    plaintext = secret.generate(row["kind"])
    connection.run(
        KeyTable.insert(
            **row,
            label=secret.label(plaintext),
            hash=secret.public_hash(plaintext),
            digest=secret.digest(plaintext, issuing.pepper),
            created_at=now_us,
            updated_at=now_us,
        )
    )
    written = connection.first(KeyTable.select().where(KeyTable.id == row["id"]))
    return IssuedKey(key=key_of(written), plaintext=plaintext)


def get(
    connection: Connection,
    organization_id: str,
    ref: str,
    *,
    actor: Caller,
    right: Right = "keys.read",
) -> Key:
    """One live key by id or public hash, if `right` of the actor reaches it."""
    row = connection.first(
        reached(organization_id, actor, right).where((KeyTable.id == ref) | (KeyTable.hash == ref))
    )
    if row is None:
        raise NotFound("No such key.")
    key = key_of(row)
    if right == "keys.write":
        require_not_above(actor, key)
    return key


def own(connection: Connection, organization_id: str, key_id: str) -> Key:
    """The key that a request was made with; everybody may read that one."""
    row = connection.first(live(organization_id).where(KeyTable.id == key_id))
    if row is None:
        raise NotFound("No such key.")
    return key_of(row)


def workspace_of(connection: Connection, organization_id: str, key_id: str) -> str | None:
    """The workspace a key lives or lived in; None for none, and for a key that is not there."""
    row = connection.first(
        KeyTable.select(KeyTable.workspace_id).where(
            (KeyTable.id == key_id) & (KeyTable.organization_id == organization_id)
        )
    )
    return None if row is None else row.workspace_id


def by_ids(connection: Connection, key_ids: Sequence[str]) -> dict[str, Key]:
    """Keys by id, ended ones as well."""
    rows = connection.run(KeyTable.select().where(KeyTable.id.in_(key_ids)))
    return {row.id: key_of(row) for row in rows}


def ids_of_user(connection: Connection, organization_id: str, user_id: str) -> list[str]:
    """All keys a person has or had: whose activity the person may see."""
    query = KeyTable.select(KeyTable.id).where(
        (KeyTable.organization_id == organization_id) & (KeyTable.user_id == user_id)
    )
    return [row.id for row in connection.run(query)]


def ids_of_hash(connection: Connection, organization_id: str, ref: str) -> list[str]:
    """The key with this public hash or id, whether or not it was deleted; none where there is no such key."""
    query = KeyTable.select(KeyTable.id).where(
        (KeyTable.organization_id == organization_id)
        & ((KeyTable.hash == ref) | (KeyTable.id == ref))
    )
    return [row.id for row in connection.run(query)]


def list_keys(
    connection: Connection,
    organization_id: str,
    wanted: KeyFilter,
    *,
    actor: Caller,
    limit: int,
    offset: int,
    after: str | None = None,
    before: str | None = None,
    now_us: int,
) -> tuple[list[Key], int | None]:
    """The live keys in reach, newest first, of all workspaces unless one is named."""
    query = reached(organization_id, actor, "keys.read")
    if not wanted.include_disabled:
        query = query.where(KeyTable.disabled == False)  # noqa: E712 - peewee builds SQL from it
    if not wanted.include_expired:
        query = query.where(KeyTable.expires_at.is_null() | (KeyTable.expires_at > now_us))
    if wanted.workspace_id is not None:
        workspace = workspaces.get(connection, organization_id, wanted.workspace_id)
        query = query.where(KeyTable.workspace_id == workspace.id)
    if wanted.name is not None:
        query = query.where(KeyTable.name == wanted.name)
    rows, total = walk.page(
        connection,
        query,
        KeyTable,
        organization_id,
        limit=limit,
        offset=offset,
        after=after,
        before=before,
    )
    return [key_of(row) for row in rows], total


def patch(
    connection: Connection,
    organization_id: str,
    ref: str,
    changes: msgspec.Struct,
    *,
    actor: Caller,
    rate_limit_ceiling: int,
    now_us: int,
) -> Key:
    """Change what is named. The end of a rotated key can only be brought forward."""
    key = get(connection, organization_id, ref, actor=actor, right="keys.write")
    require_workspace(connection, key)
    checked = columns(named(changes), rate_limit_ceiling=rate_limit_ceiling, now_us=now_us)
    if key.rotated_to is not None and "expires_at" in checked:
        end_us = checked["expires_at"]
        if end_us is None or (key.expires_at is not None and end_us > key.expires_at):
            raise InvalidValue(
                "expires_at of a rotated key can only be brought forward; its successor carries on.",
                param="expires_at",
            )
    if checked:
        connection.run(KeyTable.update(**checked, updated_at=now_us).where(KeyTable.id == key.id))
    return get(connection, organization_id, key.id, actor=actor)


def count_live(
    connection: Connection, organization_id: str, *, workspace_id: str, now_us: int
) -> int:
    """How many keys of a workspace could still be used, disabled ones included."""
    return connection.count(
        live(organization_id).where(
            (KeyTable.workspace_id == workspace_id)
            & (KeyTable.expires_at.is_null() | (KeyTable.expires_at > now_us))
        )
    )


@cached("used")
def _second_of_use(connection: Connection, key_id: str) -> int | None:
    row = connection.row("SELECT last_used_at FROM api_key WHERE id = ?", (key_id,))
    return None if row is None or row[0] is None else int(row[0]) // US_PER_S


def mark_used(connection: Connection, key_id: str, *, now_us: int) -> None:
    """Remember when a key was last used, to the second. Plain SQL: settlement calls it."""
    second = now_us // US_PER_S
    if _second_of_use.peek(connection, key_id) == second:
        return
    _second_of_use.put(connection, second, key_id)
    connection.execute(
        "UPDATE api_key SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)",
        (now_us, key_id, now_us),
    )


def require_not_above(actor: Caller, key: Key) -> None:
    """Whoever holds a lower role can neither change nor rotate a key with a higher one."""
    if key.role is not None and (actor.role is None or rank(key.role) > rank(actor.role)):
        raise Forbidden(
            f"This management key has the role {key.role}, above the caller's own ({actor.role})."
        )


def require_workspace(connection: Connection, key: Key) -> None:
    """A key whose workspace was deleted is refused for good: nothing brings it back."""
    if workspaces.is_deleted(connection, key.workspace_id):
        raise Conflict(
            "The workspace of this key was deleted, and the key is refused with it; create a key in another workspace."
        )


def live(organization_id: str) -> Any:
    """A select of the keys of an organization that were not deleted."""
    return KeyTable.select().where(
        (KeyTable.organization_id == organization_id) & KeyTable.deleted_at.is_null()
    )


def reached(organization_id: str, actor: Caller, right: Right) -> Any:
    """The same as far as `right` of the actor goes."""
    query = live(organization_id)
    if require(actor, right) == "own":
        query = query.where(KeyTable.user_id == actor.user_id)
    if actor.workspace_id is not None:
        query = query.where(KeyTable.workspace_id == actor.workspace_id)
    return query


def _owner(organization_id: str, new: CreateKey, actor: Caller) -> str | None:
    """Whom the key belongs to."""
    at_home = actor.organization_id == organization_id
    if new.user_id is None:
        return actor.user_id if at_home else None
    if at_home and new.user_id == actor.user_id:
        return new.user_id
    if allowed(actor, "keys.write") == "own":
        raise Forbidden("A member creates keys for themselves only.", param="user_id")
    return new.user_id


def _role_of_owner(
    connection: Connection, organization_id: str, user_id: str | None, workspace_id: str | None
) -> Role | None:
    """The most a key of this person may do where it lives."""
    if user_id is None:
        return None
    role = members.role_within(connection, organization_id, user_id, workspace_id)
    if role is None:
        raise NotFound("No such member.", param="user_id")
    return role


def _role(new: CreateKey, belongs_to: Role | None, actor: Caller) -> Role | None:
    """At most the actor's role, and at most that of the member the key belongs to."""
    if new.type == "inference":
        if new.role is not None:
            raise InvalidValue('role is for keys of type "management" only.', param="role")
        return None
    if new.role is None:
        return min(("admin", actor.role or "member", belongs_to or "owner"), key=rank)
    require_grant(actor, new.role)
    if belongs_to is not None and new.role != "operator" and rank(new.role) > rank(belongs_to):
        raise InvalidValue(
            f"The key's member has the role {belongs_to}; a key cannot have a higher one.",
            param="role",
        )
    if belongs_to is None and new.role == "member":
        raise InvalidValue(
            "A management key with the role member belongs to somebody; name user_id.",
            param="user_id",
        )
    return new.role


def _workspace(
    connection: Connection,
    organization_id: str,
    new: CreateKey,
    user_id: str | None,
    actor: Caller,
) -> str | None:
    """Where the key lives: a lead's keys in its own workspace, inference keys in `default` unless named."""
    if new.workspace_id is None:
        if actor.workspace_id is not None:
            return actor.workspace_id
        if new.type == "management":
            return None
        return workspaces.default(connection, organization_id).id
    workspace = workspaces.get(connection, organization_id, new.workspace_id)
    workspaces.require_within(actor, workspace.id)
    if (
        allowed(actor, "keys.write") == "own"
        and workspace.slug != DEFAULT_WORKSPACE
        and actor.workspace_id is None
        and not (user_id and workspaces.has_member(connection, workspace.id, user_id))
    ):
        raise Forbidden(
            "You are not a member of this workspace; ask an admin to add you.", param="workspace_id"
        )
    return workspace.id


def key_of(row: Any) -> Key:
    """A key from its row."""
    return Key(**{name: getattr(row, name) for name in Key.__struct_fields__})
