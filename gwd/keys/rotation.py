"""Rotation: a successor with the same limits, one family with one spend counter and one rate window."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gwd.core.caller import Caller
from gwd.core.clock import US_PER_S
from gwd.core.errors import AlreadyRotated, Conflict
from gwd.core.ids import mint
from gwd.keys.service import IssuedKey, Issuing, Key, get, issue, require_workspace
from gwd.keys.tables import KeyTable
from gwd.store import Connection

Overlap = Literal["1h", "24h", "7d"]

OVERLAP_US: Final[dict[Overlap, int]] = {
    "1h": 3_600 * US_PER_S,
    "24h": 24 * 3_600 * US_PER_S,
    "7d": 7 * 24 * 3_600 * US_PER_S,
}

# What a successor has of its own; everything else it inherits.
_OWN: Final = frozenset(
    ("id", "label", "hash", "created_at", "updated_at", "last_used_at", "rotated_to")
)


class RotateKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a key is replaced by a successor."""

    overlap: Annotated[
        Overlap, Meta(description="How long the old key still works beside the new one.")
    ] = "24h"


class RotatedKey(msgspec.Struct, frozen=True, kw_only=True):
    """The successor with its plaintext, and the old key as it ends."""

    issued: IssuedKey
    previous: Key


def rotate(
    connection: Connection,
    organization_id: str,
    ref: str,
    rotation: RotateKey,
    *,
    actor: Caller,
    issuing: Issuing,
    now_us: int,
) -> RotatedKey:
    """Issue a successor; the old key works for the overlap, never longer than it would have."""
    old = get(connection, organization_id, ref, actor=actor, right="keys.write")
    require_workspace(connection, old)
    if old.rotated_to is not None:
        raise AlreadyRotated("This key has been rotated already; rotate its successor.")
    if old.disabled:
        # A successor of a disabled key would work: rotating must not undo disabling.
        raise Conflict("A disabled key cannot be rotated; enable it first.")
    if old.expires_at is not None and old.expires_at <= now_us:
        raise Conflict("An expired key cannot be rotated; create a new one.")
    new_id = mint("mk_" if old.kind == "management" else "key_")
    overlap_ends_us = now_us + OVERLAP_US[rotation.overlap]
    old_ends_us = (
        overlap_ends_us if old.expires_at is None else min(old.expires_at, overlap_ends_us)
    )
    claimed = connection.run(
        KeyTable.update(rotated_to=new_id, expires_at=old_ends_us, updated_at=now_us).where(
            (KeyTable.id == old.id) & KeyTable.rotated_to.is_null()
        )
    )
    assert claimed == 1, "the key was read as not rotated in this transaction"
    inherited = {name: getattr(old, name) for name in Key.__struct_fields__ if name not in _OWN}
    issued = issue(
        connection,
        {**inherited, "id": new_id, "creator_user_id": actor.user_id, "rotated_from": old.id},
        issuing=issuing,
        now_us=now_us,
    )
    previous = get(connection, organization_id, old.id, actor=actor)
    return RotatedKey(issued=issued, previous=previous)
