"""`gwctl byok`: the organization's own vendor keys, which are preferred over the platform's."""

from pathlib import Path
from typing import Annotated, Any

from gwctl.byok import BYOK
from gwctl.changes import CALL_OUT_S, create_record, report, send, update_record
from gwctl.commands.member import MEMBERS
from gwctl.keys import KEYS, workspace_id
from gwctl.records import address, data, find, list_records
from gwctl.secret_input import KEY_REF, SECRET_FILE, SECRET_STDIN, secret_fields
from gwctl.session import Session
from gwctl.tables import Record
from gwctl.tree import Noun
from gwctl.values import CLEAR, arg, body, flag, integer, models, names, opt, text_or_none
from gwctl.verbs import add_delete, add_show, add_switches

byok = Noun("byok", "Vendor keys of your own: preferred, and only a fee is charged.")
NOUNS = [byok]

_NAME = arg("NAME", "Its name, its provider or its id.")
_BASE_URL = opt("--base-url", "URL", "The address it is for, where the provider has several.")


@byok.verb(
    "list",
    "gwctl byok list --provider openai",
    "gwctl byok list --json id,provider,last_error",
    lists=True,
)
def list_byok(
    session: Session,
    provider: Annotated[str | None, opt("--provider", "SLUG", "Only of this provider.")] = None,
    workspace: Annotated[str | None, opt("--workspace", "SLUG", "Only of this workspace.")] = None,
) -> None:
    """List your own vendor keys, in the order in which they are tried; none is ever shown."""
    list_records(session, BYOK, body({"provider": provider, "workspace_id": workspace}))


add_show(byok, BYOK, "openai")


@byok.verb(
    "add",
    "gwctl byok add openai --secret-file openai.key",
    "pass show openai | gwctl byok add openai --name batch --secret-stdin --fallback",
    writes=True,
)
def add(
    session: Session,
    provider: Annotated[str, arg("PROVIDER", "Slug of the provider.")],
    name: Annotated[
        str | None, opt("--name", "NAME", "A name, needed for a second key of a provider.")
    ] = None,
    workspace: Annotated[str | None, opt("--workspace", "SLUG", "Only for its requests.")] = None,
    model: Annotated[
        list[str] | None, opt("--model", "SLUG", "Only for this model or vendor/*; repeatable.")
    ] = None,
    key: Annotated[
        list[str] | None, opt("--key", "NAME", "Only for this API key's requests; repeatable.")
    ] = None,
    user: Annotated[
        list[str] | None, opt("--user", "EMAIL", "Only for this member's requests; repeatable.")
    ] = None,
    fallback: Annotated[bool, flag("--fallback", "Use it after the platform's keys.")] = False,
    required: Annotated[
        bool, flag("--required", "Never use the platform's keys where it serves.")
    ] = False,
    order: Annotated[
        str | None, opt("--order", "N", "Keys of a provider are tried from low to high.")
    ] = None,
    base_url: Annotated[str | None, _BASE_URL] = None,
    secret_stdin: Annotated[bool, SECRET_STDIN] = False,
    secret_file: Annotated[Path | None, SECRET_FILE] = None,
    key_ref: Annotated[str | None, KEY_REF] = None,
) -> None:
    """Add a vendor key of your own; it is encrypted at rest and never shown again.

    --key-ref is for the operator: the daemon reads it where it runs.
    """
    wanted = {
        "provider": provider,
        "name": name,
        "workspace_id": workspace_id(session, workspace),
        "allowed_models": models(model),
        "allowed_api_key_hashes": _hashes(session, key),
        "allowed_user_ids": _users(session, user),
        "is_fallback": fallback or None,
        "is_required": required or None,
        "sort_order": integer("--order", order),
        "base_url": base_url,
        **secret_fields(f"{provider} key", stdin=secret_stdin, file=secret_file, key_ref=key_ref),
    }
    _note_problem(session, create_record(session, BYOK, body(wanted)))


@byok.verb(
    "update",
    "gwctl byok update openai --model 'openai/*' --required",
    "gwctl byok update pk_6vR2abc --workspace none",
    writes=True,
)
def update(
    session: Session,
    reference: Annotated[str, _NAME],
    name: Annotated[str | None, opt("--name", "NAME", "New name.")] = None,
    workspace: Annotated[
        str | None, opt("--workspace", "SLUG", "Only for its requests; none: for all.")
    ] = None,
    model: Annotated[
        list[str] | None, opt("--model", "SLUG", "Only for these models; none: for all.")
    ] = None,
    key: Annotated[
        list[str] | None, opt("--key", "NAME", "Only for these API keys; none: for all.")
    ] = None,
    user: Annotated[
        list[str] | None, opt("--user", "EMAIL", "Only for these members; none: for all.")
    ] = None,
    fallback: Annotated[
        bool | None, flag("--fallback/--no-fallback", "Use it after the platform's keys.")
    ] = None,
    required: Annotated[
        bool | None,
        flag("--required/--no-required", "Never use the platform's keys where it serves."),
    ] = None,
    order: Annotated[
        str | None, opt("--order", "N", "Keys of a provider are tried from low to high.")
    ] = None,
) -> None:
    """Change what a vendor key of your own is for; `rotate` replaces the key itself."""
    wanted = text_or_none(workspace)
    changes = {
        "name": name,
        "workspace_id": wanted if wanted is CLEAR else workspace_id(session, wanted),
        "allowed_models": models(model),
        "allowed_api_key_hashes": _hashes(session, key),
        "allowed_user_ids": _users(session, user),
        "is_fallback": fallback,
        "is_required": required,
        "sort_order": integer("--order", order),
    }
    update_record(session, BYOK, reference, body(changes))


@byok.verb("test", "gwctl byok test openai", "gwctl byok test pk_6vR2abc --json", writes=True)
def test(session: Session, reference: Annotated[str, _NAME]) -> None:
    """Make one cheap upstream call with the key; exit 1 when the vendor does not answer."""
    record = find(session, BYOK, reference)
    title = BYOK.title(record)
    path = f"{address(BYOK, record)}/test"
    reply = send(session, "POST", path, what=f"test byok {title}", patience_s=CALL_OUT_S)
    if reply is not None:
        found = data(reply)
        report(
            session, found, f"{title} answers: {found.get('model')} {found.get('latency_ms')} ms"
        )


@byok.verb(
    "rotate",
    "gwctl byok rotate openai --secret-file new.key",
    "pass show openai | gwctl byok rotate openai --secret-stdin",
    writes=True,
)
def rotate(
    session: Session,
    reference: Annotated[str, _NAME],
    base_url: Annotated[str | None, _BASE_URL] = None,
    secret_stdin: Annotated[bool, SECRET_STDIN] = False,
    secret_file: Annotated[Path | None, SECRET_FILE] = None,
    key_ref: Annotated[str | None, KEY_REF] = None,
) -> None:
    """Replace the key in place; requests that run keep the old one."""
    record = find(session, BYOK, reference)
    title = BYOK.title(record)
    given = secret_fields(f"new key {title}", stdin=secret_stdin, file=secret_file, key_ref=key_ref)
    changes = body({"base_url": text_or_none(base_url), **given})
    reply = send(session, "PATCH", address(BYOK, record), changes, what=f"replace key {title}")
    if reply is not None:
        report(session, data(reply), f"byok {title} rotated")
        _note_problem(session, data(reply))


def _note_problem(session: Session, record: Record | None) -> None:
    """Say at once where the gateway cannot use the key."""
    if record is not None and record.get("problem"):
        session.out.note(f"the daemon cannot use this key: {record['problem']}")


def _hashes(session: Session, keys: list[str] | None) -> Any:
    """API keys by name, id or hash, as their hashes."""
    found = names(keys)
    if not isinstance(found, list):
        return found
    return [find(session, KEYS, name)["hash"] for name in found]


def _users(session: Session, users: list[str] | None) -> Any:
    """Members by address or id, as their ids."""
    found = names(users)
    if not isinstance(found, list):
        return found
    return [
        name if name.startswith("usr_") else find(session, MEMBERS, name)["id"] for name in found
    ]


add_switches(byok, BYOK, "openai", on={"disabled": False}, off={"disabled": True})
add_delete(byok, BYOK, "openai")
