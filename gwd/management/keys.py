"""Keys under management, each change with its line in the audit trail."""

from gwd.keys import endings, rotation, service
from gwd.keys.endings import DeletedKey
from gwd.keys.fields import CreateKey, PatchKey
from gwd.keys.rotation import RotatedKey, RotateKey
from gwd.keys.service import IssuedKey, Issuing, Key
from gwd.management.change import Change, named, note
from gwd.store import Connection


def find_present(connection: Connection, new: CreateKey, *, change: Change) -> Key | None:
    """The key that is there already where one was asked for `if_absent`, in the transaction that would create it."""
    if not new.if_absent:
        return None
    return endings.existing(
        connection, change.organization_id, new, actor=change.actor, now_us=change.now_us
    )


def create(
    connection: Connection, new: CreateKey, *, change: Change, issuing: Issuing
) -> IssuedKey:
    """Issue a key."""
    issued = service.create(
        connection,
        change.organization_id,
        new,
        actor=change.actor,
        issuing=issuing,
        now_us=change.now_us,
    )
    key = issued.key
    details = {
        "name": key.name,
        "type": key.kind,
        "role": key.role,
        "user_id": key.user_id,
        "workspace_id": key.workspace_id,
        "label": key.label,
    }
    note(connection, change, "key.create", ("key", key.id), details)
    return issued


def patch(
    connection: Connection, ref: str, changes: PatchKey, *, change: Change, rate_limit_ceiling: int
) -> Key:
    """Change a key."""
    key = service.patch(
        connection,
        change.organization_id,
        ref,
        changes,
        actor=change.actor,
        rate_limit_ceiling=rate_limit_ceiling,
        now_us=change.now_us,
    )
    note(connection, change, "key.patch", ("key", key.id), named(changes))
    return key


def delete(connection: Connection, ref: str, *, change: Change) -> DeletedKey:
    """Delete a key; its secret dies at once."""
    gone = endings.delete(
        connection, change.organization_id, ref, actor=change.actor, now_us=change.now_us
    )
    key = gone.key
    details = {"name": key.name, "type": key.kind, "label": key.label}
    note(connection, change, "key.delete", ("key", key.id), details)
    return gone


def rotate(
    connection: Connection, ref: str, asked: RotateKey, *, change: Change, issuing: Issuing
) -> RotatedKey:
    """Issue the successor of a key."""
    both = rotation.rotate(
        connection,
        change.organization_id,
        ref,
        asked,
        actor=change.actor,
        issuing=issuing,
        now_us=change.now_us,
    )
    details = {"overlap": asked.overlap, "rotated_to": both.issued.key.id}
    note(connection, change, "key.rotate", ("key", both.previous.id), details)
    return both
