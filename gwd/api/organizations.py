"""/organization, its settings, and /organizations for the operator."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.alerts import threshold_alerts
from gwd.api.management import Answer, Call, listed, one
from gwd.api.shapes import Deleted, Noted, One
from gwd.core.fields import Count, Secret, Usd
from gwd.core.money import usd_json
from gwd.core.patches import named
from gwd.management import content_log, policies
from gwd.management import organizations as use_cases
from gwd.orgs import organizations
from gwd.orgs import settings as settings_room
from gwd.orgs.organizations import (
    CreateOrganization,
    OrganizationRecord,
    PatchAnyOrganization,
    PatchOrganization,
)
from gwd.orgs.settings import OrganizationState, PatchSettings, SettingsRecord
from gwd.store import Connection


class CreatedOrganization(msgspec.Struct, frozen=True, kw_only=True):
    """A new organization, with the management key of its owner."""

    data: OrganizationRecord
    management_key: Annotated[
        Secret | None,
        Meta(description="The owner's secret, shown this once; null when the request is repeated."),
    ]

    def __repr__(self) -> str:
        return f"CreatedOrganization(data={self.data!r}, management_key=***)"


class DeletedOrganization(Deleted, frozen=True, kw_only=True):
    """An organization that is gone; its ledger and records stay."""

    keys_ended: Annotated[
        Count | UnsetType, Meta(description="Only where keys ended with it: how many.")
    ] = UNSET
    vendor_keys_deleted: Annotated[
        Count | UnsetType,
        Meta(description="Only where it had own vendor keys: how many, deleted with it."),
    ] = UNSET
    balance: Annotated[
        Usd | UnsetType,
        Meta(description="Only where its books are not at zero: what is left in them, USD."),
    ] = UNSET


def own(connection: Connection, call: Call) -> Answer:
    """The key's organization."""
    return one(organizations.record(organizations.get(connection, call.organization_id)))


def patch_own(connection: Connection, call: Call) -> Answer:
    """Change the key's organization."""
    return _patch(connection, call, call.organization_id)


def settings(connection: Connection, call: Call) -> Answer:
    """The settings of the key's organization."""
    return one(_settings(call, settings_room.settings(connection, call.organization_id)))


def patch_settings(connection: Connection, call: Call) -> Answer:
    """Change the settings of the key's organization."""
    return _patch_settings(connection, call, call.organization_id)


def settings_of(connection: Connection, call: Call) -> Answer:
    """The settings of any organization."""
    return one(_settings(call, settings_room.settings(connection, call.path["organization"])))


def patch_settings_of(connection: Connection, call: Call) -> Answer:
    """Change the settings of any organization.

    Those included that only the operator sets.
    """
    return _patch_settings(connection, call, call.path["organization"])


def _patch_settings(connection: Connection, call: Call, organization_id: str) -> Answer:
    body: PatchSettings = call.body
    before = settings_room.settings(connection, organization_id)
    state = settings_room.patch_settings(
        connection,
        organization_id,
        body,
        actor=call.caller,
        rate_limit_ceiling=call.node.issuing.rate_limit_ceiling,
        now_us=call.now_us,
    )
    notes = policies.require_known(connection, state.settings, before.settings)
    content_log.require_own(
        connection, organization_id, state.settings.content_log, before.settings.content_log
    )
    # A threshold that was lowered may be told about again: the balance stands above it once more.
    threshold_alerts.rearm_low_balance(connection, organization_id, now_us=call.now_us)
    return Answer(
        body=Noted(data=_settings(call, state), notes=notes or UNSET),
        subject=("organization", organization_id),
        details=named(body),
        organization_id=organization_id,
    )


def create(connection: Connection, call: Call) -> Answer:
    """Make an organization with its owner.

    The answer shows its owner's management key, once.
    """
    body: CreateOrganization = call.body
    made = use_cases.create(connection, body, change=call.change, issuing=call.node.issuing)
    organization = made.created.organization
    shown = organizations.record(organization)
    return Answer(
        status=201,
        body=CreatedOrganization(data=shown, management_key=made.issued.plaintext),
        replay=CreatedOrganization(data=shown, management_key=None),
        subject=("organization", organization.id),
        details={"name": organization.name, "slug": organization.slug},
        organization_id=organization.id,
    )


def list_(connection: Connection, call: Call) -> Answer:
    """All organizations of the node, oldest first."""
    limit, offset = call.page()
    found, total = organizations.list_organizations(connection, limit=limit, offset=offset)
    return listed([organizations.record(organization) for organization in found], total)


def get(connection: Connection, call: Call) -> Answer:
    """Any organization."""
    return one(organizations.record(organizations.get(connection, call.path["organization"])))


def patch(connection: Connection, call: Call) -> Answer:
    """Rename, suspend or resume any organization."""
    return _patch(connection, call, call.path["organization"])


def delete(connection: Connection, call: Call) -> Answer:
    """Delete an organization: its keys are refused from now on, its books stay.

    Says how many keys ended with it and what credit is left in its books, to be refunded.
    """
    gone = use_cases.delete(connection, call.path["organization"], change=call.change)
    organization = gone.organization
    return Answer(
        body=DeletedOrganization(
            id=organization.id,
            keys_ended=gone.keys_ended or UNSET,
            vendor_keys_deleted=gone.vendor_keys or UNSET,
            balance=usd_json(gone.balance_nano) if gone.balance_nano else UNSET,
        ),
        subject=("organization", organization.id),
        details={
            "name": organization.name,
            "slug": organization.slug,
            "keys_ended": gone.keys_ended,
            "vendor_keys_deleted": gone.vendor_keys,
            "balance_nano": gone.balance_nano,
        },
        organization_id=organization.id,
    )


def _patch(connection: Connection, call: Call, organization_id: str) -> Answer:
    body: PatchOrganization | PatchAnyOrganization = call.body
    changed = organizations.patch(
        connection, organization_id, body, actor=call.caller, now_us=call.now_us
    )
    return Answer(
        body=One(data=organizations.record(changed)),
        subject=("organization", organization_id),
        details=named(body),
        organization_id=organization_id,
    )


def _settings(call: Call, state: OrganizationState) -> SettingsRecord:
    return settings_room.record(state, rate_limit_ceiling=call.node.issuing.rate_limit_ceiling)
