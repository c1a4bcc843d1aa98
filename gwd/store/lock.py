"""One process per state directory: an advisory lock on the directory itself; the holder's pid is in a file in it."""

import fcntl
import os
from pathlib import Path


class AlreadyRunningError(RuntimeError):
    """Another daemon holds the directory; the text names its pid."""


class InstanceLock:
    """Held for the life of the process; released by close or by the end of the process.

    A file can be deleted under its holder, and the next process would lock another one of the same name; a directory
    that holds a database cannot.
    """

    def __init__(self, path: Path) -> None:
        self._directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "a+")
        if os.geteuid() == 0:
            # A command that root runs leaves a lock that the node's own user can take.
            owner = path.parent.stat()
            os.fchown(self._file.fileno(), owner.st_uid, owner.st_gid)
        try:
            fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self.close()
            raise AlreadyRunningError(
                f"another gwd (pid {holder}) uses {path.parent}; stop it first, or give this one its own directory"
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def close(self) -> None:
        self._file.close()
        os.close(self._directory)
