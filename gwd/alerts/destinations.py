"""Destinations: where an organization wants to be told, of what, and how each stands.

The address of a chat workspace is a secret by itself: it is sealed, and only its host is shown. A webhook has a signing
secret, shown once; a new one may overlap with the one before it.
"""

from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.alerts import queue
from gwd.alerts.categories import Category
from gwd.alerts.queue import Kind
from gwd.alerts.service import Severity
from gwd.alerts.tables import DestinationTable
from gwd.core.clock import US_PER_S, iso
from gwd.core.errors import Conflict, InvalidValue, MissingParameter, NotFound
from gwd.core.fields import Count, Id, Moment
from gwd.core.ids import mint
from gwd.core.inputs import NameInput
from gwd.credentials.vault import Binding, CannotOpenError, Vault
from gwd.orgs import checks
from gwd.outbound.guard import Rules, check_literal
from gwd.outbound.signature import new_secret
from gwd.store import Connection

AT_MOST: Final = 50
MAX_URL: Final = 2_048
MAX_OVERLAP_S: Final = 7 * 86_400
HINT: Final = 4

ChatFormat = Literal["slack", "teams"]

Events = Annotated[
    list[Category],
    Meta(max_length=16, description="The categories that it hears of. Empty is all of them."),
]
Least = Annotated[
    Severity, Meta(description="The least severity that it hears of; info is everything.")
]
DestinationName = Annotated[NameInput, Meta(description="What people call it.")]
Url = Annotated[
    str,
    Meta(
        max_length=MAX_URL,
        description="Where a webhook or a chat workspace takes messages: https, a public address.",
    ),
]
Address = Annotated[str, Meta(description="The mail address, for type email.")]
Format = Annotated[
    ChatFormat,
    Meta(description="The shape of messages, for type chat. Null is what the address tells."),
]
Enabled = Annotated[bool, Meta(description="Whether it is told anything.")]


class DestinationInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new destination: `url` for a webhook or a chat workspace, `address` for mail."""

    type: Annotated[Kind, Meta(description="How it is told; this stays.")]
    name: DestinationName
    url: Url | None = None
    address: Address | None = None
    events: Events = []
    min_severity: Least = "info"
    format: Format | None = None
    enabled: Enabled = True

    def __repr__(self) -> str:
        return f"DestinationInput(type={self.type!r}, name={self.name!r})"


class DestinationPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a destination: absent is unchanged, null clears."""

    name: DestinationName | UnsetType = UNSET
    url: Url | UnsetType = UNSET
    address: Address | UnsetType = UNSET
    events: Events | UnsetType | None = UNSET
    min_severity: Least | UnsetType = UNSET
    format: Format | UnsetType | None = UNSET
    enabled: Enabled | UnsetType = UNSET

    def __repr__(self) -> str:
        return "DestinationPatch(…)"


class LastDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """The newest attempt."""

    at: Annotated[Moment, Meta(description="When it ended.")]
    status: Annotated[
        str, Meta(description="The status that the receiver answered, or `delivered` or `failed`.")
    ]
    error: Annotated[str | None, Meta(description="Why it failed; null where it did not.")]


class DestinationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Where an organization is told of alerts."""

    id: Annotated[Id, Meta(description="`dst_…`.")]
    type: Annotated[Kind, Meta(description="How it is told.")]
    name: Annotated[str, Meta(description="What people call it.")]
    url: Annotated[
        str | None,
        Meta(description="Where it takes messages; of a chat workspace the host alone, else null."),
    ]
    address: Annotated[str | None, Meta(description="The mail address; null for other types.")]
    events: Annotated[
        list[Category], Meta(description="The categories that it hears of; empty for all of them.")
    ]
    min_severity: Annotated[Severity, Meta(description="The least severity that it hears of.")]
    format: Annotated[
        ChatFormat | None,
        Meta(
            description="The shape of messages to a chat workspace; null is what its address tells."
        ),
    ]
    enabled: Annotated[bool, Meta(description="Whether it is told anything.")]
    consecutive_failures: Annotated[
        Count, Meta(description="Attempts in a row that failed; at five it is disabled.")
    ]
    disabled_at: Annotated[
        Moment | None, Meta(description="Since when it is disabled; null while it is enabled.")
    ]
    disabled_reason: Annotated[
        str | None, Meta(description="Why it is disabled; null while it is enabled.")
    ]
    last_delivery: Annotated[
        LastDelivery | None, Meta(description="The newest attempt; null before the first one.")
    ]
    secret_hint: Annotated[
        str | None,
        Meta(description="The end of a webhook's signing secret; null for other types."),
    ]
    old_secret_until: Annotated[
        Moment | None,
        Meta(
            description="Until when deliveries are signed with the secret before, too; else null."
        ),
    ]
    created_at: Annotated[Moment, Meta(description="When it was made.")]
    updated_at: Annotated[Moment, Meta(description="When it was changed last.")]


class NewSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A destination, and the signing secret of a webhook, which is shown this once."""

    record: DestinationRecord
    secret: str | None

    def __repr__(self) -> str:
        return f"NewSecret(record={self.record!r}, secret=***)"


def create(
    connection: Connection,
    vault: Vault,
    organization_id: str,
    body: DestinationInput,
    *,
    rules: Rules,
    sends_mail: bool,
    now_us: int,
) -> NewSecret:
    """Raises InvalidValue and MissingParameter, which name the field, and Conflict where there are too many."""
    own = DestinationTable.select().where(DestinationTable.organization_id == organization_id)
    if connection.count(own) >= AT_MOST:
        raise Conflict(f"an organization has at most {AT_MOST} destinations; delete one first")
    _check_kind(body.type, body.url, body.address, body.format)
    row_id = mint("dst_")
    secret = new_secret() if body.type == "webhook" else None
    row = {
        "id": row_id,
        "organization_id": organization_id,
        "type": body.type,
        "name": checks.name(body.name),
        **_address(vault, organization_id, row_id, body.type, body.url, body.address, rules=rules),
        "events": list(dict.fromkeys(body.events)),
        "min_severity": body.min_severity,
        "chat_format": body.format,
        "enabled": body.enabled,
        "consecutive_failures": 0,
        "disabled_at": None if body.enabled else now_us,
        "disabled_reason": None if body.enabled else "it was made disabled",
        "created_at": now_us,
        "updated_at": now_us,
    }
    if body.type == "email" and not sends_mail:
        raise InvalidValue(
            "type: this node sends no mail; the operator names a mail server as [smtp] host in gwd.toml first",
            param="type",
        )
    if secret is not None:
        row |= _secret(vault, organization_id, row_id, row["address"], secret)
    connection.run(DestinationTable.insert(row))
    return NewSecret(record=get(connection, organization_id, row_id), secret=secret)


def get(connection: Connection, organization_id: str, destination_id: str) -> DestinationRecord:
    return record(_row(connection, organization_id, destination_id))


def list_(
    connection: Connection, organization_id: str, *, limit: int, offset: int
) -> tuple[list[DestinationRecord], int]:
    query = DestinationTable.select().where(DestinationTable.organization_id == organization_id)
    rows = connection.run(
        query.order_by(DestinationTable.created_at, DestinationTable.id).limit(limit).offset(offset)
    )
    return [record(row) for row in rows], connection.count(query)


def patch(
    connection: Connection,
    vault: Vault,
    organization_id: str,
    destination_id: str,
    body: DestinationPatch,
    *,
    rules: Rules,
    now_us: int,
) -> DestinationRecord:
    """Change a destination; a webhook keeps its secret at another address."""
    row = _row(connection, organization_id, destination_id)
    url = None if body.url is UNSET else body.url
    address = None if body.address is UNSET else body.address
    if url is not None or address is not None or body.format not in (UNSET, None):
        _check_kind(row.type, url, address, body.format or None, is_patch=True)
    changes: dict[str, Any] = {"updated_at": now_us}
    if url is not None or address is not None:
        changes |= _address(vault, organization_id, row.id, row.type, url, address, rules=rules)
        if row.type == "webhook":
            changes |= _resealed(vault, row, changes["address"])
    if body.name is not UNSET:
        changes["name"] = checks.name(body.name)
    if body.events is not UNSET:
        changes["events"] = list(dict.fromkeys(body.events or ()))
    if body.min_severity is not UNSET:
        changes["min_severity"] = body.min_severity
    if body.format is not UNSET:
        changes["chat_format"] = body.format
    connection.run(DestinationTable.update(changes).where(DestinationTable.id == row.id))
    if body.enabled is not UNSET:
        switch(connection, organization_id, row.id, enabled=body.enabled, now_us=now_us)
    return get(connection, organization_id, destination_id)


def switch(
    connection: Connection,
    organization_id: str,
    destination_id: str,
    *,
    enabled: bool,
    now_us: int,
    reason: str = "somebody disabled it",
) -> DestinationRecord:
    """Enable or disable. What waits for a disabled one is kept for three days, and goes out when it is enabled."""
    row = _row(connection, organization_id, destination_id)
    changes: dict[str, Any]
    if enabled:
        changes = {"consecutive_failures": 0, "disabled_at": None, "disabled_reason": None}
        queue.go_on(connection, row.id, now_us=now_us)
    elif row.enabled:
        changes = {"disabled_at": now_us, "disabled_reason": reason}
        queue.hold_back(connection, row.id)
    else:
        return record(row)
    connection.run(
        DestinationTable.update({"enabled": enabled, "updated_at": now_us, **changes}).where(
            DestinationTable.id == row.id
        )
    )
    return get(connection, organization_id, destination_id)


def rotate_secret(
    connection: Connection,
    vault: Vault,
    organization_id: str,
    destination_id: str,
    *,
    overlap_s: int,
    now_us: int,
) -> NewSecret:
    """A new signing secret. For `overlap_s` the one before is good too, and signs beside it; with 0 it ends at once."""
    row = _row(connection, organization_id, destination_id)
    if row.type != "webhook":
        raise Conflict(f"a destination of type {row.type} is not signed and has no secret")
    secret = new_secret()
    changes = _secret(vault, organization_id, row.id, row.address, secret)
    changes["sealed_old_secret"] = row.sealed_secret if overlap_s else None
    changes["old_secret_until"] = now_us + overlap_s * US_PER_S if overlap_s else None
    changes["updated_at"] = now_us
    connection.run(DestinationTable.update(changes).where(DestinationTable.id == row.id))
    return NewSecret(record=get(connection, organization_id, destination_id), secret=secret)


def delete(
    connection: Connection, organization_id: str, destination_id: str, *, now_us: int
) -> None:
    """Its deliveries stay on record; what waits for it is closed."""
    row = _row(connection, organization_id, destination_id)
    queue.close(connection, row.id, "the destination was deleted", now_us=now_us)
    connection.run(DestinationTable.delete().where(DestinationTable.id == row.id))


def delete_all(connection: Connection, organization_id: str, *, now_us: int) -> None:
    """An organization is gone: nothing is told any more, and its addresses and secrets are not kept."""
    queue.close_all(connection, organization_id, "the organization was deleted", now_us=now_us)
    connection.run(
        DestinationTable.delete().where(DestinationTable.organization_id == organization_id)
    )


def record(row: Any) -> DestinationRecord:
    """The row as the API shows it."""
    last = None
    if row.last_delivery_at is not None:
        last = LastDelivery(
            at=iso(row.last_delivery_at),
            status=row.last_delivery_status or "failed",
            error=row.last_delivery_error,
        )
    return DestinationRecord(
        id=row.id,
        type=row.type,
        name=row.name,
        url=None if row.type == "email" else row.address,
        address=row.address if row.type == "email" else None,
        events=row.events,
        min_severity=row.min_severity,
        format=row.chat_format,
        enabled=row.enabled,
        consecutive_failures=row.consecutive_failures,
        disabled_at=_iso(row.disabled_at),
        disabled_reason=row.disabled_reason,
        last_delivery=last,
        secret_hint=row.secret_hint,
        old_secret_until=_iso(row.old_secret_until),
        created_at=iso(row.created_at),
        updated_at=iso(row.updated_at),
    )


def address_binding(organization_id: str, destination_id: str) -> Binding:
    """What the sealed address of a chat workspace belongs to."""
    return Binding(
        purpose="destination address",
        organization_id=organization_id,
        row_id=destination_id,
        origin="chat",
    )


def secret_binding(organization_id: str, destination_id: str, url: str) -> Binding:
    """What a signing secret belongs to: this destination at this address's origin."""
    parts = urlsplit(url)
    return Binding(
        purpose="destination secret",
        organization_id=organization_id,
        row_id=destination_id,
        origin=f"{parts.scheme}://{parts.netloc}",
    )


def _check_kind(
    kind: Kind,
    url: str | None,
    address: str | None,
    format_: ChatFormat | UnsetType | None,
    *,
    is_patch: bool = False,
) -> None:
    """Each type has its own kind of address."""
    wanted, other = ("address", url) if kind == "email" else ("url", address)
    if other is not None:
        wrong = "url" if kind == "email" else "address"
        raise InvalidValue(
            f"`{wrong}` is not for type {kind}; give `{wanted}` instead", param=wrong
        )
    if (address if kind == "email" else url) is None and not is_patch:
        raise MissingParameter(f"`{wanted}` is required for type {kind}", param=wanted)
    if format_ and kind != "chat":
        raise InvalidValue(f"`format` is not for type {kind}; leave it out", param="format")


def _address(
    vault: Vault,
    organization_id: str,
    row_id: str,
    kind: Kind,
    url: str | None,
    address: str | None,
    *,
    rules: Rules,
) -> dict[str, Any]:
    if kind == "email":
        assert address is not None
        return {"address": checks.email(address, param="address")}
    assert url is not None
    check_literal(url, rules, param="url")
    if kind == "webhook":
        return {"address": url}
    parts = urlsplit(url)
    return {
        "address": f"{parts.scheme}://{parts.hostname}/…",
        "sealed_address": vault.seal(url, address_binding(organization_id, row_id)),
    }


def _secret(
    vault: Vault, organization_id: str, row_id: str, url: str, secret: str
) -> dict[str, Any]:
    return {
        "sealed_secret": vault.seal(secret, secret_binding(organization_id, row_id, url)),
        "secret_hint": f"…{secret[-HINT:]}",
    }


def _resealed(vault: Vault, row: Any, url: str) -> dict[str, Any]:
    """The same secrets, for another address."""
    before = secret_binding(row.organization_id, row.id, row.address)
    after = secret_binding(row.organization_id, row.id, url)
    if before == after:
        return {}
    try:
        return {
            name: None if blob is None else vault.seal(vault.open(blob, before), after)
            for name, blob in (
                ("sealed_secret", row.sealed_secret),
                ("sealed_old_secret", row.sealed_old_secret),
            )
        }
    except CannotOpenError as error:
        raise Conflict(f"{error}; make the destination anew") from None


def _row(connection: Connection, organization_id: str, destination_id: str) -> Any:
    row = connection.first(
        DestinationTable.select().where(
            (DestinationTable.id == destination_id)
            & (DestinationTable.organization_id == organization_id)
        )
    )
    if row is None:
        raise NotFound("No such destination.")
    return row


def _iso(at_us: int | None) -> str | None:
    return None if at_us is None else iso(at_us)
