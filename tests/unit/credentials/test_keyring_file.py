"""The key ring's file: who may read it decides whether the node starts."""

import os
import struct
from pathlib import Path

import pytest

from gwd.credentials import keyring

# The kernel's form of an access list: version 2, then tag, rights and id of each entry.
_USER_OBJ, _USER, _GROUP_OBJ, _MASK, _OTHER = 1, 2, 4, 16, 32
_NOBODY = 0xFFFFFFFF


def access_list(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    path = tmp_path / "keyring.json"
    keyring.create(path)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_ring_that_others_can_read_is_refused(ring, mode):
    ring.chmod(mode)
    with pytest.raises(keyring.KeyRingError, match="chmod 600"):
        keyring.read(ring)


def test_a_ring_of_its_owner_alone_is_read(ring):
    assert keyring.read(ring).active
    ring.chmod(0o400)
    assert keyring.read(ring).active


def test_a_link_is_refused(ring, tmp_path):
    (tmp_path / "link").symlink_to(ring)
    with pytest.raises(keyring.KeyRingError, match="regular file"):
        keyring.read(tmp_path / "link")


def test_a_credential_of_systemd_is_read_by_its_service_and_by_nobody_else(ring, monkeypatch):
    rights = access_list(
        (_USER_OBJ, 4, _NOBODY), (_USER, 4, 4711), (_GROUP_OBJ, 0, _NOBODY), (_MASK, 4, _NOBODY),
        (_OTHER, 0, _NOBODY),
    )  # fmt: skip
    try:
        os.setxattr(ring, "system.posix_acl_access", rights)
    except OSError as error:
        pytest.skip(f"no access lists on this file system: {error}")
    assert ring.stat().st_mode & 0o777 == 0o440
    with pytest.raises(keyring.KeyRingError, match="chmod 600"):
        keyring.read(ring)
    if ring.stat().st_uid == 0:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        assert keyring.read(ring).active
