"""Lists of names in which `*` stands for any characters: read once, then asked at every request.

A list is asked in time that grows with the name alone: exact names are a set, and a pattern is looked for piece by
piece from left to right, with nothing to go back to.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

WILDCARD: Final = "*"


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """A name with wildcards: how it begins, what follows in this order, how it ends."""

    begins: str
    pieces: tuple[str, ...]
    ends: str

    def matches(self, name: str) -> bool:
        """Whether the whole name fits."""
        place, end = len(self.begins), len(name) - len(self.ends)
        if end < place or not (name.startswith(self.begins) and name.endswith(self.ends)):
            return False
        for piece in self.pieces:
            # The leftmost place is always good enough: a later one leaves less for the pieces behind it.
            found = name.find(piece, place, end)
            if found < 0:
                return False
            place = found + len(piece)
        return True


class NamePatterns(msgspec.Struct, frozen=True, kw_only=True):
    """A list, sorted into exact names and patterns."""

    exact: frozenset[str]
    patterns: tuple[Pattern, ...]

    def names(self, name: str) -> bool:
        """Whether the list holds the name, or a pattern that fits it."""
        return name in self.exact or any(pattern.matches(name) for pattern in self.patterns)


def is_pattern(name: str) -> bool:
    """Whether it holds a wildcard."""
    return WILDCARD in name


def pattern_of(text: str) -> Pattern:
    """A name with at least one wildcard, read."""
    begins, *pieces, ends = text.split(WILDCARD)
    return Pattern(begins=begins, pieces=tuple(filter(None, pieces)), ends=ends)


def patterns_of(names: Iterable[str]) -> NamePatterns:
    """A list of names and patterns, read."""
    exact, patterns = set(), []
    for name in dict.fromkeys(names):
        if is_pattern(name):
            patterns.append(pattern_of(name))
        else:
            exact.add(name)
    return NamePatterns(exact=frozenset(exact), patterns=tuple(patterns))
