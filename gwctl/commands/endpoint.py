"""`gwctl endpoint`: models served by providers; health, switching off and draining."""

from decimal import Decimal
from typing import Annotated, Any

from gwctl import time_input
from gwctl.all_or_none import Step, all_or_none
from gwctl.catalog import (
    ENDPOINTS,
    MODELS,
    cooling_until,
    endpoint_state,
    price_at,
    pricing_body,
)
from gwctl.changes import act, create_record, patch_record
from gwctl.client import quote
from gwctl.errors import CommandError, not_found, usage
from gwctl.records import address, data, fetch, find, same
from gwctl.session import Session
from gwctl.tables import Column, Record, of
from gwctl.tree import Noun
from gwctl.values import (
    ACCEPT,
    arg,
    assignments,
    body,
    integer,
    merged,
    names,
    number,
    of_each,
    opt,
    text_or_none,
)
from gwctl.verbs import add_delete, add_switches

endpoint = Noun("endpoint", "Models served by providers: health, draining.")
NOUNS = [endpoint]

_HEALTH = of(
    "EndpointHealthRecord",
    Column("MODEL", "model"),
    Column("TAG", lambda row: row.get("tag") or row.get("provider"), name=True),
    Column("STATE", endpoint_state, "state"),
    Column("COOLING DOWN UNTIL", cooling_until, "time"),
    Column("REASON", "reason"),
    Column("ATTEMPTS", "attempts"),
    Column("FAILED", "failures"),
    Column("FIRST TOKEN", "p50_ttft_ms"),
    Column("TOKENS/S", "p50_tokens_per_second"),
)


@endpoint.verb(
    "list",
    "gwctl endpoint list --model openai/gpt-5",
    "gwctl endpoint list --provider openai --json id,model,status",
    lists=True,
)
def list_endpoints(
    session: Session,
    model: Annotated[str | None, opt("--model", "MODEL", "Only endpoints of this model.")] = None,
    provider: Annotated[str | None, opt("--provider", "SLUG", "Only of this provider.")] = None,
) -> None:
    """List endpoints."""
    query = {"model": model, "provider": provider}
    rows, total = fetch(
        session, ENDPOINTS.path, query, limit=session.limit, everything=session.everything
    )
    session.out.records(rows, ENDPOINTS.columns, total=total, noun="endpoint")


@endpoint.verb("show", "gwctl endpoint show ep_6vR2abc", "gwctl endpoint show ep_6vR2abc --json")
def show(session: Session, reference: Annotated[str, arg("NAME", "endpoint name or id.")]) -> None:
    """Show one endpoint with all its fields, and to an operator how it stands."""
    record = find(session, ENDPOINTS, reference)
    session.out.record(record, ENDPOINTS.record)
    if session.out.shape.machine or session.out.shape.quiet:
        return
    try:
        stands = data(session.api.get(f"{address(ENDPOINTS, record)}/health"))
    except CommandError:
        return  # an operator's key sees it
    state = endpoint_state(stands).replace("_", " ")
    circuit = str(stands.get("circuit")).replace("_", " ")
    session.out.note(
        f"{state}, its circuit is {circuit}, {stands.get('in_flight')} requests are there now;"
        f" gwctl endpoint health {record['id']} shows its last errors"
    )


@endpoint.verb(
    "add",
    "gwctl endpoint add acme/fast --provider acme --upstream-model fast-1",
    "gwctl endpoint add openai/gpt-5 --provider azure --tag azure/eu --upstream-model gpt-5",
    "gwctl endpoint add acme/fast --provider a --provider b --weight a=3 --weight b=1",
    writes=True,
)
def add(
    session: Session,
    model: Annotated[str, arg("MODEL", "The model it serves.")],
    provider: Annotated[
        list[str], opt("--provider", "SLUG", "The provider that serves it; repeatable.")
    ],
    upstream_model: Annotated[
        list[str] | None,
        opt(
            "--upstream-model",
            "NAME",
            "The provider's own name of the model; of several SLUG=NAME.",
        ),
    ] = None,
    tag: Annotated[str | None, opt("--tag", "TAG", "slug or slug/region.")] = None,
    base_url: Annotated[
        str | None, opt("--base-url", "URL", "Instead of the provider's own.")
    ] = None,
    weight: Annotated[
        list[str] | None,
        opt("--weight", "N", "Share of the traffic, against its price; of several SLUG=N."),
    ] = None,
    prompt: Annotated[str | None, opt("--prompt", "USD", "Price of a million inputs.")] = None,
    completion: Annotated[
        str | None, opt("--completion", "USD", "Price of a million outputs.")
    ] = None,
    parameter: Annotated[
        list[str] | None, opt("--parameter", "NAME", "Supported parameter; repeatable.")
    ] = None,
    settings: Annotated[
        list[str] | None, opt("--flag", "NAME=VALUE", "Endpoint flag; repeatable.")
    ] = None,
    accept: Annotated[bool, ACCEPT] = False,
) -> None:
    """Add an endpoint; its prices are the model's unless given.

    With several providers, one endpoint at each: all of them, or after a refusal none.
    """
    if len(provider) > 1 and (tag or base_url):
        option = "--tag" if tag else "--base-url"
        raise usage(f"{option} is of one endpoint", do="add the endpoints one by one")
    own_names = of_each(provider, "--upstream-model", upstream_model)
    weights = of_each(provider, "--weight", weight)
    wanted = [
        body(
            {
                "model": model,
                "provider": slug,
                "upstream_model": own_names.get(slug) or model.partition("/")[2] or model,
                "tag": tag,
                "base_url": base_url,
                "weight": number("--weight", weights.get(slug), "0.5"),
                "pricing": pricing_body({"prompt": prompt, "completion": completion}) or None,
                "supported_parameters": names(parameter),
                "flags": assignments(settings or []) or None,
                "accept": accept or None,
            }
        )
        for slug in provider
    ]
    if len(wanted) == 1:
        create_record(session, ENDPOINTS, wanted[0])
        return
    steps = [
        Step("POST", ENDPOINTS.path, each, f"{model} at {each['provider']}") for each in wanted
    ]
    all_or_none(session, steps, done="added")


@endpoint.verb(
    "weights",
    "gwctl endpoint weights openai/gpt-5",
    "gwctl endpoint weights openai/gpt-5 openai=3 azure=1",
    writes=True,
)
def weights(
    session: Session,
    model: Annotated[str, arg("MODEL", "The model whose endpoints share the traffic.")],
    shares: Annotated[
        list[str] | None,
        arg("TAG=N", "Endpoint by its tag or id, and its weight; none: show them."),
    ] = None,
) -> None:
    """Show or change the weights of a model's endpoints: all that are named, or after a refusal none."""
    find(session, MODELS, model)
    rows, _ = fetch(session, ENDPOINTS.path, {"model": model}, everything=True)
    if not shares:
        session.out.records(rows, ENDPOINTS.columns, noun="endpoint")
        return
    named = [_named(rows, model, *_share(text)) for text in shares]
    ids = [record["id"] for record, _ in named]
    if len(set(ids)) != len(ids):
        raise usage("an endpoint is named twice", do="give each one weight; nothing was changed")
    steps = [
        Step(
            "PATCH",
            address(ENDPOINTS, record),
            {"weight": weight},
            f"{record['tag']}  weight {record['weight']} -> {weight}",
            before={"weight": record["weight"]},
        )
        for record, weight in named
        if not same(record["weight"], weight)
    ]
    if not steps:
        session.out.note("the weights are already so; nothing was changed")
    all_or_none(session, steps, done="changed")


def _share(text: str) -> tuple[str, Decimal]:
    """`azure=1` as a tag or id and a weight."""
    name, _, value = text.rpartition("=")
    weight = number("weight", value, "3") if name else None
    if weight is None:
        raise usage(f"{text!r} names no endpoint and weight", do="for example openai=3 azure=1")
    return name, weight


def _named(rows: list[Record], model: str, name: str, weight: Decimal) -> tuple[Record, Decimal]:
    """The endpoint of the model that a tag or an id names, and its weight."""
    found = [row for row in rows if name in (row.get("tag"), row.get("id"))]
    if not found:
        tags = ", ".join(str(row.get("tag")) for row in rows)
        do = f"one of: {tags}" if tags else f"gwctl endpoint add {model} --provider {name}"
        raise not_found("endpoint", f"{name} of {model}", do=do)
    return found[0], weight


@endpoint.verb(
    "update",
    "gwctl endpoint update ep_6vR2abc --weight 0.5",
    "gwctl endpoint update openai/eu --prompt 1.25 --completion 10 --dry-run",
    "gwctl endpoint update openai/eu --completion 8 --effective 2027-01-01",
    writes=True,
)
def update(
    session: Session,
    reference: Annotated[str, arg("ENDPOINT", "Endpoint id or tag.")],
    upstream_model: Annotated[
        str | None, opt("--upstream-model", "NAME", "The provider's own name of the model.")
    ] = None,
    tag: Annotated[str | None, opt("--tag", "TAG", "slug or slug/region.")] = None,
    base_url: Annotated[
        str | None, opt("--base-url", "URL", "Its own address; none: the provider's.")
    ] = None,
    weight: Annotated[
        str | None, opt("--weight", "N", "Share of the traffic, against its price.")
    ] = None,
    context: Annotated[
        str | None, opt("--context", "TOKENS", "Context length; none: the model's.")
    ] = None,
    max_output: Annotated[
        str | None, opt("--max-output", "TOKENS", "Most output tokens; none: the model's.")
    ] = None,
    prompt: Annotated[str | None, opt("--prompt", "USD", "Price of a million inputs.")] = None,
    completion: Annotated[
        str | None, opt("--completion", "USD", "Price of a million outputs.")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        opt("--parameter", "NAME", "Supported parameters, all of them; none: the model's."),
    ] = None,
    settings: Annotated[
        list[str] | None, opt("--flag", "NAME=VALUE", "Flag; none removes it; repeatable.")
    ] = None,
    effective: Annotated[
        str | None, opt("--effective", "TIME", "From when on the prices hold; now otherwise.")
    ] = None,
    accept: Annotated[bool, ACCEPT] = False,
) -> None:
    """Change an endpoint; of its prices those not named stay as they are."""
    before = find(session, ENDPOINTS, reference)
    prices = pricing_body({"prompt": prompt, "completion": completion})
    if effective is not None and not prices:
        raise usage("--effective is of a price", do="add --prompt or --completion")
    at = None if effective is None else time_input.future(effective)
    changes = {
        "upstream_model": upstream_model,
        "tag": tag,
        "base_url": text_or_none(base_url),
        "weight": number("--weight", weight, "0.5"),
        "context_length": integer("--context", context),
        "max_completion_tokens": integer("--max-output", max_output),
        "pricing": {**_pricing(session, before, at), **prices} if prices else None,
        "effective_at": at,
        "supported_parameters": names(parameter),
        "flags": merged(before.get("flags"), settings),
    }
    given = body(changes)
    if not given:
        raise usage("nothing to change was given", do="gwctl endpoint update --help")
    more = {"accept": True} if accept else {}
    patch_record(session, ENDPOINTS, before, {**given, **more}, unshown=("accept",))


def _pricing(session: Session, endpoint: Record, at: str | None) -> dict[str, Any]:
    """The prices that hold for it now, or will then: its own, else those of its model."""
    if at is None and endpoint.get("pricing"):
        return dict(endpoint["pricing"])
    if at is not None and (own := price_at(endpoint, at)):
        return own
    model = find(session, MODELS, str(endpoint["model"]))
    return dict(model.get("pricing") or {}) if at is None else price_at(model, at)


add_switches(endpoint, ENDPOINTS, "ep_6vR2abc", on={"disabled": False}, off={"disabled": True})


@endpoint.verb(
    "drain",
    "gwctl endpoint drain ep_6vR2abc",
    "gwctl endpoint drain openai/eu --dry-run",
    writes=True,
)
def drain(
    session: Session, reference: Annotated[str, arg("ENDPOINT", "Endpoint id or tag.")]
) -> None:
    """Send no new requests to an endpoint; those in flight end by themselves."""
    act(session, ENDPOINTS, reference, "drain", done="takes no new requests")


@endpoint.verb(
    "health",
    "gwctl endpoint health",
    "gwctl endpoint health openai/gpt-5",
    "gwctl endpoint health ep_6vR2abc --json last_errors",
)
def health(
    session: Session,
    reference: Annotated[
        str | None, arg("NAME", "An endpoint's id or tag, or a model; all without it.")
    ] = None,
) -> None:
    """Show which endpoints are healthy, cooling down or failing; of one, why, with its last errors."""
    if reference is not None and reference.startswith("ep_"):
        _show_health(session, reference)
        return
    rows = data(session.api.get("/operator/status"))["endpoints"]
    of_model = [row for row in rows if reference in (None, row.get("model"))]
    if of_model or reference is None:
        session.out.records(of_model, _HEALTH, noun="endpoint")
    else:
        _show_health(session, str(find(session, ENDPOINTS, reference)["id"]))


def _show_health(session: Session, endpoint_id: str) -> None:
    record = data(session.api.get(f"{ENDPOINTS.path}/{quote(endpoint_id)}/health"))
    session.out.record(record, "EndpointCircuitRecord")


add_delete(endpoint, ENDPOINTS, "ep_6vR2abc")
