"""Sources of images and documents: to standard base64 and a bare media type, as the internal form wants them."""

import base64
import binascii
from typing import Final

from gwd.core.errors import InvalidImage, InvalidValue, MissingParameter
from gwd.core.request import InlineSource, Source, UrlSource, VendorFileSource
from gwd.dialects import data_url
from gwd.dialects.messages.wire import SourceWire

_URL_SAFE: Final = str.maketrans("-_", "+/")


def source_of(wire: SourceWire, path: str, *, default_type: str) -> Source:
    """The source of an image or document block. Raises InvalidRequest subclasses with the field's path."""
    match wire.type:
        case "base64":
            data = _needed(wire.data, f"{path}.data")
            media_type = (wire.media_type or default_type).partition(";")[0].strip().lower()
            if data.startswith("data:"):
                return inline_from_url(data, f"{path}.data")
            return InlineSource(media_type=media_type, data=standard_base64(data, f"{path}.data"))
        case "url":
            url = _needed(wire.url, f"{path}.url")
            return (
                inline_from_url(url, f"{path}.url")
                if url.startswith("data:")
                else UrlSource(url=url)
            )
        case "file":
            return VendorFileSource(file_id=_needed(wire.file_id, f"{path}.file_id"))
        case "text":
            text = wire.data if wire.data is not None else _needed(None, f"{path}.data")
            encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
            return InlineSource(media_type="text/plain", data=encoded)
        case _:
            raise InvalidValue(
                f"`{path}.type`: use base64, url, file or text", param=f"{path}.type"
            )


def inline_from_url(url: str, path: str) -> InlineSource:
    """The bytes of a data URL; its parameters other than base64 are dropped."""
    found = data_url.read(url)
    if found is None or not found.is_base64:
        raise InvalidImage(f"`{path}`: a data URL must hold base64 data", param=path)
    return InlineSource(
        media_type=found.media_type or "application/octet-stream",
        data=standard_base64(found.payload, path),
    )


def standard_base64(data: str, path: str) -> str:
    """Base64 in the standard alphabet, padded, without line breaks. Raises InvalidImage for anything else."""
    clean = data.translate(_URL_SAFE)
    if not clean.isalnum():
        clean = "".join(clean.split())
        clean += "=" * (-len(clean) % 4)
    try:
        binascii.a2b_base64(clean + "=" * (-len(clean) % 4), strict_mode=True)
    except (binascii.Error, ValueError):
        raise InvalidImage(f"`{path}` is not valid base64", param=path) from None
    return clean + "=" * (-len(clean) % 4)


def _needed(value: str | None, path: str) -> str:
    if not value:
        raise MissingParameter(f"`{path}` is required", param=path)
    return value
