"""gw.toml: which tables it may hold, how each is read, and how the gateway's records look in it."""

import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from gwctl import numbers, schema, time_input
from gwctl.byok import BYOK
from gwctl.catalog import CREDENTIALS, ENDPOINTS, MODELS, PROVIDERS
from gwctl.commands.budget import ANY_SCOPE, BUDGETS, SCOPES
from gwctl.commands.webhook import DESTINATIONS
from gwctl.commands.workspace import WORKSPACES
from gwctl.errors import CommandError, usage
from gwctl.files import read_standard_input, read_text
from gwctl.keys import KEYS, is_live
from gwctl.records import Resource
from gwctl.tables import Record
from gwctl.text import plain

Entry = dict[str, Any]

CLEAR = "clear"
"""The field of every table that lists what shall be null."""

SECRET = "secret"  # noqa: S105 - the name of a field
"""The field of an own vendor key that names what gwctl reads and sends."""


@dataclass(frozen=True)
class Kind:
    """One table of the file and its counterpart in the API."""

    table: str
    resource: Resource
    required: tuple[str, ...]
    same: Callable[[Entry, Entry], bool]
    """Whether an entry of the file and a record in the file's shape are the same thing."""
    name: Callable[[Entry], str]
    without: frozenset[str] = frozenset()
    """Fields of the API that a file does not speak of."""
    named: Mapping[str, str] = field(default_factory=dict)
    """Fields of the API that a file holds under another name, because it has a name there and not an id."""
    stays: frozenset[str] = frozenset()
    """Fields that the API could change and a file does not: an entry is known by them."""
    refers: Mapping[str, str] = field(default_factory=dict)
    """Fields that name a record of another table."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    managed: Callable[[Record], bool] = lambda record: True
    """Which records of the gateway this table speaks of."""
    pruned: Callable[[Record], bool] = lambda record: True
    """Which of them --prune may delete."""

    @cached_property
    def fields(self) -> Mapping[str, schema.Field]:
        """What an entry may hold: what the API takes for a new or a changed record and shows of it."""
        shown = schema.fields(self.resource.record)
        taken = {**self._new, **self._changed}
        return {
            self.named.get(name, name): each
            for name, each in taken.items()
            if name in shown and name not in self.without
        }

    @cached_property
    def fixed(self) -> frozenset[str]:
        """Fields the API does not change on an existing record."""
        fixed = {self.named.get(name, name) for name in self._new.keys() - self._changed.keys()}
        return frozenset(fixed & self.fields.keys()) | self.stays

    @cached_property
    def empty(self) -> frozenset[str]:
        """Fields that may hold nothing (null)."""
        shown = schema.fields(self.resource.record)
        written = {self.named.get(name, name): name for name in self._changed}
        return frozenset(
            name
            for name, of_api in written.items()
            if name in self.fields
            and self._changed[of_api].may_be_null
            and shown[of_api].may_be_null
        )

    @cached_property
    def late(self) -> frozenset[str]:
        """Fields the API does not take for a new record; they are changed right after it was made."""
        return frozenset((self._changed.keys() - self._new.keys()) & self.fields.keys())

    @property
    def _new(self) -> Mapping[str, schema.Field]:
        return schema.fields(schema.taken("POST", self.resource.path))

    @property
    def _changed(self) -> Mapping[str, schema.Field]:
        return schema.fields(schema.taken("PATCH", f"{self.resource.path}/{{}}"))

    def field_of(self, name: str) -> schema.Field:
        """What the API says of a field of the file."""
        return self.fields.get(name, schema.Field("text"))

    @property
    def has_workspace(self) -> bool:
        """Whether an entry names a workspace by its slug."""
        return self.named.get("workspace_id") == "workspace"

    @property
    def word(self) -> str:
        return self.table.removesuffix("s")


def _by(*names: str) -> Callable[[Entry, Entry], bool]:
    return lambda one, two: all(one.get(name) == two.get(name) for name in names)


def _vendor_key(one: Entry, two: Entry) -> bool:
    """Without a name the entry means the provider's key, whatever it is called."""
    return one["provider"] == two.get("provider") and one.get("name") in (None, two.get("name"))


def _name_of_vendor_key(entry: Entry) -> str:
    return "/".join(filter(None, (entry["provider"], entry.get("name"))))


def _endpoint(one: Entry, two: Entry) -> bool:
    tags = [entry.get("tag") or entry.get("provider") for entry in (one, two)]
    return one["model"] == two.get("model") and tags[0] == tags[1]


def is_live_key(record: Record) -> bool:
    """Inference keys only: a file never takes away the management key that applies it."""
    return record.get("type", "inference") == "inference" and (
        is_live(record) or bool(record.get("disabled") and not record.get("rotated_to"))
    )


KINDS: tuple[Kind, ...] = (
    Kind(
        "providers",
        PROVIDERS,
        ("slug", "name", "adapter", "base_url"),
        same=_by("slug"),
        name=lambda entry: str(entry["slug"]),
    ),
    Kind(
        "credentials",
        CREDENTIALS,
        ("provider",),
        same=_vendor_key,
        name=_name_of_vendor_key,
        refers={"provider": "providers"},
    ),
    Kind(
        "models",
        MODELS,
        ("id", "name", "vendor", "context_length", "max_completion_tokens"),
        same=_by("id"),
        name=lambda entry: str(entry["id"]),
        refers={"successor": "models"},
        defaults={"input_modalities": ["text"], "output_modalities": ["text"]},
    ),
    Kind(
        "endpoints",
        ENDPOINTS,
        ("model", "provider", "upstream_model"),
        same=_endpoint,
        name=lambda entry: f"{entry['model']} {entry.get('tag') or entry['provider']}",
        refers={"model": "models", "provider": "providers"},
        defaults={"weight": 1},
    ),
    Kind(
        "workspaces",
        WORKSPACES,
        ("slug", "name"),
        same=_by("slug"),
        name=lambda entry: str(entry["slug"]),
        stays=frozenset({"slug"}),
        pruned=lambda record: record.get("slug") != "default",
    ),
    Kind(
        "keys",
        KEYS,
        ("name",),
        same=_by("name"),
        name=lambda entry: str(entry["name"]),
        without=frozenset({"type", "role", "user_id"}),
        named={"workspace_id": "workspace"},
        managed=is_live_key,
    ),
    Kind(
        "byok",
        BYOK,
        ("provider",),
        same=_vendor_key,
        name=_name_of_vendor_key,
        named={"workspace_id": "workspace"},
        refers={"provider": "providers"},
    ),
    Kind(
        "budgets",
        BUDGETS,
        ("scope", "interval", "limit"),
        same=_by("scope", "interval", "kind"),
        name=lambda entry: (
            f"{entry['scope']} {entry['interval']}"
            + (" soft" if entry.get("kind") == "soft" else "")
        ),
        without=frozenset({"scope_id"}),
    ),
    Kind(
        "webhooks",
        DESTINATIONS,
        ("name",),
        same=_by("name"),
        name=lambda entry: str(entry["name"]),
        # The address of a chat workspace is a secret that the gateway does not show again.
        without=frozenset({"format"}),
        managed=lambda record: record.get("type") != "chat",
    ),
)


def origin(path: Path) -> str:
    """How messages call the file; `-` is standard input."""
    return "standard input" if str(path) == "-" else str(path)


def read(path: Path) -> dict[str, list[Entry]]:
    """The file's tables; what is wrong is named with its table, number and field."""
    name = origin(path)
    text = read_standard_input("file") if str(path) == "-" else read_text(path, "file")
    try:
        document = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise CommandError(
            f"{name} is not valid TOML: {error}",
            code="file",
            do="mend that place; nothing was done",
        ) from None
    return parse(document, name)


def parse(document: Mapping[str, Any], origin: str) -> dict[str, list[Entry]]:
    kinds = {kind.table: kind for kind in KINDS}
    tables: dict[str, list[Entry]] = {}
    for table, entries in document.items():
        if table not in kinds:
            raise usage(f"{origin}: [[{table}]] is not known", do=_nearest(table, list(kinds)))
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise usage(f"{origin}: {table} must be written as [[{table}]]")
        where = [f"{origin}: [[{table}]] number {n}" for n in range(1, len(entries) + 1)]
        kind = kinds[table]
        read = [_entry(kind, entry, at) for entry, at in zip(entries, where, strict=True)]
        for index, entry in enumerate(read):
            if any(kind.same(entry, other) for other in read[:index]):
                raise usage(f"{where[index]}: {kind.name(entry)} stands there twice")
        tables[table] = read
    return tables


def _entry(kind: Kind, entry: Mapping[str, Any], at: str) -> Entry:
    read: Entry = {}
    for name, value in entry.items():
        if name == CLEAR:
            read |= dict.fromkeys(_cleared(kind, entry, f"{at}: {CLEAR}"))
        elif kind.table == "credentials" and name in ("secret", "key_ref", "key"):
            read["key_ref"] = _reference(value, at, by="the daemon")
        elif kind.table == "byok" and name in (SECRET, "key"):
            read[SECRET] = _reference(value, at, by="gwctl")
        elif name not in kind.fields:
            raise usage(f"{at}: there is no field {name}", do=_nearest(name, sorted(kind.fields)))
        else:
            read[name] = _value(value, f"{at}: {name}", kind.fields[name])
    missing = [name for name in kind.required if name not in read]
    if missing:
        raise usage(f"{at}: {missing[0]} is missing", do=f"add {missing[0]} = …")
    if SECRET in read and read.get("key_ref") is not None:
        raise usage(f"{at}: secret and key_ref exclude each other", do="take one of them out")
    if kind.table == "budgets":
        read.setdefault("kind", "hard")
        _check_scope(read["scope"], at)
    if kind.table == "webhooks":
        _check_destination(read, at)
    return read


def _cleared(kind: Kind, entry: Mapping[str, Any], at: str) -> list[str]:
    """The fields that shall hold nothing: TOML has no word for it, and leaving one out means to leave it alone."""
    names = entry[CLEAR]
    if not isinstance(names, list):
        raise usage(f"{at} must be a list of fields", do=f'for example {CLEAR} = ["expires_at"]')
    for name in names:
        if name not in kind.fields:
            raise usage(
                f"{at}: there is no field {name}", do=_nearest(str(name), sorted(kind.fields))
            )
        if name in entry:
            raise usage(f"{at}: {name} cannot be both given and empty", do="take it out of one")
        if name not in kind.empty:
            raise usage(
                f"{at}: {name} always holds something", do=f"give {name} the value it shall have"
            )
    return names


def _check_scope(value: Any, at: str) -> None:
    scope, _, name = str(value).partition(":")
    if scope not in SCOPES or (scope == "organization") != (not name):
        raise usage(f"{at}: scope {value} is not known", do=ANY_SCOPE)


def _check_destination(entry: Entry, at: str) -> None:
    """A webhook has a url and a mail destination an address; what has an address is mail without saying so."""
    kind = entry.setdefault("type", "email" if "address" in entry else "webhook")
    if kind == "chat":
        raise usage(
            f"{at}: the address of a chat channel is a secret and stands in no file",
            do="gwctl webhook add - --type chat",
        )
    wanted, other = ("address", "url") if kind == "email" else ("url", "address")
    if kind not in ("webhook", "email"):
        raise usage(f"{at}: type {kind} is not known", do="webhook or email")
    if other in entry:
        raise usage(f"{at}: {other} is not for type {kind}", do=f"give {wanted} instead")
    if wanted not in entry:
        raise usage(f"{at}: {wanted} is missing", do=f"add {wanted} = …")


def _reference(value: Any, at: str, *, by: str) -> str:
    if not isinstance(value, str) or not value.startswith(("env:", "file:")):
        raise usage(
            f"{at}: secrets stand here by reference only",
            do=f'write secret = "env:NAME" or "file:/path"; {by} reads it',
        )
    return value


def _value(value: Any, at: str, meant: schema.Field) -> Any:
    """TOML's values as the API's: times in UTC text, prices as decimal strings, numbers also from texts."""
    match value:
        case datetime():
            if value.tzinfo is None:
                raise usage(f"{at} has no offset", do="add Z for UTC")
            return time_input.iso(value)
        case Decimal() if not value.is_finite():
            raise usage(f"{at} is {value}, which is no number", do="write a number such as 50")
        case str() if meant.is_number:
            number = _number(value, at)
            return _count(number, at) if meant.is_whole else number
        case dict() if meant.is_price_list:
            return {name: _price(item, f"{at}.{name}") for name, item in value.items()}
        case dict():
            return {
                name: _value(item, f"{at}.{name}", schema.field(meant.record, name))
                for name, item in value.items()
            }
        case list():
            return [_value(item, at, meant.item) for item in value]
        case _:
            return value


def _price(value: Any, at: str) -> Any:
    """A price per token as the API's decimal string."""
    match value:
        case bool():
            raise usage(f"{at} is {value}, which is no price", do='write for example "0.0000025"')
        case str():
            _number(value, at)
            return value
        case dict():  # factors by field and value
            return {name: _price(item, f"{at}.{name}") for name, item in value.items()}
        case int() | Decimal() if Decimal(value).is_finite():
            return plain(Decimal(value))
        case _:
            return _value(value, at, schema.Field("text"))


def _number(text: str, at: str) -> Decimal:
    number = numbers.read(text)
    if number is None:
        raise usage(
            f"{at}: {text[:60]!r} is not a number",
            do=numbers.hint(text) or "write a number such as 12.50",
        )
    return number


def _count(number: Decimal, at: str) -> int:
    if number != number.to_integral_value():
        raise usage(f"{at}: {number} is not a whole number", do="write a number such as 120")
    return int(number)


def _nearest(name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {nearest[0]}?" if nearest else f"one of: {', '.join(known)}"
