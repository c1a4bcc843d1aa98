"""Images and files of a request as sources: data URLs are normalised, web addresses kept, the rest refused."""

import base64
import binascii
import mimetypes
from typing import Final
from urllib.parse import unquote_to_bytes

from gwd.core.errors import InvalidImage, InvalidRequest, InvalidValue
from gwd.core.request import InlineSource, Source, UrlSource, VendorFileSource
from gwd.dialects import data_url
from gwd.dialects.responses.wire import FileContent, ImageContent

_URL_SAFE: Final = str.maketrans("-_", "+/", " \t\r\n")
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


def image_source(image: ImageContent, param: str) -> Source:
    """Where an input_image comes from. Raises InvalidImage for a missing or unusable address."""
    if image.image_url is None:
        if image.file_id:
            return VendorFileSource(file_id=image.file_id)
        raise InvalidImage(f"`{param}` needs `image_url`", param=param)
    where = f"{param}.image_url"
    if _is_web(image.image_url):
        return UrlSource(url=image.image_url)
    if image.image_url[:5].lower() != "data:":
        raise InvalidImage(
            f"`{where}` must be an http(s) address or a data URL with base64 data", param=where
        )
    source = _inline(image.image_url, InvalidImage(f"`{where}` is not valid base64", param=where))
    if not source.media_type.startswith("image/"):
        raise InvalidImage(f"`{where}` holds {source.media_type}, an image is needed", param=where)
    return source


def file_source(file: FileContent, param: str) -> Source:
    """Where an input_file comes from. Raises InvalidValue when nothing usable is given."""
    if file.file_data is not None:
        where = f"{param}.file_data"
        if _is_web(file.file_data):
            return UrlSource(url=file.file_data)
        data = file.file_data
        if data[:5].lower() != "data:":
            guessed = mimetypes.guess_type(file.filename or "")[0] or "application/octet-stream"
            data = f"data:{guessed};base64,{data}"
        return _inline(data, InvalidValue(f"`{where}` is not valid base64", param=where))
    if file.file_url:
        if not _is_web(file.file_url):
            raise InvalidValue(
                f"`{param}.file_url` must be an http(s) address", param=f"{param}.file_url"
            )
        return UrlSource(url=file.file_url)
    if file.file_id:
        return VendorFileSource(file_id=file.file_id)
    raise InvalidValue(f"`{param}` needs `file_data` or `file_url`", param=param)


def _is_web(url: str) -> bool:
    return url[:8].lower().startswith(("https://", "http://"))


def _inline(url: str, refusal: InvalidRequest) -> InlineSource:
    """A data URL with its parameters dropped, standard base64, and the type that the bytes themselves show."""
    found = data_url.read(url)
    if found is None:
        raise refusal
    payload = found.payload
    if found.is_base64:
        data = unquote_to_bytes(payload).decode("latin-1") if "%" in payload else payload
        data = data.translate(_URL_SAFE).rstrip("=")
        data += "=" * (-len(data) % 4)
        try:
            decoded = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise refusal from None
    else:
        decoded = unquote_to_bytes(payload)
        data = base64.b64encode(decoded).decode("ascii")
    if not decoded:
        raise refusal
    return InlineSource(media_type=_sniffed(decoded) or found.media_type or "text/plain", data=data)


def _sniffed(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _MAGIC if data.startswith(magic)), None)
