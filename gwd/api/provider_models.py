"""GET /catalog/providers/{slug}/models: what a provider says it serves, and what of that is in the catalog."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd.api.management import Answer, Call
from gwd.api.provider_probe import ADD_ONE, failed, no_usable, usable
from gwd.api.shapes import TotalCount
from gwd.catalog import providers
from gwd.catalog.snapshot import Catalog
from gwd.core.clock import iso_or_none
from gwd.core.errors import Conflict, Fault
from gwd.core.fields import Id, Moment, Slug, Tokens
from gwd.core.target import Service
from gwd.core.web_address import origin_of
from gwd.vendors.model_list import ListedModel, bare_id

LIMIT_S: Final = 10.0


class CatalogEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint of the catalog, in short."""

    id: Annotated[Id, Meta(description="The id of the endpoint, ep_….")]
    model: Annotated[Slug, Meta(description="The model of the catalog that it serves.")]
    tag: Annotated[Slug, Meta(description="What requests may call it.")]


class ProviderModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a provider lists; null is what it does not say."""

    id: Annotated[
        str, Meta(description="What the provider calls it: the `upstream_model` of an endpoint.")
    ]
    name: Annotated[str, Meta(description="The name that it shows people.")]
    context_length: Annotated[
        Tokens | None, Meta(description="How many tokens prompt and answer may have together.")
    ]
    max_completion_tokens: Annotated[
        Tokens | None, Meta(description="How many tokens an answer may have.")
    ]
    owned_by: Annotated[str | None, Meta(description="Whose model it is.")]
    created_at: Annotated[Moment | None, Meta(description="When it was made or released.")]
    in_catalog: Annotated[
        list[CatalogEndpoint], Meta(description="The endpoints of this provider that serve it.")
    ]


class ProviderModels(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider lists, in its own order."""

    data: list[ProviderModelRecord]
    total_count: TotalCount
    truncated: Annotated[
        bool, Meta(description="Whether it lists more than the 5,000 models that are read.")
    ]


async def list_models(call: Call) -> Answer:
    """Ask a provider which models it has.

    Calls its server with its first usable credential, on the way that requests take, for at most ten seconds.

    A provider that gives no list is a 502 with the vendor's reason; not every server has one.
    """
    node, slug = call.node, call.path["slug"]
    provider = await node.store.read(providers.get, slug)
    catalog = await node.state.load()
    form = node.formats.get(provider.adapter)
    if form is None:
        raise Conflict(
            f"provider `{slug}` has the adapter `{provider.adapter}`, which this version does not speak",
            metadata={"reason": "unknown_adapter", "provider": slug},
        )
    keys = node.state.vendor_keys.get(slug, ())
    key = usable(keys, origin_of(provider.base_url), now_us=call.now_us)
    if key is None:
        raise no_usable(slug, keys, ADD_ONE, now_us=call.now_us)
    service = Service(
        format=form,
        base_url=provider.base_url,
        auth=provider.auth,
        headers=provider.headers,
        credential=key.credential,
    )
    found = await node.line.dispatcher.models_of(service, limit_s=LIMIT_S)
    if isinstance(found, Fault):
        raise failed(slug, found, service.credential)
    serving = _serving(catalog, slug)
    records = [_record(model, serving.get(model.id, [])) for model in found.models]
    return Answer(
        body=ProviderModels(data=records, total_count=len(records), truncated=found.truncated)
    )


def _serving(catalog: Catalog, slug: str) -> dict[str, list[CatalogEndpoint]]:
    """The provider's endpoints by what they are called there."""
    serving: dict[str, list[CatalogEndpoint]] = {}
    for model in catalog.models.values():
        for endpoint in model.endpoints:
            if endpoint.provider == slug:
                short = CatalogEndpoint(id=endpoint.id, model=model.id, tag=endpoint.tag)
                serving.setdefault(bare_id(endpoint.upstream_model), []).append(short)
    return serving


def _record(model: ListedModel, endpoints: list[CatalogEndpoint]) -> ProviderModelRecord:
    return ProviderModelRecord(
        id=model.id,
        name=model.name,
        context_length=model.context_length,
        max_completion_tokens=model.max_completion_tokens,
        owned_by=model.owned_by,
        created_at=iso_or_none(model.created_us),
        in_catalog=endpoints,
    )
