"""A rotation of the ring's keys that is killed, or loses its power, at every write: every secret opens afterwards, API
keys are known, signatures are right, and the next rotation comes to its end.

A power cut takes what was not synced: of the ring's file, or of the database, whichever of the two is worse.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import apsw
import msgspec
import pytest

from gwd import settings
from gwd.core.clock import SystemClock
from gwd.credentials import keyring
from gwd.credentials.vault import Vault
from gwd.keys import admission, secret
from gwd.management import secrets
from gwd.node import secrets as rotation
from gwd.outbound.signature import signature
from gwd.settings import Settings
from gwd.store import Connection
from gwd.store.connection import open_connection
from tests.support.node import Gateway, open_gateway

EVERY = int(os.environ.get("SECRETS_EVERY", "19"))
"""Of so many kills one is tried; 1 tries each point in each way. No multiple of 3, so that every way has its turn."""

Lost = Literal["nothing", "ring", "database"]
LOST: Final[tuple[Lost, ...]] = ("nothing", "ring", "database")
NOBODY = "http://127.0.0.1:9"
LOOPBACK = {"GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]', "GWD_WEBHOOKS_ALLOW_HTTP": "true"}
VENDOR_KEY = "sk-demo-kill-0001"


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """A stopped node and what it holds: secrets by the row that seals them, and keys that it must know."""

    folder: Path
    secrets: dict[str, set[str]]
    signing: set[str]
    keys: tuple[str, ...]


async def _filled(gateway: Gateway) -> tuple[set[str], tuple[str, ...]]:
    """A dozen secrets of every place; those that sign, and API keys."""
    signing = set()
    for number in range(3):
        hook = {"type": "webhook", "name": f"hook {number}", "url": f"{NOBODY}/{number}"}
        made = await gateway.manage("POST", "/notifications/destinations", hook)
        signing.add(made["signing_secret"])
        place = f"/notifications/destinations/{made['data']['id']}/rotate-secret"
        again = await gateway.manage("POST", place, {"overlap_s": 3600})
        signing.add(again["signing_secret"])
        url = f"{NOBODY}/services/{number}"
        chat = {"type": "chat", "name": f"chat {number}", "url": url}
        await gateway.manage("POST", "/notifications/destinations", chat)
        own = {"provider": "openai-chat", "key": f"{VENDOR_KEY}{number}", "name": f"own {number}"}
        await gateway.manage("POST", "/byok", own)
    bought = {"threshold": 1, "amount": 5, "hook_url": f"{NOBODY}/pay"}
    made = await gateway.manage("PATCH", "/credits/auto-topup", bought)
    signing.add(made["signing_secret"])
    return signing, (gateway.key, gateway.management_key)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Sealed:
    folder = tmp_path_factory.mktemp("secrets")

    async def fill() -> tuple[set[str], tuple[str, ...]]:
        async with open_gateway(folder, environment=LOOPBACK) as gateway:
            return await _filled(gateway)

    signing, keys = asyncio.run(fill())
    found = folder / "node"
    opened = _opened(found)
    held = {secret for values in opened.values() for secret in values}
    assert signing <= held
    assert {f"{VENDOR_KEY}0", f"{VENDOR_KEY}1"} <= held
    assert opened.keys() == {place.name for place in secrets.PLACES}
    assert len(held) >= 12
    return Sealed(folder=found, secrets=opened, signing=signing, keys=keys)


def test_killed_anywhere_a_rotation_loses_nothing_and_goes_on(
    node: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "PAGE", 2)
    last = _points(node, tmp_path / "counted", _rotated_and_pruned)
    assert last >= 100, "so few writes cannot be all"
    every = [(point, lost) for point in range(1, last + 1) for lost in LOST]
    for number, (point, lost) in enumerate(every[::EVERY]):
        folder = _copied(node, tmp_path / f"{number}")
        assert _dies(folder, _rotated_and_pruned, point, lost), f"point {point} was not reached"
        _all_is_well(node, folder, f"point {point} of {last}, {lost} lost")
        shutil.rmtree(folder)


def test_sealing_before_the_ring_is_synced_would_be_caught(
    node: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order that must not be: the database first, the file of the ring afterwards."""
    monkeypatch.setattr(secrets, "PAGE", 2)
    last = _points(node, tmp_path / "counted", _sealed_before_the_ring)
    caught = 0
    for number, point in enumerate(range(last // 2, last)):
        folder = _copied(node, tmp_path / f"{number}")
        if _dies(folder, _sealed_before_the_ring, point, "ring"):
            caught += _opened_or_none(folder) != node.secrets
        shutil.rmtree(folder)
        if caught:
            return
    raise AssertionError("the order did not matter")


def test_a_ring_that_is_renamed_but_not_synced_would_be_caught(
    node: Sealed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "sync_directory", lambda _directory: None)
    last = _points(node, tmp_path / "counted", _rotated)
    folder = _copied(node, tmp_path / "cut")
    assert _dies(folder, _rotated, last, "ring")
    assert _opened_or_none(folder) != node.secrets


def _rotated(read: Settings) -> None:
    rotation.rotate(read, SystemClock(), progress=lambda _left: None)


def _rotated_and_pruned(read: Settings) -> None:
    _rotated(read)
    rotation.prune(read, SystemClock(), copy=read.keyring.with_name("kept.json"), force=False)


def _sealed_before_the_ring(read: Settings) -> None:
    late = list[Callable[[], None]]()

    def taken(path: Path, before: keyring.KeyRing, after: keyring.KeyRing) -> None:
        late.append(lambda: keyring.replace(path, before, after))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyring, "replace", taken)
        _rotated(read)
    for each in late:
        each()


def _all_is_well(node: Sealed, folder: Path, where: str) -> None:
    assert _opened(folder) == node.secrets, where
    read = settings.load(folder, {})
    assert rotation.verify(read).unopened == (), where
    ring = keyring.read(read.keyring)
    with closing(open_connection(str(read.database), "reader").raw) as raw:
        for key in node.keys:
            digest = secret.digest(key, ring.pepper)
            assert admission.find_by_digest(Connection(raw), digest) is not None, where
    _rotated(read)
    if len(keyring.read(read.keyring).keks) > 1:
        copy = folder / "kept-at-last.json"
        rotation.prune(read, SystemClock(), copy=copy, force=False)
    assert len(keyring.read(read.keyring).keks) == 1, where
    opened = _opened(folder)
    assert opened == node.secrets, where
    values = {value for held in opened.values() for value in held}
    signed = {signature(each, 1, b"body") for each in values}
    assert {signature(each, 1, b"body") for each in node.signing} <= signed, where
    with closing(open_connection(str(read.database), "reader").raw) as raw:
        noted = {row[0] for row in raw.execute("SELECT action FROM audit")}
    assert {"secrets.rotate", "secrets.prune"} <= noted, where


def _opened(folder: Path) -> dict[str, set[str]]:
    """Every stored secret in plain text, by its place, with the ring and the database as a start would find them."""
    read = settings.load(folder, {})
    vault = Vault(keyring.read(read.keyring))
    with closing(open_connection(str(read.database), "writer").raw) as raw:
        connection = Connection(raw)
        return {place.name: _values(connection, vault, place) for place in secrets.PLACES}


def _values(connection: Connection, vault: Vault, place: Any) -> set[str]:
    rows = connection.rows(
        f"SELECT {place.row}, {place.column}, {', '.join(place.facts)} FROM {place.table}"
        f" WHERE {place.column} IS NOT NULL"
    )
    return {vault.open(blob, place.bindings(row, *facts)[0]) for row, blob, *facts in rows}


def _opened_or_none(folder: Path) -> dict[str, set[str]] | None:
    try:
        return _opened(folder)
    except (keyring.KeyRingError, RuntimeError):
        return None


def _copied(node: Sealed, folder: Path) -> Path:
    shutil.copytree(node.folder, folder)
    return folder


def _points(node: Sealed, folder: Path, run: Callable[[Settings], None]) -> int:
    """How many points a run has that nothing interrupts."""
    cut = _Cut(0, "nothing")
    with cut.laid():
        run(settings.load(_copied(node, folder), {}))
    return cut.reached


def _dies(folder: Path, run: Callable[[Settings], None], point: int, lost: Lost) -> bool:
    """Run in a process of its own that dies at a point; whether it did."""
    child = os.fork()
    if child == 0:
        try:
            with _Cut(point, lost).laid():
                run(settings.load(folder, {}))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


class _Cut:
    """Ends the process just before its n-th step on the disk, and first takes back what a power cut would."""

    def __init__(self, point: int, lost: Lost) -> None:
        self.reached = 0
        self._point = point
        self._lost = lost
        self.ring = list[Callable[[], object]]()
        self.database = dict[str, list[Callable[[], object]]]()

    def step(self) -> None:
        self.reached += 1
        if self.reached != self._point:
            return
        if self._lost == "ring":
            for undo in reversed(self.ring):
                undo()
        if self._lost == "database":
            for undone in self.database.values():
                for undo in reversed(undone):
                    undo()
        os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def laid(self) -> Iterator[None]:
        """The steps of the ring's file and of SQLite's files lead through here."""
        disk = _Files(self)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "rename", self._renaming(Path.rename))
            patch.setattr(os, "fsync", self._syncing(os.fsync))
            patch.setattr(os, "open", self._opening(os.open))
            try:
                yield
            finally:
                disk.unregister()

    def _opening(self, open_: Any) -> Any:
        def opening(path: Any, flags: int, *more: Any, **named: Any) -> int:
            if flags & os.O_CREAT and flags & os.O_EXCL:
                self.step()
                # Whoever made a file and synced neither it nor its directory may find it empty.
                self.ring.append(lambda: os.truncate(path, 0))
            descriptor: int = open_(path, flags, *more, **named)
            return descriptor

        return opening

    def _syncing(self, sync: Any) -> Any:
        def syncing(descriptor: int) -> None:
            self.step()
            sync(descriptor)
            self.ring.clear()
            self.step()

        return syncing

    def _renaming(self, rename: Any) -> Any:
        def renaming(path: Path, target: Path) -> Path:
            self.step()
            before = target.read_bytes()
            moved: Path = rename(path, target)
            self.ring.append(lambda: target.write_bytes(before))
            self.step()
            return moved

        return renaming


class _Files(apsw.VFS):
    """The system's files, each write remembered until it is synced."""

    def __init__(self, cut: _Cut) -> None:
        self.cut = cut
        self.before = apsw.vfs_names()[0]
        super().__init__("files-before-a-cut", self.before, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> "_File":  # noqa: N802 - SQLite's word
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, files: _Files, name: Any, flags: list[int]) -> None:
        self._cut = files.cut
        self._name = name if isinstance(name, str) else name.filename()
        super().__init__(files.before, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._cut.step()
        self._remember(len(data), offset)
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._cut.step()
        self._remember(max(0, self.xFileSize() - size), size)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._cut.step()
        super().xSync(flags)
        self._cut.database.pop(self._name, None)

    def _remember(self, length: int, offset: int) -> None:
        size = self.xFileSize()
        before = super().xRead(max(0, min(length, size - offset)), offset)

        def undo() -> None:
            super(_File, self).xTruncate(size)
            super(_File, self).xWrite(before, offset)

        self._cut.database.setdefault(self._name, []).append(undo)
