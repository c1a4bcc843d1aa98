"""Opaque tokens that come back: thinking signatures, redacted thinking, encrypted reasoning.

Each is a digest sealed with the vendor's own key, so that its own can be told from any other when it is replayed, and
a thinking text that was changed on the way from one that was not.
"""

import base64
from hashlib import blake2b

DIGEST_BYTES = 32
ENCRYPTED = "gAAAAA"
_KEY = b"simulated vendor"


def sign(thinking: str) -> str:
    """The signature of a thinking block with this text."""
    return seal(b"thinking", digest_of(thinking))


def redact(thinking: str) -> str:
    return seal(b"redacted", digest_of(thinking))


def encrypt(reasoning: str) -> str:
    return ENCRYPTED + seal(b"encrypted", digest_of(reasoning))


def digest_of(content: str) -> bytes:
    return blake2b(content.encode(), digest_size=DIGEST_BYTES).digest()


def seal(kind: bytes, digest: bytes) -> str:
    """The digest with the vendor's mark on it."""
    mark = blake2b(kind + digest, key=_KEY, digest_size=DIGEST_BYTES).digest()
    return base64.b64encode(digest + mark).decode()
