"""The key ring file: master keys that wrap data keys, and the pepper of API key digests.

`keyring.json` is `{"active": id, "keks": {id: base64 of 32 bytes}, "pepper": base64 of 32 bytes}`, mode 0600.
Losing it loses every stored secret and every API key; keep a copy apart from the database's backups.
"""

import base64
import os
import stat
from pathlib import Path
from typing import Final

import msgspec

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


class KeyRing(msgspec.Struct, frozen=True, kw_only=True):
    """The ring in memory. `repr` shows the ids of its keys only."""

    active: str
    keks: dict[str, bytes]
    pepper: bytes

    def __repr__(self) -> str:
        return f"KeyRing(active={self.active!r}, keks={sorted(self.keks)})"


def create(path: Path) -> KeyRing:
    """Write a new ring (mode 0600). Raises KeyRingError if the file exists: a ring is never replaced."""
    ring = fresh()
    content = _File(
        active=ring.active,
        keks={name: base64.b64encode(key).decode() for name, key in ring.keks.items()},
        pepper=base64.b64encode(ring.pepper).decode(),
    )
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise KeyRingError(f"{path} exists already; a key ring is never overwritten") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return ring


def fresh() -> KeyRing:
    """A ring of random keys that lives in memory only."""
    name = "k" + random_base62(8)
    return KeyRing(active=name, keks={name: os.urandom(KEY_BYTES)}, pepper=os.urandom(KEY_BYTES))


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
        )
    except (msgspec.DecodeError, ValueError):
        raise KeyRingError(f"{path} is not a key ring; restore it from your copy") from None
    if ring.active not in ring.keks or any(
        len(key) != KEY_BYTES for key in (*ring.keks.values(), ring.pepper)
    ):
        raise KeyRingError(f"{path} is incomplete; restore it from your copy")
    return ring


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
