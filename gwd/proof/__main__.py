"""`python -m gwd.proof FILE`: all books recomputed in a process of its own, so that nobody waits for it.

One organization after the other, each in its own snapshot; the outcome is one JSON object on standard output.
"""

import os
import sys
from typing import Final

import msgspec

from gwd.ledger.audit import Verification, organizations
from gwd.proof.books import joined, of_node, of_organization
from gwd.store.connection import open_connection, transaction

NICENESS: Final = 10


def verify_file(path: str) -> Verification:
    """What `proof.verify` finds in the database of this path."""
    connection = open_connection(path, "reader")
    try:
        with transaction(connection, "DEFERRED"):
            names = organizations(connection)
        parts = []
        for name in names:
            with transaction(connection, "DEFERRED"):
                parts.append(of_organization(connection, name))
        with transaction(connection, "DEFERRED"):
            parts.append(of_node(connection))
    finally:
        connection.raw.close()
    return joined(parts)


if __name__ == "__main__":
    os.nice(NICENESS)
    sys.stdout.buffer.write(msgspec.json.encode(verify_file(sys.argv[1])))
