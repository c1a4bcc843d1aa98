"""/operator/secrets: the key ring, what each of its keys seals, and its rotation."""

import asyncio
import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gwd.api.doctor import key_ring
from gwd.api.management import Answer, Call, one
from gwd.core.clock import US_PER_S, iso, iso_or_none
from gwd.core.errors import Conflict
from gwd.core.fields import Count, Id, Moment
from gwd.credentials.keyring import KeyRing, KeyRingError
from gwd.management import secrets
from gwd.store import Connection

State = Literal["current", "sealing", "incomplete"]


class PruneSecrets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's word on backups that need the old keys."""

    force: Annotated[
        bool,
        Meta(
            description="Remove old keys although older backups may need them: a copy of the key ring is kept,"
            " or those backups are not needed."
        ),
    ] = False


class SealedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How many secrets of one kind a key seals."""

    place: Annotated[str, Meta(description="The kind, such as `vendor key`.")]
    sealed: Annotated[Count, Meta(description="How many of them this key seals.")]


class RingKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the ring, by its id; the key itself is in no answer."""

    id: Annotated[Id, Meta(description="The id that each sealed secret names.")]
    active: Annotated[bool, Meta(description="Whether it is the one that seals new secrets.")]
    in_ring: Annotated[
        bool, Meta(description="False: secrets need it and the ring has not got it.")
    ]
    made_at: Annotated[
        Moment | None,
        Meta(description="When it was made; null for keys of rings that did not note it."),
    ]
    age_s: Annotated[
        int | None, Meta(description="Seconds since then; null where that is not known.")
    ]
    sealed: Annotated[Count, Meta(description="How many stored secrets it seals.")]
    places: Annotated[list[SealedRecord], Meta(description="The same by kind.")]


class RingFileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The key ring's file."""

    path: Annotated[str, Meta(description="Where it lies on the node.")]
    mode: Annotated[str | None, Meta(description="Its mode in octal; null where there is no file.")]
    owner: Annotated[
        int | None, Meta(description="Its owner's user id; null where there is no file.")
    ]
    problem: Annotated[
        str | None, Meta(description="What is wrong with it and what helps; null for nothing.")
    ]


class SecretsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The key ring and what its keys seal."""

    state: Annotated[
        State,
        Meta(
            description="`current`: the active key seals everything; `sealing`: secrets are being sealed anew;"
            " `incomplete`: secrets need a key that the ring has not got."
        ),
    ]
    active: Annotated[Id, Meta(description="The id of the key that seals.")]
    secrets: Annotated[Count, Meta(description="How many stored secrets there are.")]
    left: Annotated[Count, Meta(description="How many of them another key than the active seals.")]
    current_since: Annotated[
        Moment | None,
        Meta(
            description="When the last rotation ended: backups of before need older keys. Null before the"
            " first one, and while one is under way."
        ),
    ]
    file: Annotated[RingFileRecord, Meta(description="The ring's file.")]
    keys: Annotated[
        list[RingKeyRecord],
        Meta(description="Every key of the ring, and every one that a secret needs."),
    ]


class UnopenedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A stored secret that does not open."""

    place: Annotated[str, Meta(description="Its kind.")]
    row: Annotated[Id, Meta(description="The id of the record that it belongs to.")]
    key: Annotated[Id, Meta(description="The key that it names.")]
    message: Annotated[str, Meta(description="Why it does not open, and what helps.")]


class VerifiedSecretsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Every stored secret was opened."""

    ok: Annotated[bool, Meta(description="Whether all of them opened.")]
    secrets: Annotated[Count, Meta(description="How many there are.")]
    unopened: Annotated[list[UnopenedRecord], Meta(description="Those that did not open.")]
    keys: Annotated[
        list[RingKeyRecord],
        Meta(description="Every key of the ring, and every one that a secret needs."),
    ]


async def show(call: Call) -> Answer:
    """The key ring and what its keys seal.

    While a rotation is under way, `left` says how far it is.
    """
    return one(await _record(call))


async def verify(call: Call) -> Answer:
    """Open every stored secret.

    Nothing is changed, and no secret is shown.
    """
    vault = call.node.vault
    found = await call.node.store.read(secrets.verify, vault)
    uses = await call.node.store.read(secrets.uses)
    return one(
        VerifiedSecretsRecord(
            ok=not found.unopened,
            secrets=found.values,
            unopened=[
                UnopenedRecord(place=each.place, row=each.row, key=each.key, message=each.message)
                for each in found.unopened
            ],
            keys=ring_keys(vault.ring, uses, now_us=call.now_us),
        )
    )


async def rotate(call: Call) -> Answer:
    """Add a new key to the ring, and seal everything anew with it.

    The ring's file has the new key before anything is sealed by it. The rest is done beside requests: `left` of the
    answer, and of GET, falls to 0. Asked again meanwhile, it changes nothing. Old keys stay until they are pruned.
    """
    node = call.node
    if not await node.store.read(secrets.begins, node.vault):
        return one(await _record(call))
    await _note(call, "secrets.rotate", [node.vault.ring.active])
    try:
        await asyncio.to_thread(node.ring_file.grow, now_us=call.now_us)
    except KeyRingError as error:
        raise Conflict(str(error)) from None
    return one(await _record(call))


async def prune(call: Call) -> Answer:
    """Remove old keys from the ring, once no stored secret needs one.

    Every secret is opened first. Backups from before the rotation can be read with the old keys only, so `force` is
    needed: keep a copy of the ring as long as such backups are kept. Without old keys nothing is changed.
    """
    body: PruneSecrets = call.body
    node = call.node
    await node.store.write(_nothing)  # what was sealed before the last rotation is committed
    old = await node.store.read(secrets.droppable, node.vault)
    if not old:
        return one(await _record(call))
    if not body.force:
        said = await node.store.read(secrets.older_backups, node.settings.database, old)
        raise Conflict(f"{said}; then prune with force (gwctl server secrets prune --force)")
    await _note(call, "secrets.prune", old)
    try:
        await asyncio.to_thread(node.ring_file.drop, old)
    except KeyRingError as error:
        raise Conflict(str(error)) from None
    return one(await _record(call))


async def _note(call: Call, action: str, keys: Collection[str]) -> None:
    await call.node.store.write(
        secrets.note, action, keys, caller=call.caller, origin=call.origin, now_us=call.now_us
    )


def ring_keys(
    ring: KeyRing, uses: dict[str, dict[str, int]], *, now_us: int
) -> list[RingKeyRecord]:
    """The keys of a ring and those that secrets need beside it, the active one first."""
    names = sorted(ring.keks.keys() | uses.keys(), key=lambda name: (name != ring.active, name))
    return [_ring_key(ring, name, uses.get(name, {}), now_us=now_us) for name in names]


def _ring_key(ring: KeyRing, name: str, places: dict[str, int], *, now_us: int) -> RingKeyRecord:
    made_us = ring.made_us.get(name)
    return RingKeyRecord(
        id=name,
        active=name == ring.active,
        in_ring=name in ring.keks,
        made_at=iso_or_none(made_us),
        age_s=None if made_us is None else max(0, now_us - made_us) // US_PER_S,
        sealed=sum(places.values()),
        places=[SealedRecord(place=place, sealed=count) for place, count in places.items()],
    )


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    uses: dict[str, dict[str, int]]
    done: secrets.Done | None


async def _record(call: Call) -> SecretsRecord:
    node, ring = call.node, call.node.vault.ring
    found = await node.store.read(_found)
    file = await asyncio.to_thread(_file, node.ring_file.path)
    keys = ring_keys(ring, found.uses, now_us=call.now_us)
    left = sum(key.sealed for key in keys if not key.active)
    finished = found.done is not None and found.done.key == ring.active
    state: State = "current"
    if not all(key.in_ring for key in keys):
        state = "incomplete"
    elif left:
        state = "sealing"
    return SecretsRecord(
        state=state,
        active=ring.active,
        secrets=sum(key.sealed for key in keys),
        left=left,
        current_since=iso(found.done.at_us) if found.done is not None and finished else None,
        file=file,
        keys=keys,
    )


def _found(connection: Connection) -> _Found:
    return _Found(uses=secrets.uses(connection), done=secrets.done(connection))


def _file(path: Path) -> RingFileRecord:
    check = key_ring(path)
    problem = None if check.state == "ok" else f"{check.message}; {check.do}"
    try:
        info = path.lstat()
    except OSError:
        return RingFileRecord(path=str(path), mode=None, owner=None, problem=problem)
    if problem is None and info.st_uid not in (0, os.geteuid()):
        problem = f"{path} belongs to user {info.st_uid}, not to the node's; run: chown {os.geteuid()} {path}"
    return RingFileRecord(
        path=str(path), mode=f"{stat.S_IMODE(info.st_mode):04o}", owner=info.st_uid, problem=problem
    )


def _nothing(_connection: Connection) -> None:
    return None
