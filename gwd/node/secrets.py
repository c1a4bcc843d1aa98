"""`gwd secrets`: the key ring of a stopped node looked at, grown by a key, proved, rid of old keys."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from gwd.core.clock import Clock
from gwd.core.errors import Conflict
from gwd.credentials import keyring
from gwd.credentials.keyring import KeyRing
from gwd.credentials.ring_file import RingFile
from gwd.credentials.vault import Vault
from gwd.management import secrets, setup
from gwd.management.secrets import At, Verified
from gwd.node.check import opened
from gwd.settings import Settings
from gwd.store import Connection
from gwd.store.connection import transaction


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The ring and how many secrets each key seals; `made` is the key that a rotation began with."""

    ring: KeyRing
    uses: dict[str, dict[str, int]]
    left: int
    made: str | None = None


def status(settings: Settings) -> Standing:
    """How the ring stands. Raises AlreadyRunningError while the node serves, as all of these do."""
    with opened(settings, "reader") as connection, transaction(connection, "DEFERRED"):
        return _standing(connection, _ring(settings, connection))


def verify(settings: Settings) -> Verified:
    """Open every stored secret."""
    with opened(settings, "reader") as connection, transaction(connection, "DEFERRED"):
        return secrets.verify(connection, Vault(_ring(settings, connection)))


def rotate(settings: Settings, clock: Clock, *, progress: Callable[[int], None]) -> Standing:
    """A new key, unless a rotation is under way, and everything sealed anew; `progress` hears how many are left.

    The ring's file has the key before anything is sealed by it. Whatever ends this, the next run goes on.
    """
    with opened(settings, "writer") as connection:
        vault = Vault(_ring(settings, connection))
        made = None
        if secrets.begins(connection, vault):
            with transaction(connection, "IMMEDIATE"):
                secrets.note(
                    connection, "secrets.rotate", [vault.ring.active], now_us=clock.now_us()
                )
            made = _file(settings, vault).grow(now_us=clock.now_us())
        _seal_anew(connection, vault, progress)
        with transaction(connection, "IMMEDIATE"):
            secrets.note_done(connection, vault.ring, now_us=clock.now_us())
        return msgspec.structs.replace(_standing(connection, vault.ring), made=made)


def prune(settings: Settings, clock: Clock, *, copy: Path | None, force: bool) -> tuple[str, ...]:
    """Old keys leave the ring, once nothing in the database needs them; their ids.

    Raises Conflict without a copy of the ring for older backups, unless forced.
    """
    with opened(settings, "writer") as connection:
        vault = Vault(_ring(settings, connection))
        old = secrets.droppable(connection, vault)
        if not old:
            return ()
        if copy is not None:
            keyring.keep_copy(copy.absolute(), vault.ring)
        elif not force:
            said = secrets.older_backups(connection, settings.database, old)
            raise Conflict(f"{said}; --copy FILE makes one, --force goes without")
        with transaction(connection, "IMMEDIATE"):
            secrets.note(connection, "secrets.prune", old, now_us=clock.now_us())
        _file(settings, vault).drop(old)
        return old


def _seal_anew(connection: Connection, vault: Vault, progress: Callable[[int], None]) -> None:
    at: At | None = At()
    while at is not None:
        with transaction(connection, "IMMEDIATE"):
            page, further = secrets.read_page(connection, vault, at)
            secrets.write_page(connection, at, page)
        if page.anew:
            progress(secrets.left(connection, vault.ring))
        at = further


def _ring(settings: Settings, connection: Connection) -> KeyRing:
    ring = keyring.read(settings.keyring)
    setup.check_ring(connection, ring)
    return ring


def _file(settings: Settings, vault: Vault) -> RingFile:
    return RingFile(settings.keyring, vault, handed_over=settings.keyring_is_handed_over)


def _standing(connection: Connection, ring: KeyRing) -> Standing:
    return Standing(ring=ring, uses=secrets.uses(connection), left=secrets.left(connection, ring))
