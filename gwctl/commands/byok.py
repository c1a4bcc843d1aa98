"""`gwctl byok`: provider keys of the organization's own, preferred over the platform's."""

from pathlib import Path
from typing import Annotated

from gwctl.changes import act, create_record, update_record
from gwctl.errors import usage
from gwctl.keys import workspace_id
from gwctl.records import Resource, list_records
from gwctl.secret_input import read_secret
from gwctl.session import Session
from gwctl.tables import Column
from gwctl.tree import Noun
from gwctl.values import arg, body, flag, names, opt
from gwctl.verbs import add_delete, add_show, add_switches

BYOK = Resource(
    noun="byok",
    path="/byok",
    id_prefix=("pk_",),
    names=("name", "provider"),
    columns=(
        Column("PROVIDER", "provider", name=True),
        Column("NAME", "name", cut=False),
        Column("KEY", lambda row: row.get("key_ref") or row.get("label")),
        Column("STATE", lambda row: "disabled" if row.get("disabled") else "enabled", "state"),
        Column("FEE", "fee_percent", "percent"),
        Column("LAST USED", "last_used_at", "time"),
        Column("LAST ERROR", "last_error.reason"),
        Column("ID", "id", "id", leaves=1),
    ),
)

SECRET_STDIN = flag("--secret-stdin", "Read the key from stdin.")
SECRET_FILE = opt("--secret-file", "FILE", "Read the key from a file.")
KEY_REF = opt("--key-ref", "REF", "env:NAME or file:PATH; read by the daemon, never stored by it.")

byok = Noun("byok", "Provider keys of your own.")
NOUNS = [byok]


def secret_fields(
    what: str, *, stdin: bool, file: Path | None, key_ref: str | None, dry_run: bool = False
) -> dict[str, str]:
    """`key` or `key_ref` of a body, from exactly one source."""
    if key_ref is not None:
        if stdin or file is not None:
            raise usage("--key-ref and a secret exclude each other", do="give one of them")
        if not key_ref.startswith(("env:", "file:")):
            raise usage(f"--key-ref {key_ref!r} is no reference", do="env:NAME or file:PATH")
        return {"key_ref": key_ref}
    if dry_run and not stdin and file is None:
        return {}
    return {"key": read_secret(what, stdin=stdin, file=file)}


@byok.verb(
    "list",
    "gwctl byok list --provider openai",
    "gwctl byok list --json id,provider,last_error",
    lists=True,
)
def list_byok(
    session: Session,
    provider: Annotated[str | None, opt("--provider", "SLUG", "Only this provider.")] = None,
    workspace: Annotated[str | None, opt("--workspace", "SLUG", "Only this workspace.")] = None,
) -> None:
    """List your own provider keys; only the last four characters are known."""
    query = {"provider": provider, "workspace_id": workspace_id(session, workspace)}
    list_records(session, BYOK, query)


add_show(byok, BYOK, "openai")


@byok.verb(
    "add",
    "gwctl byok add openai --secret-file openai.key",
    "pass show openai | gwctl byok add openai --secret-stdin --fallback",
    writes=True,
)
def add(
    session: Session,
    provider: Annotated[str, arg("PROVIDER", "Slug of the provider.")],
    name: Annotated[str | None, opt("--name", "NAME", "A name to tell keys apart.")] = None,
    workspace: Annotated[str | None, opt("--workspace", "SLUG", "Only for it.")] = None,
    model: Annotated[
        list[str] | None, opt("--model", "SLUG", "Only for these models; repeatable.")
    ] = None,
    fallback: Annotated[bool, flag("--fallback", "Use it after the platform's keys.")] = False,
    required: Annotated[bool, flag("--required", "Never use the platform's keys.")] = False,
    secret_stdin: Annotated[bool, SECRET_STDIN] = False,
    secret_file: Annotated[Path | None, SECRET_FILE] = None,
    key_ref: Annotated[str | None, KEY_REF] = None,
) -> None:
    """Add a provider key of your own; it is encrypted at rest and never shown again."""
    secret = secret_fields(
        f"{provider} key",
        stdin=secret_stdin,
        file=secret_file,
        key_ref=key_ref,
        dry_run=session.dry_run,
    )
    wanted = {
        "provider": provider,
        "name": name,
        "workspace_id": workspace_id(session, workspace),
        "allowed_models": names(model),
        "is_fallback": fallback or None,
        "is_required": required or None,
        **secret,
    }
    create_record(session, BYOK, body(wanted))


@byok.verb("test", "gwctl byok test openai", "gwctl byok test pk_6vR2abc --json", writes=True)
def test(
    session: Session, reference: Annotated[str, arg("NAME", "Its name, provider or id.")]
) -> None:
    """Make one cheap upstream call with the key."""
    act(session, BYOK, reference, "test", done="tested")


@byok.verb(
    "rotate",
    "gwctl byok rotate openai --secret-file new.key",
    "pass show openai | gwctl byok rotate openai --secret-stdin",
    writes=True,
)
def rotate(
    session: Session,
    reference: Annotated[str, arg("NAME", "Its name, provider or id.")],
    secret_stdin: Annotated[bool, SECRET_STDIN] = False,
    secret_file: Annotated[Path | None, SECRET_FILE] = None,
    key_ref: Annotated[str | None, KEY_REF] = None,
) -> None:
    """Replace the key in place."""
    secret = secret_fields(
        f"new {reference} key", stdin=secret_stdin, file=secret_file, key_ref=key_ref
    )
    update_record(session, BYOK, reference, secret)


add_switches(byok, BYOK, "openai", on={"disabled": False}, off={"disabled": True})
add_delete(byok, BYOK, "openai")
