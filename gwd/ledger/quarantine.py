"""Quarantine: while the ledger does not add up nothing is served, until a start finds it in order.

That a node is in quarantine is kept in its database: a start that finds the note verifies all books before it lifts it.
"""

from typing import Final

from gwd.core.errors import GatewayError, InternalError, LedgerQuarantined
from gwd.ledger import LedgerBroken
from gwd.store import Connection

_NAME: Final = "quarantine"


def note(connection: Connection, reason: str) -> None:
    """Write into the database that the node is in quarantine, and why; the next start reads it."""
    connection.execute(
        "INSERT INTO node_fact (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_NAME, reason.encode()),
    )


def noted(connection: Connection) -> str | None:
    """Why an earlier run went into quarantine, if one did."""
    row = connection.row("SELECT value FROM node_fact WHERE name = ?", (_NAME,))
    return None if row is None else bytes(row[0]).decode()


def lift(connection: Connection) -> None:
    """Remove the note: the books were verified and add up."""
    connection.execute("DELETE FROM node_fact WHERE name = ?", (_NAME,))


def refusal() -> LedgerQuarantined:
    """What a request is told that would move money."""
    return LedgerQuarantined(
        "the ledger does not add up, so nothing is served; the operator runs gwctl ledger verify"
    )


def internal_error(error: Exception) -> GatewayError:
    """The error for an unforeseen exception: the quarantine's where the ledger broke, else an internal error."""
    if isinstance(error, LedgerBroken):
        return refusal()
    return InternalError("the gateway made a mistake; try again")
