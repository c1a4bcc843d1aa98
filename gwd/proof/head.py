"""A signed head: where the books stood at a moment, in a form that is kept elsewhere and compared later.

Whoever can write the database can compute all chains anew, and each of them is consistent again. A head that lies
elsewhere still names the last hash of that time: today's history either contains it, or was rewritten or cut off.

The signature is Ed25519 over the head's JSON without it, by a key that is derived from the key ring, which is
not in the database. The public key stands in the head, so that a head can be checked without the node, too; whoever
compares heads of one node sees the same key in all of them.
"""

import base64
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from gwd.audit import chain
from gwd.core.clock import iso
from gwd.core.fields import Count, Id, Moment
from gwd.credentials.vault import Vault
from gwd.ledger.audit import organizations
from gwd.ledger.replay import Difference
from gwd.store import Connection

FORMAT: Final = "gwd-head-1"
KEPT: Final = "head"
"""In place of an invariant: a head that was kept elsewhere."""

_PURPOSE: Final = "ledger heads"
_HASH_AT: Final = "SELECT hash FROM entry WHERE organization_id = ? AND seq = ?"
_LAST: Final = "SELECT last_seq, last_hash FROM account WHERE organization_id = ?"


class NotOurHeadError(ValueError):
    """What was given is no head that this node signed; the text says why."""


class Books(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where one organization's books end."""

    organization_id: Annotated[
        Id | None,
        Meta(
            description="Whose books they are; null for the audit trail of the node itself, which has no entries."
        ),
    ]
    entries: Annotated[Count, Meta(description="The number of the last entry, counted from 1.")]
    entries_hash: Annotated[
        str, Meta(description="The hash of the last entry in hexadecimal; empty without one.")
    ]
    audit_lines: Annotated[
        Count, Meta(description="The number of the last audit line, counted from 1.")
    ]
    audit_hash: Annotated[
        str, Meta(description="The hash of the last audit line in hexadecimal; empty without one.")
    ]


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One organization's head, or the node's, which names all of them."""

    format: Annotated[str, Meta(description="The form of the head and of what is signed.")]
    taken_at: Annotated[Moment, Meta(description="When the books stood there.")]
    books: Annotated[
        tuple[Books, ...], Meta(description="Where the books end, of each organization.")
    ]
    public_key: Annotated[
        str, Meta(description="The Ed25519 key that checks the signature, in base64.")
    ]
    signature: Annotated[
        str, Meta(description="Of the head's JSON with an empty signature, in base64.")
    ]


def take(
    connection: Connection, vault: Vault, organization_id: str | None = None, *, now_us: int
) -> Head:
    """The signed head of an organization's books, or of all and the node's own audit trail."""
    if organization_id is None:
        known = organizations(connection)
        trails = [name for name in chain.names(connection) if name not in known]
        names = [*known, *trails] if chain.NODE in trails else [*known, *trails, chain.NODE]
    else:
        names = [organization_id]
    head = Head(
        format=FORMAT,
        taken_at=iso(now_us),
        books=tuple(_books(connection, name) for name in names),
        public_key=_text(vault.public_key(_PURPOSE)),
        signature="",
    )
    signature = vault.sign(_PURPOSE, _signed(head))
    return msgspec.structs.replace(head, signature=_text(signature))


def read(given: Any, vault: Vault) -> Head:
    """A head that was kept. Raises NotOurHeadError for anything this node did not sign, word for word."""
    try:
        head = msgspec.convert(given, Head)
        signature = base64.b64decode(head.signature, validate=True)
    except (msgspec.ValidationError, ValueError) as error:
        raise NotOurHeadError(f"this is no head of a ledger: {error}") from None
    if head.format != FORMAT:
        raise NotOurHeadError(f"the head is of the format {head.format!r}, not {FORMAT}")
    if head.public_key != _text(vault.public_key(_PURPOSE)):
        raise NotOurHeadError("the head was signed by another node, or with another key ring")
    if not vault.has_signed(_PURPOSE, _signed(head), signature):
        raise NotOurHeadError(
            "the head was changed after it was signed; use the file as it was printed"
        )
    return head


def check_head(
    connection: Connection, head: Head, organization_id: str | None
) -> Iterator[Difference]:
    """Where today's history, of one organization or of all that the head names, is no continuation of the kept one."""
    for books in head.books:
        name = books.organization_id
        if organization_id not in (None, name):
            continue
        if books.entries:
            yield from _compare(
                name, "ledger", books.entries, books.entries_hash, _hash_of(connection, books), head
            )
        if books.audit_lines:
            stored = chain.hash_at(connection, name or chain.NODE, books.audit_lines)
            yield from _compare(
                name, "audit trail", books.audit_lines, books.audit_hash, stored.hex(), head
            )


def _compare(
    name: str | None, what: str, seq: int, kept: str, stored: str, head: Head
) -> Iterator[Difference]:
    if stored == kept:
        return
    message = (
        f"the {what} was rewritten: line {seq} is not the one of the head of {head.taken_at}"
        if stored
        else f"the {what} was cut off: line {seq} of the head of {head.taken_at} is gone"
    )
    yield Difference(invariant=KEPT, organization_id=name, message=message)


def _hash_of(connection: Connection, books: Books) -> str:
    row = connection.row(_HASH_AT, (books.organization_id or "", books.entries))
    return "" if row is None else row[0].hex()


def _books(connection: Connection, name: str) -> Books:
    entries, entries_hash = connection.row(_LAST, (name,)) or (0, b"")
    lines, lines_hash = chain.end(connection, name)
    return Books(
        organization_id=name or None,
        entries=entries,
        entries_hash=entries_hash.hex(),
        audit_lines=lines,
        audit_hash=lines_hash.hex(),
    )


def _signed(head: Head) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(head, signature=""))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
