"""The limits of what a vendor sends: those of what a client may send."""

from typing import Final

import msgspec

from gwd.core.structure import (
    has_too_many_brackets,
    has_too_many_elements,
    is_too_deep,
    may_be_too_deep,
)
from gwd.vendors.base import UndecodableError

LARGE_BYTES: Final = 64 * 1024
"""Smaller texts hold too little to matter: what is nested too deeply in one fails where it is read or written."""

_ANY: Final = msgspec.json.Decoder().decode


def check_structure(text: bytes, *, has_vectors: bool = False) -> None:
    """Raises UndecodableError for JSON of too many elements or too many levels. Text that is no JSON passes."""
    if len(text) <= LARGE_BYTES:
        return
    is_too_much = has_too_many_brackets if has_vectors else has_too_many_elements
    if is_too_much(text):
        raise UndecodableError("it has too many elements")
    if not has_vectors and may_be_too_deep(text):
        try:
            value = _ANY(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if is_too_deep(value):
            raise UndecodableError("it is nested too deeply")
