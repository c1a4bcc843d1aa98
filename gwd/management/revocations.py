"""What takes something away from somebody: written down beside the database, and taken away again from an older copy.

Triggers of the writer's own connection see every change of these columns, whichever use case makes it. The last value
that the log has for a row counts, and it is applied only where it takes away: nothing is given back from the log.
"""

import logging
from typing import Final

import msgspec

from gwd.audit import service as audit
from gwd.core.clock import US_PER_DAY, Clock
from gwd.orgs import organizations
from gwd.store import Connection
from gwd.store.connection import Value
from gwd.store.revocation_log import Revocation, RevocationLog

KEPT_US: Final = 400 * US_PER_DAY
"""What is older is needed by no copy that is still put back; unless there is an older one."""

_KNOWN: Final = "revocations"
_ROLES: Final = "'member billing admin owner operator'"
_LOWER: Final = f"instr({_ROLES}, :value) < instr({_ROLES}, role)"

log = logging.getLogger(__name__)


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is written down: of which table, when, the row's id and the value; and how it is done again.

    `again` are statements with :id, :value and :at, which change nothing where the row is as it should be.
    """

    what: str
    event: str
    table: str
    when: str
    id: str = "NEW.id"
    value: str = "NULL"
    again: tuple[str, ...]


WATCHED: Final = (
    Watched(
        what="key.disabled",
        event="UPDATE OF disabled",
        table="api_key",
        when="NEW.disabled <> OLD.disabled",
        value="NEW.disabled",
        again=("UPDATE api_key SET disabled = 1 WHERE id = :id AND :value = 1 AND disabled = 0",),
    ),
    Watched(
        what="key.deleted",
        event="UPDATE OF deleted_at",
        table="api_key",
        when="OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL",
        value="NEW.deleted_at",
        again=("UPDATE api_key SET deleted_at = :value WHERE id = :id AND deleted_at IS NULL",),
    ),
    Watched(
        what="key.expires",
        event="UPDATE OF expires_at",
        table="api_key",
        when="NEW.expires_at IS NOT OLD.expires_at",
        value="NEW.expires_at",
        again=(
            "UPDATE api_key SET expires_at = :value WHERE id = :id AND :value IS NOT NULL"
            " AND (expires_at IS NULL OR expires_at > :value)",
        ),
    ),
    Watched(
        what="key.role",
        event="UPDATE OF role",
        table="api_key",
        when="NEW.role IS NOT OLD.role",
        value="NEW.role",
        again=(
            f"UPDATE api_key SET role = :value WHERE id = :id AND {_LOWER}",  # noqa: S608 - our own words
        ),
    ),
    Watched(
        what="credential.deleted",
        event="DELETE",
        table="credential",
        when="1",
        id="OLD.id",
        again=("DELETE FROM credential WHERE id = :id",),
    ),
    Watched(
        what="credential.disabled",
        event="UPDATE OF disabled",
        table="credential",
        when="NEW.disabled <> OLD.disabled",
        value="NEW.disabled",
        again=(
            "UPDATE credential SET disabled = 1 WHERE id = :id AND :value = 1 AND disabled = 0",
        ),
    ),
    Watched(
        # The log has no secret, so the key of before stays out of use until somebody sets the present one again. A
        # rotation of the key ring seals anew what is the same, and changes nothing else of the row.
        what="credential.replaced",
        event="UPDATE OF sealed, key_ref",
        table="credential",
        when="NEW.updated_at <> OLD.updated_at"
        " AND (NEW.sealed IS NOT OLD.sealed OR NEW.key_ref IS NOT OLD.key_ref)",
        again=("UPDATE credential SET disabled = 1 WHERE id = :id AND disabled = 0",),
    ),
    Watched(
        what="member.removed",
        event="UPDATE OF removed_at",
        table="member",
        when="OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL",
        value="NEW.removed_at",
        again=(
            "UPDATE member SET removed_at = :value WHERE id = :id AND removed_at IS NULL",
            "DELETE FROM workspace_member WHERE user_id = :id",
        ),
    ),
    Watched(
        what="member.role",
        event="UPDATE OF role",
        table="member",
        when="NEW.role <> OLD.role",
        value="NEW.role",
        again=(
            f"UPDATE member SET role = :value WHERE id = :id AND {_LOWER}",  # noqa: S608 - our own words
        ),
    ),
    Watched(
        what="workspace.member",
        event="DELETE",
        table="workspace_member",
        when="1",
        id="OLD.workspace_id || ' ' || OLD.user_id",
        value="0",
        again=(
            "DELETE FROM workspace_member WHERE workspace_id || ' ' || user_id = :id AND :value = 0",
        ),
    ),
    Watched(
        what="workspace.member",
        event="INSERT",
        table="workspace_member",
        when="1",
        id="NEW.workspace_id || ' ' || NEW.user_id",
        value="1",
        again=(),
    ),
    Watched(
        what="workspace.deleted",
        event="UPDATE OF deleted_at",
        table="workspace",
        when="OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL",
        value="NEW.deleted_at",
        again=("UPDATE workspace SET deleted_at = :value WHERE id = :id AND deleted_at IS NULL",),
    ),
    Watched(
        what="organization.suspended",
        event="UPDATE OF suspended",
        table="organization",
        when="NEW.suspended <> OLD.suspended",
        value="NEW.suspended",
        again=(
            "UPDATE organization SET suspended = 1 WHERE id = :id AND :value = 1 AND suspended = 0",
        ),
    ),
    Watched(
        what="organization.deleted",
        event="UPDATE OF deleted_at",
        table="organization",
        when="OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL",
        value="NEW.deleted_at",
        again=(
            "UPDATE organization SET deleted_at = :value WHERE id = :id AND deleted_at IS NULL",
        ),
    ),
    Watched(
        what="invitation.closed",
        event="UPDATE OF revoked_at, accepted_at",
        table="invitation",
        when="COALESCE(NEW.revoked_at, NEW.accepted_at) IS NOT NULL",
        value="COALESCE(NEW.revoked_at, NEW.accepted_at)",
        again=(
            "UPDATE invitation SET revoked_at = :value WHERE id = :id AND revoked_at IS NULL AND accepted_at IS NULL",
        ),
    ),
    Watched(
        what="destination.enabled",
        event="UPDATE OF enabled",
        table="destination",
        when="NEW.enabled <> OLD.enabled",
        value="NEW.enabled",
        again=(
            "UPDATE destination SET enabled = 0, disabled_at = :at, disabled_reason = 'disabled after the backup'"
            " WHERE id = :id AND :value = 0 AND enabled = 1",
        ),
    ),
    Watched(
        # What waits for it is on record with its deliveries, which a deletion closes: so it is disabled only.
        what="destination.deleted",
        event="DELETE",
        table="destination",
        when="1",
        id="OLD.id",
        again=(
            "UPDATE destination SET enabled = 0, disabled_at = :at, disabled_reason = 'deleted after the backup'"
            " WHERE id = :id AND enabled = 1",
        ),
    ),
    Watched(
        what="topup.enabled",
        event="UPDATE OF enabled",
        table="auto_topup",
        when="NEW.enabled <> OLD.enabled",
        id="NEW.organization_id",
        value="NEW.enabled",
        again=(
            "UPDATE auto_topup SET enabled = 0 WHERE organization_id = :id AND :value = 0 AND enabled = 1",
        ),
    ),
    Watched(
        what="topup.hook",
        event="UPDATE OF hook_url",
        table="auto_topup",
        when="OLD.hook_url IS NOT NULL AND NEW.hook_url IS NOT OLD.hook_url",
        id="NEW.organization_id",
        again=("UPDATE auto_topup SET enabled = 0 WHERE organization_id = :id AND enabled = 1",),
    ),
)


class Journal:
    """One for the node's writer: what its triggers have seen is in the log before the transaction is committed."""

    def __init__(self, file: RevocationLog, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    def watch(self, connection: Connection) -> None:
        """Lay the triggers, on this connection alone; they are part of its transactions and savepoints."""
        connection.execute(
            "CREATE TEMP TABLE revoked (row INTEGER PRIMARY KEY, what TEXT, id TEXT, value)"
        )
        for number, each in enumerate(WATCHED):
            connection.execute(
                f"CREATE TEMP TRIGGER revoked_{number} AFTER {each.event} ON main.{each.table} WHEN {each.when}"  # noqa: S608 - our own names
                f" BEGIN INSERT INTO revoked (what, id, value) VALUES ('{each.what}', {each.id}, {each.value}); END"
            )

    def keep(self, connection: Connection) -> None:
        """Before COMMIT: write down what the transaction takes away. Raises OSError where the disk does not take it."""
        rows = connection.rows("SELECT what, id, value FROM temp.revoked ORDER BY row")
        if not rows:
            return
        now_us = self._clock.now_us()
        lines = [
            Revocation(seq=seq, at_us=now_us, what=what, id=id_, value=value)
            for seq, (what, id_, value) in enumerate(rows, start=self._file.last_seq + 1)
        ]
        _know(connection, lines[-1].seq)
        connection.execute("DELETE FROM temp.revoked")
        self._file.append(lines)


def node_of(connection: Connection) -> str:
    """What a log must be of."""
    return organizations.operator_id(connection) or ""


def known_seq(connection: Connection) -> int:
    """The last line of the log that this database knows of; 0 for none."""
    row = connection.row("SELECT value FROM node_fact WHERE name = ?", (_KNOWN,))
    return 0 if row is None else int(bytes(row[0]))


def revoke_again(connection: Connection, lines: list[Revocation], *, now_us: int) -> int:
    """Take away what these lines say, which the database does not know of; how many rows that changed. Audited."""
    last = {(line.what, line.id): line for line in lines}
    done: dict[str, list[str]] = {}
    for line in sorted(last.values(), key=lambda line: line.seq):
        if _again(connection, line, now_us):
            done.setdefault(line.what, []).append(line.id)
    _know(connection, lines[-1].seq)
    connection.execute("DELETE FROM temp.revoked")  # the log has it already
    for what, ids in done.items():
        audit.record(
            connection,
            None,
            "revocations.restore",
            "node",
            None,
            {"what": what, "ids": ids},
            organization_id=organizations.operator_id(connection),
            now_us=now_us,
        )
    changed = sum(map(len, done.values()))
    log.warning(
        "the database does not know of %d revocations, as an older copy does not; %d were made again",
        *(len(last), changed),
    )
    return changed


def needed(lines: list[Revocation], *, oldest_copy_us: int | None, now_us: int) -> list[Revocation]:
    """The lines that a copy may still need: those of 400 days, and all since the oldest copy."""
    since_us = now_us - KEPT_US
    if oldest_copy_us is not None:
        since_us = min(since_us, oldest_copy_us)
    return [line for line in lines if line.at_us >= since_us]


def _again(connection: Connection, line: Revocation, now_us: int) -> int:
    wanted: dict[str, Value] = {"id": line.id, "value": line.value, "at": now_us}
    statements = [sql for each in WATCHED if each.what == line.what for sql in each.again]
    return sum(connection.execute(sql, wanted) for sql in statements)


def _know(connection: Connection, seq: int) -> None:
    connection.execute(
        "INSERT INTO node_fact (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_KNOWN, str(seq).encode()),
    )
