"""The plan of a request: which targets, in which order, or why none. A value computed from values; no I/O.

The order of things is api.md 6.3: resolve names, filter endpoints, order them, choose credentials.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from math import ceil
from typing import Final, Literal

import msgspec

from gwd.catalog.snapshot import Catalog, Endpoint, Model
from gwd.core.clock import iso
from gwd.core.cost import Price
from gwd.core.errors import (
    ContextLengthExceeded,
    EndpointsThrottled,
    GatewayError,
    ModelNotAllowed,
    ModelNotFound,
    ModelRetired,
    NoAvailableEndpoint,
    NoEligibleEndpoints,
    UnsupportedParameter,
    WrongEndpoint,
)
from gwd.core.request import (
    Embed,
    FilePart,
    ImagePart,
    Part,
    Request,
    ToolResultPart,
    UrlSource,
    VendorFileSource,
)
from gwd.core.target import Credential, Target
from gwd.credentials.service import VendorKey
from gwd.keys.models import allows
from gwd.orgs.settings import OrganizationState
from gwd.pipeline.health import Health
from gwd.pricing import hold as holds
from gwd.pricing.hold import Demand

MAX_TARGETS: Final = 24
_SUFFIXES: Final[dict[str, "Sort"]] = {"nitro": "throughput", "floor": "price"}
_SOFT: Final = ("tools", "response_format", "verbosity")
_ESTIMATE_SLACK: Final = 0.9  # an estimate may be ten per cent too high
_SAME: Final = {
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "max_completion_tokens": ("max_tokens", "max_completion_tokens"),
    "reasoning": ("reasoning", "reasoning_effort", "include_reasoning"),
    "reasoning_effort": ("reasoning", "reasoning_effort"),
    "include_reasoning": ("reasoning", "include_reasoning"),
}
_URL_IMAGES: Final = frozenset(("openai_chat", "openai_responses", "anthropic_messages"))
_URL_FILES: Final = frozenset(("openai_responses", "anthropic_messages"))

Sort = Literal["price", "throughput", "latency"]


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A target in the order of the plan, with what its receipt says of the routing.

    `eligible` counts the endpoints of its model that could serve.
    """

    target: Target
    hold_nano: int
    rank: int
    forwarded_from: str | None
    strategy: str
    sort: Sort | None
    eligible: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Targets in the order they will be tried; never empty."""

    targets: tuple[Planned, ...]
    demand: Demand
    catalog_revision: int
    organization_revision: int


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no plan; `stage` places it among the checks: `model` before money, `endpoints` after it."""

    error: GatewayError
    stage: Literal["model", "endpoints"]
    catalog_revision: int
    organization_revision: int


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """All that a plan depends on besides the request."""

    catalog: Catalog
    vendor_keys: Mapping[str, tuple[VendorKey, ...]]
    organization: OrganizationState
    allowed_models: tuple[str, ...] | None
    health: Health
    now_us: int
    now_s: float
    rng: random.Random
    default_output_bound: int


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the request's model list, resolved."""

    name: str
    model: Model
    sort: Sort | None
    rank: int
    forwarded_from: str | None


class _Rejected(Exception):
    """A refusal found while resolving the request's models."""

    def __init__(self, error: GatewayError) -> None:
        super().__init__(error.message)
        self.error = error


class _Exclusions:
    """Why endpoints were left out, collected over all models."""

    def __init__(self) -> None:
        self.reasons: set[str] = set()
        self.unsupported: set[str] = set()
        self.context_length = 0
        self.unavailable = False
        self.retry_after_s: float | None = None
        self.cooling_for: set[str | None] = set()

    def cooling(self, wait_s: float, reason: str | None) -> None:
        self.unavailable = True
        self.cooling_for.add(reason)
        soonest = self.retry_after_s
        self.retry_after_s = wait_s if soonest is None else min(soonest, wait_s)


def plan(request: Request, situation: Situation) -> Plan | Refusal:
    """The plan of a request, or the refusal; both carry the revisions they were computed from."""
    revisions = {
        "catalog_revision": situation.catalog.revision,
        "organization_revision": situation.organization.revision,
    }
    try:
        wanted = _resolve(request, situation)
    except _Rejected as rejected:
        return Refusal(error=rejected.error, stage="model", **revisions)
    demand = holds.measure(request)
    needs = _needs(request)
    excluded = _Exclusions()
    planned: list[Planned] = []
    pools = [_candidates(entry, request, demand, needs, situation, excluded) for entry in wanted]
    if request.preferences.sort and request.preferences.partition == "none":
        planned = _one_pool(wanted, pools, request, demand, situation, excluded)
    else:
        for entry, endpoints in zip(wanted, pools, strict=True):
            planned += _targets(entry, endpoints, request, demand, situation, excluded)
    if not planned:
        return Refusal(error=_none_left(request, demand, excluded), stage="endpoints", **revisions)
    return Plan(targets=tuple(planned[:MAX_TARGETS]), demand=demand, **revisions)


def _resolve(request: Request, situation: Situation) -> list[_Wanted]:
    found: list[_Wanted] = []
    first_error: GatewayError | None = None
    for rank, name in enumerate(request.models):
        try:
            entry = _resolve_one(name, rank, request, situation)
        except _Rejected as rejected:
            # A retired fallback is skipped; whatever else is wrong with a name, the client must see.
            if (rank == 0 and len(request.models) == 1) or not isinstance(
                rejected.error, ModelRetired
            ):
                raise
            first_error = first_error or rejected.error
            continue
        if all(entry.model.id != other.model.id for other in found):
            found.append(entry)
    if not found:
        assert first_error is not None
        raise _Rejected(first_error)
    return found


def _resolve_one(name: str, rank: int, request: Request, situation: Situation) -> _Wanted:
    catalog, settings = situation.catalog, situation.organization.settings
    slug, _, suffix = name.partition(":")
    model = catalog.resolve(slug, situation.now_us)
    if model is None or (suffix and suffix not in _SUFFIXES):
        raise _Rejected(_not_found(name, catalog))
    forwarded_from = None
    if model.life.state(situation.now_us) == "retired":
        successor = catalog.successor(model, situation.now_us)
        if not settings.forward_retired_models or successor is None:
            raise _Rejected(_retired(model))
        forwarded_from, model = model.id, successor
    _check_allowed(model, situation)
    if model.is_embedding != isinstance(request.body, Embed):
        other = "/embeddings" if model.is_embedding else "/chat/completions"
        raise _Rejected(
            WrongEndpoint(
                f"model `{model.id}` does not work here; call {other} with it", param="model"
            )
        )
    _check_reasoning(name, model, request)
    return _Wanted(
        name=name,
        model=model,
        sort=_SUFFIXES.get(suffix),
        rank=rank,
        forwarded_from=forwarded_from,
    )


def _check_allowed(model: Model, situation: Situation) -> None:
    names = {*model.aliases}
    family = model.family_alias
    if family is not None and situation.catalog.resolve(family, situation.now_us) is model:
        names.add(family)
    for source, patterns in (
        ("key", situation.allowed_models),
        ("organization", situation.organization.settings.allowed_models),
    ):
        if not allows(patterns, model.id, names):
            raise _Rejected(
                ModelNotAllowed(
                    f"this {source} may not use model `{model.id}`; ask for it to be added to its allowed models",
                    param="model",
                    metadata={"allowed_models_source": source},
                )
            )


def _check_reasoning(name: str, model: Model, request: Request) -> None:
    if isinstance(request.body, Embed) or request.body.reasoning is None or name.startswith("~"):
        return
    reasoning = request.body.reasoning
    off = reasoning.enabled is False or reasoning.effort == "none"
    live = model.live_endpoints
    if off and live and all(e.flags.mandatory_reasoning for e in live):
        raise _Rejected(
            UnsupportedParameter(
                f"model `{model.id}` always reasons; ask for effort low instead of none",
                param="reasoning",
            )
        )


class _Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What the request's content asks of an endpoint."""

    images: bool
    image_urls: bool
    files: bool
    file_urls: bool
    vendor_files: bool
    json_schema: bool


def _needs(request: Request) -> _Needs:
    images = image_urls = files = file_urls = vendor_files = False
    for part in _all_parts(request):
        if isinstance(part, ImagePart):
            images = True
            image_urls = image_urls or isinstance(part.source, UrlSource)
        elif isinstance(part, FilePart):
            files = True
            file_urls = file_urls or isinstance(part.source, UrlSource)
        else:
            continue
        vendor_files = vendor_files or isinstance(part.source, VendorFileSource)
    output = None if isinstance(request.body, Embed) else request.body.output
    return _Needs(
        images=images,
        image_urls=image_urls,
        files=files,
        file_urls=file_urls,
        vendor_files=vendor_files,
        json_schema=output is not None and output.kind == "json_schema",
    )


def _all_parts(request: Request) -> Iterable[Part]:
    if isinstance(request.body, Embed):
        return
    for message in request.body.messages:
        for part in message.parts:
            yield part
            if isinstance(part, ToolResultPart):
                yield from part.parts


def _candidates(
    entry: _Wanted,
    request: Request,
    demand: Demand,
    needs: _Needs,
    situation: Situation,
    excluded: _Exclusions,
) -> list[Endpoint]:
    """The endpoints of a model that can take the request, credentials and health aside."""
    live = entry.model.live_endpoints
    if not live:
        excluded.unavailable = True
    fitting = []
    for endpoint in live:
        reason = _excluded_by(endpoint, entry.model, request, demand, needs, situation)
        if reason is None:
            fitting.append(endpoint)
            continue
        excluded.reasons.add(reason)
        if reason == "context_length":
            excluded.context_length = max(excluded.context_length, endpoint.context_length)
        if reason == "require_parameters":
            excluded.unsupported |= _unsupported(request, endpoint)
    for word in _SOFT:
        if word in request.sent_parameters:
            supporting = [e for e in fitting if word in e.supported_parameters]
            fitting = supporting or fitting
    return fitting


def _excluded_by(
    endpoint: Endpoint,
    model: Model,
    request: Request,
    demand: Demand,
    needs: _Needs,
    situation: Situation,
) -> str | None:
    preferences, settings = request.preferences, situation.organization.settings
    if endpoint.price_at(situation.now_us) is None:
        return "price"
    if settings.allowed_providers is not None and not _named(endpoint, settings.allowed_providers):
        return "allowed_providers"
    if preferences.only and not _named(endpoint, preferences.only):
        return "allowed_providers"
    if _named(endpoint, settings.ignored_providers) or _named(endpoint, preferences.ignore):
        return "ignored_providers"
    if not _carries(endpoint, model, request, needs):
        return "modality"
    if needs.json_schema and "structured_outputs" not in endpoint.supported_parameters:
        return "structured_outputs"
    if preferences.require_parameters and _unsupported(request, endpoint):
        return "require_parameters"
    if demand.generates:
        output = min(demand.output_cap or 1, endpoint.max_completion_tokens)
        if demand.prompt_estimate * _ESTIMATE_SLACK + output > endpoint.context_length:
            return "context_length"
    return None


def _carries(endpoint: Endpoint, model: Model, request: Request, needs: _Needs) -> bool:
    if needs.images and "image" not in model.input_modalities:
        return False
    if needs.files and "file" not in model.input_modalities:
        return False
    flags, adapter = endpoint.flags, endpoint.adapter
    urls = adapter in _URL_IMAGES if flags.takes_image_urls is None else flags.takes_image_urls
    if needs.image_urls and not urls:
        return False
    urls = adapter in _URL_FILES if flags.takes_file_urls is None else flags.takes_file_urls
    if needs.file_urls and not urls:
        return False
    return not needs.vendor_files or adapter == request.family


def _unsupported(request: Request, endpoint: Endpoint) -> set[str]:
    """Words the request uses that the endpoint lacks, under any of their equal names."""
    supported = endpoint.supported_parameters
    return {
        word
        for word in request.sent_parameters
        if not any(name in supported for name in _SAME.get(word, (word,)))
    }


def _named(endpoint: Endpoint, names: Sequence[str]) -> bool:
    return any(_matches(endpoint, name) for name in names)


def _matches(endpoint: Endpoint, name: str) -> bool:
    """A bare slug (or display name) names every endpoint of the provider, a full tag only that one."""
    wanted = name.lower()
    return wanted in (endpoint.tag, endpoint.provider, endpoint.provider_name.lower())


def _targets(
    entry: _Wanted,
    endpoints: list[Endpoint],
    request: Request,
    demand: Demand,
    situation: Situation,
    excluded: _Exclusions,
) -> list[Planned]:
    """The targets of one model in order."""
    usable = [(e, keys) for e in endpoints if (keys := _usable_keys(e, situation, excluded))]
    order = request.preferences.order
    sort = (
        request.preferences.sort
        or entry.sort
        or situation.organization.settings.default_provider_sort
    )
    ordered = _ordered([e for e, _ in usable], order, sort, situation)
    if not request.preferences.allow_fallbacks:
        listed = [e for e in ordered if _named(e, order)]
        ordered = listed if order else ordered[:1]
    keys_of = {e.id: keys for e, keys in usable}
    planned = [
        _planned(entry, endpoint, key, len(usable), bool(order), sort, demand, situation)
        for endpoint in ordered
        for key in keys_of[endpoint.id]
    ]
    if not request.preferences.allow_fallbacks and not order:
        return planned[:1]
    return planned


def _one_pool(
    wanted: list[_Wanted],
    pools: list[list[Endpoint]],
    request: Request,
    demand: Demand,
    situation: Situation,
    excluded: _Exclusions,
) -> list[Planned]:
    """`partition: none`: the endpoints of all models sorted together."""
    by_endpoint: dict[str, Planned] = {}
    planned: list[Planned] = []
    for entry, endpoints in zip(wanted, pools, strict=True):
        for each in _targets(entry, endpoints, request, demand, situation, excluded):
            planned.append(each)
            by_endpoint.setdefault(each.target.endpoint_id, each)
    everywhere = [e for pool in pools for e in pool if e.id in by_endpoint]
    position = {
        e.id: place
        for place, e in enumerate(
            _ordered(everywhere, request.preferences.order, request.preferences.sort, situation)
        )
    }
    return sorted(planned, key=lambda p: position[p.target.endpoint_id])


def _usable_keys(
    endpoint: Endpoint, situation: Situation, excluded: _Exclusions
) -> list[VendorKey]:
    """The platform's keys for an endpoint, the one whose prepaid credit ends soonest first (`expiry_first`)."""
    usable, all_keys = [], situation.vendor_keys.get(endpoint.provider, ())
    for key in all_keys:
        if key.secret is None or (
            key.expires_at_us is not None and key.expires_at_us <= situation.now_us
        ):
            continue
        wait_s = situation.health.cooling(endpoint.id, key.id, situation.now_s)
        if wait_s is None:
            usable.append(key)
        else:
            reason = situation.health.cooling_reason(endpoint.id, key.id)
            excluded.cooling(wait_s, reason)
    if not usable:
        excluded.unavailable = True
    if len(usable) > 1:
        usable.sort(key=lambda k: (k.expires_at_us is None, k.expires_at_us or 0, k.sort_order))
    return usable


def _ordered(
    endpoints: list[Endpoint], order: Sequence[str], sort: Sort | None, situation: Situation
) -> list[Endpoint]:
    if len(endpoints) < 2:
        return endpoints
    listed: list[Endpoint] = []
    for name in order:
        listed += [e for e in endpoints if e not in listed and _matches(e, name)]
    rest = [e for e in endpoints if e not in listed]
    if sort is not None:
        return listed + _sorted(rest, sort, situation)
    sick = [e for e in rest if situation.health.has_outage(e.id, situation.now_s)]
    healthy = [e for e in rest if e not in sick]
    return listed + _balanced(healthy, situation) + _sorted(sick, "price", situation)


def _sorted(endpoints: list[Endpoint], sort: Sort, situation: Situation) -> list[Endpoint]:
    health, now_s = situation.health, situation.now_s

    def key(endpoint: Endpoint) -> tuple[bool, float, int, float]:
        price = _mixed_price(endpoint, situation.now_us)
        measured: float | None = None
        if sort == "throughput":
            speed = health.median_throughput(endpoint.id, now_s)
            measured = None if speed is None else -speed
        elif sort == "latency":
            measured = health.median_ttft_s(endpoint.id, now_s)
        else:
            measured = 0.0
        return measured is None, measured or 0.0, price, -endpoint.weight

    return sorted(endpoints, key=key)


def _balanced(endpoints: list[Endpoint], situation: Situation) -> list[Endpoint]:
    """A weighted random pick (weight / price squared) first, the rest by price."""
    if len(endpoints) < 2:
        return endpoints
    weights = [e.weight / max(1, _mixed_price(e, situation.now_us)) ** 2 for e in endpoints]
    [first] = situation.rng.choices(endpoints, weights)
    return [first, *_sorted([e for e in endpoints if e is not first], "price", situation)]


def _mixed_price(endpoint: Endpoint, now_us: int) -> int:
    price = endpoint.price_at(now_us)
    assert price is not None
    return (3 * price.prompt_pico + price.completion_pico) // 4


def _planned(
    entry: _Wanted,
    endpoint: Endpoint,
    key: VendorKey,
    eligible: int,
    is_ordered: bool,  # noqa: FBT001 - the one fact of the request that the receipt's strategy shows
    sort: Sort | None,
    demand: Demand,
    situation: Situation,
) -> Planned:
    price = endpoint.price_at(situation.now_us)
    assert price is not None
    target = target_of(entry.model, endpoint, key, price)
    hold = holds.hold(demand, target, default_output_bound=situation.default_output_bound)
    return Planned(
        target=target,
        hold_nano=max(1, hold.amount_nano),
        rank=entry.rank,
        forwarded_from=entry.forwarded_from,
        strategy="ordered" if is_ordered else situation.organization.settings.routing_strategy,
        sort=sort,
        eligible=eligible,
    )


def target_of(model: Model, endpoint: Endpoint, key: VendorKey, price: Price) -> Target:
    assert key.secret is not None
    return Target(
        endpoint_id=endpoint.id,
        model=model.id,
        vendor=model.vendor,
        provider=endpoint.provider,
        provider_name=endpoint.provider_name,
        tag=endpoint.tag,
        adapter=endpoint.adapter,
        base_url=endpoint.base_url,
        headers=endpoint.headers,
        upstream_model=endpoint.upstream_model,
        context_length=endpoint.context_length,
        max_completion_tokens=endpoint.max_completion_tokens,
        default_max_tokens=model.default_max_tokens,
        supported_parameters=endpoint.supported_parameters,
        flags=endpoint.flags,
        price=price,
        credential=Credential(id=key.id, secret=key.secret),
    )


def _none_left(request: Request, demand: Demand, excluded: _Exclusions) -> GatewayError:
    if excluded.reasons == {"context_length"}:
        return ContextLengthExceeded(
            f"the request needs about {demand.prompt_estimate} prompt tokens"
            f" and {demand.output_cap or 1} for the answer;"
            f" the longest context of this model is {excluded.context_length}: shorten it or lower max_tokens",
            metadata={
                "context_length": excluded.context_length,
                "prompt_tokens_estimate": demand.prompt_estimate,
                "max_tokens": demand.output_cap,
            },
        )
    if excluded.reasons and not excluded.unavailable:
        metadata: dict[str, object] = {"excluded_by": sorted(excluded.reasons)}
        why = ", ".join(sorted(excluded.reasons))
        if excluded.unsupported:
            metadata["unsupported_parameters"] = sorted(excluded.unsupported)
            why += f" (unsupported: {', '.join(sorted(excluded.unsupported))})"
        return NoEligibleEndpoints(
            f"no endpoint of `{request.models[0]}` can take this request; left out by {why}",
            metadata=metadata,
        )
    wait_s = excluded.retry_after_s
    retry_after_s = None if wait_s is None else min(60, max(1, ceil(wait_s)))
    left_out: dict[str, object] | None = None
    if excluded.reasons:
        left_out = {"excluded_by": sorted(excluded.reasons)}
    if excluded.cooling_for == {"rate_limited"}:
        # Spec 7: every eligible endpoint throttled is a 429, also when none had to be asked again to know it.
        return EndpointsThrottled(
            f"every endpoint of `{request.models[0]}` is throttled; wait and try again",
            retry_after_s=retry_after_s,
            metadata=left_out,
        )
    return NoAvailableEndpoint(
        f"no endpoint of `{request.models[0]}` is available now; try again later or name another model",
        retry_after_s=retry_after_s,
        metadata=left_out,
    )


def _not_found(name: str, catalog: Catalog) -> ModelNotFound:
    known = [*catalog.models, *catalog.aliases]
    suggestions = get_close_matches(name, known, 3, 0.5)
    if not suggestions and "/" not in name:
        suggestions = [slug for slug in known if slug.split("/")[-1] == name][:3]
    hint = f"; did you mean {', '.join(suggestions)}?" if suggestions else "; GET /models lists all"
    return ModelNotFound(
        f"no model `{name[:100]}`{hint}",
        param="model",
        metadata={"requested_model": name[:100], "suggestions": suggestions},
    )


def _retired(model: Model) -> ModelRetired:
    assert model.life.retired_at_us is not None
    successor = model.life.successor
    return ModelRetired(
        f"model `{model.id}` is retired; use `{successor}`",
        param="model",
        metadata={"retired_at": iso(model.life.retired_at_us), "successor": successor},
    )
