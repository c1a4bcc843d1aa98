"""Identifiers: a prefix and 22 base62 characters, about 131 random bits each."""

import os
import threading
from typing import Final

BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SUFFIX_LENGTH: Final = 22
RUN_DIGITS: Final = 5
RUN_LENGTH: Final = 64

# A byte below 248 maps evenly onto the 62 digits; the eight above it are thrown away.
_EVEN: Final = 248
_DIGITS: Final = bytes(ord(BASE62[value % 62]) for value in range(256))
_UNEVEN: Final = bytes(range(_EVEN, 256))
_STOCK: Final = 64

_suffixes: Final[list[str]] = []  # minted ahead: asking the generator costs more than the digits
_local: Final = threading.local()


def random_base62(length: int) -> str:
    """`length` unbiased random base62 characters from the operating system's generator."""
    digits = b""
    while len(digits) < length:
        digits += os.urandom(length + 64).translate(_DIGITS, _UNEVEN)
    return digits[:length].decode("ascii")


def mint(prefix: str) -> str:
    """A fresh identifier such as `key_…`; the prefix carries its own separator."""
    return prefix + _suffix()


def mint_in_runs(prefix: str) -> str:
    """Like `mint`, for ids that many indexes hold: those minted one after the other begin with the same digits.

    An index then takes the ids of a busy moment into one page instead of one page each. Each id is as random as any
    other; somebody who knows one of a run still has 17 digits, 101 bits, to guess of its neighbours.
    """
    beginning, left = getattr(_local, "run", ("", 0))
    if not left:
        beginning, left = random_base62(RUN_DIGITS), RUN_LENGTH
    _local.run = (beginning, left - 1)
    return prefix + beginning + _suffix()[RUN_DIGITS:]


def _suffix() -> str:
    """The next of the suffixes minted ahead; `pop` gives each to one thread."""
    try:
        return _suffixes.pop()
    except IndexError:
        digits = random_base62(_STOCK * SUFFIX_LENGTH)
        starts = range(0, len(digits), SUFFIX_LENGTH)
        first, *rest = (digits[start : start + SUFFIX_LENGTH] for start in starts)
        _suffixes.extend(rest)
        return first


def _begin_anew() -> None:
    _suffixes.clear()
    _local.__dict__.clear()


os.register_at_fork(after_in_child=_begin_anew)  # what was minted ahead belongs to the parent
