"""What makes a rename last, and what keeps a node's files its own user's."""

import os
from pathlib import Path


def give_to_owner_of(directory: Path, file: Path) -> None:
    """What root makes for a node belongs to the user the node runs as."""
    if os.geteuid() == 0:
        owner = directory.stat()
        os.chown(file, owner.st_uid, owner.st_gid)


def sync(directory: Path) -> None:
    """After this a power cut no longer undoes what was renamed in `directory`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
