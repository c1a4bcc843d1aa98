"""`gwctl endpoint`: models served by providers; health, switching off and draining."""

from typing import Annotated, Any

from gwctl.catalog import ENDPOINTS, MODELS, cooling_until, endpoint_state, pricing_body
from gwctl.changes import act, create_record, patch_record
from gwctl.errors import usage
from gwctl.records import data, fetch, find
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
    opt,
    text_or_none,
)
from gwctl.verbs import add_delete, add_show, add_switches

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


add_show(endpoint, ENDPOINTS, "ep_6vR2abc")


@endpoint.verb(
    "add",
    "gwctl endpoint add acme/fast --provider acme --upstream-model fast-1",
    "gwctl endpoint add openai/gpt-5 --provider azure --tag azure/eu --upstream-model gpt-5",
    writes=True,
)
def add(
    session: Session,
    model: Annotated[str, arg("MODEL", "The model it serves.")],
    provider: Annotated[str, opt("--provider", "SLUG", "The provider that serves it.")],
    upstream_model: Annotated[
        str | None, opt("--upstream-model", "NAME", "The provider's own name of the model.")
    ] = None,
    tag: Annotated[str | None, opt("--tag", "TAG", "slug or slug/region.")] = None,
    base_url: Annotated[
        str | None, opt("--base-url", "URL", "Instead of the provider's own.")
    ] = None,
    weight: Annotated[
        str | None, opt("--weight", "N", "Share of the traffic, against its price.")
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
    """Add an endpoint; its prices are the model's unless given."""
    wanted: dict[str, Any] = {
        "model": model,
        "provider": provider,
        "upstream_model": upstream_model or model.partition("/")[2] or model,
        "tag": tag,
        "base_url": base_url,
        "weight": number("--weight", weight, "0.5"),
        "pricing": pricing_body({"prompt": prompt, "completion": completion}) or None,
        "supported_parameters": names(parameter),
        "flags": assignments(settings or []) or None,
        "accept": accept or None,
    }
    create_record(session, ENDPOINTS, body(wanted))


@endpoint.verb(
    "update",
    "gwctl endpoint update ep_6vR2abc --weight 0.5",
    "gwctl endpoint update openai/eu --prompt 1.25 --completion 10 --dry-run",
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
    accept: Annotated[bool, ACCEPT] = False,
) -> None:
    """Change an endpoint; of its prices those not named stay as they are."""
    before = find(session, ENDPOINTS, reference)
    prices = pricing_body({"prompt": prompt, "completion": completion})
    changes = {
        "upstream_model": upstream_model,
        "tag": tag,
        "base_url": text_or_none(base_url),
        "weight": number("--weight", weight, "0.5"),
        "context_length": integer("--context", context),
        "max_completion_tokens": integer("--max-output", max_output),
        "pricing": {**_pricing(session, before), **prices} if prices else None,
        "supported_parameters": names(parameter),
        "flags": merged(before.get("flags"), settings),
    }
    given = body(changes)
    if not given:
        raise usage("nothing to change was given", do="gwctl endpoint update --help")
    more = {"accept": True} if accept else {}
    patch_record(session, ENDPOINTS, before, {**given, **more}, unshown=("accept",))


def _pricing(session: Session, endpoint: Record) -> dict[str, Any]:
    """The prices that hold for it now: its own, else those of its model."""
    found = endpoint.get("pricing") or find(session, MODELS, str(endpoint["model"])).get("pricing")
    return dict(found or {})


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
    "health", "gwctl endpoint health", "gwctl endpoint health --json model,tag,status,reason"
)
def health(session: Session) -> None:
    """Show which endpoints are healthy, cooling down or failing."""
    rows = data(session.api.get("/operator/status"))["endpoints"]
    session.out.records(rows, _HEALTH, noun="endpoint")


add_delete(endpoint, ENDPOINTS, "ep_6vR2abc")
