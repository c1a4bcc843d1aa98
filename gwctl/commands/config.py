"""`gwctl config`: profiles and settings of gwctl itself."""

from pathlib import Path
from typing import Annotated

from gwctl import profile
from gwctl.commands.login import TEMPORARY
from gwctl.errors import NOT_FOUND, CommandError, usage
from gwctl.profile import SECRETS, SETTINGS, normal_url
from gwctl.secret_input import read_secret
from gwctl.session import Session
from gwctl.tables import Column
from gwctl.text import mask, mask_keys
from gwctl.tree import Noun
from gwctl.values import arg, flag, opt

config = Noun("config", "Profiles and settings of gwctl.")
NOUNS = [config]

_NAME = arg("NAME", f"One of: {', '.join(SETTINGS)}.")


@config.verb("list", "gwctl config list --show-origin", "gwctl config list -P prod --json")
def list_settings(
    session: Session,
    show_origin: Annotated[
        bool, flag("--show-origin", "Tell where each value comes from.")
    ] = False,
) -> None:
    """List the settings in use: flag, then environment, then profile, then default."""
    rows = [
        {
            "name": setting.name,
            "value": mask(setting.value)
            if setting.name in SECRETS and setting.value
            else mask_keys(setting.value),
            "origin": setting.origin,
        }
        for setting in session.settings.all()
    ]
    columns = [
        Column("NAME", "name", name=True),
        Column("VALUE", "value"),
        Column("ORIGIN", "origin"),
    ]
    if not show_origin and not session.out.shape.machine:
        columns.pop()
    session.out.records(rows, columns)


@config.verb("get", "gwctl config get url", "gwctl config get timeout -P prod")
def get(session: Session, name: Annotated[str, _NAME]) -> None:
    """Print one setting; keys are masked."""
    _known(name)
    setting = session.settings.get(name)
    value = mask(setting.value) if name in SECRETS and setting.value else mask_keys(setting.value)
    if session.out.shape.machine:
        session.out.data({"name": name, "value": value, "origin": setting.origin})
    else:
        session.out.line(value)


@config.verb(
    "set",
    "gwctl config set url https://gw.example.com/api/v1 -P prod",
    "gwctl config set key_command 'pass show gw'",
    writes=True,
)
def set_(
    session: Session,
    name: Annotated[str, _NAME],
    value: Annotated[str | None, arg("VALUE", "New value; empty removes it.")] = None,
    secret_stdin: Annotated[bool, flag("--secret-stdin", "Read a key from stdin.")] = False,
    secret_file: Annotated[
        Path | None, opt("--secret-file", "FILE", "Read a key from a file.")
    ] = None,
) -> None:
    """Set one value of the profile; comments in the file stay, keys are asked for hidden."""
    _known(name)
    if name in SECRETS:
        if value:
            raise usage(
                f"{name} is a secret and cannot be an argument",
                do=f"gwctl config set {name}   asks for it; or --secret-stdin, --secret-file",
            )
        value = value if value == "" else read_secret(name, stdin=secret_stdin, file=secret_file)
    elif value is None:
        raise usage(f"a value for {name} is missing", do=f"gwctl config set {name} VALUE")
    if name == "url" and value:
        value = normal_url(value)
    if name == "timeout" and value:
        profile.seconds_of(value, "the new value")
    shown = mask(value) if name in SECRETS else mask_keys(value)
    target = f"{name} of profile {session.settings.profile}"
    if session.dry_run:
        session.found_changes = True
        session.out.line(f"would set {target} to {shown} in {session.settings.path}")
        return
    changes: dict[str, str | None] = {name: value or None}
    if name == "inference_key":
        changes |= TEMPORARY
    profile.change_file(session.settings.path, session.settings.profile, changes)
    session.out.note(f"{target} is now {shown or 'not set'}")


@config.verb("use", "gwctl config use prod", "gwctl config use default")
def use(session: Session, name: Annotated[str, arg("PROFILE", "Name of a profile.")]) -> None:
    """Make a profile the one used when -P is not given."""
    known = session.settings.file.get("profile", {})
    if name not in known:
        raise CommandError(
            f"no profile is called {name}",
            exit_code=NOT_FOUND,
            code="unknown_profile",
            why=f"profiles in {session.settings.path}: {', '.join(known) or 'none'}",
            do=f"gwctl login -P {name}",
        )
    profile.choose_profile(session.settings.path, name)
    session.out.note(f"profile {name} is now used")


@config.verb("path", "gwctl config path", "cat $(gwctl config path)")
def path(session: Session) -> None:
    """Print where the profile file is (or would be)."""
    session.out.line(str(profile.config_path()))


def _known(name: str) -> None:
    if name not in SETTINGS:
        raise usage(f"there is no setting {name}", do=f"one of: {', '.join(SETTINGS)}")
