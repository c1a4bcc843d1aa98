"""What an API key looks like: made, checked offline, masked, digested, and picked out of the headers of a request."""

import hashlib
import hmac
import re
import zlib
from typing import Final

from gwd.core.caller import KeyKind
from gwd.core.errors import MissingApiKey, Unauthenticated
from gwd.core.ids import BASE62, random_base62

PREFIXES: Final[dict[KeyKind, str]] = {"inference": "gwi_", "management": "gwm_"}
BODY_LENGTH: Final = 43
CHECKSUM_LENGTH: Final = 6

_SHAPE: Final = re.compile(r"gw[im]_[0-9A-Za-z]{49}", re.ASCII)
_SIGNED_LENGTH: Final = len("gwi_") + BODY_LENGTH
_BEARER: Final = "bearer "

# One text for every key that is malformed or unknown: saying which would help whoever guesses keys.
_UNKNOWN: Final = "The API key is not valid. Check that the whole key was sent, and that it exists."
_MISSING: Final = "No API key was sent. Send it as the header `Authorization: Bearer <API_KEY>` or as `x-api-key`."
_TWO_KEYS: Final = "Two different API keys were sent, in `Authorization`, `x-api-key` or `x-goog-api-key`. Send one."


def generate(kind: KeyKind) -> str:
    """A fresh key: prefix, 43 random base62 characters, 6 of checksum over both."""
    signed = PREFIXES[kind] + random_base62(BODY_LENGTH)
    return signed + _checksum(signed)


def is_well_formed(text: str) -> bool:
    """Whether `text` has the shape and the checksum of one of our keys; says nothing about its existence."""
    return (
        _SHAPE.fullmatch(text) is not None
        and _checksum(text[:_SIGNED_LENGTH]) == text[_SIGNED_LENGTH:]
    )


def kind_of(key: str) -> KeyKind:
    """Which of the two kinds a well-formed key is."""
    return "inference" if key.startswith(PREFIXES["inference"]) else "management"


def digest(key: str, pepper: bytes) -> bytes:
    """What is stored and looked up: without the pepper nobody who can write the table can plant a key."""
    assert pepper, "an HMAC with an empty key verifies for everyone"
    return hmac.digest(pepper, key.encode(), "sha256")


def public_hash(key: str) -> str:
    """The public name of a key: 64 hex characters that are neither the stored digest nor a credential."""
    return hashlib.sha256(b"gw-public" + key.encode()).hexdigest()


def label(key: str) -> str:
    """The masked key, as lists show it: `gwi_6vR2…9Zq1`."""
    return f"{key[:8]}…{key[-4:]}"


def pick(authorization: str | None, *api_keys: str | None) -> str:
    """The well-formed key of the credential headers, whichever carries it.

    Agents send a foreign bearer beside our key, so a header that is not ours is passed over. Raises MissingApiKey
    without any credential and Unauthenticated without one of ours, or with two different ones of ours.
    """
    bearer = authorization or ""
    if bearer[: len(_BEARER)].lower() == _BEARER:
        bearer = bearer[len(_BEARER) :]
    sent = [text for each in (bearer, *api_keys) if (text := (each or "").strip())]
    if not sent:
        raise MissingApiKey(_MISSING)
    ours = {text for text in sent if is_well_formed(text)}
    if not ours:
        raise unknown_key()
    if len(ours) > 1:
        raise Unauthenticated(_TWO_KEYS)
    return ours.pop()


def unknown_key() -> Unauthenticated:
    """The one refusal for keys that are malformed, unknown or deleted."""
    return Unauthenticated(_UNKNOWN)


def _checksum(signed: str) -> str:
    value = zlib.crc32(signed.encode())
    digits = ""
    for _ in range(CHECKSUM_LENGTH):
        value, digit = divmod(value, 62)
        digits = BASE62[digit] + digits
    return digits
