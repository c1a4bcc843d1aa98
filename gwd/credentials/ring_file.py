"""The ring's file while a node uses it: it grows by a key and loses old ones, and the vault goes with it.

The file comes first, always: nothing is sealed by a key that a power cut could take away.
"""

import threading
from collections.abc import Collection
from pathlib import Path

from gwd.credentials import keyring
from gwd.credentials.keyring import KeyRingError
from gwd.credentials.vault import Vault


class RingFile:
    """One for the process. What it does waits for the disk, so call it beside the event loop.

    `handed_over`: a service manager made this file for one run, so that a key written to it would be lost.
    """

    def __init__(self, path: Path, vault: Vault, *, handed_over: bool) -> None:
        self.path = path
        self._vault = vault
        self._handed_over = handed_over
        self._lock = threading.Lock()

    def grow(self, *, now_us: int) -> str:
        """A new key, which seals from now on; its id. Raises KeyRingError; then everything is as it was."""
        with self._lock:
            ring = self._vault.ring
            after = keyring.grown(ring, now_us=now_us)
            self._replace(ring, after)
            return after.active

    def drop(self, names: Collection[str]) -> None:
        """Old keys leave the file for ever. Raises KeyRingError; then everything is as it was."""
        with self._lock:
            ring = self._vault.ring
            self._replace(ring, keyring.without(ring, names))

    def _replace(self, before: keyring.KeyRing, after: keyring.KeyRing) -> None:
        if self._handed_over:
            raise KeyRingError(
                f"{self.path} was handed over by the service manager for this run only; stop the service, run"
                " `gwd secrets` on the file that LoadCredential names, and start it again"
            )
        keyring.replace(self.path, before, after)
        self._vault.take(after)
