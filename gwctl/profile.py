"""Where settings come from (flag, environment, profile, default), and the profile file."""

import os
import shlex
import stat
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gwctl import numbers
from gwctl.errors import NOT_ALLOWED, CommandError, usage
from gwctl.files import read_text, text_of
from gwctl.streams import is_text
from gwctl.text import mask_keys

DEFAULT_URL = "http://127.0.0.1:8080/api/v1"
DEFAULT_PROFILE = "default"
SECRETS = ("key", "inference_key")

# name: (environment variable, default, what it is)
SETTINGS: dict[str, tuple[str, str, str]] = {
    "url": ("GWCTL_URL", DEFAULT_URL, "base address of the API; it ends in /api/v1"),
    "key": ("GWCTL_KEY", "", "management key (gwm_…)"),
    "inference_key": ("GWCTL_INFERENCE_KEY", "", "inference key (gwi_…) for chat, embed, launch"),
    "key_command": ("", "", "command that prints the management key"),
    "ca_file": ("GWCTL_CA_FILE", "", "PEM file with the authority of the gateway's certificate"),
    "timeout": ("GWCTL_TIMEOUT", "30", "seconds to wait for the gateway"),
    "pager": ("PAGER", "less -FRX", "what shows long tables on a terminal; `cat` turns it off"),
}

ENVIRONMENT: tuple[tuple[str, str], ...] = (
    *((variable, meaning) for variable, _, meaning in SETTINGS.values() if variable),
    ("GWCTL_PROFILE", "name of the profile to use, as -P"),
    ("GWCTL_CONFIG", "the profile file, instead of $XDG_CONFIG_HOME/gwctl/config.toml"),
    ("NO_COLOR", "set to anything: no colour"),
    ("CLICOLOR_FORCE", "set to 1: colour also without a terminal"),
)


@dataclass(frozen=True)
class Setting:
    """One setting with the place it came from."""

    name: str
    value: str
    origin: str


def config_path(environment: Mapping[str, str] | None = None) -> Path:
    environment = os.environ if environment is None else environment
    try:
        if environment.get("GWCTL_CONFIG"):
            return Path(environment["GWCTL_CONFIG"]).expanduser()
        home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    except RuntimeError as error:
        raise usage(
            f"the profile file cannot be found: {error}",
            do="set GWCTL_CONFIG to the path of a file, without ~",
        ) from None
    return Path(home) / "gwctl" / "config.toml"


class Settings:
    """The settings of one run, each looked up when first asked for."""

    def __init__(
        self,
        flags: Mapping[str, str | None],
        *,
        profile: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.environment = os.environ if environment is None else environment
        self.flags = flags
        self.path = config_path(self.environment)
        self.file = read_file(self.path)
        self.profile, self.profile_origin = self._choose_profile(profile)
        self.values = self._profile_values(profile)

    def get(self, name: str) -> Setting:
        """The setting and its origin; `key_command` is run only by `secret`."""
        variable, default, _ = SETTINGS[name]
        flag = self.flags.get(name)
        if flag is not None:
            return Setting(name, flag, f"flag --{name}")
        if variable and self.environment.get(variable):
            if not is_text(self.environment[variable]):
                raise usage(f"{variable} is not valid UTF-8", do=f"set {variable} again")
            return Setting(name, self.environment[variable], f"environment {variable}")
        if name in self.values:
            return Setting(name, str(self.values[name]), f"profile {self.profile} in {self.path}")
        return Setting(name, default, "default")

    def all(self) -> list[Setting]:
        chosen = Setting("profile", self.profile, self.profile_origin)
        return [chosen, *(self.get(name) for name in SETTINGS)]

    def url(self) -> str:
        return normal_url(self.get("url").value)

    def timeout_s(self) -> float:
        setting = self.get("timeout")
        return seconds_of(setting.value, setting.origin)

    def secret(self, name: str) -> str:
        """The management or inference key; empty when there is none."""
        setting = self.get(name)
        if setting.value or name != "key":
            return setting.value.strip()
        command = self.get("key_command").value
        return run_key_command(command, timeout_s=self.timeout_s()) if command else ""

    def _choose_profile(self, flag: str | None) -> tuple[str, str]:
        if flag:
            return flag, "flag --profile"
        if self.environment.get("GWCTL_PROFILE"):
            return self.environment["GWCTL_PROFILE"], "environment GWCTL_PROFILE"
        if isinstance(self.file.get("current"), str):
            return str(self.file["current"]), f"current in {self.path}"
        return DEFAULT_PROFILE, "default"

    def _profile_values(self, flag: str | None) -> Mapping[str, Any]:
        profiles = self.file.get("profile", {})
        known = profiles if isinstance(profiles, dict) else {}
        values = known.get(self.profile, {})
        return values if isinstance(values, dict) else {}

    def require_known_profile(self) -> None:
        """Stop when the named profile is not in the file: a typo must not hit another gateway."""
        profiles = self.file.get("profile", {})
        if self.profile == DEFAULT_PROFILE or self.profile in profiles:
            return
        raise usage(
            f"no profile is called {self.profile} ({self.profile_origin})",
            do=f"gwctl login -P {self.profile}, or one of: {', '.join(profiles) or 'none yet'}",
            code="unknown_profile",
        )


def seconds_of(value: str, origin: str) -> float:
    """A timeout: more than nothing and less than a day."""
    number = numbers.read(value)
    seconds = 0.0 if number is None else float(number)
    if not 0 < seconds < 86_400:
        raise usage(
            f"timeout {value!r} ({origin}) is not a number of seconds below a day",
            do="gwctl config set timeout 30",
        )
    return seconds


def normal_url(url: str) -> str:
    """The base address without a trailing slash; a bare host gets the API's path."""
    if wrong := _wrong_with(url):
        raise usage(
            f"{mask_keys(url)!r} is not an address: {wrong}", do=f"for example {DEFAULT_URL}"
        )
    url = url.rstrip("/")
    return url if "/" in url.split("://", 1)[1] else f"{url}/api/v1"


def plain_http_host(url: str) -> str:
    """The host that a key would be sent to unprotected; empty with TLS, and for this machine."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http" or host == "localhost" or host.endswith(".localhost"):
        return ""
    try:
        return "" if ip_address(host).is_loopback else host
    except ValueError:
        return host


def _wrong_with(url: str) -> str:
    """Why requests cannot be sent to this address; empty when they can."""
    from urllib.parse import urlsplit

    if not url.startswith(("http://", "https://")):
        return "it must begin with http:// or https://"
    if not url.isprintable() or " " in url:
        return "it holds blanks or control characters"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError as error:
        return str(error)
    if not host or port == 0:
        return "it names no host" if not host else "port 0 cannot be reached"
    if parts.query or parts.fragment:
        return "it must end with the path, without ? and #"
    return ""


def run_key_command(command: str, *, timeout_s: float) -> str:
    """What the command prints, without the shell; its errors stay visible on stderr."""
    try:
        done = subprocess.run(  # noqa: S603  (the user's own command, from a file only they can write)
            shlex.split(command),
            stdout=subprocess.PIPE,
            text=True,
            timeout=max(timeout_s, 60),
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise CommandError(
            f"key_command failed: {error}",
            exit_code=NOT_ALLOWED,
            code="key_command_failed",
            do=f"run it yourself: {command}",
        ) from None
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if lines else ""


def read_file(path: Path) -> dict[str, Any]:
    """The profile file; refused when others can read it, because it may hold keys."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise CommandError(
                    f"{path} can be read by others (mode {mode:04o})",
                    code="config_mode",
                    why="it may hold keys and a key_command",
                    do=f"chmod 600 {path}",
                )
            content = text_of(file.read(), str(path), "config_file")
            return _in_shape(path, tomllib.loads(content))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", code="config_file") from None
    except tomllib.TOMLDecodeError as error:
        raise CommandError(
            f"{path} is not valid TOML: {error}", code="config_file", do=f"edit {path}"
        ) from None


def _in_shape(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """The file as it was read, when every value is of the kind that is expected there."""
    wrong = "current" if not isinstance(document.get("current", ""), str) else ""
    profiles = document.get("profile", {})
    if not isinstance(profiles, dict) or not all(isinstance(p, dict) for p in profiles.values()):
        wrong, profiles = "profile; write [profile.NAME]", {}
    for profile, values in profiles.items():
        for name, value in values.items():
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                wrong = f"[profile.{profile}] {name}; write a text"
    if wrong:
        raise CommandError(
            f"{path}: the value of {wrong.partition(';')[0]} is of the wrong kind",
            code="config_file",
            why="a text is expected there" if ";" not in wrong else wrong.partition("; ")[2],
            do=f"edit {path}",
        )
    return document


def change_file(path: Path, profile: str, changes: Mapping[str, str | None]) -> None:
    """Set (or with None remove) values of one profile; comments and order stay, mode is 0600."""
    import tomlkit

    document = _document(path)
    profiles = document.setdefault("profile", tomlkit.table(is_super_table=True))
    table = profiles.setdefault(profile, tomlkit.table())
    for name, value in changes.items():
        if value is None:
            table.pop(name, None)
        else:
            table[name] = value
    _write(path, tomlkit.dumps(document))


def choose_profile(path: Path, profile: str) -> None:
    """Make the profile the one that is used when nothing else is said."""
    import tomlkit

    document = _document(path)
    if "current" in document:
        document["current"] = profile
        text = tomlkit.dumps(document)
    else:
        # A top-level value must stand before the first table.
        text = f"current = {tomlkit.item(profile).as_string()}\n\n{tomlkit.dumps(document)}"
    _write(path, text)


def _document(path: Path) -> Any:
    import tomlkit

    read_file(path)
    return tomlkit.parse(read_text(path, "config_file")) if path.exists() else tomlkit.document()


def _write(path: Path, text: str) -> None:
    """Replace the file whole: a full disk or a crash leaves the old one."""
    path = path.resolve()  # a link to a file kept elsewhere stays a link
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes the file 0600, so the key is never readable by others, not even briefly.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".config-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}", code="config_file") from None
