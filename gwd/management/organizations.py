"""Organizations under management: made with a ledger account and the owner's key; changed, deleted, set up."""

from typing import Any

import msgspec

from gwd import ledger
from gwd.core.errors import Conflict
from gwd.keys import endings
from gwd.keys.service import IssuedKey, Issuing, ManagementKey, issue_management_key
from gwd.management.change import Change, named, note
from gwd.orgs import organizations
from gwd.orgs.organizations import (
    CreatedOrganization,
    CreateOrganization,
    Organization,
    PatchOrganization,
)
from gwd.orgs.rights import require
from gwd.orgs.settings import OrganizationState, PatchSettings, patch_settings
from gwd.store import Connection


class FoundedOrganization(msgspec.Struct, frozen=True, kw_only=True):
    """A new organization with the management key that comes with it, once."""

    created: CreatedOrganization
    issued: IssuedKey


def create(
    connection: Connection, new: CreateOrganization, *, change: Change, issuing: Issuing
) -> FoundedOrganization:
    """An organization with its account, workspace, owner and the owner's management key."""
    require(change.actor, "organizations.manage")
    created = organizations.create(connection, new, now_us=change.now_us)
    organization_id = created.organization.id
    ledger.open_account(connection, organization_id, now_us=change.now_us)
    issued = issue_management_key(
        connection,
        ManagementKey(organization_id=organization_id, role="owner", user_id=created.owner_id),
        issuing=issuing,
        now_us=change.now_us,
    )
    details = {"name": created.organization.name, "slug": created.organization.slug}
    _note(connection, change, "organization.create", organization_id, details)
    return FoundedOrganization(created=created, issued=issued)


def patch(connection: Connection, changes: PatchOrganization, *, change: Change) -> Organization:
    """Change the caller's own organization."""
    require(change.actor, "organization.write")
    return _patch(connection, change.organization_id, changes, change)


def patch_any(
    connection: Connection, organization_id: str, changes: PatchOrganization, *, change: Change
) -> Organization:
    """Change, suspend or resume any organization of the node."""
    require(change.actor, "organizations.manage")
    return _patch(connection, organization_id, changes, change)


class DissolvedOrganization(msgspec.Struct, frozen=True, kw_only=True):
    """An organization that is gone: how many working keys ended with it, and the credit that is left in its books."""

    organization: Organization
    keys_ended: int
    balance_nano: int


def delete(
    connection: Connection, organization_id: str, *, change: Change
) -> DissolvedOrganization:
    """Delete an organization other than the operator's own; its ledger and records stay."""
    require(change.actor, "organizations.manage")
    if organization_id == change.organization_id:
        raise Conflict("The operator's own organization cannot be deleted.")
    held = endings.count_usable(connection, organization_id, now_us=change.now_us)
    organization = organizations.delete(connection, organization_id, now_us=change.now_us)
    left_nano = ledger.balance(connection, organization_id, now_us=change.now_us).owned_nano
    details = {
        "name": organization.name,
        "slug": organization.slug,
        "keys_ended": held,
        "balance_nano": left_nano,
    }
    _note(connection, change, "organization.delete", organization_id, details)
    return DissolvedOrganization(organization=organization, keys_ended=held, balance_nano=left_nano)


def change_settings(
    connection: Connection,
    changes: PatchSettings,
    *,
    change: Change,
    rate_limit_ceiling: int,
    organization_id: str | None = None,
) -> OrganizationState:
    """Change the settings of the caller's organization, or for the operator of the one that is named."""
    require(change.actor, "settings.write")
    if organization_id is None:
        organization_id = change.organization_id
    elif organization_id != change.organization_id:
        require(change.actor, "organizations.manage")
    state = patch_settings(
        connection,
        organization_id,
        changes,
        actor=change.actor,
        rate_limit_ceiling=rate_limit_ceiling,
        now_us=change.now_us,
    )
    _note(connection, change, "settings.patch", organization_id, named(changes))
    return state


def _patch(
    connection: Connection, organization_id: str, changes: PatchOrganization, change: Change
) -> Organization:
    organization = organizations.patch(connection, organization_id, changes, now_us=change.now_us)
    _note(connection, change, "organization.patch", organization_id, named(changes))
    return organization


def _note(
    connection: Connection,
    change: Change,
    action: str,
    organization_id: str,
    details: dict[str, Any],
) -> None:
    subject = ("organization", organization_id)
    note(connection, change, action, subject, details, organization_id=organization_id)
