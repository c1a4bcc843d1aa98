"""Opaque signatures of reasoning inside `encrypted_content`, the one field that every client of this dialect replays.

A client drops unknown fields when it sends an item back, so the family that made a signature has to travel inside the
text. OpenAI's own encrypted content stays as it is.
"""

from typing import Final, Literal

import msgspec

OPENAI_FORMAT: Final = "openai-responses-v1"
UNKNOWN_FORMAT: Final = "unknown"
_PREFIX: Final = "gw1:"


class Sealed(msgspec.Struct, frozen=True):
    """A signature or the data of a redacted block, and the family that may read it back."""

    format: str
    signature: str | None = None
    redacted: str | None = None


def seal(sealed: Sealed) -> str | None:
    """The `encrypted_content` of a reasoning item; None when there is nothing to carry."""
    if sealed.redacted is not None:
        return _tagged(sealed.format, "r", sealed.redacted)
    if not sealed.signature:
        return None
    if sealed.format == OPENAI_FORMAT:
        return sealed.signature
    return _tagged(sealed.format, "s", sealed.signature)


def unseal(encrypted_content: str | None) -> Sealed:
    """What a client sent back."""
    if not encrypted_content:
        return Sealed(UNKNOWN_FORMAT)
    if not encrypted_content.startswith(_PREFIX):
        return Sealed(OPENAI_FORMAT, signature=encrypted_content)
    fields = encrypted_content.removeprefix(_PREFIX).split(":", 2)
    match fields:
        case [format_name, "s", text]:
            return Sealed(format_name, signature=text)
        case [format_name, "r", text]:
            return Sealed(format_name, redacted=text)
        case _:
            return Sealed(UNKNOWN_FORMAT)


def _tagged(format_name: str, kind: Literal["s", "r"], text: str) -> str:
    return f"{_PREFIX}{format_name}:{kind}:{text}"
