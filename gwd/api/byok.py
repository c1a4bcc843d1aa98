"""/byok: the organization's own vendor keys, written once and never read back."""

from collections.abc import Sequence
from typing import Any, Final

from gwd.api.management import Answer, Call, deleted, listed, one
from gwd.api.provider_probe import Probed, asked, choice
from gwd.api.query import Query, Text
from gwd.core.patches import named
from gwd.credentials import own
from gwd.credentials.own import CreateVendorKey
from gwd.credentials.own_record import VendorKeyRecord, record
from gwd.credentials.service import VendorKey
from gwd.credentials.trouble import Trouble, note
from gwd.health.credential_trouble import TROUBLE
from gwd.management import byok
from gwd.orgs import settings, workspaces
from gwd.orgs.policy import permits
from gwd.store import Connection

FILTERS: Final = (
    Query("provider", Text(), "Only keys of this provider."),
    Query("workspace_id", Text(), "Only keys of this workspace, by id or slug."),
)


def create(connection: Connection, call: Call) -> Answer:
    """Add a vendor key of the organization's own.

    Requests go to its vendor with it before the platform's keys are tried, and are charged the fee.
    """
    body: CreateVendorKey = call.body
    row = byok.create(connection, call.node.vault, body, change=call.change)
    (shown,) = _shown(connection, call, [row])
    details = {"provider": row.provider, "name": row.name, "workspace_id": row.workspace_id}
    return one(shown, status=201, subject=("byok", row.id), details=details)


def list_(connection: Connection, call: Call) -> Answer:
    """The organization's own vendor keys, in the order in which they are tried; their secrets are never shown."""
    limit, offset = call.page()
    workspace = call.query.get("workspace_id")
    if workspace is not None:
        workspace = workspaces.get(connection, call.organization_id, workspace).id
    rows, total = own.list_(
        connection,
        call.organization_id,
        provider=call.query.get("provider"),
        workspace_id=workspace,
        limit=limit,
        offset=offset,
    )
    return listed(_shown(connection, call, rows), total)


def get(connection: Connection, call: Call) -> Answer:
    """One of the organization's own vendor keys."""
    row = own.get(connection, call.organization_id, call.path["byok"])
    return one(*_shown(connection, call, [row]))


def patch(connection: Connection, call: Call) -> Answer:
    """Change one of the organization's own vendor keys; with `key` its secret is replaced in place."""
    row = byok.patch(connection, call.node.vault, call.path["byok"], call.body, change=call.change)
    (shown,) = _shown(connection, call, [row])
    details = named(call.body)
    for field in ("key", "key_ref"):
        if details.pop(field, None) is not None:
            details["secret_replaced"] = True
    return one(shown, subject=("byok", row.id), details=details)


def delete(connection: Connection, call: Call) -> Answer:
    """Delete one of the organization's own vendor keys, and its secret with it."""
    row = byok.delete(connection, call.path["byok"], change=call.change)
    details = {"provider": row.provider, "name": row.name}
    return deleted("byok", row.id, details=details)


async def test(call: Call) -> Answer:
    """Ask the vendor for a very short answer with an own key.

    Calls the cheapest model that the key may serve, where the key may go; nothing is charged by the gateway.

    A vendor that does not answer is a 502 with its reason; one that refuses the key is kept as `last_error`.
    """
    key = await call.node.store.read(_opened, call)
    catalog = await call.node.state.load()
    chosen = choice(
        catalog,
        key.provider,
        [key],
        now_us=call.now_us,
        serves=lambda model: permits(
            key.allowed_models, model.id, catalog.names_of(model, call.now_us)
        ),
        remedy=f"PATCH /byok/{key.id} with a new key",
    )
    probed = await asked(call.node, chosen)
    await _note(call, key, probed)
    return one(probed.record(), subject=("byok", key.id))


def _opened(connection: Connection, call: Call) -> VendorKey:
    row = byok.reached(connection, call.path["byok"], actor=call.caller)
    return call.node.state.own_key(connection, row)


async def _note(call: Call, key: VendorKey, probed: Probed) -> None:
    """What the vendor said of the key stays on its record; that it was slow or sick says nothing of the key."""
    reason = None if probed.fault is None else probed.fault.reason
    if reason is None or reason in TROUBLE:
        now_us = call.node.clock.now_us()
        trouble = Trouble(reason=reason, first_us=now_us, last_us=now_us, is_certain=False)
        await call.node.store.write(note, key.id, trouble)


def _shown(connection: Connection, call: Call, rows: Sequence[Any]) -> list[VendorKeyRecord]:
    """The records of rows, with why the daemon cannot use those that it cannot."""
    problems = call.node.state.key_problems(connection, [row.id for row in rows])
    held = settings.settings(connection, call.organization_id).settings
    return [
        record(
            row,
            problem=problems.get(row.id),
            fee_percent=settings.fee_percent(held),
            for_operator=call.caller.role == "operator",
        )
        for row in rows
    ]
