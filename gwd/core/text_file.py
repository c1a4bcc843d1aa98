"""Texts that people wrote with an editor of their own: UTF-8, with or without its mark; anything else is named."""

import codecs
from pathlib import Path
from typing import Final

_OTHERS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class NotUtf8Error(ValueError):
    """The bytes are in another encoding; the text names it where it can be told."""


def read_text(path: Path) -> str:
    """The file's text without a byte order mark. Raises OSError, or NotUtf8Error."""
    return decode(path.read_bytes())


def decode(content: bytes) -> str:
    """The bytes as text without a byte order mark. Raises NotUtf8Error."""
    for mark, name in _OTHERS:
        if content.startswith(mark):
            raise NotUtf8Error(f"it is {name} text; save it as UTF-8")
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        without_mark = content[:64].replace(b"\0", b"")
        kind = "UTF-16 text" if len(without_mark) < len(content[:64]) else "not UTF-8"
        raise NotUtf8Error(f"it is {kind} (byte {error.start + 1}); save it as UTF-8") from None
