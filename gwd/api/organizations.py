"""/organization, its settings, and /organizations for the operator."""

from typing import Any

from gwd.alerts import crossings
from gwd.api.management import Answer, Call, deleted, listed, one
from gwd.core.money import usd_json
from gwd.management import organizations as use_cases
from gwd.orgs import organizations
from gwd.orgs import settings as settings_room
from gwd.orgs.organizations import CreateOrganization, PatchAnyOrganization, PatchOrganization
from gwd.orgs.settings import OrganizationState, PatchSettings
from gwd.store import Connection


def own(connection: Connection, call: Call) -> Answer:
    """The caller's organization."""
    return one(organizations.record(organizations.get(connection, call.organization_id)))


def patch_own(connection: Connection, call: Call) -> Answer:
    body: PatchOrganization = call.body
    return one(organizations.record(use_cases.patch(connection, body, change=call.change)))


def settings(connection: Connection, call: Call) -> Answer:
    return one(_settings(call, settings_room.settings(connection, call.organization_id)))


def patch_settings(connection: Connection, call: Call) -> Answer:
    return _patch_settings(connection, call, call.organization_id)


def settings_of(connection: Connection, call: Call) -> Answer:
    """The settings of any organization, for the operator."""
    return one(_settings(call, settings_room.settings(connection, call.path["organization"])))


def patch_settings_of(connection: Connection, call: Call) -> Answer:
    """Change the settings of any organization, those included that only the operator sets."""
    return _patch_settings(connection, call, call.path["organization"])


def _patch_settings(connection: Connection, call: Call, organization_id: str) -> Answer:
    body: PatchSettings = call.body
    state = use_cases.change_settings(
        connection,
        body,
        change=call.change,
        rate_limit_ceiling=call.node.issuing.rate_limit_ceiling,
        organization_id=organization_id,
    )
    # A threshold that was lowered may be told about again: the balance stands above it once more.
    crossings.rearm_low_balance(connection, organization_id, now_us=call.now_us)
    return one(_settings(call, state))


def create(connection: Connection, call: Call) -> Answer:
    """A new organization with its account; its owner's management key is shown here, once."""
    body: CreateOrganization = call.body
    made = use_cases.create(connection, body, change=call.change, issuing=call.node.issuing)
    shown = organizations.record(made.created.organization)
    return Answer(
        status=201,
        body={"data": shown, "management_key": made.issued.plaintext},
        replay={"data": shown, "management_key": None},
    )


def list_(connection: Connection, call: Call) -> Answer:
    limit, offset = call.page()
    found, total = organizations.list_organizations(connection, limit=limit, offset=offset)
    return listed([organizations.record(organization) for organization in found], total)


def get(connection: Connection, call: Call) -> Answer:
    return one(organizations.record(organizations.get(connection, call.path["organization"])))


def patch(connection: Connection, call: Call) -> Answer:
    """Rename, suspend or resume any organization."""
    body: PatchAnyOrganization = call.body
    changed = use_cases.patch_any(connection, call.path["organization"], body, change=call.change)
    return one(organizations.record(changed))


def delete(connection: Connection, call: Call) -> Answer:
    """Says how many keys ended with it and what credit is left in its books, to be refunded."""
    gone = use_cases.delete(connection, call.path["organization"], change=call.change)
    return deleted(
        None,
        gone.organization.id,
        keys_ended=gone.keys_ended,
        balance=usd_json(gone.balance_nano) if gone.balance_nano else None,
    )


def _settings(call: Call, state: OrganizationState) -> dict[str, Any]:
    return settings_room.record(state, rate_limit_ceiling=call.node.issuing.rate_limit_ceiling)
