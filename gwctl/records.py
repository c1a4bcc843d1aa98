"""The one way to list, show, create, update and delete records of any noun."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gwctl import tables, text
from gwctl.client import quote
from gwctl.errors import CommandError, not_found, usage
from gwctl.session import Session
from gwctl.tables import Column, Record
from gwctl.waiting import waiting
from gwctl.when import utc_now

PAGE = 100


@dataclass(frozen=True)
class Resource:
    """What the shared functions need to know about one kind of record."""

    noun: str
    path: str
    columns: tuple[Column, ...]
    id_prefix: tuple[str, ...] = ()
    """References that start like one of these go straight into the path."""
    by_path: bool = False
    """The API takes the name itself in the path (slugs, model ids)."""
    names: tuple[str, ...] = ("name",)
    """Fields a reference may match when it is not an id."""
    lookup: Mapping[str, Any] = field(default_factory=dict)
    """Query sent while looking a name up."""
    lookup_by: str = ""
    """The parameter of that query that takes the name itself, where the API has one."""
    shown_once: str = ""
    """The field beside `data` that is shown once after creation."""
    created: str = ""
    """What is said above it; `Key created.` otherwise."""
    rank: Callable[[Record], int] = lambda record: 0
    """Which of several records of one name is meant: those of the highest rank."""
    summary: Callable[[Record], str] = lambda record: ""
    """The line under a new secret."""

    def title(self, record: Record) -> str:
        return str(next((record[n] for n in self.names if record.get(n)), record.get("id", "")))


def data(reply: Any) -> Any:
    """What an envelope holds."""
    return reply["data"] if isinstance(reply, dict) and "data" in reply else reply


def fetch(
    session: Session,
    path: str,
    query: Mapping[str, Any] | None = None,
    *,
    limit: int = 30,
    everything: bool = False,
) -> tuple[list[Any], int | None]:
    """Records of a list endpoint, page by page, and how many there are."""
    rows: list[Any] = []
    total: int | None = None
    wanted = limit
    quiet = session.flags.quiet or session.flags.debug
    with waiting(f"reading {path}", show=not quiet) as progress:
        while everything or len(rows) < wanted:
            size = PAGE if everything else min(PAGE, wanted - len(rows))
            reply = session.api.get(path, {**(query or {}), "limit": size, "offset": len(rows)})
            page = data(reply)
            if not isinstance(page, list):
                raise CommandError(f"GET {path} did not answer with a list", code="bad_reply")
            total = reply.get("total_count", total) if isinstance(reply, dict) else total
            rows += page
            progress.reached(len(rows), total)
            # A server that ignores the paging sends everything at once.
            if len(page) != size or (total is not None and len(rows) >= total):
                break
    return (rows if everything else rows[:wanted]), total


def find(session: Session, resource: Resource, reference: str) -> dict[str, Any]:
    """The record a person means by a name or an id; exit 3 when there is none."""
    is_id = reference.startswith(resource.id_prefix)
    is_hash = len(reference) == 64 and all(c in "0123456789abcdef" for c in reference)
    if resource.by_path or is_id or is_hash:
        return _get(session, resource, reference)
    query = {**resource.lookup, **({resource.lookup_by: reference} if resource.lookup_by else {})}
    rows, _ = fetch(session, resource.path, query, everything=True)
    matches = [row for row in rows if _matches(resource, row, reference)]
    best = max((resource.rank(row) for row in matches), default=0)
    matches = [row for row in matches if resource.rank(row) == best]
    if not matches:
        raise not_found(resource.noun, reference)
    if len(matches) > 1:
        ids = ", ".join(str(row.get("id")) for row in matches)
        raise usage(
            f"several {resource.noun} records are called {reference}",
            do=f"use an id: {ids}",
            code="ambiguous",
        )
    return dict(matches[0])


def _get(session: Session, resource: Resource, identity: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = data(session.api.get(f"{resource.path}/{quote(identity)}"))
    except CommandError as error:
        if error.code == "not_found" and not error.do:
            error.do = f"gwctl {resource.noun} list"
        raise
    return found


def _matches(resource: Resource, row: Record, reference: str) -> bool:
    named = [str(row.get(name) or "").lower() for name in resource.names]
    return reference.lower() in named or reference == row.get("id")


def address(resource: Resource, record: Record) -> str:
    """The path of one record."""
    key = record.get("id") or record.get("slug") or record.get("user_id")
    return f"{resource.path}/{quote(str(key or ''))}"


def list_records(
    session: Session, resource: Resource, query: Mapping[str, Any] | None = None
) -> None:
    rows, total = fetch(
        session, resource.path, query, limit=session.limit, everything=session.everything
    )
    session.out.records(rows, resource.columns, total=total, noun=resource.noun)


def show_record(session: Session, resource: Resource, reference: str) -> None:
    session.out.record(find(session, resource, reference))


def send(session: Session, method: str, path: str, body: object = None, *, what: str) -> Any | None:
    """Make one change; with --dry-run only say so, and return None."""
    if session.dry_run:
        session.found_changes = True
        if session.out.shape.machine:
            session.out.data({"dry_run": True, "method": method, "path": path, "body": body})
            return None
        session.out.line(f"would {what}   ({method} {path})")
        for name, value, kind in tables.fields(body if isinstance(body, dict) else {}):
            session.out.line(f"  {name}  {_shown(name, value, kind)}")
        session.out.note("Nothing was done.")
        return None
    if method == "POST":
        return session.api.post(path, body, idempotency_key=session.next_idempotency_key())
    return session.api.request(method, path, body=body)


def create_record(
    session: Session, resource: Resource, body: Mapping[str, Any], *, path: str | None = None
) -> Record | None:
    """Create one record and print it, with its secret if it has one."""
    name = resource.title(body) or str(body.get("email") or body.get("url") or "")
    what = f"create {resource.noun} {name}".strip()
    reply = send(session, "POST", path or resource.path, dict(body), what=what)
    if reply is None:
        return None
    record: Record = data(reply)
    if not resource.shown_once:
        report(session, record, f"{resource.noun} {resource.title(record)} created")
        return record
    title = resource.created or f"{resource.noun.capitalize()} created."
    print_secret(session, resource, reply, title)
    return record


def print_secret(session: Session, resource: Resource, reply: Any, title: str) -> None:
    """Print the secret of a reply; exit 1 when a replayed request cannot show it again."""
    record = data(reply)
    secret = reply.get(resource.shown_once)
    if not secret:
        raise CommandError(
            f"{resource.noun} {resource.title(record)} exists, but its secret was already shown",
            code="secret_not_shown",
            why="the same request was made before; secrets are shown once and not stored",
            do=f"gwctl {resource.noun} rotate {record.get('id', '')}",
        )
    session.out.secret(title, resource.shown_once, secret, record, resource.summary(record))


def report(session: Session, record: Any, message: str) -> None:
    """After a change: the record with --json, its id with -q, else one line."""
    if session.out.shape.machine or session.out.shape.quiet:
        session.out.record(record if isinstance(record, dict) else {"data": record})
        return
    identity = record.get("id") if isinstance(record, dict) else None
    suffix = f"   id {identity}" if identity and str(identity) not in message else ""
    session.out.line(message + suffix)


def existing(session: Session, resource: Resource, name: str) -> dict[str, Any] | None:
    """The record of that name, for --if-absent."""
    try:
        return find(session, resource, name)
    except CommandError as error:
        if error.code in ("not_found", "model_not_found"):
            return None
        raise


def update_record(
    session: Session, resource: Resource, reference: str, changes: Mapping[str, Any]
) -> None:
    """PATCH what differs, and say what changed."""
    if not changes:
        raise usage("nothing to change was given", do=f"gwctl {resource.noun} update --help")
    before = find(session, resource, reference)
    patch_record(session, resource, before, changes)


def patch_record(
    session: Session, resource: Resource, before: Record, changes: Mapping[str, Any]
) -> None:
    title = resource.title(before)
    lines = [
        f"  {name}  {_shown_field(name, before.get(name))} -> {_shown_field(name, value)}"
        for name, value in changes.items()
        if not same(before.get(name), value)
    ]
    path = address(resource, before)
    if session.dry_run and not lines:
        session.out.note(f"{resource.noun} {title} is already so; nothing would change")
        return
    if session.dry_run and not session.out.shape.machine:
        session.found_changes = True
        session.out.line(f"~ {resource.noun} {title}")
    else:
        reply = send(session, "PATCH", path, dict(changes), what=f"update {resource.noun} {title}")
        if reply is None:
            return
        report(session, data(reply), f"{resource.noun} {title} updated")
    if not session.out.shape.machine and not session.out.shape.quiet:
        for line in lines:
            session.out.line(line)


def delete_record(
    session: Session, resource: Resource, reference: str, *, verb: str = "delete"
) -> None:
    """Delete after the name was typed (or --yes)."""
    record = find(session, resource, reference)
    title = resource.title(record)
    if not session.dry_run:
        session.confirm_name(f"{verb} {resource.noun}", title)
    reply = send(
        session, "DELETE", address(resource, record), what=f"{verb} {resource.noun} {title}"
    )
    if session.dry_run:
        return
    report(session, reply or {"deleted": True}, f"{resource.noun} {title} {verb.rstrip('e')}ed")


def act(
    session: Session,
    resource: Resource,
    reference: str,
    action: str,
    body: object = None,
    *,
    done: str,
) -> Any | None:
    """POST an action of one record (`test`, `drain`, …) and report it."""
    record = find(session, resource, reference)
    title = resource.title(record)
    path = f"{address(resource, record)}/{action}"
    reply = send(session, "POST", path, body, what=f"{action} {resource.noun} {title}")
    if reply is not None:
        report(session, data(reply), f"{resource.noun} {title} {done}")
    return reply


def same(one: Any, two: Any) -> bool:
    """Whether two values mean the same: 50 and 50.00, one moment in two offsets, lists as sets."""
    first, second = text.decimal(one), text.decimal(two)
    if first is not None and second is not None:
        return first == second
    moment, other = text.parse_time(one), text.parse_time(two)
    if moment is not None and other is not None:
        return moment == other
    if isinstance(one, list) and isinstance(two, list):
        return sorted(map(str, one)) == sorted(map(str, two))
    if isinstance(two, Mapping) and isinstance(one, Mapping):
        return all(same(one.get(name), value) for name, value in two.items())
    return bool(one == two)


def _shown_field(name: str, value: Any) -> str:
    return _shown(name, value, tables.field_kind("", name))


def _shown(name: str, value: Any, kind: tables.Kind) -> str:
    if name in ("key", "secret") and isinstance(value, str):
        return text.mask(value)
    return tables.cell(value, kind, utc_now()) if kind != "time" else str(value or "-")
