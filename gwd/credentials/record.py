"""What the API shows of a vendor key: never the key itself."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gwd.core.clock import iso, iso_or_none
from gwd.core.errors import FaultReason
from gwd.core.fields import Id, Moment, Slug


class CredentialError(msgspec.Struct, frozen=True, kw_only=True):
    """The last time that the vendor turned a key away."""

    at: Annotated[Moment, Meta(description="When it was.")]
    reason: Annotated[FaultReason, Meta(description="Why, as the vendor's answer was understood.")]


class CredentialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the platform's account with a vendor."""

    id: Annotated[Id, Meta(description="The id of the credential, pk_….")]
    object: Annotated[Literal["credential"], Meta(description="The kind of the record.")]
    provider: Annotated[Slug, Meta(description="The provider that takes the key.")]
    name: Annotated[str, Meta(description="The name that is shown.")]
    label: Annotated[
        str,
        Meta(description="The end of the key, or where it is read from: enough to tell two apart."),
    ]
    key_ref: Annotated[
        str | None,
        Meta(description="Where the daemon reads the key; null for one that is stored, encrypted."),
    ]
    base_url: Annotated[
        str | None,
        Meta(description="The address it was given for; null for the provider's."),
    ]
    sort_order: Annotated[
        int, Meta(description="Of several keys of a provider the lowest number is tried first.")
    ]
    expires_at: Annotated[
        Moment | None,
        Meta(description="When the vendor's prepaid credit ends; null where it does not."),
    ]
    disabled: Annotated[bool, Meta(description="Whether it is not used.")]
    last_error: Annotated[
        CredentialError | None,
        Meta(
            description="The last time that the vendor turned it away; null once it has served or was changed since."
        ),
    ]
    created_at: Annotated[Moment, Meta(description="When it was created.")]
    updated_at: Annotated[Moment, Meta(description="When it was last changed.")]
    problem: Annotated[
        str | None,
        Meta(description="Why the daemon cannot use it, and what helps; null when it can."),
    ]


def record(row: Any) -> CredentialRecord:
    """Of a row of the table, which cannot say whether the running daemon has a `problem` with the key."""
    return CredentialRecord(
        id=row.id,
        object="credential",
        provider=row.provider,
        name=row.name,
        label=row.label,
        key_ref=row.key_ref,
        base_url=row.base_url,
        sort_order=row.sort_order,
        expires_at=iso_or_none(row.expires_at),
        disabled=row.disabled,
        last_error=last_error(row),
        created_at=iso(row.created_at),
        updated_at=iso(row.updated_at),
        problem=None,
    )


def last_error(row: Any) -> CredentialError | None:
    """What the vendor said when it turned the key away last."""
    if row.last_error_at is None:
        return None
    return CredentialError(at=iso(row.last_error_at), reason=row.last_error_reason)
