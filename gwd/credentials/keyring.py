"""The key ring file: master keys that wrap data keys, and the pepper of API key digests.

`keyring.json` is `{"active": id, "keks": {id: base64 of 32 bytes}, "pepper": base64 of 32 bytes, "made": {id: time}}`,
mode 0600; the times are missing in rings of earlier versions. Losing it loses every stored secret and every API key;
keep a copy apart from the database's backups.

A ring grows by a new key, which seals from then on, and loses keys that nothing is sealed by. Its file is replaced as a
whole: written beside, synced, read again, renamed, the directory synced. The pepper stays for ever: API keys are known
by their digests only, and nobody could digest them anew.
"""

import base64
import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec

from gwd.core.clock import US_PER_S, iso, us_from_iso
from gwd.core.ids import random_base62
from gwd.core.text_file import NotUtf8Error, read_text

KEY_BYTES: Final = 32

_ACCESS_LIST: Final = "system.posix_acl_access"


class KeyRingError(RuntimeError):
    """The ring cannot be used; the text names the file and the remedy."""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    active: str
    keks: dict[str, str]
    pepper: str
    made: dict[str, str] = {}


class KeyRing(msgspec.Struct, frozen=True, kw_only=True):
    """The ring in memory. `repr` shows the ids of its keys only.

    `made_us` says when a key was made, as far as that is known.
    """

    active: str
    keks: dict[str, bytes]
    pepper: bytes
    made_us: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"KeyRing(active={self.active!r}, keks={sorted(self.keks)})"


def create(path: Path, *, now_us: int | None = None) -> KeyRing:
    """Write a new ring (mode 0600). Raises KeyRingError if the file exists: one ring never takes another's place."""
    ring = fresh(now_us=now_us)
    try:
        _write(path, ring)
    except FileExistsError:
        raise KeyRingError(f"{path} exists already; a key ring is never overwritten") from None
    return ring


def fresh(*, now_us: int | None = None) -> KeyRing:
    """A ring of random keys that lives in memory only."""
    name = _new_name()
    return KeyRing(
        active=name,
        keks={name: os.urandom(KEY_BYTES)},
        pepper=os.urandom(KEY_BYTES),
        made_us={} if now_us is None else {name: _second(now_us)},
    )


def grown(ring: KeyRing, *, now_us: int) -> KeyRing:
    """The ring with a new key that seals from now on; those before it still open."""
    name = _new_name()
    return msgspec.structs.replace(
        ring,
        active=name,
        keks={**ring.keks, name: os.urandom(KEY_BYTES)},
        made_us={**ring.made_us, name: _second(now_us)},
    )


def without(ring: KeyRing, names: Collection[str]) -> KeyRing:
    """The ring without some of its old keys."""
    assert ring.active not in names
    return msgspec.structs.replace(
        ring,
        keks={name: key for name, key in ring.keks.items() if name not in names},
        made_us={name: at_us for name, at_us in ring.made_us.items() if name not in names},
    )


def replace(path: Path, before: KeyRing, after: KeyRing) -> None:
    """Put `after` into the file that holds `before`. When this returns, no power cut brings the old one back.

    Raises KeyRingError where the file is another's work or cannot be written. Then nothing may be sealed by `after`,
    whichever of the two a start will find.
    """
    if after.pepper != before.pepper or not after.keks.keys() & before.keks.keys():
        raise KeyRingError("a key ring is only ever replaced by one that goes on from it")
    owner = path.lstat()
    if read(path) != before:
        raise KeyRingError(
            f"{path} is not the ring that is in use; restart the node with the right one first"
        )
    incoming = path.with_name(path.name + ".incoming")
    try:
        incoming.unlink(missing_ok=True)
        _write(incoming, after)
        if os.geteuid() == 0:
            os.chown(incoming, owner.st_uid, owner.st_gid)
        if read(incoming) != after:
            raise KeyRingError(f"{incoming} does not hold what was written; look at the disk")
        incoming.rename(path)
        sync_directory(path.parent)
    except OSError as error:
        raise KeyRingError(
            f"{path} cannot be replaced: {error.strerror}; it and its directory must be writable for this user"
        ) from None


def keep_copy(path: Path, ring: KeyRing) -> None:
    """Write a ring to a new file (mode 0600), synced. Raises KeyRingError for one that exists or cannot be made."""
    try:
        _write(path, ring)
        sync_directory(path.parent)
    except FileExistsError:
        raise KeyRingError(f"{path} exists already; name another file") from None
    except OSError as error:
        raise KeyRingError(
            f"{path} cannot be written: {error.strerror}; name another file"
        ) from None


def read(path: Path) -> KeyRing:
    """The ring of a node. Raises KeyRingError for a missing, readable-by-others, linked, empty or broken file."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        raise KeyRingError(
            f"{path} is missing; restore it from your copy, or name its place with [store] keyring or "
            "GWD_STORE_KEYRING (without it no stored secret can be read)"
        ) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    if not stat.S_ISREG(info.st_mode):
        raise KeyRingError(f"{path} must be a regular file, not a link or a device")
    if _others_may_read(path, info):
        raise KeyRingError(f"{path} can be read by others; run: chmod 600 {path}")
    try:
        text = read_text(path)
    except NotUtf8Error as error:
        raise KeyRingError(f"{path} cannot be read: {error}") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        content = msgspec.json.decode(text, type=_File)
        ring = KeyRing(
            active=content.active,
            keks={name: base64.b64decode(key, validate=True) for name, key in content.keks.items()},
            pepper=base64.b64decode(content.pepper, validate=True),
            made_us={name: us_from_iso(at) for name, at in content.made.items()},
        )
    except (msgspec.DecodeError, ValueError):
        raise KeyRingError(f"{path} is not a key ring; restore it from your copy") from None
    if ring.active not in ring.keks or any(
        len(key) != KEY_BYTES for key in (*ring.keks.values(), ring.pepper)
    ):
        raise KeyRingError(f"{path} is incomplete; restore it from your copy")
    return ring


def sync_directory(directory: Path) -> None:
    """After this a power cut no longer undoes what was made or renamed in it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _new_name() -> str:
    return "k" + random_base62(8)


def _second(at_us: int) -> int:
    return at_us // US_PER_S * US_PER_S


def _write(path: Path, ring: KeyRing) -> None:
    content = _File(
        active=ring.active,
        keks={name: base64.b64encode(key).decode() for name, key in ring.keks.items()},
        pepper=base64.b64encode(ring.pepper).decode(),
        made={name: iso(at_us) for name, at_us in ring.made_us.items()},
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _unreadable(path: Path, error: OSError) -> KeyRingError:
    return KeyRingError(
        f"{path} cannot be read: {error.strerror}; run this as its owner, or name another place with GWD_STORE_KEYRING"
    )


def _others_may_read(path: Path, info: os.stat_result) -> bool:
    if info.st_mode & stat.S_IRWXO:
        return True
    if not info.st_mode & stat.S_IRWXG:
        return False
    # systemd hands a credential over as root's file with an access list that names the service's user; then the
    # group bits are the list's mask and no right of a group.
    handed_over = info.st_uid == 0 and os.geteuid() != 0 and _ACCESS_LIST in os.listxattr(path)
    return not handed_over
