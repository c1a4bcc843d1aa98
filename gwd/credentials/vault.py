"""Sealing of recoverable secrets: an AES-256-GCM envelope whose associated data says what the secret belongs to.

Blob: `gw1.<kek id>.<wrapped data key>.<nonce>.<ciphertext>`, the binary parts in URL-safe base64. Associated data is
the length-prefixed list of format, purpose, organization, row and origin, so that a blob moved to another row, another
organization or another vendor does not open.
"""

import base64
import hmac
import os
from hashlib import sha256
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gwd.credentials.keyring import KEY_BYTES, KeyRing

_FORMAT: Final = "gw1"
_NONCE_BYTES: Final = 12


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """What a secret belongs to; sealing and opening must name the same."""

    purpose: str
    organization_id: str
    row_id: str
    origin: str


class CannotOpenError(RuntimeError):
    """The blob was sealed by another ring or for another place; the text never shows any of it."""


def key_id(blob: str) -> str:
    """The id of the ring's key that a sealed value names; empty for what is none."""
    parts = blob.split(".", 2)
    return parts[1] if len(parts) == len(("format", "id", "rest")) and parts[0] == _FORMAT else ""


class Vault:
    """Seals and opens with one key ring, which may grow while it is in use.

    A key that the ring has lost still opens until the process ends: what was read just before may be opened just after.
    """

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._keks = dict(ring.keks)

    @property
    def ring(self) -> KeyRing:
        """The ring in use."""
        return self._ring

    def take(self, ring: KeyRing) -> None:
        """Seal with this ring's active key from now on; its file holds it already."""
        assert ring.pepper == self._ring.pepper
        self._keks = {**self._keks, **ring.keks}
        self._ring = ring

    def seal(self, secret: str, binding: Binding) -> str:
        data_key, nonce = os.urandom(KEY_BYTES), os.urandom(_NONCE_BYTES)
        associated = _associated(binding)
        ciphertext = AESGCM(data_key).encrypt(nonce, secret.encode("utf-8"), associated)
        wrap_nonce = os.urandom(_NONCE_BYTES)
        ring = self._ring
        kek = ring.keks[ring.active]
        wrapped = wrap_nonce + AESGCM(kek).encrypt(wrap_nonce, data_key, associated)
        return ".".join((_FORMAT, ring.active, _text(wrapped), _text(nonce), _text(ciphertext)))

    def open(self, blob: str, binding: Binding) -> str:
        """The secret. Raises CannotOpenError for a wrong ring, a moved or a damaged blob."""
        try:
            _, kek_id, wrapped_text, nonce_text, cipher_text = blob.split(".")
            kek = self._keks[kek_id]
            wrapped = _bytes(wrapped_text)
            associated = _associated(binding)
            data_key = AESGCM(kek).decrypt(
                wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], associated
            )
            return (
                AESGCM(data_key)
                .decrypt(_bytes(nonce_text), _bytes(cipher_text), associated)
                .decode("utf-8")
            )
        except (KeyError, ValueError, InvalidTag):
            raise CannotOpenError(
                f"the {binding.purpose} of {binding.row_id} does not open with this key ring"
            ) from None

    def seal_for_a_while(self, blob: bytes, binding: Binding) -> bytes:
        """What is kept for hours or a day, and may be lost: by a key that comes from the pepper, which never changes.

        So a rotation of the ring need not look for it.
        """
        nonce = os.urandom(_NONCE_BYTES)
        sealer = AESGCM(self._derived(f"gwd seals {binding.purpose}"))
        return nonce + sealer.encrypt(nonce, blob, _associated(binding))

    def open_for_a_while(self, sealed: bytes, binding: Binding) -> bytes | None:
        """What was sealed so; None for anything else."""
        opener = AESGCM(self._derived(f"gwd seals {binding.purpose}"))
        try:
            return opener.decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _associated(binding)
            )
        except (ValueError, InvalidTag):
            return None

    def digest(self, purpose: str, text: str) -> bytes:
        """What finds a text again and does not tell it, for one purpose; it stays the same for ever."""
        return hmac.digest(self._derived(f"gwd digests {purpose}"), text.encode("utf-8"), sha256)

    def sign(self, purpose: str, data: bytes) -> bytes:
        """The node's Ed25519 signature, by a key for one purpose that comes from the pepper, which never changes."""
        return self._signer(purpose).sign(data)

    def public_key(self, purpose: str) -> bytes:
        """What anybody verifies those signatures with."""
        return self._signer(purpose).public_key().public_bytes_raw()

    def has_signed(self, purpose: str, data: bytes, signature: bytes) -> bool:
        """Whether a signature is the node's own over these data."""
        try:
            self._signer(purpose).public_key().verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def _signer(self, purpose: str) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._derived(f"gwd signs {purpose}"))

    def _derived(self, use: str) -> bytes:
        return hmac.digest(self._ring.pepper, use.encode(), sha256)

    def check_value(self) -> bytes:
        """A value that tells this ring from any other; kept in the database to detect a wrong ring at start."""
        return hmac.new(self._ring.pepper, b"gwd key ring check", sha256).digest()


def _associated(binding: Binding) -> bytes:
    fields = (_FORMAT, binding.purpose, binding.organization_id, binding.row_id, binding.origin)
    encoded = [field.encode("utf-8") for field in fields]
    return b"".join(len(field).to_bytes(4, "big") + field for field in encoded)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
