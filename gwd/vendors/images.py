"""What an image really is: clients declare the wrong type, and vendors compare it with the bytes."""

import base64
import binascii
from typing import Final

from gwd.core.request import InlineSource

_MAGIC: Final = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF8", "image/gif"),
)


def image_type(source: InlineSource) -> str:
    """The media type by the first bytes; the declared one for kinds that are not known here."""
    found = _sniffed(source.data) or source.media_type
    return "image/jpeg" if found == "image/jpg" else found


def _sniffed(data: str) -> str | None:
    try:
        head = base64.b64decode(data[:24])
    except (binascii.Error, ValueError):
        return None
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)
