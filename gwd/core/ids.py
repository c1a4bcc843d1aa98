"""Identifiers: a prefix and 22 base62 characters, about 131 random bits each."""

import os
import threading
from typing import Final

BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SUFFIX_LENGTH: Final = 22

# A byte below 248 maps evenly onto the 62 digits; the eight above it are thrown away.
_EVEN: Final = 248
_DIGITS: Final = bytes(ord(BASE62[value % 62]) for value in range(256))
_UNEVEN: Final = bytes(range(_EVEN, 256))
_STOCK_BYTES: Final = 512
_local: Final = threading.local()


def random_base62(length: int) -> str:
    """`length` unbiased random base62 characters from the operating system's generator; none is used twice.

    The generator is asked for many at a time: a call costs more than the characters.
    """
    stock: str = getattr(_local, "stock", "")
    while len(stock) < length:
        stock += os.urandom(_STOCK_BYTES).translate(_DIGITS, _UNEVEN).decode("ascii")
    _local.stock = stock[length:]
    return stock[:length]


def mint(prefix: str) -> str:
    """A fresh identifier such as `key_…`; the prefix carries its own separator."""
    return prefix + random_base62(SUFFIX_LENGTH)
