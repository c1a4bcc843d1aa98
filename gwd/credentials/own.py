"""Keys that an organization brings for its own vendor accounts (BYOK): create, list, get, change, delete.

Whether workspace, API keys, people and models are the organization's is checked above, where those rooms meet.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from gwd.core.errors import AlreadyExists, Conflict, InvalidValue, NotFound
from gwd.core.ids import mint
from gwd.core.inputs import NameInput
from gwd.core.patches import FIXED, patch_of
from gwd.credentials import service
from gwd.credentials.places import place_of
from gwd.credentials.service import BaseUrl, Disabled, KeyRef, Order
from gwd.credentials.tables import CredentialTable
from gwd.credentials.vault import Vault
from gwd.orgs import checks
from gwd.orgs.settings import bump_revision
from gwd.store import Connection

MAX_OF_PROVIDER: Final = 50

Key = Annotated[
    str,
    Meta(
        description="The vendor's key. It is stored encrypted, never shown, and goes to its vendor only.",
        extra_json_schema={"maxLength": service.MAX_SECRET, "x-kind": "secret"},
    ),
]
Names = Annotated[list[str], Meta(max_length=checks.LIST_LENGTH)]


class CreateVendorKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of the organization's own account with a vendor."""

    provider: Annotated[str, FIXED, Meta(description="The provider's slug.")]
    key: Key | None = None
    key_ref: Annotated[
        KeyRef | None,
        Meta(
            description="For the operator only: where the daemon reads the key, in place of `key`: env:NAME or"
            " file:/absolute/path."
        ),
    ] = None
    name: Annotated[
        NameInput | None,
        Meta(
            description="What people call it; one of the provider's keys at most has it. Null is the provider's slug."
        ),
    ] = None
    workspace_id: Annotated[
        str | None,
        Meta(
            description="The workspace whose requests it serves, by id or slug. Null is all; a management key that is"
            " bound to a workspace makes it for that one."
        ),
    ] = None
    disabled: Disabled = False
    is_fallback: Annotated[
        bool, Meta(description="Whether it is tried only after the platform's keys.")
    ] = False
    is_required: Annotated[
        bool,
        Meta(
            description="Whether the platform's keys of this provider are never used where it serves."
        ),
    ] = False
    allowed_models: Annotated[
        Names | None,
        Meta(description="Models, aliases and `vendor/*` that it serves; null for all."),
    ] = None
    allowed_api_key_hashes: Annotated[
        Names | None,
        Meta(description="API keys whose requests it serves, by hash or id; null for all."),
    ] = None
    allowed_user_ids: Annotated[
        Names | None,
        Meta(description="Members whose requests it serves, usr_…; null for all."),
    ] = None
    base_url: BaseUrl | None = None
    sort_order: Order = 0


PatchVendorKey: Final = patch_of(
    CreateVendorKey,
    "PatchVendorKey",
    "Changes of an own vendor key: absent is unchanged, null clears. `key` replaces the secret in place. Any change"
    " gives it a new chance.",
)


def create(
    connection: Connection,
    vault: Vault,
    organization_id: str,
    new: CreateVendorKey,
    columns: Mapping[str, Any],
    *,
    now_us: int,
) -> Any:
    """The row of a new key. `columns` are those of `new` that are checked and resolved already.

    Raises InvalidValue naming the field, AlreadyExists for a name that another key of the provider has, Conflict beyond
    50 keys of a provider.
    """
    row_id = mint("pk_")
    place = place_of(connection, new.provider, new.base_url)
    if not place.takes_keys:
        raise InvalidValue(
            f"`provider`: `{new.provider}` takes no key, so that everybody uses it alike",
            param="provider",
        )
    secret = service.stored_secret(vault, row_id, organization_id, place, new.key, new.key_ref)
    of_provider = _of(organization_id).where(CredentialTable.provider == new.provider)
    if connection.count(of_provider) >= MAX_OF_PROVIDER:
        raise Conflict(
            f"an organization has at most {MAX_OF_PROVIDER} keys of a provider; delete one of `{new.provider}` first"
        )
    values = {
        **columns,
        **secret,
        "id": row_id,
        "organization_id": organization_id,
        "provider": new.provider,
        "created_at": now_us,
        "updated_at": now_us,
    }
    _check_whole(connection, values)
    connection.run(CredentialTable.insert(values))
    bump_revision(connection, organization_id, now_us=now_us)
    return get(connection, organization_id, row_id)


def get(connection: Connection, organization_id: str, key_id: str) -> Any:
    """The row of one key; foreign and absent ones are the same NotFound."""
    row = connection.first(_of(organization_id).where(CredentialTable.id == key_id))
    if row is None:
        raise NotFound("no such vendor key of the organization")
    return row


def list_(
    connection: Connection,
    organization_id: str,
    *,
    provider: str | None,
    workspace_id: str | None,
    limit: int,
    offset: int,
) -> tuple[list[Any], int]:
    """Rows in the order in which keys are tried, and how many there are in all."""
    query = _of(organization_id)
    if provider is not None:
        query = query.where(CredentialTable.provider == provider)
    if workspace_id is not None:
        query = query.where(CredentialTable.workspace_id == workspace_id)
    order = (CredentialTable.sort_order, CredentialTable.created_at, CredentialTable.id)
    rows = connection.run(query.order_by(*order).limit(limit).offset(offset))
    return list(rows), connection.count(query)


def patch(
    connection: Connection,
    vault: Vault,
    row: Any,
    given: Mapping[str, Any],
    columns: Mapping[str, Any],
    *,
    now_us: int,
) -> Any:
    """Change a key and give it a new chance. `given` is what the body names, `columns` what of it is checked."""
    changes = {
        **columns,
        **service.replaced_secret(connection, vault, row, given),
        "updated_at": now_us,
        "last_error_at": None,
        "last_error_reason": None,
    }
    names = ("id", "organization_id", "provider", "name", "is_fallback", "is_required")
    _check_whole(connection, {**{name: getattr(row, name) for name in names}, **changes})
    connection.run(CredentialTable.update(changes).where(CredentialTable.id == row.id))
    bump_revision(connection, row.organization_id, now_us=now_us)
    return get(connection, row.organization_id, row.id)


def delete(connection: Connection, row: Any, *, now_us: int) -> None:
    """Delete a key and its secret."""
    connection.run(CredentialTable.delete().where(CredentialTable.id == row.id))
    bump_revision(connection, row.organization_id, now_us=now_us)


def delete_all(
    connection: Connection, organization_id: str, workspace_id: str | None = None
) -> int:
    """Delete the keys that served a workspace which is gone, or all of an organization; how many there were."""
    query = CredentialTable.delete().where(CredentialTable.organization_id == organization_id)
    if workspace_id is not None:
        query = query.where(CredentialTable.workspace_id == workspace_id)
    return int(connection.run(query))


def _check_whole(connection: Connection, values: Mapping[str, Any]) -> None:
    if values["is_fallback"] and values["is_required"]:
        raise InvalidValue(
            "`is_fallback` and `is_required` exclude each other: a key comes after the platform's or in their place",
            param="is_required",
        )
    name = values["name"]
    same = (CredentialTable.provider == values["provider"]) & (CredentialTable.name == name)
    twin = _of(values["organization_id"]).where(same & (CredentialTable.id != values["id"]))
    if connection.first(twin) is not None:
        raise AlreadyExists(
            f"a key of `{values['provider']}` is called {name} already; choose another `name`, or patch that key",
            param="name",
        )


def _of(organization_id: str) -> Any:
    return CredentialTable.select().where(CredentialTable.organization_id == organization_id)
