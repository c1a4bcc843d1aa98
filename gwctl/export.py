"""gw.toml written from a running gateway."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from gwctl.commands.budget import SCOPES
from gwctl.desired import KINDS, Entry, Kind
from gwctl.errors import usage
from gwctl.plan import Names, in_file_shape, managed
from gwctl.session import Session
from gwctl.tables import Record
from gwctl.text import plain

_HEAD = """\
# Written by `gwctl export`. `gwctl apply -f` makes a gateway match it.
# Secrets are references (secret = "env:NAME" or "file:/path") and never values.
"""
_ORDER = ("slug", "id", "scope", "name", "vendor", "model", "provider", "tag", "interval", "kind")


def entries(session: Session, only: Sequence[str]) -> dict[str, list[Entry]]:
    """Every managed record, in the file's shape, without what holds nothing."""
    tables = [kind.table for kind in KINDS]
    for name in only:
        if name not in tables:
            raise usage(f"--only {name} is not known", do=f"one of: {', '.join(tables)}")
    names = Names(session)
    result: dict[str, list[Entry]] = {}
    for kind in KINDS:
        if only and kind.table not in only:
            continue
        shapes = [
            in_file_shape(kind, row, names)
            for row in managed(session, kind)
            if _has_owner(session, kind, row, names)
        ]
        result[kind.table] = [
            _trimmed(shape)
            for shape in sorted(_one_of_each(session, kind, shapes), key=_place(kind))
        ]
    return result


def _has_owner(session: Session, kind: Kind, record: Record, names: Names) -> bool:
    """Whether a budget's scope still has a name: of a deleted key nothing is left that it could limit."""
    scope, identity = str(record.get("scope")), record.get("scope_id")
    if kind.table != "budgets" or scope == "organization" or names.name(scope, identity):
        return True
    session.out.note(f"note: the budget of {scope} {identity} is left out; its {scope} is gone")
    return False


def _one_of_each(session: Session, kind: Kind, shapes: Sequence[Entry]) -> list[Entry]:
    """An entry stands for every record it could mean, so that `apply` takes the file."""
    kept: list[Entry] = []
    for shape in shapes:
        if any(kind.same(shape, other) for other in kept):
            name = f"{kind.word} {kind.name(shape)}"
            session.out.note(f"note: several records are called {name}; one of them is written")
        else:
            kept.append(shape)
    return kept


def _place(kind: Kind) -> Callable[[Entry], tuple[int, str]]:
    """Where an entry stands: by name, so that two gateways that hold the same give the same file."""

    def place(entry: Entry) -> tuple[int, str]:
        scope = str(entry.get("scope") or "").partition(":")[0]
        return (SCOPES.index(scope) if scope in SCOPES else 0, kind.name(entry))

    return place


def _trimmed(entry: Entry) -> Entry:
    """The entry in a steady order, identifying fields first."""
    # Nothing is the only value that is not written; 0, "", [] and false mean something.
    kept = {name: value for name, value in entry.items() if value is not None}
    first = [name for name in _ORDER if name in kept]
    return {name: kept[name] for name in [*first, *sorted(kept.keys() - set(first))]}


def document(found: Mapping[str, Sequence[Entry]]) -> str:
    """The file's text."""
    import tomlkit

    text = [_HEAD]
    for table, rows in found.items():
        for row in rows:
            text.append(f"[[{table}]]")
            for name, value in row.items():
                text.append(f"{name} = {_toml(value)}")
            if table in ("credentials", "byok") and "key_ref" not in row:
                text.append("# its key is stored in the gateway; a reference here would replace it")
            text.append("")
    written = "\n".join(text)
    tomlkit.parse(written)  # what we write must be readable
    return written


def _toml(value: Any) -> str:
    import tomlkit

    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return plain(value)
        case int():
            return str(value)
        case str():
            return tomlkit.item(value).as_string()
        case Mapping():
            inner = ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items() if v is not None)
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(_toml(item) for item in value)}]"
        case _:
            return tomlkit.item(str(value)).as_string()


def _key(name: str) -> str:
    import tomlkit

    return tomlkit.key(name).as_string() if name else '""'
