"""Identifiers: a prefix and 22 base62 characters, about 131 random bits each."""

import os
import threading
from typing import Final

BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SUFFIX_LENGTH: Final = 22
RUN_DIGITS: Final = 5
RUN_LENGTH: Final = 256

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


def mint_in_runs(prefix: str) -> str:
    """Like `mint`, for ids that many indexes hold: those minted one after the other begin with the same digits.

    An index then takes the ids of a busy moment into one page instead of one page each. Each id is as random as any
    other; somebody who knows one of a run still has 17 digits, 101 bits, to guess of its neighbours.
    """
    beginning, left = getattr(_local, "run", ("", 0))
    if not left:
        beginning, left = random_base62(RUN_DIGITS), RUN_LENGTH
    _local.run = (beginning, left - 1)
    return prefix + beginning + random_base62(SUFFIX_LENGTH - RUN_DIGITS)
