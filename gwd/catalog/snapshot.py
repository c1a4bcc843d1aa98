"""The catalog as one immutable value: what the pipeline plans from, loaded anew when the revision has changed."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gwd.catalog import lifecycle, names, prices
from gwd.catalog.fields import Modality
from gwd.catalog.lifecycle import FamilyMember, Lifecycle
from gwd.catalog.tables import AliasTable, EndpointTable, ModelTable, ProviderTable
from gwd.core.cost import Price
from gwd.core.target import Flags
from gwd.core.vendor_format import Auth, VendorFormat
from gwd.core.web_address import origin_of
from gwd.store import Connection, cached


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A model served by a provider, with every default already filled in.

    `origin` is scheme, host and port of its `base_url`: only credentials that were made for it may go there.
    `dated_prices` is oldest first; an entry whose price is None was incomplete.
    """

    id: str
    model: str
    provider: str
    provider_name: str
    tag: str
    format: VendorFormat
    base_url: str
    origin: str | None
    auth: Auth
    headers: dict[str, str]
    upstream_model: str
    context_length: int
    max_completion_tokens: int
    supported_parameters: frozenset[str]
    flags: Flags
    weight: float
    is_live: bool
    dated_prices: tuple[tuple[int, Price | None], ...]

    @property
    def names(self) -> tuple[str, str, str]:
        """By what lists of providers may call it, in lower case."""
        return self.tag, self.provider, self.provider_name.lower()

    def price_at(self, now_us: int) -> Price | None:
        """The version in force, or None without a complete one: then the endpoint is not eligible."""
        found = None
        for effective_at_us, price in self.dated_prices:
            if effective_at_us > now_us:
                break
            found = price
        return found

    def opens_at_us(self, now_us: int) -> int | None:
        """When its first complete price begins, if that is still to come: planned so, or the clock was set back."""
        if self.price_at(now_us) is not None:
            return None
        return next(
            (at_us for at_us, price in self.dated_prices if at_us > now_us and price is not None),
            None,
        )


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the catalog and its endpoints."""

    id: str
    name: str
    vendor: str
    description: str | None
    family: str | None
    aliases: tuple[str, ...]
    context_length: int
    max_completion_tokens: int
    default_max_tokens: int | None
    supported_parameters: tuple[str, ...]
    input_modalities: tuple[Modality, ...]
    output_modalities: tuple[Modality, ...]
    is_moderated: bool
    released_at_us: int | None
    created_at_us: int
    life: Lifecycle
    endpoints: tuple[Endpoint, ...]

    @property
    def is_embedding(self) -> bool:
        return self.output_modalities == ("embeddings",)

    @property
    def family_alias(self) -> str | None:
        """`~vendor/family-latest` of the model's family."""
        return f"~{self.id.split('/', 1)[0]}/{self.family}-latest" if self.family else None

    @property
    def live_endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(e for e in self.endpoints if e.is_live)


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be called, at one revision.

    `keyless` are the providers that take no key, and when each was changed last. `provider_names` are the slugs and
    names of providers and the tags of endpoints, in lower case, also of those that are not live.
    """

    revision: int
    models: dict[str, Model]
    aliases: dict[str, str]
    families: dict[str, tuple[FamilyMember, ...]]
    keyless: dict[str, int]
    provider_names: frozenset[str]

    def resolve(self, name: str, now_us: int) -> Model | None:
        """The model of a slug, an alias or a `~vendor/family-latest`; retired ones included."""
        model = self.models.get(name)
        if model is not None:
            return model
        if name in self.aliases:
            return self.models.get(self.aliases[name])
        members = self.families.get(name)
        newest = lifecycle.newest(members, now_us) if members else None
        return self.models.get(newest) if newest else None

    def family_alias_of(self, model: Model, now_us: int) -> str | None:
        """The model's `~vendor/family-latest`, if the model is the one it leads to now."""
        alias = model.family_alias
        return alias if alias and self.resolve(alias, now_us) is model else None

    def names_of(self, model: Model, now_us: int) -> set[str]:
        """Every alias that leads to the model now: what an allow-list may call it besides its id."""
        family = self.family_alias_of(model, now_us)
        return {*model.aliases, *((family,) if family else ())}

    def successor(self, model: Model, now_us: int) -> Model | None:
        """Who takes a retired model's traffic."""
        lives = {name: m.life for name, m in self.models.items()}
        name = lifecycle.successor_of(model.id, lives, now_us)
        return self.models[name] if name else None


@cached("catalog revision")
def revision(connection: Connection) -> int:
    """The catalog's revision, compared inside every admission."""
    row = connection.row("SELECT value FROM revision WHERE name = 'catalog'")
    assert row is not None
    return int(row[0])


def raise_revision(connection: Connection) -> None:
    """Called by every change of the catalog or of a platform credential."""
    connection.execute("UPDATE revision SET value = value + 1 WHERE name = 'catalog'")


def load(connection: Connection, formats: Mapping[str, VendorFormat]) -> Catalog:
    """The catalog as it stands in this transaction. An endpoint of a format that is none of `formats` is not live."""
    dated: dict[tuple[str, str | None], list[prices.PriceVersion]] = {}
    for version in prices.versions(connection):
        dated.setdefault((version.model, version.endpoint_id), []).append(version)
    providers = {row.slug: row for row in connection.run(ProviderTable.select())}
    rows = list(connection.run(ModelTable.select().order_by(ModelTable.id)))
    endpoints: dict[str, list[Endpoint]] = {row.id: [] for row in rows}
    by_id = {row.id: row for row in rows}
    for row in connection.run(EndpointTable.select().order_by(EndpointTable.created_at)):
        endpoints[row.model].append(
            _endpoint(row, by_id[row.model], providers[row.provider], dated, formats)
        )
    models = {row.id: _model(row, tuple(endpoints[row.id])) for row in rows}
    families: dict[str, list[FamilyMember]] = {}
    for model in models.values():
        if model.family_alias:
            families.setdefault(model.family_alias, []).append(
                FamilyMember(
                    model=model.id,
                    released_at_us=model.released_at_us or model.created_at_us,
                    life=model.life,
                )
            )
    return Catalog(
        revision=revision(connection),
        models=models,
        aliases={row.name: row.model for row in connection.run(AliasTable.select())},
        families={alias: tuple(members) for alias, members in families.items()},
        keyless={row.slug: row.updated_at for row in providers.values() if row.auth == "none"},
        provider_names=frozenset(names.providers(connection)),
    )


def _model(row: Any, endpoints: tuple[Endpoint, ...]) -> Model:
    return Model(
        id=row.id,
        name=row.name,
        vendor=row.vendor,
        description=row.description,
        family=row.family,
        aliases=tuple(row.aliases),
        context_length=row.context_length,
        max_completion_tokens=row.max_completion_tokens,
        default_max_tokens=row.default_max_tokens,
        supported_parameters=tuple(row.supported_parameters),
        input_modalities=tuple(row.input_modalities),
        output_modalities=tuple(row.output_modalities),
        is_moderated=row.is_moderated,
        released_at_us=row.released_at,
        created_at_us=row.created_at,
        life=Lifecycle(
            deprecated_at_us=row.deprecated_at,
            retired_at_us=row.retired_at,
            successor=row.successor,
        ),
        endpoints=endpoints,
    )


def _endpoint(
    row: Any,
    model: Any,
    provider: Any,
    dated: Mapping[tuple[str, str | None], list[prices.PriceVersion]],
    formats: Mapping[str, VendorFormat],
) -> Endpoint:
    timeline = prices.for_endpoint(
        dated.get((row.model, row.id), []), dated.get((row.model, None), [])
    )
    is_embedding = model.output_modalities == ["embeddings"]
    base_url = row.base_url or provider.base_url
    return Endpoint(
        id=row.id,
        model=row.model,
        provider=row.provider,
        provider_name=provider.name,
        tag=row.tag,
        format=formats.get(provider.adapter) or VendorFormat(name=provider.adapter),
        base_url=base_url,
        origin=origin_of(base_url),
        auth=provider.auth,
        headers=provider.headers,
        upstream_model=row.upstream_model,
        context_length=row.context_length or model.context_length,
        max_completion_tokens=row.max_completion_tokens or model.max_completion_tokens,
        supported_parameters=frozenset(
            model.supported_parameters
            if row.supported_parameters is None
            else row.supported_parameters
        ),
        flags=msgspec.convert({**provider.flags, **row.flags}, Flags),
        weight=row.weight,
        is_live=not (row.disabled or row.draining or provider.disabled)
        and provider.adapter in formats,
        dated_prices=tuple(
            (at_us, prices.price_of(v.id, v.body, is_embedding=is_embedding) if v else None)
            for at_us, v in timeline
        ),
    )
