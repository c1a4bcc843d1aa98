"""Data keys for what is much: contents are sealed by a data key, and data keys by the ring as every secret is.

A data key is of one organization and one day and lives in one run of the node; so a rotation of the ring seals anew a
few short values, however much they have sealed.
"""

import base64
import os
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gwd.core.clock import US_PER_DAY
from gwd.core.ids import mint
from gwd.credentials.keyring import KEY_BYTES
from gwd.credentials.vault import Binding, CannotOpenError, Vault

_NONCE_BYTES: Final = 12


class DataKey(msgspec.Struct, frozen=True, kw_only=True):
    """`sealed` is the key as it is stored."""

    id: str
    organization_id: str
    key: bytes
    sealed: str

    def __repr__(self) -> str:
        return f"DataKey(id={self.id!r})"

    def seal(self, content: bytes, row_id: str) -> bytes:
        """The content of one row, by AES-256-GCM; it opens for that row only."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key).encrypt(nonce, content, row_id.encode())


class DataKeys:
    """Those that seal now, for one purpose; one for the node, used from the event loop only.

    A key is asked for in the turn of the loop that queues what it sealed: so no rotation of the ring comes between.
    """

    def __init__(self, vault: Vault, purpose: str) -> None:
        self._vault = vault
        self._purpose = purpose
        self._of: dict[str, DataKey] = {}
        self._day = 0

    def of(self, organization_id: str, *, now_us: int) -> DataKey:
        """The organization's key of this day, made when it is first asked for, sealed by the ring's active key."""
        day = now_us // US_PER_DAY
        if day != self._day:
            self._day, self._of = day, {}
        found = self._of.get(organization_id)
        if found is None or not found.sealed.startswith(f"gw1.{self._vault.ring.active}."):
            identity, key = mint("dk_"), os.urandom(KEY_BYTES)
            bound = binding(self._purpose, organization_id, identity)
            sealed = self._vault.seal(base64.b64encode(key).decode(), bound)
            found = DataKey(id=identity, organization_id=organization_id, key=key, sealed=sealed)
            self._of[organization_id] = found
        return found


def opened(content: bytes, vault: Vault, sealed_key: str, bound: Binding, row_id: str) -> bytes:
    """What a data key has sealed. Raises CannotOpenError where the ring lacks a key, or it was moved or damaged."""
    key = base64.b64decode(vault.open(sealed_key, bound))
    nonce, rest = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, rest, row_id.encode())
    except InvalidTag:
        raise CannotOpenError(f"the {bound.purpose} of {row_id} does not open") from None


def binding(purpose: str, organization_id: str, data_key_id: str) -> Binding:
    """What a data key is sealed for."""
    return Binding(purpose=purpose, organization_id=organization_id, row_id=data_key_id, origin="")
