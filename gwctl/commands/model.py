"""`gwctl model`: the catalog's models, their prices and their lifecycle."""

from typing import Annotated, Any

from gwctl import text, time_input
from gwctl.catalog import MODELS, pricing_body
from gwctl.changes import create_record, report, update_record
from gwctl.commands.price import model_price
from gwctl.errors import usage
from gwctl.records import data, existing, fetch, find
from gwctl.session import Session
from gwctl.tables import Column, Record, of
from gwctl.tree import Noun
from gwctl.values import (
    ACCEPT,
    arg,
    body,
    expiry,
    flag,
    integer,
    names,
    opt,
    past_or_none,
    text_or_none,
    whole,
)
from gwctl.verbs import add_delete, add_show

model = Noun("model", "The catalog: models, prices, lifecycle.")
NOUNS = [model]

model.group(model_price)

_ID = arg("MODEL", "Model id, vendor/model.")


@model.verb(
    "list",
    "gwctl model list --search gpt",
    "gwctl model list --all --json id,pricing.prompt",
    lists=True,
)
def list_models(
    session: Session,
    search: Annotated[str | None, opt("--search", "TEXT", "Only ids that hold this text.")] = None,
) -> None:
    """List models; without a management key the public list, which leaves out retired ones."""
    if not session.settings.secret("key"):
        query = {"output_modalities": "all", "q": search, "limit": 1000}
        rows = session.anonymous.get("/models", query)["data"]
        total: int | None = len(rows)
    elif search:
        rows, _ = fetch(session, MODELS.path, everything=True)
        rows = [row for row in rows if search.lower() in str(row["id"]).lower()]
        total = len(rows)
    else:
        rows, total = fetch(
            session, MODELS.path, limit=session.limit, everything=session.everything
        )
    shown = rows if session.everything else rows[: session.limit]
    session.out.records(shown, MODELS.columns, total=total, noun="model")


add_show(model, MODELS, "openai/gpt-5")


@model.verb(
    "add",
    "gwctl model add acme/fast --name 'Acme Fast' --context 32000 --prompt 0.5 --completion 2",
    "gwctl model add acme/embed --context 8192 --prompt 0.02 --output embeddings",
    writes=True,
)
def add(
    session: Session,
    model_id: Annotated[str, _ID],
    context: Annotated[int, whole("--context", "TOKENS", "Context length.")],
    name: Annotated[str | None, opt("--name", "NAME", "Display name.")] = None,
    vendor: Annotated[str | None, opt("--vendor", "NAME", "Vendor's display name.")] = None,
    max_output: Annotated[
        int | None, whole("--max-output", "TOKENS", "Most output tokens; 0 for embeddings.")
    ] = None,
    family: Annotated[
        str | None, opt("--family", "NAME", "Makes the alias ~vendor/NAME-latest.")
    ] = None,
    parameter: Annotated[
        list[str] | None, opt("--parameter", "NAME", "Supported parameter; repeatable.")
    ] = None,
    inputs: Annotated[
        list[str] | None, opt("--input", "KIND", "Input: text, image, file; repeatable.")
    ] = None,
    outputs: Annotated[
        list[str] | None, opt("--output", "KIND", "Output: text or embeddings; repeatable.")
    ] = None,
    prompt: Annotated[str | None, opt("--prompt", "USD", "Price of a million inputs.")] = None,
    completion: Annotated[
        str | None, opt("--completion", "USD", "Price of a million outputs.")
    ] = None,
    if_absent: Annotated[bool, flag("--if-absent", "Accept one that exists.")] = False,
    accept: Annotated[bool, ACCEPT] = False,
) -> None:
    """Add a model; more prices with `gwctl model price set`."""
    if if_absent and (record := existing(session, MODELS, model_id)) is not None:
        report(session, record, f"model {model_id} exists")
        return
    slug = model_id.partition("/")[0]
    embeds = outputs is not None and "embeddings" in outputs
    default_output = 0 if embeds else min(context, 8192)
    create_record(
        session,
        MODELS,
        body(
            {
                "id": model_id,
                "name": name or model_id,
                "vendor": vendor or slug.capitalize(),
                "family": family,
                "context_length": context,
                "max_completion_tokens": default_output if max_output is None else max_output,
                "supported_parameters": names(parameter)
                or ([] if embeds else ["max_tokens", "temperature", "top_p", "stop"]),
                "input_modalities": names(inputs) or ["text"],
                "output_modalities": names(outputs) or ["text"],
                "pricing": pricing_body({"prompt": prompt, "completion": completion}) or None,
                "accept": accept or None,
            }
        ),
    )


@model.verb(
    "update",
    "gwctl model update acme/fast --context 64000",
    "gwctl model update acme/fast --parameter tools --parameter temperature",
    writes=True,
)
def update(
    session: Session,
    model_id: Annotated[str, _ID],
    name: Annotated[str | None, opt("--name", "NAME", "Display name.")] = None,
    context: Annotated[int | None, whole("--context", "TOKENS", "Context length.")] = None,
    max_output: Annotated[
        int | None, whole("--max-output", "TOKENS", "Most output tokens.")
    ] = None,
    family: Annotated[
        str | None, opt("--family", "NAME", "Family of the latest alias; none: no family.")
    ] = None,
    parameter: Annotated[
        list[str] | None, opt("--parameter", "NAME", "Supported parameters, all of them.")
    ] = None,
    inputs: Annotated[list[str] | None, opt("--input", "KIND", "Input kinds, all of them.")] = None,
    outputs: Annotated[
        list[str] | None, opt("--output", "KIND", "Output kinds, all of them.")
    ] = None,
    vendor: Annotated[str | None, opt("--vendor", "NAME", "Vendor's display name.")] = None,
    description: Annotated[
        str | None, opt("--description", "TEXT", "What it is good for; none clears it.")
    ] = None,
    default_output: Annotated[
        str | None, opt("--default-output", "TOKENS", "Output cap of requests without one.")
    ] = None,
    moderated: Annotated[
        bool | None, flag("--moderated/--not-moderated", "Whether its vendor moderates prompts.")
    ] = None,
    released: Annotated[
        str | None, opt("--released", "TIME", "When its vendor released it; none clears it.")
    ] = None,
) -> None:
    """Change a model; prices and lifecycle have commands of their own."""
    changes = {
        "name": name,
        "context_length": context,
        "max_completion_tokens": max_output,
        "family": text_or_none(family),
        "supported_parameters": names(parameter),
        "input_modalities": names(inputs),
        "output_modalities": names(outputs),
        "vendor": vendor,
        "description": text_or_none(description),
        "default_max_tokens": integer("--default-output", default_output),
        "is_moderated": moderated,
        "released_at": past_or_none(released),
    }
    update_record(session, MODELS, model_id, body(changes))


@model.verb(
    "alias",
    "gwctl model alias openai/gpt-5 default",
    "gwctl model alias openai/gpt-5 default --remove",
    writes=True,
)
def alias(
    session: Session,
    model_id: Annotated[str, _ID],
    name: Annotated[str, arg("ALIAS", "Another name clients may send.")],
    remove: Annotated[bool, flag("--remove", "Take the alias away.")] = False,
) -> None:
    """Give a model another name, or take one away."""
    aliases = list(find(session, MODELS, model_id).get("aliases") or [])
    wanted = [one for one in aliases if one != name] + ([] if remove else [name])
    update_record(session, MODELS, model_id, {"aliases": wanted})


@model.verb(
    "deprecate",
    "gwctl model deprecate openai/gpt-4 --successor openai/gpt-5 --retire 90d",
    "gwctl model deprecate openai/gpt-4 --successor openai/gpt-5 --at 2026-12-01",
    writes=True,
)
def deprecate(
    session: Session,
    model_id: Annotated[str, _ID],
    successor: Annotated[str, opt("--successor", "MODEL", "The model to use instead.")],
    at: Annotated[str, opt("--at", "TIME", "From when on; now otherwise.")] = "now",
    retire: Annotated[str | None, opt("--retire", "TIME", "When it is retired.")] = None,
) -> None:
    """Announce the end of a model: it keeps serving, with warnings, until it is retired."""
    changes = {
        "deprecated_at": expiry(at),
        "retired_at": expiry(retire),
        "successor": successor,
    }
    update_record(session, MODELS, model_id, body(changes))


@model.verb(
    "retire",
    "gwctl model retire openai/gpt-4 --successor openai/gpt-5",
    "gwctl model retire openai/gpt-4 --at 2026-12-31",
    writes=True,
)
def retire(
    session: Session,
    model_id: Annotated[str, _ID],
    successor: Annotated[
        str | None, opt("--successor", "MODEL", "The model to use instead; kept if it has one.")
    ] = None,
    at: Annotated[str, opt("--at", "TIME", "When; now otherwise.")] = "now",
) -> None:
    """Retire a model: requests go to its successor, or fail where forwarding is off."""
    record = find(session, MODELS, model_id)
    if successor is None and not record.get("successor"):
        raise usage(f"{model_id} has no successor", do="add --successor MODEL")
    moment = expiry(at)
    changes = {"retired_at": moment, "successor": successor}
    ends, begins = text.parse_time(moment), text.parse_time(record.get("deprecated_at"))
    if ends is not None and (begins is None or begins >= ends):
        # The API wants a deprecation before every retirement.
        changes["deprecated_at"] = time_input.iso(ends - time_input.span("1s"))
    update_record(session, MODELS, model_id, body(changes))


@model.verb(
    "undo-retire",
    "gwctl model undo-retire openai/gpt-4",
    "gwctl model undo-retire openai/gpt-4 --active",
    writes=True,
)
def undo_retire(
    session: Session,
    model_id: Annotated[str, _ID],
    active: Annotated[bool, flag("--active", "Take the deprecation back too.")] = False,
) -> None:
    """Take a retirement back; the model is deprecated again, or active with --active."""
    changes: dict[str, Any] = {"retired_at": None}
    if active:
        changes |= {"deprecated_at": None, "successor": None}
    update_record(session, MODELS, model_id, changes)


def _then(row: Record) -> str:
    """What follows for requests: where they go, or what they cost."""
    if row.get("kind") == "price_change":
        old, new = row.get("old") or {}, row.get("new") or {}
        return ", ".join(
            f"{name} {_plain(old.get(name))} -> {_plain(value)}"
            for name, value in new.items()
            if value != old.get(name)
        )
    if row.get("kind") == "deprecation":
        return f"successor {row.get('successor')}"
    target = row.get("forwards_to")
    return f"forwarded to {target}" if target else "fails with 404"


def _plain(value: Any) -> str:
    return "-" if value is None else f"${value}"


def _warning(row: Record) -> str:
    shut_out = [
        str(key["name"]) for key in row.get("keys") or () if key.get("may_use_successor") is False
    ]
    if row.get("kind") != "retirement" or not shut_out or not row.get("forwards_to"):
        return ""
    return f"may not use {row['forwards_to']}: {', '.join(shut_out)}"


_COMING = of(
    "ComingEvent",
    Column("WHEN", "at"),
    Column("WHAT", "kind"),
    Column("MODEL", "model", name=True),
    Column("THEN", _then),
    Column("KEYS", lambda row: ", ".join(str(key["name"]) for key in row.get("keys") or ())),
    Column("REQUESTS", "requests_last_30d", leaves=1),
    Column("SPEND 30D", "spend_last_30d", leaves=1),
    Column("", _warning, "note"),
)


@model.verb(
    "lifecycle",
    "gwctl model lifecycle",
    "gwctl model lifecycle --json at,kind,model,keys",
    lists=True,
)
def coming(
    session: Session,
    only: Annotated[str | None, opt("--model", "MODEL", "Only this model.")] = None,
) -> None:
    """Show what is coming: deprecations, retirements and prices, with your keys that it meets.

    Usage is that of the last 30 days. A key that may not use the successor will get 403 from the
    retirement on: gwctl key update --model.
    """
    rows = data(session.api.get("/catalog/lifecycle"))
    rows = [row for row in rows if only is None or row.get("model") == only]
    shown = rows if session.everything else rows[: session.limit]
    session.out.records(shown, _COMING, total=len(rows), noun="event")


add_delete(model, MODELS, "acme/fast")
