"""`gwctl login`, `logout`, `whoami`: the keys of a profile."""

from pathlib import Path
from typing import Annotated

from gwctl import profile
from gwctl.errors import NOT_ALLOWED, CommandError, usage
from gwctl.records import data
from gwctl.secret_input import read_secret
from gwctl.session import Session
from gwctl.text import mask, mask_keys
from gwctl.tree import Noun
from gwctl.values import flag, opt

# What is written beside an inference key that was made for an hour.
TEMPORARY: dict[str, str | None] = {
    "inference_key_expires_at": None,
    "inference_key_made_for": None,
}

top = Noun("", "Log in and out.")
NOUNS = [top]


@top.verb(
    "login",
    "gwctl login --url https://gw.example.com",
    "pass show gw | gwctl login -P prod --url https://gw.example.com --secret-stdin",
)
def login(
    session: Session,
    secret_stdin: Annotated[bool, flag("--secret-stdin", "Read the key from stdin.")] = False,
    secret_file: Annotated[
        Path | None, opt("--secret-file", "FILE", "Read the key from a file.")
    ] = None,
    key_command: Annotated[
        str | None,
        opt("--key-command", "COMMAND", "Store this command, which prints the key, not the key."),
    ] = None,
) -> None:
    """Store the address and a key in a profile, after asking the gateway whether it is valid.

    A management key (gwm_…) is used for everything but inference; an inference key (gwi_…) is
    stored beside it for chat, embed and launch.
    """
    settings = session.settings
    url = settings.url()
    if key_command is not None:
        if secret_stdin or secret_file:
            raise usage("--key-command and a secret exclude each other", do="give one of them")
        secret = profile.run_key_command(key_command, timeout_s=settings.timeout_s())
    else:
        secret = read_secret("key", stdin=secret_stdin, file=secret_file)
    if not secret.startswith(("gwm_", "gwi_")):
        raise CommandError(
            "this is not a gateway key",
            exit_code=NOT_ALLOWED,
            code="invalid_api_key",
            why="gateway keys start with gwm_ (management) or gwi_ (inference)",
            do="gwd init prints the first management key; gwctl key create makes others",
        )
    if host := profile.plain_http_host(url):
        session.out.note(
            f"this sends the key over plain http to {host}, where whoever sees the network can read it; "
            "give the gateway TLS and use https, or a tunnel to its own machine"
        )
    record = data(session.unchecked.request("GET", "/auth/key", key=secret))
    name = "inference_key" if secret.startswith("gwi_") else "key"
    changes: dict[str, str | None] = {"url": url}
    if key_command is not None and name == "key":
        changes |= {"key": None, "key_command": key_command}
    else:
        changes[name] = secret
    if name == "inference_key":
        changes |= TEMPORARY
    profile.change_file(settings.path, settings.profile, changes)
    if not settings.file.get("current"):
        profile.choose_profile(settings.path, settings.profile)
    if session.out.shape.machine:
        session.out.record({"profile": settings.profile, "url": mask_keys(url), **record})
        return
    who = record.get("name") or mask(secret)
    session.out.line(
        f"logged in to {mask_keys(url)} as {who}, profile {settings.profile} ({settings.path})"
    )


@top.verb("logout", "gwctl logout", "gwctl logout -P prod")
def logout(session: Session) -> None:
    """Forget the keys of a profile; the address stays."""
    session.settings.require_known_profile()
    removed: dict[str, str | None] = {"key": None, "key_command": None, "inference_key": None}
    removed |= TEMPORARY
    if session.settings.path.exists():
        profile.change_file(session.settings.path, session.settings.profile, removed)
    session.out.line(f"profile {session.settings.profile} holds no key any more")
    for variable in ("GWCTL_KEY", "GWCTL_INFERENCE_KEY"):
        if session.settings.environment.get(variable):
            session.out.note(f"note: {variable} is still set and stays in use")


@top.verb("whoami", "gwctl whoami", "gwctl whoami --json id,type,organization_id")
def whoami(session: Session) -> None:
    """Show the key in use: its name, type, role, organization and limits."""
    record = data(session.api.get("/auth/key"))
    if session.out.shape.machine or not session.out.terminal:
        session.out.record(record)
        return
    shown = ("name", "label", "type", "role", "id", "organization_id", "workspace_id", "expires_at")
    session.out.record(
        {"profile": session.settings.profile, "url": mask_keys(session.settings.url())}
        | {name: record[name] for name in shown if record.get(name) is not None}
    )
