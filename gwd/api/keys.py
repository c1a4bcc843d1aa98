"""/keys: provisioning of inference and management keys."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.alerts import threshold_alerts
from gwd.api.management import Answer, Call, deleted, noted, one, walked
from gwd.api.query import Flag, Query, Text
from gwd.api.shapes import Deleted, Notes
from gwd.core.fields import Secret
from gwd.core.patches import named
from gwd.keys import admission, cascades, record, rotation, service
from gwd.keys.fields import CreateKey, KeyFilter
from gwd.keys.key import Key
from gwd.keys.record import KeyRecord, NamedKey
from gwd.keys.rotation import RotateKey
from gwd.management import policies
from gwd.orgs.settings import default_rate_limit, settings
from gwd.store import Connection

FILTERS = (
    Query("include_disabled", Flag(), "Disabled keys, too.", default=False),
    Query("include_expired", Flag(), "Expired keys, too.", default=False),
    Query("workspace_id", Text(), "Only keys of this workspace."),
    Query("name", Text(), "Only keys of exactly this name."),
)


class CreatedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key with its secret, or the one that `if_absent` found."""

    key: Annotated[
        Secret | None,
        Meta(
            description="The secret, shown this once; null when the request is repeated, and for a key that was there."
        ),
    ]
    data: KeyRecord
    existed: Annotated[
        Literal[True] | UnsetType,
        Meta(description="Only where `if_absent` found a key, which is then left as it is."),
    ] = UNSET
    notes: Notes = UNSET

    def __repr__(self) -> str:
        return f"CreatedKey(key=***, data={self.data!r})"


class SuccessorKey(msgspec.Struct, frozen=True, kw_only=True):
    """The key that takes over, with its secret, and the one that ends."""

    key: Annotated[
        Secret | None,
        Meta(description="The new secret, shown this once; null when the request is repeated."),
    ]
    data: KeyRecord
    previous: Annotated[
        KeyRecord, Meta(description="The key that was rotated; it ends at its `expires_at`.")
    ]

    def __repr__(self) -> str:
        return f"SuccessorKey(key=***, data={self.data!r}, previous={self.previous!r})"


class KeyLeft(NamedKey, frozen=True, kw_only=True):
    """A key of the same rotation that lives on."""

    is_: Annotated[
        Literal["predecessor", "successor"],
        Meta(description="Whether it came before or after the key that was deleted."),
    ] = msgspec.field(name="is")


class DeletedKey(Deleted, frozen=True, kw_only=True):
    """A key that was deleted, and what lives on of its rotation."""

    keys_left: Annotated[
        list[KeyLeft] | UnsetType, Meta(description="Only where keys of its rotation live on.")
    ] = UNSET


def create(connection: Connection, call: Call) -> Answer:
    """Make a key.

    The plaintext is shown here, once; a replay of this request has `key: null`.

    So has the answer of a key that `if_absent` found, with status 200 and `existed`.
    """
    body: CreateKey = call.body
    if body.if_absent:
        present = cascades.existing(
            connection, call.organization_id, body, actor=call.caller, now_us=call.now_us
        )
        if present is not None:
            shown = key_record(connection, call, present)
            return Answer(body=CreatedKey(key=None, data=shown, existed=True))
    issued = service.create(
        connection,
        call.organization_id,
        body,
        actor=call.caller,
        issuing=call.node.issuing,
        now_us=call.now_us,
    )
    key = issued.key
    notes = policies.require_known(connection, key) or UNSET
    shown = key_record(connection, call, key)
    return Answer(
        status=201,
        body=CreatedKey(key=issued.plaintext, data=shown, notes=notes),
        replay=CreatedKey(key=None, data=shown, notes=notes),
        subject=("key", key.id),
        details={
            "name": key.name,
            "type": key.kind,
            "role": key.role,
            "user_id": key.user_id,
            "workspace_id": key.workspace_id,
            "label": key.label,
        },
    )


def rotate(connection: Connection, call: Call) -> Answer:
    """Replace a key by a successor with the same limits.

    A successor with its plaintext, once; `previous` is the old key and when it ends.
    """
    body: RotateKey = call.body
    both = rotation.rotate(
        connection,
        call.organization_id,
        call.path["key"],
        body,
        actor=call.caller,
        issuing=call.node.issuing,
        now_us=call.now_us,
    )
    successor = SuccessorKey(
        key=both.issued.plaintext,
        data=key_record(connection, call, both.issued.key),
        previous=key_record(connection, call, both.previous),
    )
    return Answer(
        status=201,
        body=successor,
        replay=msgspec.structs.replace(successor, key=None),
        subject=("key", both.previous.id),
        details={"overlap": body.overlap, "rotated_to": both.issued.key.id},
    )


def list_(connection: Connection, call: Call) -> Answer:
    """The organization's keys, newest first."""
    asked = call.walk()
    found, total = service.list_keys(
        connection,
        call.organization_id,
        KeyFilter(
            include_disabled=call.query["include_disabled"],
            include_expired=call.query["include_expired"],
            workspace_id=call.query.get("workspace_id"),
            name=call.query.get("name"),
        ),
        actor=call.caller,
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
        now_us=call.now_us,
    )
    return walked(
        asked, found, total, lambda key: key_record(connection, call, key), lambda key: key.id
    )


def get(connection: Connection, call: Call) -> Answer:
    """One key."""
    key = service.get(connection, call.organization_id, call.path["key"], actor=call.caller)
    return one(key_record(connection, call, key))


def patch(connection: Connection, call: Call) -> Answer:
    """Change a key."""
    body: msgspec.Struct = call.body
    known = service.get(connection, call.organization_id, call.path["key"], actor=call.caller)
    before = admission.state(connection, known.id)
    key = service.patch(
        connection,
        call.organization_id,
        call.path["key"],
        body,
        actor=call.caller,
        rate_limit_ceiling=call.node.issuing.rate_limit_ceiling,
        now_us=call.now_us,
    )
    notes = policies.require_known(connection, key, known)
    if before is not None:
        threshold_alerts.raise_changed_key(
            connection, before, app_url=call.node.app_url, now_us=call.now_us
        )
    shown = key_record(connection, call, key)
    return noted(shown, notes, subject=("key", key.id), details=named(body))


def delete(connection: Connection, call: Call) -> Answer:
    """Delete a key: it is refused from now on.

    Names the keys of its rotation that live on.
    """
    gone = cascades.delete(
        connection, call.organization_id, call.path["key"], actor=call.caller, now_us=call.now_us
    )
    key = gone.key
    lives_on = []
    if gone.predecessor is not None:
        lives_on.append(_left(gone.predecessor, "predecessor"))
    if gone.successor is not None:
        lives_on.append(_left(gone.successor, "successor"))
    return deleted(
        "key",
        key.id,
        body=DeletedKey(id=key.id, keys_left=lives_on or UNSET),
        details={"name": key.name, "type": key.kind, "label": key.label},
    )


def key_record(connection: Connection, call: Call, key: Key) -> KeyRecord:
    """The key as the API shows it now."""
    ceiling = call.node.issuing.rate_limit_ceiling
    organization = settings(connection, key.organization_id).settings
    return record.record(
        key,
        record.usage(connection, key, now_us=call.now_us),
        default_rate_limit_per_minute=default_rate_limit(organization, ceiling),
        now_us=call.now_us,
    )


def _left(key: Key, what: Literal["predecessor", "successor"]) -> KeyLeft:
    return KeyLeft(**msgspec.structs.asdict(record.named(key)), is_=what)
