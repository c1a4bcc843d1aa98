"""Texts, images and files as Gemini's parts, and what tools answered."""

import base64
import binascii
import mimetypes
from typing import Any, Final, assert_never

from gwd.core.errors import InvalidImage, UnsupportedContent
from gwd.core.request import (
    FilePart,
    ImagePart,
    InlineSource,
    Request,
    TextPart,
    ToolResultPart,
    UrlSource,
    VendorFileSource,
)
from gwd.core.target import Target
from gwd.vendors.agent_text import without_billing_line
from gwd.vendors.gemini.format import FORMAT
from gwd.vendors.images import image_type

Json = dict[str, Any]
ContentPart = TextPart | ImagePart | FilePart

FOLLOWS: Final = "The content of this result follows."

_IMAGE_TYPES: Final = frozenset(
    ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
)
_TEXT_TYPES: Final = frozenset(("application/json", "application/xml", "application/yaml"))


class Contents:
    """Builds parts for one request and one target."""

    def __init__(self, request: Request, target: Target) -> None:
        self._is_foreign_agent = request.family == "anthropic_messages"
        self._is_own = request.family == FORMAT.family
        self._flags = target.flags
        # Media inside a result came with the models whose thinking has levels; the older ones take them beside it.
        self._nests_media = target.flags.thinking_form in ("adaptive", "both")

    def part(self, part: ContentPart) -> Json | None:
        """One part; None for an empty text, which the vendor refuses."""
        match part:
            case TextPart():
                text = self.text(part)
                return {"text": text} if text else None
            case ImagePart():
                return self._with_own(self._image(part), part)
            case FilePart():
                return self._with_own(self._file(part), part)
            case _:
                assert_never(part)

    def _with_own(self, built: Json, part: ImagePart | FilePart) -> Json:
        """The part with what a client of this format said of it, the type of what stands at an address among it."""
        if not self._is_own or not part.extras:
            return built
        extras = dict(part.extras)
        media_type = extras.pop("mimeType", None)
        if media_type is not None and "fileData" in built:
            built["fileData"]["mimeType"] = media_type
        return {**extras, **built}

    def text(self, part: TextPart) -> str:
        return without_billing_line(part.text) if self._is_foreign_agent else part.text

    def result(self, part: ToolResultPart, note: str) -> tuple[Json, list[Json]]:
        """The fields of a functionResponse beside its name, and the media that have to stand behind it."""
        built = [found for piece in part.parts if (found := self.part(piece)) is not None]
        media = [piece for piece in built if "text" not in piece]
        text = note + "\n".join(piece["text"] for piece in built if "text" in piece)
        if media and not text:
            text = FOLLOWS
        own = (part.extras or {}).get("response") if self._is_own and not note else None
        fields: Json = {"response": own or {"error" if part.is_error else "output": text}}
        if media and self._nests_media:
            return {**fields, "parts": media}, []
        return fields, media

    def _image(self, part: ImagePart) -> Json:
        source = part.source
        match source:
            case InlineSource():
                media_type = image_type(source)
                if media_type not in _IMAGE_TYPES:
                    raise InvalidImage(
                        f"images of type {media_type} are not taken here; send PNG, JPEG, WebP or HEIC"
                    )
                return _inline(media_type, source.data)
            case UrlSource(url=url):
                if not self._flags.takes_image_urls:
                    raise _unreadable("the address of an image")
                return _at(url, "image/jpeg")
            case VendorFileSource():
                raise _unreadable("a file stored at another vendor")
            case _:
                assert_never(source)

    def _file(self, part: FilePart) -> Json:
        source = part.source
        match source:
            case InlineSource():
                if source.media_type.startswith("text/") or source.media_type in _TEXT_TYPES:
                    return {"text": _decoded(source, part.filename)}
                if source.media_type.startswith("image/"):
                    return self._image(ImagePart(source=source))
                return _inline(source.media_type, source.data)
            case UrlSource(url=url):
                if not self._flags.takes_file_urls:
                    raise _unreadable("the address of a file")
                return _at(url, "application/pdf")
            case VendorFileSource():
                raise _unreadable("a file stored at another vendor")
            case _:
                assert_never(source)


def _inline(media_type: str, data: str) -> Json:
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _at(url: str, usual_type: str) -> Json:
    """What the vendor fetches itself; it wants to be told the type, which the address gives away at best."""
    guessed, _ = mimetypes.guess_type(url.partition("?")[0])
    return {"fileData": {"mimeType": guessed or usual_type, "fileUri": url}}


def _unreadable(what: str) -> UnsupportedContent:
    return UnsupportedContent(f"this endpoint cannot read {what}: send the bytes as a data URL")


def _decoded(source: InlineSource, filename: str | None) -> str:
    try:
        text = base64.b64decode(source.data).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        raise UnsupportedContent("the file's data is not valid base64") from None
    return f"{filename}:\n{text}" if filename else text
