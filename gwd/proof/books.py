"""The whole proof: the ledger's own, charges, sums by day, audit trail, schema, and a kept head where one is given."""

from collections.abc import Iterator
from itertools import islice

from gwd import ledger
from gwd.activity import day_sums
from gwd.audit import chain
from gwd.ledger.audit import MAX_DIFFERENCES, Verification, organizations, strays
from gwd.ledger.replay import Difference
from gwd.proof.charges import check_charges
from gwd.proof.head import Head, check_head
from gwd.proof.schema import check_schema
from gwd.store import Connection

AUDIT = "audit"
"""In place of an invariant: the chain of audit lines."""


def verify(
    connection: Connection,
    organization_id: str | None = None,
    *,
    boot_id: str | None = None,
    head: Head | None = None,
) -> Verification:
    """Prove one organization's books, or all and what belongs to the node. `head` must be one of ours (`head.read`)."""
    if organization_id is None:
        parts = [_books(connection, name, boot_id=boot_id) for name in organizations(connection)]
        parts.append(of_node(connection, head))
        return joined(parts)
    own = _books(connection, organization_id, boot_id=boot_id)
    rest = [*strays(connection, organization_id), *check_schema(connection)]
    if head is not None:
        rest += check_head(connection, head, organization_id)
    return joined([own, _of(rest)])


def of_organization(connection: Connection, organization_id: str) -> Verification:
    """One organization's books, charges and audit trail."""
    return _books(connection, organization_id, boot_id=None)


def of_node(connection: Connection, head: Head | None = None) -> Verification:
    """What belongs to no organization's books alone: the schema, the node's audit trail, rows that nobody owns."""
    known = set(organizations(connection))
    trails = [name for name in chain.names(connection) if name not in known]
    found = [
        *check_schema(connection),
        *strays(connection),
        *(each for name in trails for each in _trail(connection, name)),
    ]
    if head is not None:
        found += check_head(connection, head, None)
    return _of(found)


def look_over(connection: Connection) -> list[Difference]:
    """What can be seen without recomputing: caches that contradict each other, and the schema. For every start."""
    return [*ledger.look_over(connection), *check_schema(connection)]


def joined(parts: list[Verification]) -> Verification:
    """Several proofs as one."""
    differences = [each for part in parts for each in part.differences]
    return Verification(
        ok=all(part.ok for part in parts),
        checked=sum(part.checked for part in parts),
        differences=tuple(differences[:MAX_DIFFERENCES]),
    )


def _books(connection: Connection, organization_id: str, *, boot_id: str | None) -> Verification:
    own = ledger.books(connection, organization_id, boot_id=boot_id)
    more = [
        *islice(check_charges(connection, organization_id), MAX_DIFFERENCES),
        *_day_sums(connection, organization_id),
        *_trail(connection, organization_id),
    ]
    return joined([own, _of(more)])


def _day_sums(connection: Connection, organization_id: str) -> Iterator[Difference]:
    for message in islice(day_sums.check(connection, organization_id), MAX_DIFFERENCES):
        yield Difference(invariant="I12", organization_id=organization_id, message=message)


def _trail(connection: Connection, name: str) -> Iterator[Difference]:
    owner = None if name == chain.NODE else name
    for message in islice(chain.check(connection, name), MAX_DIFFERENCES):
        yield Difference(invariant=AUDIT, organization_id=owner, message=message)


def _of(found: list[Difference]) -> Verification:
    return Verification(ok=not found, checked=0, differences=tuple(found))
