"""What the file and the environment say, each value with the place it came from, judged by name and type alone."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from gwd.core.text_file import NotUtf8Error, read_text
from gwd.settings.sections import SECTIONS, as_toml_value, fields_of

PREFIX: Final = "GWD_"
OTHER_NAMES: Final = frozenset({"GWD_CONFIG"})  # what the commands themselves read
_SERVICE_NAME: Final = re.compile(
    r"_SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_|$)"
)
_SERVICE_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://")


class SettingsError(RuntimeError):
    """One line: the place (file or variable), the section and key, what is wrong, the remedy."""


class RawValue(Struct, frozen=True):
    """A value as somebody wrote it, and where."""

    place: str
    value: Any
    text: bool


def from_file(config: Path) -> dict[str, dict[str, RawValue]]:
    try:
        content = tomllib.loads(read_text(config))
    except FileNotFoundError:
        raise SettingsError(
            f"{config} does not exist; run `gwd init --dir {config.parent}` or name the file with --config"
        ) from None
    except OSError as error:
        raise SettingsError(f"{config} cannot be read: {error.strerror}") from None
    except NotUtf8Error as error:
        raise SettingsError(f"{config} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{config} is not valid TOML: {error}") from None
    given: dict[str, dict[str, RawValue]] = {name: {} for name in SECTIONS}
    for section, keys in content.items():
        if section not in SECTIONS:
            raise SettingsError(
                f"{config}: [{section}] is no section; {_nearest(section, SECTIONS)}"
            )
        if not isinstance(keys, dict):
            raise SettingsError(f"{config}: `{section}` must be a table; write [{section}]")
        known = fields_of(section)
        for key, value in keys.items():
            if key not in known:
                raise SettingsError(
                    f"{config}: [{section}] {key} is no setting; {_nearest(key, known)}"
                )
            given[section][key] = RawValue(f"{config}: [{section}] {key}", value, text=False)
    return given


def from_environment(environ: Mapping[str, str]) -> dict[tuple[str, str], RawValue]:
    """Every variable that begins with `GWD_` is a setting, but for what an orchestrator says of a service `gwd`."""
    known = {f"GWD_{s}_{k}".upper(): (s, k) for s in SECTIONS for k in fields_of(s)}
    given: dict[tuple[str, str], RawValue] = {}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        value = environ[variable]
        if variable in OTHER_NAMES or _names_a_service(variable, value):
            continue
        name = variable
        if variable not in known and variable.endswith("_FILE"):
            name = variable.removesuffix("_FILE")
            value = _content(variable, value)
        if name not in known:
            raise SettingsError(f"{variable} is no setting; {_nearest(variable, known)}")
        if known[name] in given:
            raise SettingsError(f"{name} and {name}_FILE are both set; unset one")
        given[known[name]] = RawValue(variable, value, text=True)
    return given


def _names_a_service(variable: str, value: str) -> bool:
    """Kubernetes and linked containers name each service's address: GWD_SERVICE_HOST, GWD_PORT=tcp://10.0.0.1:80 …"""
    if _SERVICE_NAME.search(variable):
        return True
    return variable.endswith("_PORT") and _SERVICE_ADDRESS.match(value) is not None


def _content(variable: str, path: str) -> str:
    try:
        text = read_text(Path(path)).strip()
    except NotUtf8Error as error:
        raise SettingsError(f"{variable}: {path} cannot be read: {error}") from None
    except OSError as error:
        place = path or "an empty path"
        raise SettingsError(f"{variable}: {place} cannot be read: {error.strerror}") from None
    if not text:
        raise SettingsError(f"{variable}: {path} is empty; write the value into it or unset it")
    return text


def section_of(name: str, given: Mapping[str, RawValue]) -> Struct:
    fields = fields_of(name)
    values = {fields[key].name: _value(fields[key], item) for key, item in given.items()}
    return SECTIONS[name](**values)


def _value(field: msgspec.structs.FieldInfo, given: RawValue) -> Any:
    value = given.value
    if given.text and isinstance(field.default, tuple):
        value = _list(given)
    if given.text and not value and field.name.endswith("_ref"):
        raise SettingsError(f"{given.place}: it is empty; name the secret's place or unset it")
    try:
        return msgspec.convert(value, field.type, strict=not given.text)
    except msgspec.ValidationError as error:
        reason = str(error)
    raise SettingsError(f"{given.place}: {reason}; write {_remedy(field)}")


def _list(given: RawValue) -> Any:
    """A list as the file writes it, or its members with commas between."""
    if not given.value.lstrip().startswith("["):
        return [part.strip() for part in given.value.split(",") if part.strip()]
    try:
        return tomllib.loads(f"list = {given.value}")["list"]
    except tomllib.TOMLDecodeError:
        raise SettingsError(
            f'{given.place}: {given.value} is no list; write a,b or ["a", "b"]'
        ) from None


def _remedy(field: msgspec.structs.FieldInfo) -> str:
    if isinstance(field.default, bool):
        return "true or false"
    choices = [item for item in get_args(field.type) if get_origin(item) is Literal]
    if choices:
        return "one of " + ", ".join(map(as_toml_value, get_args(choices[0])))
    if isinstance(field.default, tuple):
        return f"a list of texts, for example {as_toml_value(field.default or ('10.0.0.0/8',))}"
    return f"a value such as the default, {as_toml_value(field.default)}"


def _nearest(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"known are: {', '.join(known)}"
