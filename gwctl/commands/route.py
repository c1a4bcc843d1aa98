"""`gwctl route explain`: which endpoints would serve a model, in which order, and who not."""

from decimal import Decimal
from typing import Annotated, Any

from gwctl import text
from gwctl.client import quote
from gwctl.errors import NOT_ALLOWED, NOT_FOUND, CommandError, usage
from gwctl.records import data
from gwctl.session import Session
from gwctl.tables import Column, Record
from gwctl.tree import Noun
from gwctl.values import arg, flag, one_of, opt, whole

route = Noun("route", "Which endpoints would serve a model.")
NOUNS = [route]

_SORTS = ("price", "throughput", "latency")
_NEVER_TRIED = {
    "disabled": "disabled",
    "no_price": "no complete price",
    "no_credential": "no usable credential",
}
_COLUMNS = (
    Column("", "rank"),
    Column("ENDPOINT", "tag", name=True),
    Column("IN", "pricing.prompt", "price"),
    Column("OUT", "pricing.completion", "price"),
    Column("STATE", "state", "state"),
    Column("P50", "p50", "ms"),
    Column("", "why", "note"),
)


@route.verb(
    "explain",
    "gwctl route explain openai/gpt-5:floor --tools --max-tokens 2000",
    "gwctl route explain openai/gpt-5 --json tag,eligible,why",
)
def explain(
    session: Session,
    model: Annotated[str, arg("MODEL", "Model or alias, with or without :floor or :nitro.")],
    tools: Annotated[bool, flag("--tools", "The request uses tools.")] = False,
    schema: Annotated[bool, flag("--schema", "It asks for a JSON schema.")] = False,
    reasoning: Annotated[bool, flag("--reasoning", "It asks for reasoning.")] = False,
    prompt_tokens: Annotated[
        int, whole("--prompt-tokens", "N", "Size of the prompt; 650 otherwise.")
    ] = 650,
    max_tokens: Annotated[int | None, whole("--max-tokens", "N", "Most output tokens.")] = None,
    sort: Annotated[
        str | None, opt("--sort", "BY", "price, throughput or latency, as provider.sort.")
    ] = None,
) -> None:
    """Explain from the live catalog who would be tried, in which order, and who is left out."""
    name, _, suffix = model.partition(":")
    suffixes = {"": None, "floor": "price", "nitro": "throughput"}
    if suffix not in suffixes:
        raise usage(f"the suffix :{suffix} is not known", do=":floor or :nitro")
    by = one_of("--sort", sort, _SORTS) or suffixes[suffix]
    gateway = session.api if session.settings.secret("key") else session.anonymous
    record = data(gateway.get(f"/models/{quote(name)}"))
    found = data(gateway.get(f"/models/{quote(str(record['id']))}/endpoints"))
    live = _standing(session, str(record["id"]))
    needs = {"tools": tools, "structured_outputs": schema, "reasoning": reasoning}
    rows = [
        _judged(
            {**endpoint, "live": live.get(endpoint.get("tag"), {})},
            {n for n, wanted in needs.items() if wanted},
            prompt_tokens,
            max_tokens,
        )
        for endpoint in found["endpoints"]
    ]
    rows.sort(key=lambda row: (not row["eligible"], *_order(row, by)))
    eligible = [row for row in rows if row["eligible"]]
    for place, row in enumerate(eligible, start=1):
        row["rank"] = str(place)
    if eligible and by:
        eligible[0]["why"] = "would be tried first"
    if not session.out.shape.machine:
        order = f"sort {by}" if by else "weighted by price"
        found_here = f"{text.counted(len(rows), 'endpoint')}, {len(eligible)} eligible"
        session.out.note(f"{record['id']}   {order}   {found_here}")
    session.out.records(rows, _COLUMNS, noun="endpoint")
    if eligible and not session.out.shape.machine:
        session.out.note(_hold(eligible, prompt_tokens, max_tokens))


def _standing(session: Session, model: str) -> dict[str, Record]:
    """How each endpoint of the model stands now, by tag, as far as the key may see it."""
    if not session.settings.secret("key"):
        return {}
    try:
        rows = data(session.api.get("/operator/status")).get("endpoints")
    except CommandError as error:
        if error.exit_code not in (NOT_ALLOWED, NOT_FOUND):
            raise
        session.out.note("note: an operator's key also shows which endpoints lack a credential")
        return {}
    return {str(row["tag"]): row for row in rows or () if row.get("model") == model}


def _judged(
    endpoint: dict[str, Any], needs: set[str], prompt_tokens: int, max_tokens: int | None
) -> dict[str, Any]:
    """The endpoint with whether this request could go there, and why not."""
    reasons = [
        f"no `{name}`" for name in sorted(needs - set(endpoint.get("supported_parameters") or []))
    ]
    context = endpoint.get("context_length")
    if context is not None and prompt_tokens + (max_tokens or 0) > context:
        reasons.append(f"context {context:,}")
    live = endpoint.pop("live")
    state = str(live.get("status") or _state(endpoint))
    if state in _NEVER_TRIED:
        reasons.append(str(live.get("reason") or _NEVER_TRIED[state]))
    rests = live.get("rests") or []
    if state == "cooling_down" and rests and all(rest.get("tried") is False for rest in rests):
        reasons.append(f"closed after {live.get('reason')}")
    return {
        **endpoint,
        "tag": endpoint.get("tag") or endpoint.get("provider_name"),
        "rank": "-",
        "state": state,
        "p50": live.get("p50_ttft_ms", endpoint.get("p50_ttft_ms")),
        "speed": live.get("p50_tokens_per_second"),
        "eligible": not reasons,
        "why": f"left out: {', '.join(reasons)}" if reasons else "",
    }


def _state(endpoint: Record) -> str:
    """The status word of the API, or its number: 0 and above means live."""
    status = endpoint.get("status")
    if isinstance(status, str):
        return status
    return "healthy" if status is None or status >= 0 else "disabled"


def _price(row: Record) -> Decimal:
    """The mix the gateway sorts by: three inputs to one output."""
    pricing = row.get("pricing") or {}
    prompt, completion = (
        text.decimal(pricing.get(name)) or Decimal(0) for name in ("prompt", "completion")
    )
    return (3 * prompt + completion) / 4


def _order(row: Record, by: str | None) -> tuple[Any, ...]:
    rests = row["state"] == "cooling_down"  # whatever the sort, what rests comes last
    if by == "latency":
        return (rests, row.get("p50") is None, row.get("p50") or 0, _price(row))
    if by == "throughput":
        speed = text.decimal(row.get("speed"))
        return (rests, speed is None, -(speed or 0), _price(row))
    return (rests, _price(row))


def _hold(eligible: list[dict[str, Any]], prompt_tokens: int, max_tokens: int | None) -> str:
    """What is held while such a request runs: the dearest endpoint of the plan counts."""
    outputs = [
        max_tokens or min(row.get("max_completion_tokens") or 32_768, 32_768) for row in eligible
    ]
    holds = [
        prompt_tokens * _rate(row, "prompt", "input_cache_write")
        + output * _rate(row, "completion")
        + _rate(row, "request")
        for row, output in zip(eligible, outputs, strict=True)
    ]
    return (
        f"hold for this request: about {text.money(max(holds))}"
        f" ({prompt_tokens:,} tokens in, {max(outputs):,} out)"
    )


def _rate(row: Record, *names: str) -> Decimal:
    pricing = row.get("pricing") or {}
    return max(text.decimal(pricing.get(name)) or Decimal(0) for name in names)
