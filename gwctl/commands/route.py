"""`gwctl route explain` and `route estimate`: what would become of a request, and what it would cost."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from gwctl import jsontext, text
from gwctl.errors import REMEDIES, CommandError, from_error, usage
from gwctl.files import read_standard_input, read_text
from gwctl.keys import KEYS
from gwctl.records import data, find
from gwctl.session import Session
from gwctl.tables import Column, Record
from gwctl.tree import Noun
from gwctl.values import arg, body, flag, one_of, opt, whole

route = Noun("route", "What would become of a request, and what it would cost.")
NOUNS = [route]

_PROMPT_TOKENS = 650
_SORTS = ("price", "throughput", "latency")
_DIALECTS = (
    "chat_completions",
    "messages",
    "responses",
    "gemini",
    "completions",
    "embeddings",
)
_NO_MODEL = ("model_not_found", "model_retired")
_TOOL = {
    "type": "function",
    "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}},
}
_SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "schema": {"type": "object", "properties": {}}},
}
_TARGETS = (
    Column("", "rank"),
    Column("MODEL", "model", leaves=1),
    Column("ENDPOINT", "tag", name=True),
    Column("IN", "pricing.prompt", "price"),
    Column("OUT", "pricing.completion", "price"),
    Column("STATE", "state", "state"),
    Column("P50", "p50_ttft_ms", "ms"),
    Column("HOLD", "hold", "money"),
    Column("", "why", "note"),
)
_COSTS = (
    Column("", "which"),
    Column("MODEL", "model", leaves=1),
    Column("ENDPOINT", "tag", name=True),
    Column("TOKENS OUT", "output"),
    Column("FROM", "least.total", "money"),
    Column("TO", "most.total", "money"),
    Column("HOLD", "hold", "money"),
)

_Model = Annotated[
    str | None, arg("MODEL", "Model or alias, with or without :floor or :nitro; or -f.")
]
_File = Annotated[
    Path | None, opt("--file", "FILE", "A request's body as JSON; - reads standard input.", "-f")
]
_Dialect = Annotated[
    str | None,
    opt(
        "--dialect",
        "NAME",
        f"What the file is written in: {', '.join(_DIALECTS)}; the first otherwise.",
    ),
]
_Key = Annotated[str | None, opt("--key", "KEY", "The inference key that would ask.")]
_Tools = Annotated[bool, flag("--tools", "The request uses tools.")]
_Schema = Annotated[bool, flag("--schema", "It asks for a JSON schema.")]
_Reasoning = Annotated[bool, flag("--reasoning", "It asks for reasoning.")]
_Prompt = Annotated[
    int | None, whole("--prompt-tokens", "N", "About the size of the prompt; 650 otherwise.")
]
_Most = Annotated[int | None, whole("--max-tokens", "N", "Most output tokens.")]
_Sort = Annotated[
    str | None, opt("--sort", "BY", "price, throughput or latency, as provider.sort.")
]


@route.verb(
    "explain",
    "gwctl route explain openai/gpt-5:floor --tools --max-tokens 2000",
    "gwctl route explain -f request.json --key ci --json serves,refusals",
)
def explain(
    session: Session,
    model: _Model = None,
    file: _File = None,
    dialect: _Dialect = None,
    key: _Key = None,
    tools: _Tools = False,
    schema: _Schema = False,
    reasoning: _Reasoning = False,
    prompt_tokens: _Prompt = None,
    max_tokens: _Most = None,
    sort: _Sort = None,
) -> None:
    """Explain who would be tried, in which order, who is left out, and what would refuse the request.

    The gateway plans it as a request that it serves; nothing is sent, held or recorded. With -f the request is that of
    the file, otherwise one is made up of the options.
    """
    question = _question(
        session,
        model,
        file,
        dialect,
        key,
        _wanted(tools, schema, reasoning, prompt_tokens, max_tokens, sort),
    )
    told = _ask(session, "/route/explain", question)
    if session.out.shape.machine:
        session.out.data(told)
        return
    rows = [*map(_target, told["targets"]), *map(_left_out, told["left_out"])]
    session.out.note(_summary(told))
    session.out.records(rows, _columns(_TARGETS, rows), noun="endpoint")
    session.out.flush()
    for note in (*_hold(told), *_credentials(told), *_budgets(told), *_refusals(told)):
        session.out.note(note)


@route.verb(
    "estimate",
    "gwctl route estimate openai/gpt-5 --prompt-tokens 20000 --max-tokens 1000",
    "gwctl route estimate -f request.json --jq .first.most.total",
)
def estimate(
    session: Session,
    model: _Model = None,
    file: _File = None,
    dialect: _Dialect = None,
    key: _Key = None,
    tools: _Tools = False,
    schema: _Schema = False,
    reasoning: _Reasoning = False,
    prompt_tokens: _Prompt = None,
    max_tokens: _Most = None,
    sort: _Sort = None,
) -> None:
    """Estimate how many tokens a request has and what it would cost, from and to, without sending it.

    For the endpoint that would be tried first, and for the dearest of the plan.
    """
    question = _question(
        session,
        model,
        file,
        dialect,
        key,
        _wanted(tools, schema, reasoning, prompt_tokens, max_tokens, sort),
    )
    told = _ask(session, "/estimate", question)
    if session.out.shape.machine:
        session.out.data(told)
        return
    prompt = told["prompt"]
    session.out.note(f"prompt     about {prompt['estimate']:,} tokens, at most {prompt['bound']:,}")
    rows = [
        {
            **told[which],
            "which": which,
            "name": told[which]["tag"],
            "output": f"{told[which]['output_from']:,} to {told[which]['output_to']:,}",
        }
        for which in ("first", "dearest")
        if told[which] is not None
    ]
    session.out.records(rows, _columns(_COSTS, rows), noun="endpoint")
    session.out.flush()
    for slug in told["without_price"]:
        session.out.note(f"no price   {slug}: gwctl model price set {slug}")
    for note in _refusals(told):
        session.out.note(note)


# the question


def _wanted(
    tools: bool,
    schema: bool,
    reasoning: bool,
    prompt_tokens: int | None,
    max_tokens: int | None,
    sort: str | None,
) -> dict[str, Any]:
    """The fields of a made-up request that the options ask for."""
    by = one_of("--sort", sort, _SORTS)
    return body(
        {
            "tools": [_TOOL] if tools else None,
            "response_format": _SCHEMA if schema else None,
            "reasoning": {"effort": "medium"} if reasoning else None,
            "prompt": prompt_tokens,
            "max_tokens": max_tokens,
            "provider": {"sort": by} if by else None,
        }
    )


def _question(
    session: Session,
    model: str | None,
    file: Path | None,
    dialect: str | None,
    key: str | None,
    wanted: dict[str, Any],
) -> dict[str, Any]:
    """What is sent: the request of the file, or one that is made up."""
    if (model is None) == (file is None):
        raise usage(
            "give a model or a file, one of them",
            do="gwctl route explain MODEL, or gwctl route explain -f request.json",
        )
    if file is not None and wanted:
        raise usage(
            "the file holds the whole request, so options that make one up do not go with it",
            do="leave them out, or change the file",
        )
    if file is None and dialect is not None:
        raise usage("--dialect says what a file is written in", do="give the file with -f")
    asks_as = {} if key is None else {"key_id": find(session, KEYS, key)["id"]}
    if file is not None:
        read_as = one_of("--dialect", dialect, _DIALECTS) or _DIALECTS[0]
        return {"request": _read(file), "dialect": read_as, **asks_as}
    assert model is not None
    words = "word " * wanted.pop("prompt", _PROMPT_TOKENS)
    message = {"role": "user", "content": words.rstrip() or "word"}
    return {"request": {"model": model, "messages": [message], **wanted}, **asks_as}


def _read(file: Path) -> dict[str, Any]:
    given = read_standard_input("request") if str(file) == "-" else read_text(file, "request")
    try:
        request = jsontext.loads(given)
    except ValueError as error:
        raise CommandError(
            f"{file} is not JSON: {error}", code="request", do="it holds the body of one request"
        ) from None
    if not isinstance(request, dict):
        raise CommandError(
            f"{file} holds no JSON object", code="request", do="it holds the body of one request"
        )
    return request


def _ask(session: Session, path: str, question: dict[str, Any]) -> dict[str, Any]:
    """What the gateway tells. A model that it does not know is an error here as it is for a request."""
    told = _told(session, path, question)
    made_up = question["request"]
    is_plain = "dialect" not in question and set(made_up) == {"model", "messages"}
    if is_plain and "wrong_endpoint" in [each["code"] for each in told["refusals"]]:
        # The model makes embeddings: it is asked for those.
        words = made_up["messages"][0]["content"]
        embedded = {"request": {"model": made_up["model"], "input": words}, "dialect": "embeddings"}
        told = _told(session, path, {**question, **embedded})
    unknown = next((each for each in told["refusals"] if each["code"] in _NO_MODEL), None)
    if unknown is not None:
        raise from_error(unknown, status=int(unknown["status"]), method="POST", path=path)
    return told


def _told(session: Session, path: str, question: dict[str, Any]) -> dict[str, Any]:
    """With the management key; with the inference key where there is no other."""
    inference_key = session.settings.secret("inference_key")
    if inference_key and not session.settings.secret("key"):
        reply = session.anonymous.request("POST", path, body=question, key=inference_key)
    else:
        reply = session.api.request("POST", path, body=question)
    told: dict[str, Any] = data(reply)
    return told


# how it is shown


def _columns(columns: tuple[Column, ...], rows: list[dict[str, Any]]) -> tuple[Column, ...]:
    """Without the model where all rows are of one."""
    one_model = len({row["model"] for row in rows}) < 2
    return tuple(column for column in columns if not (one_model and column.pick == "model"))


def _target(target: Record) -> dict[str, Any]:
    why = [
        f"passed over: {target['skipped']}" if target["skipped"] else "",
        f"after {_rest(target['rest'])}" if target["rest"] else "",
        f"is not sent {', '.join(target['drops'])}" if target["drops"] else "",
        "pictures or files it cannot take are replaced" if target["replaces_media"] else "",
        "own key" if target["byok"] else "",
    ]
    return {
        **target,
        "rank": str(target["place"]),
        "name": target["tag"],
        "why": "; ".join(filter(None, why)),
    }


def _rest(rest: Mapping[str, Any]) -> str:
    until = "until its key is changed" if rest["until"] is None else f"until {rest['until']}"
    return f"{rest['reason']}, {until}"


def _left_out(endpoint: Record) -> dict[str, Any]:
    return {
        **endpoint,
        "rank": "-",
        "name": endpoint["tag"],
        "state": endpoint["reason"],
        "why": f"left out: {endpoint['message']}",
    }


def _summary(told: Record) -> str:
    """The models, the order, and how many endpoints are in it."""
    targets = told["targets"]
    models = ", ".join(_named(each) for each in told["models"])
    by = next((each["sort"] for each in targets if each["sort"]), None)
    order = f"sort {by}" if by else "in the order asked for"
    if not by and not any(each["strategy"] == "ordered" for each in targets):
        order = "drawn by price" if told["is_drawn"] else "no choice"
    eligible = {(each["model"], each["tag"]) for each in targets}  # one has a place for each key
    known = eligible | {(each["model"], each["tag"]) for each in told["left_out"]}
    found = f"{text.counted(len(known), 'endpoint')}, {len(eligible)} eligible"
    serves = f"   {told['serves']} would be tried first" if told["serves"] else ""
    return f"{models}   {order}   {found}{serves}"


def _named(model: Record) -> str:
    """A name of the request with where it leads, where that is another."""
    if model["model"] is None:
        reason = (model["error"] or {}).get("code", "not used")
        return f"{model['requested']} ({reason})"
    parts = [str(model["model"])]
    if model["forwarded_from"]:
        parts.append(f"forwarded from {model['forwarded_from']}, which is retired")
    if model["lifecycle"] == "deprecated":
        retired = f", retired from {str(model['retired_at'])[:10]}" if model["retired_at"] else ""
        successor = f", successor {model['successor']}" if model["successor"] else ""
        parts.append(f"deprecated{retired}{successor}")
    return parts[0] if len(parts) == 1 else f"{parts[0]} ({'; '.join(parts[1:])})"


def _hold(told: Record) -> list[str]:
    hold, prompt = told["hold"], told["prompt"]
    needed = hold["amount"] if hold["amount"] is not None else hold["needed"]
    if needed is None:
        return []
    cap = told["output_cap"]
    answer = "" if cap is None else f", {cap:,} out"
    return [
        f"hold for this request: {text.money(needed)} (about {prompt['estimate']:,} tokens in{answer})"
        f"   the balance can pay {text.money(hold['available'])}"
    ]


def _credentials(told: Record) -> list[str]:
    return [
        f"credential {each['credential_id']} of {each['provider']}: {each['message']}"
        for each in told["credentials"] or ()
    ]


def _budgets(told: Record) -> list[str]:
    """The budgets that are used up: a soft one refuses nothing."""
    return [
        f"{each['kind']} {each['interval']} budget of the {each['scope']}: used up, {text.money(each['spend'])}"
        f" of {text.money(each['limit'])}"
        for each in told["budgets"]
        if not text.decimal(each["remaining"])
    ]


def _refusals(told: Record) -> list[str]:
    """Each error as it would be told, with what helps; the first is the one that a request gets."""
    notes = []
    for place, refusal in enumerate(told["refusals"]):
        error = from_error(refusal, status=int(refusal["status"]))
        notes.append(f"{'would be refused' if not place else 'then'}: {error.what} ({error.why})")
        if do := error.do or REMEDIES.get(error.code) or str(refusal["remedy"]):
            notes.append(f"  do:  {do}")
    return notes
