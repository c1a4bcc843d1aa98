"""Whether an opaque token that comes back is the vendor's own, and belongs to its text."""

import base64
import binascii
from hmac import compare_digest

from gwd.demo.signatures import DIGEST_BYTES, ENCRYPTED, digest_of, seal


def is_signature(signature: object, thinking: object) -> bool:
    """Whether it is ours, and belongs to this text; a text that was withheld cannot be compared."""
    digest = _opened(b"thinking", signature)
    if digest is None or not isinstance(thinking, str):
        return False
    return thinking == "" or compare_digest(digest, digest_of(thinking))


def is_own_signature(signature: object) -> bool:
    """Whether it is ours, whatever it was made for."""
    return _opened(b"thinking", signature) is not None


def is_redacted(data: object) -> bool:
    return _opened(b"redacted", data) is not None


def is_encrypted(data: object) -> bool:
    if not isinstance(data, str) or not data.startswith(ENCRYPTED):
        return False
    return _opened(b"encrypted", data.removeprefix(ENCRYPTED)) is not None


def _opened(kind: bytes, sealed: object) -> bytes | None:
    try:
        content = base64.b64decode(sealed if isinstance(sealed, str) else "", validate=True)
    except (binascii.Error, ValueError):
        return None
    digest = content[:DIGEST_BYTES]
    return digest if sealed == seal(kind, digest) else None
