"""Rotation of the ring's keys: every place of the node that holds sealed values, sealed anew page by page.

A rotation may stop anywhere and goes on from what the database says: each value names the key that seals it, and an old
key stays in the ring until nothing needs it.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec

from gwd.alerts.sealed import ADDRESSES, OLD_SECRETS, SECRETS
from gwd.audit import service as audit
from gwd.audit.service import Origin
from gwd.content_log.sealing import DATA_KEYS
from gwd.core.caller import Caller
from gwd.core.clock import iso
from gwd.core.errors import Conflict
from gwd.credentials import sealed
from gwd.credentials.keyring import KeyRing
from gwd.credentials.sealed import Page, SealedPlace, Unopened
from gwd.credentials.service import VENDOR_KEYS
from gwd.credentials.vault import Binding, Vault
from gwd.management.topup import binding
from gwd.orgs import organizations
from gwd.store import Connection
from gwd.store.connection import holds

PAGE: Final = 50
SHOWN: Final = 3

_DONE: Final = "secrets_sealed"


def _topup_hook(organization_id: str, hook_url: str) -> tuple[Binding, ...]:
    return (binding(organization_id, hook_url),)


TOPUP_HOOKS: Final = SealedPlace(
    name="secret of a payment hook",
    table="auto_topup",
    column="sealed_secret",
    row="organization_id",
    facts=("hook_url",),
    bindings=_topup_hook,
    remedy="set its hook_url again: gwctl credit topup",
)
PLACES: Final = (VENDOR_KEYS, ADDRESSES, SECRETS, OLD_SECRETS, TOPUP_HOOKS, DATA_KEYS)
"""Every column that holds sealed values."""


class At(msgspec.Struct, frozen=True, kw_only=True):
    """How far a pass over all places has come."""

    place: int = 0
    after: str = ""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Since when everything that opens is sealed by `key`."""

    key: str
    at_us: int


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """Every sealed value was opened: how many there are, and those that did not open."""

    values: int
    unopened: tuple[Unopened, ...]


def uses(connection: Connection) -> dict[str, dict[str, int]]:
    """How many values each key seals: key, place, count."""
    found: dict[str, dict[str, int]] = {}
    for place in PLACES:
        for key, count in sealed.counts(connection, place).items():
            found.setdefault(key, {})[place.name] = count
    return found


def left(connection: Connection, ring: KeyRing) -> int:
    """How many values another key than the active one seals."""
    found = uses(connection)
    return sum(sum(places.values()) for key, places in found.items() if key != ring.active)


def missing(connection: Connection, ring: KeyRing) -> list[str]:
    """The keys that seal something and are not in the ring: it is an older copy, or of another node."""
    return sorted(uses(connection).keys() - ring.keks.keys())


def read_page(connection: Connection, vault: Vault, at: At) -> tuple[Page, At | None]:
    """The next values, sealed anew and not yet written, and where the pass goes on; None at its end."""
    page = sealed.page(connection, vault, PLACES[at.place], after=at.after, limit=PAGE)
    if page.last is not None:
        return page, At(place=at.place, after=page.last)
    return page, At(place=at.place + 1) if at.place + 1 < len(PLACES) else None


def write_page(connection: Connection, at: At, page: Page) -> None:
    """Write a page where the pass stood when it was read."""
    sealed.put(connection, PLACES[at.place], page.anew)


def verify(connection: Connection, vault: Vault) -> Verified:
    """Open every value."""
    return Verified(
        values=sum(sum(places.values()) for places in uses(connection).values()),
        unopened=tuple(
            each for place in PLACES for each in sealed.unopened(connection, vault, place)
        ),
    )


def begins(connection: Connection, vault: Vault) -> bool:
    """Whether a rotation begins with a new key; False: one is under way, and only has to go on.

    Raises Conflict where the ring lacks a key that is needed: a further key would not make it whole.
    """
    ring = vault.ring
    if absent := missing(connection, ring):
        raise Conflict(_lacks(absent))
    hopeless = [each for each in verify(connection, vault).unopened if each.key != ring.active]
    return left(connection, ring) == len(hopeless)


def note_done(connection: Connection, ring: KeyRing, *, now_us: int) -> None:
    """Everything that opens is sealed by the active key; said once for each key."""
    before = done(connection)
    if before is not None and before.key == ring.active:
        return
    connection.execute(
        "INSERT INTO node_fact (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_DONE, msgspec.json.encode(Done(key=ring.active, at_us=now_us))),
    )


def done(connection: Connection) -> Done | None:
    """What was noted last."""
    row = connection.row("SELECT value FROM node_fact WHERE name = ?", (_DONE,))
    return None if row is None else msgspec.json.decode(row[0], type=Done)


def droppable(connection: Connection, vault: Vault) -> tuple[str, ...]:
    """The keys that the ring may lose: all but the active one, once every value opens and none needs them.

    Raises Conflict that says what still needs them.
    """
    ring = vault.ring
    if absent := missing(connection, ring):
        raise Conflict(_lacks(absent))
    wrong = verify(connection, vault).unopened
    if wrong:
        shown = "; ".join(each.message for each in wrong[:SHOWN])
        raise Conflict(f"{_some(len(wrong))} not open, so no key is removed: {shown}")
    still, noted = left(connection, ring), done(connection)
    old = tuple(sorted(ring.keks.keys() - {ring.active}))
    if still or (old and (noted is None or noted.key != ring.active)):
        raise Conflict(
            f"the rotation is not finished: {still} values are sealed by an old key; wait, or run rotate again"
        )
    return old


def older_backups(connection: Connection, database: Path, names: Collection[str]) -> str:
    """Which backups open with these keys only, in a sentence; those beside the database by name."""
    noted = done(connection)
    since = "" if noted is None else f" before {iso(noted.at_us)}"
    kept = [
        copy.name
        for copy in sorted(database.parent.glob(f"{database.name}.*"))
        if _needs(copy, names)
    ]
    among = f" (here: {', '.join(kept)})" if kept else ""
    return (
        f"backups made{since}{among} can be read with {', '.join(names)} only: keep a copy of the key ring"
        " as long as you keep them"
    )


def note(
    connection: Connection,
    action: str,
    keys: Collection[str],
    *,
    caller: Caller | None = None,
    origin: Origin | None = None,
    now_us: int,
) -> None:
    """The audit line of what is about to happen to the ring, which is no part of a transaction.

    It comes first, so that no key comes or goes without one. Without a caller it was the machine's owner.
    """
    oldest, _ = organizations.list_organizations(connection, limit=1, offset=0)
    audit.record(
        connection,
        caller,
        action,
        "node",
        None,
        {"keys": sorted(keys)},
        organization_id=oldest[0].id if oldest and caller is None else None,
        origin=origin,
        now_us=now_us,
    )


def _lacks(absent: list[str]) -> str:
    return (
        f"the key ring lacks {', '.join(absent)}, which stored secrets need; restore the newest copy of keyring.json,"
        " or set those secrets again: `verify` names them"
    )


def _some(count: int) -> str:
    return "a stored secret does" if count == 1 else f"{count} stored secrets do"


def _needs(copy: Path, names: Collection[str]) -> bool:
    """Whether a file beside the database is a copy of it in which one of these keys seals something."""

    def seals(place: SealedPlace) -> bool:
        return holds(copy, lambda found: not sealed.counts(found, place).keys().isdisjoint(names))

    return copy.is_file() and any(seals(place) for place in PLACES)
