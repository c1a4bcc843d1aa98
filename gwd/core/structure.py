"""How much structure JSON may have, whoever sends it.

A small text of very many elements becomes a hundred times its size in memory, and one that is nested deeper than the
interpreter's stack can be read here and yet fail to be written, where less of the stack is left.
"""

import re
from typing import Final

MAX_STRUCTURAL_BYTES: Final = 1_000_000
MAX_FIELDS: Final = 300_000
"""Of all objects together: a field costs several times what another element does."""

MAX_DEPTH: Final = 64
ELEMENT_BYTES: Final = 128
"""At most what an element takes in memory once it is read, beside its text."""
_FIELD: Final = re.compile(rb'(?<!\\)"[ \t\r\n]*+:')


def has_too_many_elements(text: bytes) -> bool:
    """Whether a JSON text holds more elements than any real request; counted before it is parsed."""
    if len(text) <= MAX_STRUCTURAL_BYTES // 2:
        return False
    if text.count(b"{") + text.count(b"[") + text.count(b",") > MAX_STRUCTURAL_BYTES:
        return True
    return text.count(b":") > MAX_FIELDS and len(_FIELD.findall(text)) > MAX_FIELDS


def bytes_when_read(text: bytes) -> int:
    """A bound of what a JSON text takes in memory once it is read: small elements take far more than their text."""
    return len(text) + ELEMENT_BYTES * (text.count(b"{") + text.count(b"[") + text.count(b","))


def has_too_many_brackets(text: bytes) -> bool:
    """The same for texts that consist of long lists of numbers."""
    return text.count(b"{") + text.count(b"[") > MAX_STRUCTURAL_BYTES


def may_be_too_deep(text: bytes) -> bool:
    """Cheap: whether a JSON text has brackets enough for it."""
    return text.count(b"{") + text.count(b"[") > MAX_DEPTH


def is_too_deep(value: object) -> bool:
    """Whether anything in a value that was read lies deeper than the limit."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)  # type: ignore[attr-defined]
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
