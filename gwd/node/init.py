"""A new node: directory, gwd.toml, key ring, migrated database; made beside the target, moved into place as a whole."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from gwd.core.clock import Clock
from gwd.credentials import keyring
from gwd.management.setup import CreatedNode, NewNode, create_node
from gwd.node.files import sync
from gwd.settings import Limits, StoreFiles, as_toml
from gwd.store.connection import open_connection, transaction
from gwd.store.migrations import migrate

CONFIG_NAME: Final = "gwd.toml"


class DirectoryTakenError(RuntimeError):
    """The directory holds something; the text names it and the remedy."""


class InitializedNode(msgspec.Struct, frozen=True, kw_only=True):
    """Where the node lies, and what was made in it."""

    config: Path
    keyring: Path
    created: CreatedNode


def initialize(directory: Path, new: NewNode, clock: Clock) -> InitializedNode:
    """Make a node in `directory`, which must be absent or empty. Nothing is left behind when it fails."""
    directory = directory.absolute()
    files = StoreFiles()
    with _built_beside(directory) as building:
        ring = keyring.create(building / files.keyring, now_us=clock.now_us())
        database = building / files.database
        migrate(str(database), clock)
        created = _fill(database, new, ring, clock)
        config = building / CONFIG_NAME
        config.touch(mode=0o600)
        config.write_text(as_toml(commented=True), "utf-8")
    return InitializedNode(
        config=directory / CONFIG_NAME, keyring=directory / files.keyring, created=created
    )


def _fill(database: Path, new: NewNode, ring: keyring.KeyRing, clock: Clock) -> CreatedNode:
    connection = open_connection(str(database), "writer")
    try:
        with transaction(connection, "IMMEDIATE"):
            return create_node(
                connection,
                new,
                ring,
                rate_limit_ceiling=Limits().default_rate_limit_per_minute,
                now_us=clock.now_us(),
            )
    finally:
        connection.raw.close()


@contextmanager
def _built_beside(directory: Path) -> Iterator[Path]:
    """A private directory to build in. Its files become `directory` at the end, gwd.toml last, or it vanishes."""
    exists = directory.is_dir()
    if directory.is_symlink() or (directory.exists() and not exists):
        raise DirectoryTakenError(f"{directory} is not a directory; name another with --dir")
    if exists and any(directory.iterdir()):
        raise DirectoryTakenError(
            f"{directory} exists and is not empty; nothing was changed. Name another with --dir, or remove it first"
        )
    if not exists:
        directory.parent.mkdir(parents=True, exist_ok=True)
    # An empty directory may be all this user can write to (systemd makes one for a service), so build inside it.
    parent = directory if exists else directory.parent
    building = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=parent))
    try:
        yield building
        if exists:
            directory.chmod(0o700)
            _move_in(building, directory)
        else:
            sync(building)
            building.rename(directory)
        sync(directory.parent)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _move_in(building: Path, directory: Path) -> None:
    # Whoever finds gwd.toml finds a node, so it comes last.
    files = sorted(building.iterdir(), key=lambda file: file.name == CONFIG_NAME)
    for file in files:
        file.rename(directory / file.name)
    building.rmdir()
    sync(directory)
