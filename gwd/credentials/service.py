"""Vendor keys: create, list, get, patch, delete, and the opened form that the pipeline calls vendors with."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.catalog import inputs, providers
from gwd.catalog.providers import Origins
from gwd.catalog.snapshot import raise_revision
from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import InvalidValue, MissingParameter, NotFound
from gwd.core.ids import mint
from gwd.core.inputs import MomentInput
from gwd.core.name_patterns import NamePatterns, patterns_of
from gwd.core.patches import named
from gwd.core.target import KEYLESS, Credential
from gwd.core.web_address import MAX_LENGTH
from gwd.credentials import key_form, references
from gwd.credentials.places import Place, moved, place_of
from gwd.credentials.record import CredentialRecord, record
from gwd.credentials.sealed import SealedPlace
from gwd.credentials.tables import CredentialTable
from gwd.credentials.vault import Binding, CannotOpenError, Vault
from gwd.store import Connection

MAX_SECRET: Final = 4_096
MAX_ORDER: Final = 1_000_000
OWNERS_SEE: Final = 3  # characters at the beginning of a key
SHORTEST_SHOWN: Final = 12


Key = Annotated[
    str,
    Meta(
        description="The vendor's key. It is stored encrypted and never shown; or give `key_ref`.",
        extra_json_schema={"maxLength": MAX_SECRET, "x-kind": "secret"},
    ),
]
KeyRef = Annotated[
    str,
    Meta(
        description="Where the daemon reads the key, in place of `key`: env:NAME or file:/absolute/path. Never stored.",
        extra_json_schema={"pattern": "^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.*)$"},
    ),
]
Name = Annotated[
    str,
    Meta(
        description="What people call it.",
        extra_json_schema={"minLength": 1, "maxLength": inputs.MAX_NAME},
    ),
]
BaseUrl = Annotated[
    str,
    Meta(
        description="The address that the key is for, where the provider has several: at the origin of its own base_url"
        " or of one of its endpoints'. Null is the provider's. It changes only together with the key.",
        extra_json_schema={"format": "uri", "maxLength": MAX_LENGTH},
    ),
]
Expiry = Annotated[MomentInput, Meta(description="From when on it is not used. Null is never.")]
Order = Annotated[
    int,
    Meta(
        ge=-MAX_ORDER,
        le=MAX_ORDER,
        description="Keys of a provider are tried from low to high.",
    ),
]
Disabled = Annotated[bool, Meta(description="Whether it is left out until it is enabled again.")]


class CredentialInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A vendor key: `key` or `key_ref`, not both."""

    provider: Annotated[str, Meta(description="The provider's slug.")]
    key: Key | None = None
    key_ref: KeyRef | None = None
    name: Annotated[Name | None, Meta(description="What people call it. Null is the provider.")] = (
        None
    )
    base_url: BaseUrl | None = None
    expires_at: Expiry | None = None
    sort_order: Order = 0
    disabled: Disabled = False


class CredentialPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a vendor key: absent is unchanged. Any change gives it a new chance."""

    key: Key | UnsetType = UNSET
    key_ref: KeyRef | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    base_url: BaseUrl | UnsetType | None = UNSET
    expires_at: Expiry | UnsetType | None = UNSET
    sort_order: Order | UnsetType = UNSET
    disabled: Disabled | UnsetType = UNSET


class VendorKey(msgspec.Struct, frozen=True, kw_only=True):
    """A credential ready for use. `secret` None: `problem` says why it cannot be used; an empty one: see `keyless`.

    It goes to `origin` only: to endpoints whose own origin is the same. What stands for no key goes anywhere.
    """

    id: str
    organization_id: str | None
    provider: str
    origin: str | None
    secret: str | None
    problem: str | None
    sort_order: int
    expires_at_us: int | None
    is_fallback: bool
    is_required: bool
    workspace_id: str | None
    allowed_models: NamePatterns | None
    allowed_api_key_hashes: tuple[str, ...] | None
    allowed_user_ids: tuple[str, ...] | None
    updated_at_us: int
    in_trouble: bool = False

    def is_usable(self, now_us: int) -> bool:
        """Whether it could be opened and its prepaid credit has not ended."""
        return self.secret is not None and (
            self.expires_at_us is None or self.expires_at_us > now_us
        )

    def goes_to(self, origin: str | None) -> bool:
        """Whether it may be sent to an endpoint of this origin: what it was made for, and for no key all are."""
        return self.secret == "" or (self.origin is not None and self.origin == origin)

    @property
    def record_id(self) -> str | None:
        """The id of its record; None where it stands for the key of a provider that takes none."""
        return None if self.secret == "" else self.id

    @property
    def credential(self) -> Credential:
        """What a call carries of it; only a key that could be opened has one."""
        assert self.secret is not None
        return Credential(id=self.id, secret=self.secret)

    def __repr__(self) -> str:
        return f"VendorKey(id={self.id!r}, provider={self.provider!r})"


def create(
    connection: Connection, vault: Vault, body: CredentialInput, *, now_us: int
) -> CredentialRecord:
    """A platform credential. Raises InvalidValue naming the field; the provider must exist."""
    row_id = mint("pk_")
    place = place_of(connection, body.provider, body.base_url)
    stored = stored_secret(vault, row_id, None, place, body.key, body.key_ref)
    connection.run(
        CredentialTable.insert(
            id=row_id,
            organization_id=None,
            provider=body.provider,
            name=body.provider if body.name is None else inputs.check_name(body.name),
            **stored,
            sort_order=body.sort_order,
            expires_at=_moment(body.expires_at),
            disabled=body.disabled,
            is_fallback=False,
            is_required=False,
            created_at=now_us,
            updated_at=now_us,
        )
    )
    raise_revision(connection)
    return get(connection, row_id)


def get(connection: Connection, credential_id: str) -> CredentialRecord:
    return record(_row(connection, credential_id))


def list_(
    connection: Connection, *, limit: int, offset: int, provider: str | None = None
) -> tuple[list[CredentialRecord], int]:
    query = CredentialTable.select().where(CredentialTable.organization_id.is_null())
    if provider is not None:
        query = query.where(CredentialTable.provider == provider)
    rows = connection.run(query.order_by(CredentialTable.created_at).limit(limit).offset(offset))
    return [record(row) for row in rows], connection.count(query)


def patch(
    connection: Connection, vault: Vault, credential_id: str, body: CredentialPatch, *, now_us: int
) -> CredentialRecord:
    """`key` or `key_ref` replaces the secret in place. Any change gives the key a new chance: no last error is left."""
    row = _row(connection, credential_id)
    changes: dict[str, Any] = {
        "updated_at": now_us,
        "last_error_at": None,
        "last_error_reason": None,
    }
    changes |= replaced_secret(connection, vault, row, named(body))
    if body.name is not UNSET:
        changes["name"] = inputs.check_name(body.name)
    if body.expires_at is not UNSET:
        changes["expires_at"] = _moment(body.expires_at)
    if body.sort_order is not UNSET:
        changes["sort_order"] = body.sort_order
    if body.disabled is not UNSET:
        changes["disabled"] = body.disabled
    connection.run(CredentialTable.update(changes).where(CredentialTable.id == credential_id))
    raise_revision(connection)
    return get(connection, credential_id)


def delete(connection: Connection, credential_id: str) -> None:
    _row(connection, credential_id)
    connection.run(CredentialTable.delete().where(CredentialTable.id == credential_id))
    raise_revision(connection)


def platform_keys(
    connection: Connection, vault: Vault, environment: Mapping[str, str]
) -> list[VendorKey]:
    """Every enabled platform credential, opened; one that cannot be used says why instead."""
    query = CredentialTable.select().where(
        CredentialTable.organization_id.is_null() & (CredentialTable.disabled == False)  # noqa: E712
    )
    rows = list(connection.run(query.order_by(CredentialTable.created_at)))
    return _all_opened(connection, vault, environment, rows)


def own_keys(
    connection: Connection, vault: Vault, environment: Mapping[str, str], organization_id: str
) -> list[VendorKey]:
    """The enabled keys of an organization (BYOK), opened as the platform's are, in the order they are tried in."""
    query = CredentialTable.select().where(
        (CredentialTable.organization_id == organization_id) & (CredentialTable.disabled == False)  # noqa: E712
    )
    order = (CredentialTable.sort_order, CredentialTable.created_at, CredentialTable.id)
    return _all_opened(connection, vault, environment, list(connection.run(query.order_by(*order))))


def own_key(
    connection: Connection, vault: Vault, environment: Mapping[str, str], row: Any
) -> VendorKey:
    """One key of an organization, opened; enabled or not."""
    return _all_opened(connection, vault, environment, [row])[0]


def problems(
    connection: Connection, vault: Vault, environment: Mapping[str, str], ids: Collection[str]
) -> dict[str, str]:
    """Why those of the credentials that cannot be used cannot, as it is at this moment."""
    rows = list(connection.run(CredentialTable.select().where(CredentialTable.id.in_(list(ids)))))
    opened = _all_opened(connection, vault, environment, rows)
    return {key.id: key.problem for key in opened if key.problem is not None}


def keyless(provider: str, changed_us: int) -> VendorKey:
    """What stands for the key of a provider that takes none, so that it is planned, called and rests like any other.

    A change of the provider gives it a new chance, as a change of a key does.
    """
    return VendorKey(
        id=f"{KEYLESS}{provider}",
        organization_id=None,
        provider=provider,
        origin=None,
        secret="",
        problem=None,
        sort_order=0,
        expires_at_us=None,
        is_fallback=False,
        is_required=False,
        workspace_id=None,
        allowed_models=None,
        allowed_api_key_hashes=None,
        allowed_user_ids=None,
        updated_at_us=changed_us,
    )


def referenced(reference: str, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The secret that a reference leads to, or why there is none that can be used and what would correct it."""
    try:
        secret = references.resolve(reference, environment)
    except references.UnresolvedReferenceError as error:
        return None, f"{error}; {references.cure(reference)}"
    if secret.isascii() and secret.isprintable():
        return secret, None
    return (
        None,
        f"{reference} has characters that no header can carry; {references.cure(reference)}",
    )


def sealed_for(
    credential_id: str, organization_id: str | None, origin: str | None, provider: str
) -> tuple[Binding, ...]:
    """What the key of a row may be sealed for. Earlier versions bound it to its provider's slug."""
    places = (provider,) if origin is None else (origin, provider)
    return tuple(_binding(organization_id, credential_id, place) for place in places)


VENDOR_KEYS: Final = SealedPlace(
    name="vendor key",
    table="credential",
    column="sealed",
    row="id",
    facts=("organization_id", "origin", "provider"),
    bindings=sealed_for,
    remedy="set it again (gwctl provider secret, for an owner's gwctl byok rotate) or delete it",
)


def _all_opened(
    connection: Connection, vault: Vault, environment: Mapping[str, str], rows: list[Any]
) -> list[VendorKey]:
    there = providers.origins(connection) if rows else {}
    return [_opened(row, vault, environment, there.get(row.provider)) for row in rows]


def _opened(
    row: Any, vault: Vault, environment: Mapping[str, str], there: Origins | None
) -> VendorKey:
    secret = None
    problem = moved(row.origin, row.provider, there, _remedy(row))
    if there is not None and not there.takes_keys and row.organization_id is not None:
        problem = (
            f"`{row.provider}` takes no key, so that there is nothing to use it for; delete it"
        )
    if problem is None and row.key_ref is not None:
        secret, problem = referenced(row.key_ref, environment)
    elif problem is None:
        secret, problem = _unsealed(row, vault)
    return VendorKey(
        id=row.id,
        organization_id=row.organization_id,
        provider=row.provider,
        origin=row.origin,
        secret=secret,
        problem=problem,
        sort_order=row.sort_order,
        expires_at_us=row.expires_at,
        is_fallback=row.is_fallback,
        is_required=row.is_required,
        workspace_id=row.workspace_id,
        allowed_models=None if row.allowed_models is None else patterns_of(row.allowed_models),
        allowed_api_key_hashes=_tuple(row.allowed_api_key_hashes),
        allowed_user_ids=_tuple(row.allowed_user_ids),
        updated_at_us=row.updated_at,
        in_trouble=row.last_error_at is not None,
    )


def _unsealed(row: Any, vault: Vault) -> tuple[str | None, str | None]:
    """The secret of a row, or why it does not open. Earlier versions bound a secret to its provider's slug."""
    try:
        return vault.open(row.sealed, _binding(row.organization_id, row.id, row.origin)), None
    except CannotOpenError as error:
        problem = f"{error}; set it again: {_remedy(row)}"
    try:
        return vault.open(row.sealed, _binding(row.organization_id, row.id, row.provider)), None
    except CannotOpenError:
        return None, problem


def _remedy(row: Any) -> str:
    if row.organization_id is None:
        return f"gwctl provider secret {row.provider}"
    return f"gwctl byok rotate {row.id}"


def stored_secret(
    vault: Vault,
    row_id: str,
    organization_id: str | None,
    place: Place,
    key: str | None,
    key_ref: str | None,
) -> dict[str, Any]:
    """The columns of a secret and of where it goes: one is never written without the other."""
    if (key is None) == (key_ref is None):
        raise MissingParameter("exactly one of `key` and `key_ref` is required", param="key")
    columns: dict[str, Any] = {"base_url": place.base_url, "origin": place.origin}
    if key_ref is not None:
        reference = references.check(key_ref)
        return {**columns, "sealed": None, "key_ref": reference, "label": reference}
    assert key is not None
    key = key.strip()
    if not key or len(key) > MAX_SECRET or " " in key or not (key.isascii() and key.isprintable()):
        raise InvalidValue(
            f"`key` must be 1 to {MAX_SECRET} printable ASCII characters without spaces and line breaks",
            param="key",
        )
    key_form.check(key, place.origin)
    return {
        **columns,
        "sealed": vault.seal(key, _binding(organization_id, row_id, place.origin)),
        "key_ref": None,
        "label": _label(key, shown=0 if organization_id is None else OWNERS_SEE),
    }


def replaced_secret(
    connection: Connection, vault: Vault, row: Any, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The columns of a new secret, of the `key`, `key_ref` and `base_url` that a PATCH gives; none without a secret."""
    if "key" not in given and "key_ref" not in given:
        if given.get("base_url", row.base_url) != row.base_url:
            raise MissingParameter(
                "`base_url` says where the key goes, and a stored key goes nowhere else: send `key` with it",
                param="key",
            )
        return {}
    place = place_of(connection, row.provider, given.get("base_url", row.base_url))
    secret = given.get("key"), given.get("key_ref")
    return stored_secret(vault, row.id, row.organization_id, place, *secret)


def _label(key: str, *, shown: int) -> str:
    """Enough of a key to tell it from another: its last four characters, and for its owner the first `shown`."""
    return f"{key[:shown]}…{key[-4:]}" if len(key) >= SHORTEST_SHOWN else "…"


def _binding(organization_id: str | None, row_id: str, origin: str) -> Binding:
    return Binding(
        purpose="vendor key", organization_id=organization_id or "", row_id=row_id, origin=origin
    )


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return us_from_iso(text)
    except TimeError as error:
        raise InvalidValue(f"`expires_at` {error}", param="expires_at") from None


def _tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _row(connection: Connection, credential_id: str) -> Any:
    row = connection.first(
        CredentialTable.select().where(
            (CredentialTable.id == credential_id) & CredentialTable.organization_id.is_null()
        )
    )
    if row is None:
        raise NotFound("no such credential")
    return row
