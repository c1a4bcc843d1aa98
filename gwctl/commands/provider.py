"""`gwctl provider`: upstream services and the platform's credentials for them."""

from pathlib import Path
from typing import Annotated, Any

from gwctl import listed_models, plan, shipped
from gwctl.catalog import CREDENTIALS, PROVIDER_MODELS, PROVIDERS, pricing_body
from gwctl.changes import CALL_OUT_S, report, send, update_record
from gwctl.client import quote
from gwctl.desired import Entry
from gwctl.errors import usage
from gwctl.records import address, data, fetch, find
from gwctl.secret_input import KEY_REF, SECRET_FILE, SECRET_STDIN, secret_fields
from gwctl.session import Session
from gwctl.tables import Record
from gwctl.text import counted
from gwctl.tree import Noun
from gwctl.values import ACCEPT, arg, body, flag, merged, names, opt, text_or_none, whole
from gwctl.verbs import add_delete, add_list, add_show, add_switches

provider = Noun("provider", "Upstream services and their credentials.")
NOUNS = [provider]

NO_KEY = "none"
AUTH = "How it takes its key: bearer, api-key, x-api-key, x-goog-api-key, none."
_SLUG = arg("SLUG", "Slug of the provider.")

add_list(provider, PROVIDERS)
add_show(provider, PROVIDERS, "openai")


@provider.verb(
    "add",
    "gwctl provider add openai --key-ref env:OPENAI_API_KEY",
    "gwctl provider add ollama",
    "gwctl provider add local --adapter openai_chat --base-url http://127.0.0.1:1234/v1 --auth none",
    "gwctl provider add vllm --base-url http://10.0.0.7:8000/v1 --auth bearer --key-ref env:VLLM_API_KEY",
    writes=True,
)
def add(
    session: Session,
    slug: Annotated[str, _SLUG],
    adapter: Annotated[
        str | None, opt("--adapter", "NAME", "Its wire format, for what is not shipped.")
    ] = None,
    base_url: Annotated[str | None, opt("--base-url", "URL", "What its own SDK takes.")] = None,
    auth: Annotated[str | None, opt("--auth", "WAY", AUTH)] = None,
    name: Annotated[str | None, opt("--name", "NAME", "Display name.")] = None,
    header: Annotated[
        list[str] | None,
        opt("--header", "NAME=VALUE", "Header sent with each request; repeatable."),
    ] = None,
    settings: Annotated[
        list[str] | None, opt("--flag", "NAME=VALUE", "Flag, beside those shipped; repeatable.")
    ] = None,
    secret_stdin: Annotated[bool, SECRET_STDIN] = False,
    secret_file: Annotated[Path | None, SECRET_FILE] = None,
    key_ref: Annotated[str | None, KEY_REF] = None,
) -> None:
    """Add a provider with its key; with --auth none it needs none.

    openai, anthropic and google come with their models, prices and endpoints. With their address
    and flags come ollama, vllm and llamacpp on this machine, and openrouter, groq, deepseek,
    mistral, xai, together, fireworks, cerebras, moonshot, zai, minimax, alibaba and azure; most
    have a NAME-embeddings beside them. For another one give --base-url and --adapter: most servers
    speak openai_chat, and a name that the gateway does not know is answered with all that it does.
    What exists already is left as it is.
    """
    given = secret_stdin or secret_file is not None or key_ref is not None
    if given and auth == NO_KEY:
        raise usage(f"--auth {NO_KEY} and a key exclude each other", do="leave one of them out")
    tables = shipped.vendor(slug) if adapter is None else None
    if tables is None:
        if adapter is None or base_url is None:
            known = ", ".join(shipped.vendors()) or "none"
            raise usage(
                f"{slug} is not in the shipped catalog ({known})",
                do=f"gwctl provider add {slug} --adapter openai_chat --base-url URL",
            )
        tables = {"providers": [{"slug": slug, "name": name or slug, "adapter": adapter}]}
    if name is not None and len(tables["providers"]) > 1:
        slugs = ", ".join(entry["slug"] for entry in tables["providers"])
        raise usage(f"--name is of one provider, and {slug} makes {slugs}", do="leave it out")
    options = body({"name": name, "base_url": base_url, "auth": auth})
    tables["providers"] = [
        {**entry, **options, **_extended(entry, header, settings)} for entry in tables["providers"]
    ]
    present = {row["slug"]: row for row in fetch(session, PROVIDERS.path, everything=True)[0]}
    for entry in tables["providers"]:
        _refuse_another(
            entry, present.get(entry["slug"]), adapter=adapter, base_url=base_url, auth=auth
        )
        if entry["slug"] not in present:
            _refuse_unfinished(entry, given=given)
    keyless = [
        entry["slug"]
        for entry in tables["providers"]
        if {**entry, **present.get(entry["slug"], {})}.get("auth") == NO_KEY
    ]
    without_key = [
        entry["slug"]
        for entry in tables["providers"]
        if entry["slug"] not in keyless and not _keys(session, entry["slug"])
    ]
    secret: dict[str, str] = {}
    if without_key and (given or not session.dry_run):
        # Asked for before anything is made, so that a missing key leaves nothing half done.
        secret = secret_fields(f"{slug} key", stdin=secret_stdin, file=secret_file, key_ref=key_ref)
    for entry in tables["providers"]:
        if given and entry["slug"] in keyless:
            do = f"gwctl provider update {entry['slug']} --auth bearer"
            session.out.note(f"{entry['slug']} has --auth {NO_KEY}: the key is not kept; {do}")
        elif given and entry["slug"] not in without_key:
            do = f"gwctl provider secret {entry['slug']} replaces it"
            session.out.note(f"{entry['slug']} has a key, which stays as it is; {do}")
    _make(session, slug, tables, secret, without_key)


@provider.verb(
    "update",
    "gwctl provider update local --base-url http://127.0.0.1:11434/v1",
    "gwctl provider update local --header x-team=search --dry-run",
    writes=True,
)
def update(
    session: Session,
    slug: Annotated[str, _SLUG],
    name: Annotated[str | None, opt("--name", "NAME", "Display name.")] = None,
    adapter: Annotated[str | None, opt("--adapter", "NAME", "Its wire format.")] = None,
    base_url: Annotated[str | None, opt("--base-url", "URL", "What its own SDK takes.")] = None,
    auth: Annotated[str | None, opt("--auth", "WAY", AUTH)] = None,
    header: Annotated[
        list[str] | None,
        opt("--header", "NAME=VALUE", "Header sent with each request; none removes; repeatable."),
    ] = None,
    settings: Annotated[
        list[str] | None, opt("--flag", "NAME=VALUE", "Flag; none removes it; repeatable.")
    ] = None,
) -> None:
    """Change a provider; its key has a command of its own."""
    before = find(session, PROVIDERS, slug)
    changes = {
        "name": name,
        "adapter": adapter,
        "base_url": base_url,
        "auth": auth,
        "headers": merged(before.get("headers"), header, texts=True),
        "flags": merged(before.get("flags"), settings),
    }
    update_record(session, PROVIDERS, slug, body(changes))


def _extended(entry: Entry, header: list[str] | None, settings: list[str] | None) -> dict[str, Any]:
    """The headers and flags that are shipped, with those of the command line in them."""
    return body(
        {
            "headers": merged(entry.get("headers"), header, texts=True),
            "flags": merged(entry.get("flags"), settings),
        }
    )


def _refuse_unfinished(entry: Entry, *, given: bool) -> None:
    """What a preset leaves to its user has to be said: an address of one's own, and how a key travels."""
    slug, url = entry["slug"], entry["base_url"]
    if shipped.OWN in url:
        raise usage(
            f"{slug} has no address that is everybody's",
            do=f"add --base-url '{url}' with your own {shipped.OWN},"
            " or that of a deployment: '…/openai/deployments/NAME?api-version=2024-10-21'",
        )
    if given and entry.get("auth") == NO_KEY:
        raise usage(
            f"{slug} takes no key unless it was started with one",
            do="add --auth bearer, or leave the key out",
        )


def _refuse_another(
    entry: Entry,
    record: Record | None,
    *,
    adapter: str | None,
    base_url: str | None,
    auth: str | None,
) -> None:
    """What exists stays as it is; an option that names something else is an error."""
    if record is None:
        return
    for option, field, wanted in (
        ("--adapter", "adapter", adapter),
        ("--base-url", "base_url", base_url),
        ("--auth", "auth", auth),
    ):
        there = str(record.get(field))
        if wanted is not None and wanted.rstrip("/") != there.rstrip("/"):
            raise usage(
                f"provider {entry['slug']} exists with {option} {there}",
                do="leave the option out to keep it, or add a provider under another slug",
                code="already_exists",
            )


def _keys(session: Session, slug: str) -> list[Any]:
    """The credentials a provider has."""
    rows, _ = fetch(session, CREDENTIALS.path, {"provider": slug}, everything=True)
    return [row for row in rows if row.get("provider") == slug]


def _make(
    session: Session,
    slug: str,
    tables: dict[str, list[Entry]],
    secret: dict[str, str],
    without_key: list[str],
) -> None:
    changes = plan.make(session, tables, only_missing=True)
    if session.dry_run:
        session.found_changes = bool(changes or secret)
        if session.out.shape.machine:
            session.out.data([plan.as_json(change) for change in changes])
            return
        for change in changes:
            session.out.block("\n".join(plan.lines(change)) + "\n")
        session.out.note("Nothing was done.")
        return
    # Providers first, then their keys, then what is served with them.
    results = _made(session, [c for c in changes if c.kind.table == "providers"])
    if secret:
        for name in without_key:
            wanted = {"provider": name, **secret}
            note_problem(
                session,
                send(session, "POST", CREDENTIALS.path, wanted, what=f"add the key of {name}"),
            )
    results += _made(session, [c for c in changes if c.kind.table != "providers"])
    if session.out.shape.machine:
        session.out.data(results)
        return
    counts = {
        table: sum(1 for change in changes if change.kind.table == table)
        for table in ("providers", "models", "endpoints")
    }
    made = ", ".join(counted(number, table[:-1]) for table, number in counts.items() if number)
    session.out.line(f"{slug}: {made or 'nothing new'} added")
    if tables.get("models"):
        session.out.note(f"try it: gwctl provider test {slug}")
    else:
        session.out.note(f"its models: gwctl provider models {slug} --add")


def _made(session: Session, changes: list[plan.Change]) -> list[dict[str, Any]]:
    return [result for _, result in plan.apply(session, changes)]


def note_problem(session: Session, reply: Any) -> None:
    """Say at once where the daemon cannot read what a reference names."""
    problem = data(reply).get("problem") if reply is not None else None
    if problem:
        session.out.note(f"the daemon cannot use this key: {problem}")


def set_credential(session: Session, slug: str, secret: dict[str, str]) -> Any:
    """Give a provider its key: replace the one it has, or make the first."""
    mine = _keys(session, slug)
    if len(mine) > 1:
        listed = ", ".join(str(row.get("name") or row.get("id")) for row in mine)
        raise usage(f"{slug} has several credentials ({listed})", do="gwctl provider secret --name")
    if mine:
        path = address(CREDENTIALS, mine[0])
        return send(session, "PATCH", path, secret, what=f"replace the key of {slug}")
    wanted = {"provider": slug, **secret}
    return send(session, "POST", CREDENTIALS.path, wanted, what=f"add the key of {slug}")


@provider.verb(
    "models",
    "gwctl provider models ollama",
    "gwctl provider models ollama --add --free",
    "gwctl provider models groq --add --model 'openai/*' --prompt 0.15 --completion 0.6 --dry-run",
    lists=True,
    writes=True,
)
def models(
    session: Session,
    slug: Annotated[str, _SLUG],
    add: Annotated[
        bool, flag("--add", "Make models and endpoints of what the catalog lacks.")
    ] = False,
    model: Annotated[
        list[str] | None, opt("--model", "GLOB", "Only of these names; repeatable.")
    ] = None,
    prompt: Annotated[str | None, opt("--prompt", "USD", "Price of a million inputs.")] = None,
    completion: Annotated[
        str | None, opt("--completion", "USD", "Price of a million outputs.")
    ] = None,
    free: Annotated[bool, flag("--free", "At price 0.")] = False,
    context: Annotated[
        int | None, whole("--context", "TOKENS", "Context length; the list's otherwise.", least=1)
    ] = None,
    max_output: Annotated[
        int | None, whole("--max-output", "TOKENS", "Most output tokens; the list's otherwise.")
    ] = None,
    parameter: Annotated[
        list[str] | None, opt("--parameter", "NAME", "Supported parameters, all of them.")
    ] = None,
    inputs: Annotated[list[str] | None, opt("--input", "KIND", "Input kinds, all of them.")] = None,
    embeddings: Annotated[bool, flag("--embeddings", "They make embeddings.")] = False,
    accept: Annotated[bool, ACCEPT] = False,
) -> None:
    """Ask a provider which models it has; --add makes models and endpoints of what is lacking.

    A model is called SLUG/NAME, with the last part of the server's own name. A price has to be said:
    --prompt and --completion, or --free. Without --parameter they take sampling, tools and JSON
    schemas. What exists already is left as it is.
    """
    reply = session.api.get(f"{PROVIDERS.path}/{quote(slug)}/models")
    rows = listed_models.chosen(data(reply), model, slug)
    if reply.get("truncated"):
        session.out.note(
            f"{slug} lists more than {len(data(reply))} models; the others are not read"
        )
    if not add:
        shown = rows if session.everything else rows[: session.limit]
        session.out.records(shown, PROVIDER_MODELS, total=len(rows), noun="model")
        return
    record = find(session, PROVIDERS, slug)
    embeds = embeddings or record["adapter"] == "openai_embeddings"
    lacking = listed_models.lacking(session, slug, rows)
    if not lacking:
        session.out.note(f"the catalog has all that {slug} lists; nothing was added")
        return
    wanted = listed_models.Wanted(
        pricing=_price_of(session, len(lacking), prompt, completion, free=free, embeds=embeds),
        context=context,
        max_output=max_output,
        embeds=embeds,
        parameters=names(parameter),
        inputs=names(inputs),
    )
    listed_models.add(session, record, lacking, wanted, accept=accept)


def _price_of(
    session: Session,
    number: int,
    prompt: str | None,
    completion: str | None,
    *,
    free: bool,
    embeds: bool,
) -> dict[str, Any]:
    """The price of new models: said on the line, or 0 after a question."""
    said = pricing_body({"prompt": prompt, "completion": completion})
    if free and said:
        raise usage("--free and a price exclude each other", do="give one of them")
    needed = {"prompt"} if embeds else {"prompt", "completion"}
    if said:
        if missing := needed - said.keys():
            raise usage(f"--{missing.pop()} is missing", do="a price is whole; 0 is one")
        return said
    if not free:
        options = "--prompt USD" if embeds else "--prompt USD --completion USD"
        session.agree(
            f"Shall {counted(number, 'model')} cost nothing?",
            refused=usage("no price was given", do=f"add {options}, or --free for price 0"),
            even_with_yes=True,
        )
    return dict.fromkeys(needed, "0")


@provider.verb(
    "test", "gwctl provider test openai", "gwctl provider test openai --json", writes=True
)
def test(session: Session, slug: Annotated[str, _SLUG]) -> None:
    """Make one cheap upstream call with the provider's key; exit 1 when it does not answer."""
    record = find(session, PROVIDERS, slug)
    path = f"{address(PROVIDERS, record)}/test"
    reply = send(session, "POST", path, what=f"test {slug}", patience_s=CALL_OUT_S)
    if reply is not None:
        found = data(reply)
        report(session, found, f"{slug} answers: {found.get('model')} {found.get('latency_ms')} ms")


@provider.verb(
    "secret",
    "gwctl provider secret openai --secret-file openai.key",
    "gwctl provider secret openai --key-ref env:OPENAI_API_KEY --name second",
    writes=True,
)
def secret(
    session: Session,
    slug: Annotated[str, _SLUG],
    name: Annotated[
        str | None, opt("--name", "NAME", "Which credential, when there are several.")
    ] = None,
    base_url: Annotated[
        str | None, opt("--base-url", "URL", "The address it is for, where there are several.")
    ] = None,
    secret_stdin: Annotated[bool, SECRET_STDIN] = False,
    secret_file: Annotated[Path | None, SECRET_FILE] = None,
    key_ref: Annotated[str | None, KEY_REF] = None,
) -> None:
    """Set or replace the platform's key for a provider.

    It goes only to the address that the provider has now, or to --base-url, which is an endpoint's own.
    """
    if find(session, PROVIDERS, slug).get("auth") == NO_KEY:
        do = f"gwctl provider update {slug} --auth bearer"
        session.out.note(f"{slug} has --auth {NO_KEY}: its key is not sent; {do}")
    given = {
        **body({"base_url": text_or_none(base_url)}),
        **secret_fields(f"{slug} key", stdin=secret_stdin, file=secret_file, key_ref=key_ref),
    }
    if name is None:
        reply = set_credential(session, slug, given)
    elif mine := [row for row in _keys(session, slug) if row.get("name") == name]:
        path = address(CREDENTIALS, mine[0])
        reply = send(session, "PATCH", path, given, what=f"replace key {name} of {slug}")
    else:
        wanted = body({"provider": slug, "name": name, **given})
        reply = send(session, "POST", CREDENTIALS.path, wanted, what=f"add key {name} of {slug}")
    if reply is not None:
        report(session, data(reply), f"key of {slug} set")
        note_problem(session, reply)


add_switches(provider, PROVIDERS, "openai", on={"disabled": False}, off={"disabled": True})
add_delete(provider, PROVIDERS, "local")
