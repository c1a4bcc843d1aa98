"""Providers: named upstream services with an adapter and a base URL."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import UNSET

from gwd.catalog import inputs
from gwd.catalog.inputs import ProviderInput, ProviderPatch
from gwd.catalog.record import ProviderRecord
from gwd.catalog.snapshot import raise_revision
from gwd.catalog.tables import EndpointTable, ProviderTable
from gwd.core.clock import iso
from gwd.core.errors import AlreadyExists, Conflict, InvalidValue, NotFound
from gwd.core.vendor_format import VendorFormat
from gwd.core.web_address import origin_of
from gwd.store import Connection


class Origins(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider is: the origin of its own base URL, None if that cannot be read, and all, its endpoints' too."""

    own: str | None
    all: tuple[str, ...]
    takes_keys: bool


def create(
    connection: Connection,
    body: ProviderInput,
    *,
    formats: Mapping[str, VendorFormat],
    allow_http: bool,
    now_us: int,
) -> ProviderRecord:
    """Raises AlreadyExists for a taken slug, InvalidValue naming the field otherwise.

    `formats` are the vendor formats that this node speaks, by their names. Without `auth` the key travels the format's
    own way.
    """
    slug = inputs.check_slug(body.slug)
    adapter = inputs.check_adapter(body.adapter, formats)
    if connection.first(ProviderTable.select().where(ProviderTable.slug == slug)):
        raise AlreadyExists(
            f"provider `{slug}` exists; patch it, or choose another slug", param="slug"
        )
    connection.run(
        ProviderTable.insert(
            slug=slug,
            name=inputs.check_name(body.name),
            adapter=adapter,
            base_url=inputs.check_base_url(body.base_url, allow_http=allow_http),
            auth=formats[adapter].auth if body.auth is UNSET else body.auth,
            headers=inputs.check_headers(body.headers),
            flags=inputs.check_flags(body.flags),
            disabled=body.disabled,
            created_at=now_us,
            updated_at=now_us,
        )
    )
    raise_revision(connection)
    return get(connection, slug)


def get(connection: Connection, slug: str) -> ProviderRecord:
    return _record(_row(connection, slug))


def require(connection: Connection, slug: str) -> None:
    """Raises InvalidValue for a body that names a provider which does not exist."""
    known = [row.slug for row in connection.run(ProviderTable.select(ProviderTable.slug))]
    if slug not in known:
        near = get_close_matches(slug, known, n=1)
        remedy = f"did you mean `{near[0]}`?" if near else "create it first"
        raise InvalidValue(f"`provider`: no provider `{slug}`; {remedy}", param="provider")


def origins(connection: Connection) -> dict[str, Origins]:
    """Where each provider is: what its credentials may be made for."""
    own = connection.rows("SELECT slug, base_url, auth FROM provider")
    of_endpoints = connection.rows(
        "SELECT DISTINCT provider, base_url FROM endpoint WHERE base_url IS NOT NULL"
    )
    found: dict[str, dict[str | None, None]] = {}
    for slug, base_url, *_ in (*own, *of_endpoints):
        found.setdefault(slug, {})[origin_of(base_url)] = None
    return {
        slug: Origins(
            own=origin_of(base_url),
            all=tuple(each for each in found[slug] if each),
            takes_keys=auth != "none",
        )
        for slug, base_url, auth in own
    }


def list_(connection: Connection, *, limit: int, offset: int) -> tuple[list[ProviderRecord], int]:
    query = ProviderTable.select().order_by(ProviderTable.slug)
    rows = connection.run(query.limit(limit).offset(offset))
    return [_record(row) for row in rows], connection.count(ProviderTable.select())


def patch(
    connection: Connection,
    slug: str,
    body: ProviderPatch,
    *,
    formats: Mapping[str, VendorFormat],
    allow_http: bool,
    now_us: int,
) -> ProviderRecord:
    """A provider that took its key the way of its format takes it the way of another one that it is given."""
    row = _row(connection, slug)
    changes: dict[str, Any] = {"updated_at": now_us}
    if body.name is not UNSET:
        changes["name"] = inputs.check_name(body.name)
    if body.base_url is not UNSET:
        changes["base_url"] = inputs.check_base_url(body.base_url, allow_http=allow_http)
    if body.adapter is not UNSET:
        changes["adapter"] = inputs.check_adapter(body.adapter, formats)
        if row.adapter in formats and row.auth == formats[row.adapter].auth:
            changes["auth"] = formats[body.adapter].auth
    if body.auth is not UNSET:
        changes["auth"] = body.auth
    if body.headers is not UNSET:
        changes["headers"] = inputs.check_headers(body.headers or {})
    if body.flags is not UNSET:
        changes["flags"] = inputs.check_flags(body.flags or {})
    if body.disabled is not UNSET:
        changes["disabled"] = body.disabled
    connection.run(ProviderTable.update(changes).where(ProviderTable.slug == slug))
    raise_revision(connection)
    return get(connection, slug)


def delete(connection: Connection, slug: str) -> None:
    """Raises Conflict while endpoints use it."""
    _row(connection, slug)
    used = connection.count(EndpointTable.select().where(EndpointTable.provider == slug))
    if used:
        raise Conflict(f"provider `{slug}` has {used} endpoints; delete them first")
    connection.run(ProviderTable.delete().where(ProviderTable.slug == slug))
    raise_revision(connection)


def _row(connection: Connection, slug: str) -> Any:
    row = connection.first(ProviderTable.select().where(ProviderTable.slug == slug))
    if row is None:
        raise NotFound(f"no provider `{slug}`")
    return row


def _record(row: Any) -> ProviderRecord:
    return ProviderRecord(
        id=row.slug,
        slug=row.slug,
        object="provider",
        name=row.name,
        adapter=row.adapter,
        base_url=row.base_url,
        auth=row.auth,
        headers=row.headers,
        flags=row.flags,
        disabled=row.disabled,
        created_at=iso(row.created_at),
        updated_at=iso(row.updated_at),
    )
