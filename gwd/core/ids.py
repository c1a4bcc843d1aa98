"""Identifiers: a prefix and 22 base62 characters, about 131 random bits each."""

import os
from typing import Final

BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SUFFIX_LENGTH: Final = 22

# A byte below 248 maps evenly onto the 62 digits; the eight above it are thrown away.
_EVEN: Final = 248
_DIGITS: Final = bytes(ord(BASE62[value % 62]) for value in range(256))
_UNEVEN: Final = bytes(range(_EVEN, 256))


def random_base62(length: int) -> str:
    """`length` unbiased random base62 characters from the operating system's generator."""
    text = b""
    while len(text) < length:
        text += os.urandom(length + 8).translate(_DIGITS, _UNEVEN)
    return text[:length].decode("ascii")


def mint(prefix: str) -> str:
    """A fresh identifier such as `key_…`; the prefix carries its own separator."""
    return prefix + random_base62(SUFFIX_LENGTH)
