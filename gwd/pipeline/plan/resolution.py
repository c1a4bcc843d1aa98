"""From the names in a request to models of the catalog: suffixes, aliases, lifecycle, allow-lists."""

from typing import Final

import msgspec

from gwd.catalog import names
from gwd.catalog.snapshot import Catalog, Model
from gwd.core.clock import iso
from gwd.core.errors import (
    GatewayError,
    ModelNotAllowed,
    ModelNotFound,
    ModelRetired,
    UnsupportedParameter,
    WrongEndpoint,
)
from gwd.core.request import (
    Embed,
    Request,
)
from gwd.pipeline.plan.plan_input import PlanInput, Sort
from gwd.pipeline.plan.policy import unknown_provider
from gwd.pipeline.plan.trace import Trace

_SUFFIXES: Final[dict[str, "Sort"]] = {"nitro": "throughput", "floor": "price"}


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the request's model list, resolved."""

    name: str
    model: Model
    sort: Sort | None
    rank: int
    forwarded_from: str | None


class Rejected(Exception):
    """A refusal found while resolving the request's models. `is_final` where no other model makes it good."""

    def __init__(self, error: GatewayError, *, is_final: bool = True) -> None:
        super().__init__(error.message)
        self.error = error
        self.is_final = is_final


def resolve(
    request: Request, plan_input: PlanInput, trace: Trace | None = None
) -> tuple[list[Candidate], tuple[str, ...]]:
    """The models of the request's names, and the names that lead to none now: those are passed over.

    Such are names with a suffix that nobody knows, and aliases of families without an active member. The refusal of the
    first is raised where nothing else is left, that of a name that is no model's at once.
    """
    preferences = request.preferences
    if preferences.order or preferences.only or preferences.ignore:
        stranger = unknown_provider(preferences, plan_input.catalog)
        if stranger is not None:
            raise Rejected(stranger)
    found: list[Candidate] = []
    unknown: list[str] = []
    first_error: GatewayError | None = None
    for rank, name in enumerate(request.models):
        try:
            candidate = _resolve_one(name, rank, request, plan_input)
        except Rejected as rejected:
            if trace is not None:
                trace.refused[name] = rejected.error
            # What leads to no model now, or to a retired one, is skipped; whatever else is wrong, the client must see.
            if rejected.is_final:
                raise
            if isinstance(rejected.error, ModelNotFound):
                unknown.append(name)
            first_error = first_error or rejected.error
            continue
        if trace is not None:
            trace.resolved[name] = candidate
        if all(candidate.model.id != other.model.id for other in found):
            found.append(candidate)
    if trace is not None:
        trace.begin(found)
    if not found:
        assert first_error is not None
        raise Rejected(first_error)
    return found, tuple(unknown)


def _resolve_one(name: str, rank: int, request: Request, plan_input: PlanInput) -> Candidate:
    catalog, settings = plan_input.catalog, plan_input.organization.settings
    slug, _, suffix = name.partition(":")
    model = catalog.resolve(slug, plan_input.now_us)
    if model is None and slug not in catalog.families:
        raise Rejected(
            names.unknown_model(slug, known_names(catalog), "models")
            if rank
            else not_found(name, catalog)
        )
    if model is None or (suffix and suffix not in _SUFFIXES):
        error = not_found(name, catalog, param="models" if rank else "model")
        raise Rejected(error, is_final=False)
    forwarded_from = None
    if model.life.state(plan_input.now_us) == "retired":
        successor = catalog.successor(model, plan_input.now_us)
        if not settings.forward_retired_models or successor is None:
            raise Rejected(_retired(model), is_final=False)
        forwarded_from, model = model.id, successor
    refusal = not_allowed(model, plan_input)
    if refusal is not None:
        raise Rejected(refusal)
    if model.is_embedding != isinstance(request.body, Embed):
        other = "/embeddings" if model.is_embedding else "/chat/completions"
        raise Rejected(
            WrongEndpoint(
                f"model `{model.id}` does not work here; call {other} with it", param="model"
            )
        )
    _check_reasoning(name, model, request)
    return Candidate(
        name=name,
        model=model,
        sort=_SUFFIXES.get(suffix),
        rank=rank,
        forwarded_from=forwarded_from,
    )


def not_allowed(model: Model, plan_input: PlanInput) -> ModelNotAllowed | None:
    """The refusal where the key or its organization may not use the model."""
    if not plan_input.policies:
        return None
    aliases = plan_input.catalog.names_of(model, plan_input.now_us)
    for policy in plan_input.policies:
        if not policy.allows_model(model.id, aliases):
            return ModelNotAllowed(
                f"this {policy.source} may not use model `{model.id}`; ask for it to be added to its allowed models",
                param="model",
                metadata={"allowed_models_source": policy.source},
            )
    return None


def _check_reasoning(name: str, model: Model, request: Request) -> None:
    if isinstance(request.body, Embed) or request.body.reasoning is None or name.startswith("~"):
        return
    reasoning = request.body.reasoning
    off = reasoning.enabled is False or reasoning.effort == "none"
    live = model.live_endpoints
    if off and live and all(e.flags.mandatory_reasoning for e in live):
        raise Rejected(
            UnsupportedParameter(
                f"model `{model.id}` always reasons; ask for effort low instead of none",
                param="reasoning",
            )
        )


def not_found(name: str, catalog: Catalog, *, param: str = "model") -> ModelNotFound:
    """The 404 of a name, with the nearest known ones."""
    suggestions = names.nearest(name, known_names(catalog))
    hint = f"; did you mean {', '.join(suggestions)}?" if suggestions else "; GET /models lists all"
    return ModelNotFound(
        f"no model `{name[:100]}`{hint}",
        param=param,
        metadata={"requested_model": name[:100], "suggestions": suggestions},
    )


def known_names(catalog: Catalog) -> set[str]:
    """All that a model can be called."""
    return {*catalog.models, *catalog.aliases, *catalog.families}


def _retired(model: Model) -> ModelRetired:
    assert model.life.retired_at_us is not None
    successor = model.life.successor
    return ModelRetired(
        f"model `{model.id}` is retired; use `{successor}`",
        param="model",
        metadata={"retired_at": iso(model.life.retired_at_us), "successor": successor},
    )
