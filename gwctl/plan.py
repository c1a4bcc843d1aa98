"""What would change to make the gateway match a file, and making it so."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from gwctl import tables
from gwctl.desired import KINDS, Entry, Kind
from gwctl.errors import CommandError, not_found, usage
from gwctl.records import address, data, fetch, same
from gwctl.session import Session
from gwctl.tables import Record
from gwctl.when import utc_now

Action = Literal["add", "change", "delete", "leave"]
_IDS = {"workspace": "ws_", "key": "key_"}
_SIGNS: Mapping[Action, str] = {"add": "+", "change": "~", "delete": "-", "leave": "-"}


@dataclass
class Change:
    """One record to add, change, delete, or (not in the file, no --prune) leave alone."""

    action: Action
    kind: Kind
    name: str
    entry: Entry = field(default_factory=dict)
    record: Record = field(default_factory=dict)
    fields: list[tuple[str, Any, Any]] = field(default_factory=list)
    """Field, before, after."""
    at: str = ""
    """Where the file speaks of it."""


class Names:
    """Ids of workspaces and keys by name and the other way round, read when first needed."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.known: dict[str, dict[str, str]] = {}

    def _all(self, scope: str) -> dict[str, str]:
        if scope not in self.known:
            rows, _ = fetch(self.session, f"/{scope}s", everything=True)
            self.known[scope] = {str(r.get("slug") or r["name"]): str(r["id"]) for r in rows}
        return self.known[scope]

    def id(self, scope: str, name: str) -> str:
        if name not in self._all(scope):
            self.known.pop(scope)  # it may have been made a moment ago by this very run
        if name not in self._all(scope) and name.startswith(_IDS[scope]):
            return name  # as `export` writes what no living name leads to
        if name not in self._all(scope):
            raise not_found(scope, name, do=f"gwctl {scope} create {name}")
        return self._all(scope)[name]

    def name(self, scope: str, identity: Any) -> str | None:
        return next((name for name, one in self._all(scope).items() if one == identity), None)


def in_file_shape(kind: Kind, record: Record, names: Names) -> Entry:
    """A record of the gateway as the file would write it."""
    entry = {name: record.get(name) for name in kind.fields}
    if kind.table == "keys":
        entry["workspace"] = names.name("workspace", record.get("workspace_id"))
    if kind.table == "budgets" and record.get("scope") != "organization":
        scope = str(record.get("scope"))
        found = names.name(scope, record.get("scope_id")) or record.get("scope_id")
        entry["scope"] = f"{scope}:{found}"
    return entry


def _wire(kind: Kind, entry: Entry, names: Names) -> dict[str, Any]:
    """An entry of the file as the API takes it."""
    body = dict(entry)
    if "workspace" in body and kind.table == "keys":
        body["workspace_id"] = names.id("workspace", body.pop("workspace"))
    if kind.table == "budgets":
        scope, _, name = str(body["scope"]).partition(":")
        body["scope"] = scope
        if name:
            body["scope_id"] = names.id(scope, name)
    if kind.table == "webhooks":
        body.setdefault("type", "webhook")
    return body


def make(
    session: Session,
    wanted: Mapping[str, list[Entry]],
    *,
    prune: bool = False,
    only_missing: bool = False,
    origin: str = "",
) -> list[Change]:
    """Compare the file with the gateway, table by table in the order they depend on each other.

    `origin` is the file's name for messages.
    """
    names = Names(session)
    changes: list[Change] = []
    for kind in KINDS:
        if kind.table not in wanted:
            continue
        actual = [(in_file_shape(kind, r, names), r) for r in managed(session, kind)]
        claimed: list[Record] = []
        for entry in _ordered(kind, wanted[kind.table]):
            # Of several records of one name the live one is changed, and none of them is pruned.
            meant = [pair for pair in actual if kind.same(entry, pair[0])]
            at = _place(origin, kind, wanted[kind.table], entry)
            if not meant:
                changes.append(Change("add", kind, kind.name(entry), entry=entry, at=at))
                continue
            claimed += [record for _, record in meant]
            shape, record = meant[0]
            with _named(at):
                fields = [] if only_missing else _differences(kind, entry, shape)
            if fields:
                changes.append(
                    Change("change", kind, kind.name(entry), entry, record, fields=fields, at=at)
                )
        if only_missing:
            continue
        for shape, record in actual:
            if not any(record is one for one in claimed):
                action: Action = "delete" if prune else "leave"
                changes.append(Change(action, kind, kind.name(shape), record=record))
    return changes


def managed(session: Session, kind: Kind) -> list[Record]:
    """The gateway's records of one table, those that a name means first."""
    rows, _ = fetch(session, kind.resource.path, kind.resource.lookup, everything=True)
    return sorted(filter(kind.managed, rows), key=kind.resource.rank, reverse=True)


def _place(origin: str, kind: Kind, entries: Sequence[Entry], entry: Entry) -> str:
    """`gw.toml: [[keys]] number 2`; nothing for what no file of the user's says."""
    number = next(n for n, one in enumerate(entries, start=1) if one is entry)
    return f"{origin}: [[{kind.table}]] number {number}" if origin else ""


@contextmanager
def _named(at: str) -> Iterator[None]:
    """A refusal says which record of the file it is about."""
    try:
        yield
    except CommandError as error:
        error.what = f"{at}: {error.what}" if at else error.what
        raise


def _ordered(kind: Kind, entries: Sequence[Entry]) -> list[Entry]:
    """Models after their successors: a successor must exist when it is named."""
    if kind.table != "models":
        return list(entries)
    by_id = {entry["id"]: entry for entry in entries}
    ordered: list[Entry] = []

    def put(entry: Entry, waiting: tuple[str, ...]) -> None:
        successor = by_id.get(entry.get("successor", ""))
        if successor is not None and successor["id"] not in waiting:
            put(successor, (*waiting, entry["id"]))
        if entry not in ordered:
            ordered.append(entry)

    for entry in entries:
        put(entry, (entry["id"],))
    return ordered


def _differences(kind: Kind, entry: Entry, shape: Entry) -> list[tuple[str, Any, Any]]:
    found = [
        (name, shape.get(name, kind.defaults.get(name)), value)
        for name, value in entry.items()
        if not _same(shape.get(name, kind.defaults.get(name)), value)
    ]
    for name, before, _ in found:
        if name in kind.fixed:
            raise usage(
                f"{name} of {kind.word} {kind.name(entry)} cannot change (it is {before})",
                do=f"keep it as it is in the file, or write a new {kind.word} of another name",
            )
    return found


def _same(before: Any, after: Any) -> bool:
    """Null, an empty list and false are one thing: the file says nothing in all three cases."""
    empty: tuple[Any, ...] = (None, [], {}, False, "")
    return (before in empty and after in empty) or same(before, after)


def apply(session: Session, changes: Sequence[Change]) -> Iterator[tuple[Change, dict[str, Any]]]:
    """Make the changes: additions in order, deletions in reverse. Gives each back as it is made."""
    names = Names(session)
    deletions = [change for change in changes if change.action == "delete"]
    for change in [*(c for c in changes if c.action != "delete"), *reversed(deletions)]:
        with _named(change.at):
            described = _make(session, change, names)
        yield change, described


def _make(session: Session, change: Change, names: Names) -> dict[str, Any]:
    """Make one change; its description holds the secret that is shown once."""
    described, resource = as_json(change), change.kind.resource
    match change.action:
        case "add":
            reply = session.api.post(
                resource.path,
                _wire(change.kind, change.entry, names),
                idempotency_key=session.next_idempotency_key(),
            )
            once = resource.shown_once
            described["id"] = data(reply).get("id")
            if once and reply.get(once):
                described[once] = reply[once]
        case "change":
            session.api.request("PATCH", address(resource, change.record), body=_patch(change))
        case "delete":
            session.api.request("DELETE", address(resource, change.record))
        case "leave":
            pass
    return described


def _patch(change: Change) -> dict[str, Any]:
    """Only what differs; a price is one dated whole, so it is sent complete."""
    body = {}
    for name, before, after in change.fields:
        merged = name == "pricing" and isinstance(before, Mapping)
        body[name] = {**before, **after} if merged else after
    return body


def lines(change: Change) -> list[str]:
    """How one change reads: a line, or a line per field."""
    head = f"{_SIGNS[change.action]} {change.kind.word:<10} {change.name}"
    if change.action == "leave":
        return [f"{head}   (only with --prune)"]
    if change.action != "change":
        return [head]
    result = []
    for name, before, after in change.fields:
        if isinstance(after, Mapping) and isinstance(before, Mapping | None):
            before = before or {}
            result += [
                f"{head}   {name}.{part} {_shown(f'{name}.', part, before.get(part))}"
                f" -> {_shown(f'{name}.', part, value)}"
                for part, value in after.items()
                if not same({part: before.get(part)}, {part: value}, price=True)
            ]
        else:
            result.append(
                f"{head}   {name} {_shown('', name, before)} -> {_shown('', name, after)}"
            )
    return result


def _shown(prefix: str, name: str, value: Any) -> str:
    kind = tables.field_kind(prefix, name)
    return str(value or "-") if kind == "time" else tables.cell(value, kind, utc_now())


def as_json(change: Change) -> dict[str, Any]:
    described: dict[str, Any] = {
        "action": change.action,
        "kind": change.kind.word,
        "name": change.name,
    }
    if change.fields:
        described["fields"] = {n: {"before": b, "after": a} for n, b, a in change.fields}
    return described
