"""Opaque tokens that come back: thinking signatures, redacted thinking, encrypted reasoning.

Each is a digest sealed with the vendor's own key, so the vendor can tell its own from any other when it is replayed,
and a thinking text that was changed on the way from one that was not.
"""

import base64
import binascii
from hashlib import blake2b
from hmac import compare_digest

_KEY = b"simulated vendor"
_SIZE = 32
_ENCRYPTED = "gAAAAA"


def sign(thinking: str) -> str:
    """The signature of a thinking block with this text."""
    return _seal(b"thinking", thinking.encode())


def is_signature(signature: object, thinking: object) -> bool:
    """Whether it is ours, and belongs to this text; a text that was withheld cannot be compared."""
    digest = _opened(b"thinking", signature)
    if digest is None or not isinstance(thinking, str):
        return False
    return thinking == "" or compare_digest(digest, _digest(thinking.encode()))


def redact(thinking: str) -> str:
    return _seal(b"redacted", thinking.encode())


def is_redacted(data: object) -> bool:
    return _opened(b"redacted", data) is not None


def encrypt(reasoning: str) -> str:
    return _ENCRYPTED + _seal(b"encrypted", reasoning.encode())


def is_encrypted(data: object) -> bool:
    if not isinstance(data, str) or not data.startswith(_ENCRYPTED):
        return False
    return _opened(b"encrypted", data.removeprefix(_ENCRYPTED)) is not None


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_SIZE).digest()


def _seal(kind: bytes, content: bytes) -> str:
    digest = _digest(content)
    mark = blake2b(kind + digest, key=_KEY, digest_size=_SIZE).digest()
    return base64.b64encode(digest + mark).decode()


def _opened(kind: bytes, sealed: object) -> bytes | None:
    try:
        content = base64.b64decode(sealed if isinstance(sealed, str) else "", validate=True)
    except (binascii.Error, ValueError):
        return None
    digest, mark = content[:_SIZE], content[_SIZE:]
    expected = blake2b(kind + digest, key=_KEY, digest_size=_SIZE).digest()
    return digest if compare_digest(mark, expected) else None
