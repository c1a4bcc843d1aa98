"""Organizations where rooms meet: made with a ledger account and the owner's key, deleted with what is left."""

import msgspec

from gwd import ledger
from gwd.alerts import destinations
from gwd.core.errors import Conflict
from gwd.credentials import own
from gwd.keys import cascades
from gwd.keys.service import IssuedKey, Issuing, ManagementKey, issue_management_key
from gwd.management.change import Change
from gwd.orgs import organizations
from gwd.orgs.organizations import CreatedOrganization, CreateOrganization, Organization
from gwd.orgs.rights import require
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
    return FoundedOrganization(created=created, issued=issued)


class DissolvedOrganization(msgspec.Struct, frozen=True, kw_only=True):
    """An organization that is gone: how many working keys ended with it, and the credit that is left in its books.

    Its own vendor keys, so many, are deleted.
    """

    organization: Organization
    keys_ended: int
    vendor_keys: int
    balance_nano: int


def delete(
    connection: Connection, organization_id: str, *, change: Change
) -> DissolvedOrganization:
    """Delete an organization other than the operator's own; its ledger and records stay, nobody is told any more."""
    require(change.actor, "organizations.manage")
    if organization_id == change.organization_id:
        raise Conflict("The operator's own organization cannot be deleted.")
    held = cascades.count_usable(connection, organization_id, now_us=change.now_us)
    organization = organizations.delete(connection, organization_id, now_us=change.now_us)
    vendor_keys = own.delete_all(connection, organization_id)
    destinations.delete_all(connection, organization_id, now_us=change.now_us)
    left_nano = ledger.balance(connection, organization_id, now_us=change.now_us).owned_nano
    return DissolvedOrganization(
        organization=organization,
        keys_ended=held,
        vendor_keys=vendor_keys,
        balance_nano=left_nano,
    )
