"""Records of any noun: what is known of a kind, reading one, finding one by name, listing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gwctl import schema, text
from gwctl.client import quote
from gwctl.errors import CommandError, not_found, usage
from gwctl.session import Session
from gwctl.spinner import waiting
from gwctl.tables import Column, Record

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
    renewed_by: str = "rotate"
    """The verb that makes another in its place."""
    created: str = ""
    """What is said above it; `Key created.` otherwise."""
    rank: Callable[[Record], int] = lambda record: 0
    """Which of several records of one name is meant: those of the highest rank."""
    summary: Callable[[Record], str] = lambda record: ""
    """The line under a new secret."""

    @property
    def record(self) -> str:
        """The API's name of such a record."""
        return schema.answered("GET", self.path)

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
    for page, counted in pages(session, path, query, wanted=None if everything else limit):
        rows += page
        total = counted
    return (rows if everything else rows[:limit]), total


def pages(
    session: Session,
    path: str,
    query: Mapping[str, Any] | None = None,
    *,
    wanted: int | None = None,
    after: str | None = None,
    quiet: bool = False,
) -> Iterator[tuple[list[Any], int | None]]:
    """The pages of a list endpoint, each with how many records there are: `wanted` of them, or all.

    A list that grows at its head says where it goes on: so each record is there once, whatever is added meanwhile.
    `after` is such a place, where an earlier walk ended.
    """
    reached, total = 0, None
    place: dict[str, Any] = {"offset": 0} if after is None else {"after": after}
    quiet = quiet or session.flags.quiet or session.flags.debug
    with waiting(f"reading {path}", show=not quiet) as progress:
        while wanted is None or reached < wanted:
            size = PAGE if wanted is None else min(PAGE, wanted - reached)
            reply = session.api.get(path, {**(query or {}), "limit": size, **place})
            page = data(reply)
            if not isinstance(page, list):
                raise CommandError(f"GET {path} did not answer with a list", code="bad_reply")
            counted = reply.get("total_count") if isinstance(reply, dict) else None
            total = total if counted is None else counted
            reached += len(page)
            progress.reached(reached, total)
            yield page, total
            if isinstance(reply, dict) and "next" in reply:
                # A page may be empty and yet lead on: the gateway had looked long enough.
                if reply["next"] is None or place.get("after") == reply["next"]:
                    return
                place = {"after": reply["next"]}
                continue
            place = {"offset": reached}
            # A server that ignores the paging sends everything at once.
            if len(page) != size or (total is not None and reached >= total):
                return


def find(session: Session, resource: Resource, reference: str) -> dict[str, Any]:
    """The record a person means by a name or an id; exit 3 when there is none."""
    is_id = reference.startswith(resource.id_prefix)
    is_hash = len(reference) == 64 and all(c in "0123456789abcdef" for c in reference)
    if resource.by_path or is_id or is_hash:
        return _get(session, resource, reference)
    matches = called(session, resource, reference)
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


def called(session: Session, resource: Resource, reference: str) -> list[Any]:
    """The records of that name; where some are alive and others not, those alive."""
    query = {**resource.lookup, **({resource.lookup_by: reference} if resource.lookup_by else {})}
    rows, _ = fetch(session, resource.path, query, everything=True)
    matches = [row for row in rows if _matches(resource, row, reference)]
    best = max((resource.rank(row) for row in matches), default=0)
    return [row for row in matches if resource.rank(row) == best]


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
    show_list(session, resource.path, query, resource.columns, noun=resource.noun)


def show_list(
    session: Session,
    path: str,
    query: Mapping[str, Any] | None,
    columns: tuple[Column, ...],
    *,
    noun: str,
) -> None:
    """The head of a list, or with --all the whole of it, printed while it is read."""
    if session.everything:
        found = pages(session, path, query, quiet=session.out.terminal and not session.out.table)
        session.out.pages((page for page, _ in found), columns, noun=noun)
        return
    rows, total = fetch(session, path, query, limit=session.limit)
    session.out.records(rows, columns, total=total, noun=noun, full=len(rows) == session.limit)


def show_record(session: Session, resource: Resource, reference: str) -> None:
    session.out.record(find(session, resource, reference), resource.record)


def existing(session: Session, resource: Resource, name: str) -> dict[str, Any] | None:
    """The record of that name, for --if-absent."""
    try:
        return find(session, resource, name)
    except CommandError as error:
        if error.code in ("not_found", "model_not_found"):
            return None
        raise


def same(one: Any, two: Any, *, price: bool = False, moment: bool = False) -> bool:
    """Whether two values mean the same: 50 and 50.00, lists as sets, and with `moment` one time in two offsets.

    Null, 0, an empty text, an empty list and false are five values. Two texts are numbers only in a `price`: a key
    called 007 is not the one called 7.
    """
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    first, second = text.decimal(one), text.decimal(two)
    texts = isinstance(one, str) and isinstance(two, str) and not price
    if first is not None and second is not None and not texts:
        return first == second
    if moment and (then := text.parse_time(one)) and (other := text.parse_time(two)):
        return then == other
    if isinstance(one, list) and isinstance(two, list):
        pairs = [sorted(rows, key=str) for rows in (one, two)]
        return len(one) == len(two) and all(
            same(mine, theirs, price=price) for mine, theirs in zip(*pairs, strict=True)
        )
    if isinstance(two, Mapping) and isinstance(one, Mapping):
        return one.keys() == two.keys() and all(same(one[n], two[n], price=price) for n in two)
    return type(one) is type(two) and bool(one == two)


def same_field(field: schema.Field, one: Any, two: Any) -> bool:
    """Whether a field of the API holds the same."""
    return same(one, two, price=field.holds_prices, moment=field.kind == "time")
