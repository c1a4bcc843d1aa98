"""Own vendor keys of an organization (BYOK), attached as the API would, by row."""

from typing import Any

from gwd.catalog import providers
from gwd.core.ids import mint
from gwd.credentials.tables import CredentialTable
from gwd.credentials.vault import Binding
from gwd.orgs.settings import bump_revision
from gwd.store import Connection
from tests.support.node import Gateway

OWN = "sk-own-acme-77aa0011"


async def attach(
    gateway: Gateway,
    secret: str = OWN,
    *,
    provider: str = "openai-chat",
    organization_id: str | None = None,
    origin: str | None = None,
    **fields: Any,
) -> str:
    """Attach a key to an organization, the gateway's own by default; its id."""
    owner = organization_id or await gateway.organization_id()
    node = gateway.running.node
    now_us = node.clock.now_us()
    key_id = mint("byok_")

    def write(connection: Connection) -> None:
        made_for = origin or providers.origins(connection)[provider].own
        assert made_for is not None
        binding = Binding(
            purpose="vendor key", organization_id=owner, row_id=key_id, origin=made_for
        )
        columns: dict[str, Any] = {
            "name": "own",
            "label": f"…{secret[-4:]}",
            "sort_order": 0,
            "disabled": False,
            "is_fallback": False,
            "is_required": False,
            **fields,
        }
        connection.run(
            CredentialTable.insert(
                id=key_id,
                organization_id=owner,
                provider=provider,
                sealed=node.vault.seal(secret, binding),
                origin=made_for,
                created_at=now_us,
                updated_at=now_us,
                **columns,
            )
        )
        bump_revision(connection, owner, now_us=now_us)

    await gateway.store.write(write)
    return key_id


async def change(gateway: Gateway, key_id: str, **fields: Any) -> None:
    """Change a key as its owner would: what its vendor said of it is forgotten."""
    now_us = gateway.running.node.clock.now_us()

    def write(connection: Connection) -> None:
        row = connection.row("SELECT organization_id FROM credential WHERE id = ?", (key_id,))
        assert row is not None
        forgotten = {"last_error_at": None, "last_error_reason": None, "updated_at": now_us}
        connection.run(
            CredentialTable.update(**fields, **forgotten).where(CredentialTable.id == key_id)
        )
        bump_revision(connection, row[0], now_us=now_us)

    await gateway.store.write(write)


async def set_fee(gateway: Gateway, percent: float, organization_id: str | None = None) -> None:
    """What of the list price is charged for requests on own keys."""
    owner = organization_id or await gateway.organization_id()
    await gateway.manage("PATCH", f"/organizations/{owner}/settings", {"byok_fee_percent": percent})


async def on_record(gateway: Gateway, key_id: str) -> dict[str, Any]:
    """The row of a key once what is known of it is written."""
    gateway.running.node.state.write_trouble()
    await gateway.store.write(lambda connection: None)
    return await gateway.store.read(_row, key_id)  # type: ignore[no-any-return]


def _row(connection: Connection, key_id: str) -> dict[str, Any]:
    row = connection.first(CredentialTable.select().where(CredentialTable.id == key_id))
    return dict(row.__data__)


def secrets_sent(gateway: Gateway) -> list[str]:
    """The secrets of all calls that the vendor got, in order."""
    return [_secret(call.headers) for call in gateway.vendor.calls]


def _secret(headers: dict[str, str]) -> str:
    return headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")
