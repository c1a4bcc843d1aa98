"""What the API shows of an organization's own vendor key: never the key itself."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw

from gwd.core.clock import iso, iso_or_none
from gwd.core.fields import Id, Moment, Slug
from gwd.credentials.record import CredentialError, last_error


class VendorKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the organization's own account with a vendor."""

    id: Annotated[Id, Meta(description="The id of the key, pk_….")]
    object: Annotated[Literal["byok"], Meta(description="The kind of the record.")]
    provider: Annotated[Slug, Meta(description="The provider that takes the key.")]
    name: Annotated[str, Meta(description="The name that is shown.")]
    label: Annotated[
        str,
        Meta(description="The first three and last four characters: enough to tell two apart."),
    ]
    key_ref: Annotated[
        str | None,
        Meta(
            description="Where the daemon reads the key, shown to the operator; null for one that is stored, encrypted."
        ),
    ]
    workspace_id: Annotated[
        Id | None, Meta(description="The workspace whose requests it serves; null for all.")
    ]
    disabled: Annotated[bool, Meta(description="Whether it is not used.")]
    is_fallback: Annotated[
        bool, Meta(description="Whether it is tried only after the platform's keys.")
    ]
    is_required: Annotated[
        bool,
        Meta(
            description="Whether the platform's keys of this provider are never used where it serves."
        ),
    ]
    allowed_models: Annotated[
        list[str] | None,
        Meta(description="Models, aliases and `vendor/*` that it serves; null for all."),
    ]
    allowed_api_key_hashes: Annotated[
        list[str] | None,
        Meta(description="Hashes of the API keys whose requests it serves; null for all."),
    ]
    allowed_user_ids: Annotated[
        list[str] | None, Meta(description="Members whose requests it serves; null for all.")
    ]
    base_url: Annotated[
        str | None,
        Meta(description="The address it was given for; null for the provider's."),
    ]
    sort_order: Annotated[
        int, Meta(description="Of several keys of a provider the lowest number is tried first.")
    ]
    is_byok_only: Annotated[bool, Meta(description="Always false.")]
    declared_region: Annotated[None, Meta(description="Always null.")]
    declared_zdr: Annotated[None, Meta(description="Always null.")]
    fee_percent: Annotated[
        Raw,
        Meta(
            description="What of the list price is charged for requests that it serves, in percent.",
            extra_json_schema={"type": "number", "x-kind": "percent"},
        ),
    ]
    last_used_at: Annotated[
        Moment | None, Meta(description="When a request used it last; null for never.")
    ]
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


def record(
    row: Any, *, problem: str | None, fee_percent: Raw, for_operator: bool
) -> VendorKeyRecord:
    """Of a row of the table. Where the daemon reads a referenced key is the node's own business."""
    is_hidden = row.key_ref is not None and not for_operator
    if is_hidden and problem is not None:
        problem = "the daemon cannot use the operator's reference; ask the operator, or set a key"
    return VendorKeyRecord(
        id=row.id,
        object="byok",
        provider=row.provider,
        name=row.name,
        label="a reference of the operator's" if is_hidden else row.label,
        key_ref=None if is_hidden else row.key_ref,
        workspace_id=row.workspace_id,
        disabled=row.disabled,
        is_fallback=row.is_fallback,
        is_required=row.is_required,
        allowed_models=row.allowed_models,
        allowed_api_key_hashes=row.allowed_api_key_hashes,
        allowed_user_ids=row.allowed_user_ids,
        base_url=row.base_url,
        sort_order=row.sort_order,
        is_byok_only=False,
        declared_region=None,
        declared_zdr=None,
        fee_percent=fee_percent,
        last_used_at=iso_or_none(row.last_used_at),
        last_error=last_error(row),
        created_at=iso(row.created_at),
        updated_at=iso(row.updated_at),
        problem=problem,
    )
