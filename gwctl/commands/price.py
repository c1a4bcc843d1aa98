"""`gwctl model price`: what a model costs, now, from a date on, and before."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from gwctl import text as text_of
from gwctl import time_input
from gwctl.catalog import MODELS, PRICES, price_at, pricing_body
from gwctl.changes import patch_record
from gwctl.errors import usage
from gwctl.records import data, find, same
from gwctl.session import Session
from gwctl.tables import Column, of
from gwctl.tree import Noun
from gwctl.values import ACCEPT, arg, number, opt

model_price = Noun("price", "Prices of a model, per million tokens.")

_ID = arg("MODEL", "Model id, vendor/model.")
_COLUMNS = (
    Column("PRICE", "what", name=True),
    Column("PER MILLION", "value", "price"),
    Column("EACH", "each", "each"),
    Column("FACTOR", "factor"),
)
_HISTORY = of(
    "PriceRecord",
    Column("FROM", "effective_at"),
    Column("IN", "pricing.prompt"),
    Column("OUT", "pricing.completion"),
    Column("CACHE READ", "pricing.input_cache_read"),
    Column("CACHE WRITE", "pricing.input_cache_write"),
    Column("ID", "id", leaves=1),
)


@model_price.verb(
    "show", "gwctl model price show openai/gpt-5", "gwctl model price show openai/gpt-5 --json"
)
def show(session: Session, model_id: Annotated[str, _ID]) -> None:
    """Show the prices in force."""
    pricing = find(session, MODELS, model_id).get("pricing") or {}
    if session.out.shape.machine:
        session.out.record(pricing, "Pricing")
        return
    texts = {field: what for _, field, what in PRICES}
    rows = [
        {"what": texts.get(name, name), "value": value}
        if name in texts
        else {"what": f"one {name.replace('_', ' ')}", "each": value}
        for name, value in pricing.items()
        if name != "price_modifiers"
    ]
    rows += [
        {"what": f"all tokens with {field} {value}", "factor": factor}
        for field, factors in (pricing.get("price_modifiers") or {}).items()
        for value, factor in factors.items()
    ]
    session.out.records(rows, _COLUMNS, noun="price")


@model_price.verb(
    "set",
    "gwctl model price set openai/gpt-5 --prompt 1.25 --completion 10",
    "gwctl model price set openai/gpt-5 --prompt 1 --effective 2026-12-01 --dry-run",
    "gwctl model price set openai/gpt-5 --web-search 0.01 --factor service_tier.flex=0.5",
    writes=True,
)
def set_(
    session: Session,
    model_id: Annotated[str, _ID],
    prompt: Annotated[str | None, opt("--prompt", "USD", "A million inputs.")] = None,
    completion: Annotated[str | None, opt("--completion", "USD", "A million outputs.")] = None,
    cache_read: Annotated[
        str | None, opt("--cache-read", "USD", "A million inputs read from the cache.")
    ] = None,
    cache_write: Annotated[
        str | None, opt("--cache-write", "USD", "A million inputs written to it, 5 minutes.")
    ] = None,
    cache_write_1h: Annotated[
        str | None, opt("--cache-write-1h", "USD", "The same for one hour.")
    ] = None,
    reasoning: Annotated[
        str | None, opt("--reasoning", "USD", "A million reasoning tokens.")
    ] = None,
    request: Annotated[str | None, opt("--request", "USD", "Each request.")] = None,
    image: Annotated[str | None, opt("--image", "USD", "Each input image.")] = None,
    web_search: Annotated[
        str | None, opt("--web-search", "USD", "Each search that the vendor runs.")
    ] = None,
    factor: Annotated[
        list[str] | None,
        opt(
            "--factor",
            "FIELD.VALUE=N",
            "All tokens at N times their price when that is asked for; none takes it away; repeatable.",
        ),
    ] = None,
    effective: Annotated[
        str | None, opt("--effective", "TIME", "From when on; now otherwise.")
    ] = None,
    accept: Annotated[bool, ACCEPT] = False,
) -> None:
    """Set prices per million tokens; those not named stay as they are."""
    given = pricing_body(
        {
            "prompt": prompt,
            "completion": completion,
            "input_cache_read": cache_read,
            "input_cache_write": cache_write,
            "input_cache_write_1h": cache_write_1h,
            "internal_reasoning": reasoning,
            "request": request,
            "image": image,
            "web_search": web_search,
        }
    )
    if not given and not factor:
        raise usage("no price was given", do="gwctl model price set --help")
    model = find(session, MODELS, model_id)
    at = None if effective is None else time_input.future(effective)
    before = (model.get("pricing") or {}) if at is None else price_at(model, at)
    if factor:
        given["price_modifiers"] = _with_factors(before.get("price_modifiers") or {}, factor)
    changes: dict[str, Any] = {"pricing": {**before, **given}}
    if at is not None and not same(before, changes["pricing"], price=True):
        changes["effective_at"] = at
    if accept:
        changes["accept"] = True
    patch_record(session, MODELS, {**model, "pricing": before}, changes, unshown=("accept",))
    if session.dry_run and session.found_changes and not session.out.shape.machine:
        _tell_effect(session, str(model["id"]), changes)


def _tell_effect(session: Session, model: str, changes: Mapping[str, Any]) -> None:
    """What the price would do to the last 30 days, and whether it would be taken without --accept."""
    thought = {"model": model, **{name: changes[name] for name in changes if name != "accept"}}
    for found in data(session.api.post("/catalog/prices/effect", thought)):
        effect = found["last_30d"]
        session.out.line(
            f"  the tokens of {text_of.counted(effect['requests'], 'request')} in 30 days:"
            f" {text_of.money(effect['at_old'])} -> {text_of.money(effect['at_new'])}"
        )
        if found["needs_acceptance"] and "accept" not in changes:
            session.out.line(f"  wants --accept: {'; '.join(found['reasons'])}")


def _with_factors(before: Mapping[str, Any], given: Sequence[str]) -> dict[str, dict[str, str]]:
    """The factors as they will be: those not named stay."""
    factors = {field: dict(values) for field, values in before.items()}
    for text in given:
        name, equals, factor = text.partition("=")
        field, dot, value = name.strip().partition(".")
        if not (equals and dot and field and value):
            raise usage(
                f"--factor {text!r} names no field and value",
                do="for example service_tier.flex=0.5",
            )
        if factor.strip().lower() == "none":
            factors.get(field, {}).pop(value, None)
        else:
            times = number(f"--factor {name}", factor.strip(), "1.1")
            assert times is not None
            factors.setdefault(field, {})[value] = text_of.plain(times)
    return {field: values for field, values in factors.items() if values}


@model_price.verb(
    "history",
    "gwctl model price history openai/gpt-5",
    "gwctl model price history openai/gpt-5 --json effective_at,pricing",
)
def history(session: Session, model_id: Annotated[str, _ID]) -> None:
    """List the prices of a model, past and announced."""
    versions = find(session, MODELS, model_id).get("prices") or []
    rows = sorted(versions, key=lambda row: str(row.get("effective_at")), reverse=True)
    session.out.records(rows, _HISTORY, noun="price")
