"""GET /models and its kin: one record that satisfies the clients of every dialect."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

import msgspec
from msgspec import UNSET

from gwd.api.auth import CREDENTIALS
from gwd.api.model_record import (
    AliasTarget,
    Architecture,
    CodexModel,
    ModelAnswer,
    ModelEndpoints,
    ModelLinks,
    ModelList,
    ModelReasoning,
    PageLinks,
    PublicEndpoint,
    PublicModel,
    ReasoningLevel,
    TopProvider,
    TruncationPolicy,
)
from gwd.api.node import Node
from gwd.api.query import Query, Text, Whole
from gwd.api.shapes import One
from gwd.catalog.prices import pricing_record
from gwd.catalog.snapshot import Catalog, Endpoint, Model
from gwd.core.clock import US_PER_S, iso, iso_or_none
from gwd.core.cost import Price
from gwd.core.errors import InvalidValue, ModelNotFound, Unauthenticated
from gwd.core.request import EFFORTS
from gwd.health.record import can_serve
from gwd.orgs.policy import Policy

MAX_LIMIT: Final = 1_000
RECORD_BYTES: Final = 1_500
"""What a record of the list is about."""

_TRUNCATION: Final = TruncationPolicy(mode="tokens", limit=10_000)
QUERY: Final = (
    Query(
        "output_modalities",
        Text(),
        "Only models that put out one of these, with commas; or `all`.",
        "text",
    ),
    Query("supported_parameters", Text(), "Only models that take all of these, with commas."),
    Query("q", Text(), "Only models with this in their id or name."),
    Query("limit", Whole(), f"How many to list; at most {MAX_LIMIT}, and at least one.", MAX_LIMIT),
    Query("offset", Whole(), "How many to leave out at the head of the list."),
    Query(
        "client_version",
        Text(),
        "With any value the list is there in the form that Codex reads, too.",
    ),
)
"""The parameters that the list looks at; others are ignored, because clients send their own."""

_REASONING: Final = frozenset(("reasoning", "reasoning_effort", "include_reasoning"))


async def list_models(
    node: Node, query: dict[str, str], headers: Mapping[str, str], address: str
) -> bytes:
    """The list; retired models are left out, aliases are rows of their own.

    Anybody may read it. A caller's inference key narrows it to what the key may use, where its organization says so.
    """
    catalog = await node.state.catalog()
    now_us = node.clock.now_us()
    may_use = await limits(node, headers, address)
    size = RECORD_BYTES * (len(catalog.models) + len(catalog.aliases) + len(catalog.families))
    return await node.line.offload.run(size, _list, catalog, may_use, query, node, now_us)


def _list(
    catalog: Catalog,
    may_use: tuple[Policy, ...],
    query: dict[str, str],
    node: Node,
    now_us: int,
) -> bytes:
    found = [each for each in records(catalog, may_use, node, now_us) if _wanted(each, query)]
    total = len(found)
    limit, offset = _page(query)
    page = found[offset : offset + limit]
    is_codex = "client_version" in query
    return msgspec.json.encode(
        ModelList(
            object="list",
            data=page,
            has_more=offset + len(page) < total,
            first_id=page[0].id if page else None,
            last_id=page[-1].id if page else None,
            total_count=total,
            links=PageLinks(next=None),
            models=[_codex_record(record, place) for place, record in enumerate(page)]
            if is_codex
            else UNSET,
        )
    )


def records(
    catalog: Catalog, may_use: tuple[Policy, ...], node: Node, now_us: int
) -> list[PublicModel]:
    """Models that are not retired, and behind them aliases, as far as the caller may use them."""
    of_models = {
        model.id: model_record(model, catalog, node, now_us)
        for model in catalog.models.values()
        if model.life.state(now_us) != "retired"
    }
    listed = [*of_models.values(), *_alias_records(catalog, of_models, now_us)]
    return [record for record in listed if _is_allowed(record, catalog, may_use, now_us)]


async def get_model(node: Node, raw_name: str) -> bytes:
    """One model by slug, alias or family alias; `…/endpoints` lists what serves it. Retired ones answer too."""
    name = unquote(raw_name).strip("/")
    catalog = await node.state.catalog()
    now_us = node.clock.now_us()
    wants_endpoints = name.endswith("/endpoints")
    model = found_model(catalog, name.removesuffix("/endpoints").partition(":")[0], now_us)
    record = model_record(model, catalog, node, now_us)
    if wants_endpoints:
        return msgspec.json.encode(One(data=_endpoints_record(model, record, node, now_us)))
    return msgspec.json.encode(
        ModelAnswer(
            data=record,
            id=record.id,
            object=record.object,
            created=record.created,
            owned_by=record.owned_by,
            type=record.type,
            display_name=record.display_name,
            created_at=record.created_at,
        )
    )


def found_model(catalog: Catalog, name: str, now_us: int) -> Model:
    """The model of a slug or alias. Raises ModelNotFound."""
    model = catalog.resolve(name, now_us)
    if model is None:
        raise ModelNotFound(
            f"no model `{name[:100]}`; GET /models lists all",
            param="model",
            metadata={"requested_model": name[:100], "suggestions": []},
        )
    return model


async def limits(node: Node, headers: Mapping[str, str], address: str) -> tuple[Policy, ...]:
    """The policies that narrow the list for this caller; none without a valid key."""
    if not any(name in headers for name in CREDENTIALS):
        return ()
    try:
        row = await node.authenticator.find(headers, address)
    except Unauthenticated:
        return ()  # the list is public: an unknown or expired key reads it like no key
    plan_input = await node.state.plan_input(row.caller.organization_id, row.policy)
    settings = plan_input.organization.settings
    if row.caller.kind != "inference" or not settings.is_filtered_model_catalog_enabled:
        return ()
    return plan_input.policies


def _is_allowed(
    record: PublicModel, catalog: Catalog, may_use: tuple[Policy, ...], now_us: int
) -> bool:
    """Whether the caller may use the model, and a provider that serves it."""
    if not may_use:
        return True
    model = catalog.models[record.canonical_slug]
    names = catalog.names_of(model, now_us)
    if not all(policy.allows_model(model.id, names) for policy in may_use):
        return False
    return not model.endpoints or any(
        all(
            policy.leaves_out(endpoint.names, trains=endpoint.flags.trains_on_inputs) is None
            for policy in may_use
        )
        for endpoint in model.endpoints
    )


def model_record(model: Model, catalog: Catalog, node: Node, now_us: int) -> PublicModel:
    """The record, of its cheapest endpoint where there is one, with what other clients' models need beside it."""
    live = _priced(model.live_endpoints, now_us)
    best = min(live, key=lambda pair: pair[1].prompt_pico + pair[1].completion_pico, default=None)
    endpoint = best[0] if best else None
    parameters = sorted({word for e, _ in live for word in e.supported_parameters})
    created_us = model.released_at_us or model.created_at_us
    output = endpoint.max_completion_tokens if endpoint else model.max_completion_tokens
    context = endpoint.context_length if endpoint else model.context_length
    modality = f"{'+'.join(model.input_modalities)}->"
    modality += "embedding" if model.is_embedding else "+".join(model.output_modalities)
    parameters = parameters or list(model.supported_parameters)
    return PublicModel(
        id=model.id,
        object="model",
        type="model",
        name=model.name,
        display_name=model.name,
        canonical_slug=model.id,
        description=model.description or "",
        created=created_us // US_PER_S,
        created_at=iso(created_us),
        owned_by=model.vendor,
        context_length=context,
        max_input_tokens=context,
        max_tokens=output,
        architecture=Architecture(
            modality=modality,
            input_modalities=model.input_modalities,
            output_modalities=model.output_modalities,
            tokenizer="Other",
            instruct_type=None,
        ),
        pricing=pricing_record(best[1] if best else _listed_price(model, now_us)),
        top_provider=TopProvider(
            context_length=context,
            max_completion_tokens=output,
            is_moderated=model.is_moderated,
        ),
        supported_parameters=parameters,
        endpoints_available=_available(model, node, now_us),
        per_request_limits=None,
        default_parameters=None,
        supported_voices=None,
        links=ModelLinks(details=f"{node.base_url}/models/{model.id}/endpoints"),
        expiration_date=_day(model.life.retired_at_us),
        lifecycle=model.life.state(now_us),
        deprecated_at=iso_or_none(model.life.deprecated_at_us),
        retired_at=iso_or_none(model.life.retired_at_us),
        successor=model.life.successor,
        latest_alias=catalog.family_alias_of(model, now_us),
        reasoning=_reasoning(model.live_endpoints)
        if not _REASONING.isdisjoint(parameters)
        else UNSET,
    )


def _available(model: Model, node: Node, now_us: int) -> int:
    """How many endpoints a request could be sent to now."""
    keys, health, now_s = node.state.vendor_keys, node.state.health, node.clock.monotonic_s()
    return sum(
        can_serve(endpoint, keys.get(endpoint.provider, ()), health, now_us=now_us, now_s=now_s)
        for endpoint in model.endpoints
    )


def _alias_records(
    catalog: Catalog, of_models: Mapping[str, PublicModel], now_us: int
) -> Iterator[PublicModel]:
    for name in (*catalog.aliases, *catalog.families):
        model = catalog.resolve(name, now_us)
        if model is not None and model.id in of_models:
            target = AliasTarget(slug=model.id, name=model.name)
            yield msgspec.structs.replace(of_models[model.id], id=name, alias_target=target)


def _endpoints_record(model: Model, record: PublicModel, node: Node, now_us: int) -> ModelEndpoints:
    return ModelEndpoints(
        id=record.id,
        name=record.name,
        created=record.created,
        description=record.description,
        architecture=record.architecture,
        endpoints=[_endpoint_record(e, model, node, now_us) for e in model.endpoints],
    )


def _endpoint_record(endpoint: Endpoint, model: Model, node: Node, now_us: int) -> PublicEndpoint:
    price = endpoint.price_at(now_us)
    return PublicEndpoint(
        name=f"{endpoint.provider_name} | {model.id}",
        provider_name=endpoint.provider_name,
        tag=endpoint.tag,
        context_length=endpoint.context_length,
        max_completion_tokens=endpoint.max_completion_tokens,
        pricing=pricing_record(price),
        quantization=None,
        status=0 if endpoint.is_live and price is not None else -1,
        uptime_last_30m=None,
        supported_parameters=sorted(endpoint.supported_parameters),
        is_healthy=not node.state.health.has_outage(endpoint.id, node.clock.monotonic_s()),
        trains_on_inputs=endpoint.flags.trains_on_inputs,
    )


def _codex_record(record: PublicModel, place: int) -> CodexModel:
    efforts = record.reasoning.supported_efforts if record.reasoning else []
    return CodexModel(
        slug=record.id,
        display_name=record.name,
        supported_reasoning_levels=[
            ReasoningLevel(effort=effort, description=f"{effort} reasoning") for effort in efforts
        ],
        shell_type="shell_command",
        visibility="list",
        supported_in_api=True,
        priority=place,
        truncation_policy=_TRUNCATION,
        experimental_supported_tools=(),
        support_verbosity="verbosity" in record.supported_parameters,
        base_instructions="",
        context_window=record.context_length,
        input_modalities=tuple(m for m in record.architecture.input_modalities if m != "file"),
    )


def _reasoning(endpoints: Iterable[Endpoint]) -> ModelReasoning:
    flags = [endpoint.flags for endpoint in endpoints]
    efforts = {e for f in flags for e in f.supported_efforts or EFFORTS[1:6]}
    forms = {f.thinking_form for f in flags}
    return ModelReasoning(
        mandatory=bool(flags) and all(f.mandatory_reasoning for f in flags),
        supported_efforts=[effort for effort in EFFORTS if effort in efforts],
        default_effort=None,
        supports_max_tokens=bool(forms & {"budget", "both"}),
    )


def _priced(endpoints: Iterable[Endpoint], now_us: int) -> list[tuple[Endpoint, Price]]:
    return [(e, price) for e in endpoints if (price := e.price_at(now_us)) is not None]


def _listed_price(model: Model, now_us: int) -> Price | None:
    priced = _priced(model.endpoints, now_us)
    return priced[0][1] if priced else None


def _wanted(record: PublicModel, query: dict[str, str]) -> bool:
    wanted = query.get("output_modalities", "text")
    outputs = record.architecture.output_modalities
    if wanted != "all" and not set(wanted.split(",")) & set(outputs):
        return False
    parameters = query.get("supported_parameters")
    if parameters and not set(parameters.split(",")) <= set(record.supported_parameters):
        return False
    text = query.get("q", "").lower()
    return text in record.id.lower() or text in record.name.lower()


def _page(query: dict[str, str]) -> tuple[int, int]:
    numbers = []
    for name, default in (("limit", MAX_LIMIT), ("offset", 0)):
        text = query.get(name, str(default))
        if not (text.isascii() and text.isdigit()):
            raise InvalidValue(f"`{name}` must be a whole number", param=name)
        numbers.append(int(text))
    return min(max(1, numbers[0]), MAX_LIMIT), numbers[1]


def _day(at_us: int | None) -> str | None:
    return None if at_us is None else iso(at_us)[:10]
