"""What makes a rename last: the directory's entry itself is written to disk."""

import os
from pathlib import Path


def sync(directory: Path) -> None:
    """After this a power cut no longer undoes what was renamed in `directory`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
