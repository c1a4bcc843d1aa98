"""`python -m gwd.proof`: books recomputed in a process of its own, so that nobody waits for it.

Which ones stands in JSON on standard input (`apart.Books`). Of all books each organization's are read in a snapshot of
their own; the outcome is one JSON object on standard output.
"""

import os
import sys
from typing import Final

import msgspec

from gwd.ledger.audit import Verification, organizations
from gwd.proof.apart import Books
from gwd.proof.books import joined, of_node, of_organization, verify
from gwd.store.connection import open_connection, transaction

NICENESS: Final = 10


def verify_books(books: Books) -> Verification:
    """What `proof.verify` finds in the database of this path."""
    connection = open_connection(books.path, "reader")
    try:
        if books.organization_id is not None:
            with transaction(connection, "DEFERRED"):
                return verify(connection, books.organization_id, head=books.head)
        with transaction(connection, "DEFERRED"):
            names = organizations(connection)
        parts = []
        for name in names:
            with transaction(connection, "DEFERRED"):
                parts.append(of_organization(connection, name))
        with transaction(connection, "DEFERRED"):
            parts.append(of_node(connection, books.head))
    finally:
        connection.raw.close()
    return joined(parts)


if __name__ == "__main__":
    os.nice(NICENESS)
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Books)
    sys.stdout.buffer.write(msgspec.json.encode(verify_books(asked)))
