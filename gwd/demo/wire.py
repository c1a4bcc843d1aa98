"""JSON in and out, and the names that are made from the request."""

from hashlib import blake2b
from typing import Any

import msgspec

# What a caller sends and what a vendor answers is arbitrary JSON: the point of the simulated vendor is
# to look at it as the vendor would, field by field, and not through a type that has already refused it.
Json = dict[str, Any]

_ENCODER = msgspec.json.Encoder()
_DELIVERY_ONLY = frozenset({"stream", "stream_options"})
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def encode(value: object) -> bytes:
    return _ENCODER.encode(value)


def compact(value: object) -> str:
    return _ENCODER.encode(value).decode()


def seed_of(body: Json) -> bytes:
    """What the answer is made from: the request without the fields that only say how to deliver it."""
    kept = {name: value for name, value in body.items() if name not in _DELIVERY_ONLY}
    return blake2b(msgspec.json.encode(kept, order="deterministic"), digest_size=16).digest()


def mint(prefix: str, *, seed: bytes, length: int = 24) -> str:
    """An identifier of the vendor's look, the same for the same seed."""
    number = int.from_bytes(blake2b(prefix.encode() + seed, digest_size=64).digest(), "big")
    letters = []
    for _ in range(length):
        number, rest = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[rest])
    return prefix + "".join(letters)


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
