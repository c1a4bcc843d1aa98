"""What would change to make the gateway match a file, and making it so."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from gwctl import byok, implausible_prices, schema, secret_input, tables
from gwctl.commands.budget import NAMED_SCOPES
from gwctl.desired import KINDS, SECRET, Entry, Kind
from gwctl.errors import CommandError, not_found, usage
from gwctl.keys import KEYS
from gwctl.policy_names import PolicyNames
from gwctl.records import address, data, fetch, same, same_field
from gwctl.session import Session
from gwctl.tables import Record
from gwctl.time_input import utc_now

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

    @property
    def given(self) -> Entry:
        """What is sent, as the file has it."""
        return {name: after for name, _, after in self.fields} or self.entry

    @property
    def slip(self) -> str:
        """What in a new price looks like a slip of the hand; empty when nothing does."""
        after = {name: value for name, _, value in self.fields} if self.fields else self.entry
        before = self.record.get("pricing") or {}
        prices = [
            after.get("pricing"),
            *(one["pricing"] for one in after.get("pricing_tiers") or ()),
        ]
        found = (
            implausible_prices.found(before, one) for one in prices if isinstance(one, Mapping)
        )
        return next(filter(None, found), "")


class Names:
    """Ids of workspaces and keys by name and the other way round, read when first needed; tags and users are names."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.known: dict[str, dict[str, str]] = {}
        self.rows: dict[str, dict[str, Record]] = {}

    def _all(self, scope: str) -> dict[str, str]:
        """Ids by name; of several keys of one name that of the key a person would mean."""
        if scope not in self.known:
            query = KEYS.lookup if scope == "key" else None
            rows, _ = fetch(self.session, f"/{scope}s", query, everything=True)
            if scope == "key":
                rows.sort(key=KEYS.rank)
            self.rows[scope] = {str(row["id"]): row for row in rows}
            self.known[scope] = {str(r.get("slug") or r["name"]): str(r["id"]) for r in rows}
        return self.known[scope]

    def id(self, scope: str, name: str) -> str:
        if scope in NAMED_SCOPES:
            return name
        if name not in self._all(scope):
            self.known.pop(scope)  # it may have been made a moment ago by this very run
        if name not in self._all(scope) and name.startswith(_IDS[scope]):
            return name  # as `export` writes what no living name leads to
        if name not in self._all(scope):
            raise not_found(scope, name, do=f"gwctl {scope} create {name}")
        return self._all(scope)[name]

    def name(self, scope: str, identity: Any) -> str | None:
        """The name that leads to this record, or for a key that was rotated to the one in its place."""
        if scope in NAMED_SCOPES:
            return str(identity)
        known = self._all(scope)
        row = self.rows[scope].get(str(identity)) or {}
        name = str(row.get("slug") or row.get("name"))
        return name if known.get(name) == identity or row.get("rotated_to") else None


def in_file_shape(kind: Kind, record: Record, names: Names) -> Entry:
    """A record of the gateway as the file would write it."""
    entry = {name: record[name] for name in kind.fields if name in record}
    if kind.has_workspace:
        identity = record.get("workspace_id")
        entry["workspace"] = None if identity is None else names.name("workspace", identity)
    if kind.table == "budgets" and record.get("scope") != "organization":
        scope = str(record.get("scope"))
        found = names.name(scope, record.get("scope_id")) or record.get("scope_id")
        entry["scope"] = f"{scope}:{found}"
    return entry


def _wire(kind: Kind, entry: Entry, names: Names) -> dict[str, Any]:
    """An entry of the file as the API takes it."""
    body = {name: value for name, value in entry.items() if value is not None}
    if "workspace" in body and kind.has_workspace:
        body["workspace_id"] = names.id("workspace", body.pop("workspace"))
    if SECRET in body:
        body["key"] = secret_input.referenced(body.pop(SECRET))
    if kind.table == "budgets":
        scope, _, name = str(body["scope"]).partition(":")
        body["scope"] = scope
        if name:
            body["scope_id"] = names.id(scope, name)
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
                with _named(at):
                    _require_secret(kind, entry)
                changes.append(Change("add", kind, kind.name(entry), entry=entry, at=at))
                continue
            claimed += [record for _, record in meant]
            shape, record = meant[0]
            with _named(at):
                fields = [] if only_missing else _differences(kind, entry, shape)
                if not only_missing and SECRET in entry:
                    fields += _another_key(session, entry[SECRET], record)
            if fields:
                changes.append(
                    Change("change", kind, kind.name(entry), entry, record, fields=fields, at=at)
                )
        if only_missing:
            continue
        for shape, record in actual:
            if not any(record is one for one in claimed):
                action: Action = "delete" if prune and kind.pruned(record) else "leave"
                changes.append(Change(action, kind, kind.name(shape), record=record))
    if not only_missing:
        _check_references(session, names, wanted, changes)
    return changes


def _check_references(
    session: Session,
    names: Names,
    wanted: Mapping[str, list[Entry]],
    changes: Sequence[Change],
) -> None:
    """Every name that a change needs leads somewhere; found out before the first change is made."""
    identity = {"providers": "slug", "models": "id", "workspaces": "slug", "keys": "name"}
    known = {
        table: {str(entry[field_]) for entry in wanted.get(table, [])}
        for table, field_ in identity.items()
    }
    read: set[str] = set()

    def check(table: str, name: str) -> None:
        word = table.removesuffix("s")
        if name in known[table] or name.startswith(_IDS.get(word, "\0")):
            return
        if table not in read:
            read.add(table)
            kind = next(one for one in KINDS if one.table == table)
            rows, _ = fetch(session, kind.resource.path, everything=True)
            known[table] |= {str(row.get(identity[table])) for row in rows}
        if name not in known[table]:
            verb = "create" if word in _IDS else "add"
            raise not_found(
                word, name, do=f"gwctl {word} {verb} {name}, or [[{table}]] in the file"
            )

    lists = PolicyNames(session, wanted)
    for change in changes:
        if change.action not in ("add", "change"):
            continue
        given = change.given
        with _named(change.at):
            for field_, table in change.kind.refers.items():
                if given.get(field_) is not None:
                    check(table, str(given[field_]))
            lists.check(change.record, given)
            if change.kind.has_workspace and given.get("workspace") is not None:
                check("workspaces", str(given["workspace"]))
            if change.kind.table == "budgets" and change.action == "add":
                scope, _, name = str(change.entry["scope"]).partition(":")
                if name and scope not in NAMED_SCOPES:
                    check(f"{scope}s", name)


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
        if name != SECRET
        and not _same(kind.field_of(name), name, shape.get(name, kind.defaults.get(name)), value)
    ]
    for name, before, _ in found:
        if name in kind.fixed:
            raise usage(
                f"{name} of {kind.word} {kind.name(entry)} cannot change (it is {before})",
                do=f"keep it as it is in the file, or write a new {kind.word} of another name",
            )
    return found


def _require_secret(kind: Kind, entry: Entry) -> None:
    """What a new own vendor key needs is there, before the first change is made."""
    if kind.table != "byok":
        return
    if SECRET in entry:
        secret_input.referenced(entry[SECRET])
    elif entry.get("key_ref") is None:
        raise usage(
            f"{kind.name(entry)} is new and has no secret",
            do='add secret = "env:NAME" or "file:/path"; gwctl reads and sends it',
        )


def _another_key(session: Session, reference: str, record: Record) -> list[tuple[str, Any, Any]]:
    """Whether the gateway holds another key than the one named, as far as its label tells."""
    try:
        key = secret_input.referenced(reference)
    except CommandError as error:
        session.out.note(f"note: {record['provider']}/{record['name']} keeps its key: {error.what}")
        return []
    label = byok.label_of(key)
    return [] if label == record.get("label") else [(SECRET, record.get("label"), label)]


def _same(field_: schema.Field, name: str, before: Any, after: Any) -> bool:
    if name == "pricing" and isinstance(before, Mapping) and isinstance(after, Mapping):
        after = {**before, **after}  # of a price, too, the file changes only what it names
    return same_field(field_, before, after)


def apply(
    session: Session, changes: Sequence[Change], *, accept: bool = False
) -> Iterator[tuple[Change, dict[str, Any]]]:
    """Make the changes: additions in order, deletions in reverse. Gives each back as it is made.

    `accept` says that prices which look like a slip are meant.
    """
    names = Names(session)
    deletions = [change for change in changes if change.action == "delete"]
    others = sorted((c for c in changes if c.action != "delete"), key=_waits_for_endpoints)
    for change in [*others, *reversed(deletions)]:
        with _named(change.at):
            described = _make(session, change, names, accept=accept)
        yield change, described


def _waits_for_endpoints(change: Change) -> bool:
    """A key for an endpoint's own address is taken once the endpoint is there; other keys come before endpoints."""
    return change.kind.table == "credentials" and change.entry.get("base_url") is not None


def _make(session: Session, change: Change, names: Names, *, accept: bool) -> dict[str, Any]:
    """Make one change; its description holds the secret that is shown once."""
    described, resource = as_json(change), change.kind.resource
    match change.action:
        case "add":
            wire = _wire(change.kind, change.entry, names)
            late = {name: wire.pop(name) for name in change.kind.late & wire.keys() if wire[name]}
            for name in change.kind.late & wire.keys():
                del wire[name]
            reply = session.api.post(
                resource.path,
                _accepted(wire, accept=accept),
                idempotency_key=session.next_idempotency_key(),
            )
            once = resource.shown_once
            described["id"] = data(reply).get("id")
            if once and reply.get(once):
                described[once] = reply[once]
            if late:
                session.api.request("PATCH", address(resource, data(reply)), body=late)
        case "change":
            body = _accepted(_patch(change, names), accept=accept)
            session.api.request("PATCH", address(resource, change.record), body=body)
        case "delete":
            session.api.request("DELETE", address(resource, change.record))
        case "leave":
            pass
    return described


def _accepted(body: dict[str, Any], *, accept: bool) -> dict[str, Any]:
    priced = accept and body.keys() & {"pricing", "pricing_tiers"}
    return {**body, "accept": True} if priced else body


def _patch(change: Change, names: Names) -> dict[str, Any]:
    """Only what differs; a price is one dated whole, and where a key goes is said together with the key."""
    body = {}
    for name, before, after in change.fields:
        merged = name == "pricing" and isinstance(before, Mapping) and isinstance(after, Mapping)
        body[name] = {**before, **after} if merged else after
    if "workspace" in body and change.kind.has_workspace:
        slug: Any = body.pop("workspace")
        body["workspace_id"] = None if slug is None else names.id("workspace", slug)
    if "base_url" in body and change.entry.get("key_ref") is not None:
        body["key_ref"] = change.entry["key_ref"]
    if SECRET in change.entry and (SECRET in body or "base_url" in body):
        body.pop(SECRET, None)
        body["key"] = secret_input.referenced(change.entry[SECRET])
    return body


def lines(change: Change) -> list[str]:
    """How one change reads: a line, or a line per field."""
    head = f"{_SIGNS[change.action]} {change.kind.word:<10} {change.name}"
    if change.action == "leave":
        return [f"{head}   (only with --prune)"]
    slip = f"   (needs --accept: {change.slip})" if change.slip else ""
    if change.action != "change":
        return [f"{head}{slip}"]
    result = [f"{head}{slip}"] if slip else []
    for name, before, after in change.fields:
        field_ = change.kind.field_of(name)
        if isinstance(after, Mapping) and isinstance(before, Mapping | None):
            before = before or {}
            result += [
                f"{head}   {name}.{part} {_shown(field_, part, before.get(part))}"
                f" -> {_shown(field_, part, value)}"
                for part, value in after.items()
                if not same({part: before.get(part)}, {part: value}, price=True)
            ]
        else:
            result.append(
                f"{head}   {name} {_unambiguous(field_, before)} -> {_unambiguous(field_, after)}"
            )
    return result


def _shown(field_: schema.Field, part: str, value: Any) -> str:
    return _unambiguous(schema.field(field_.record, part), value)


def _unambiguous(field_: schema.Field, value: Any) -> str:
    return tables.unambiguous(value, field_.kind, utc_now())


def as_json(change: Change) -> dict[str, Any]:
    described: dict[str, Any] = {
        "action": change.action,
        "kind": change.kind.word,
        "name": change.name,
    }
    if change.fields:
        described["fields"] = {n: {"before": b, "after": a} for n, b, a in change.fields}
    return described
