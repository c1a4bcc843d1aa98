"""Parts to content blocks. Extras of the request's own family complete or replace the block they belong to."""

import base64
import binascii
from typing import Any, Final

import msgspec

from gwd.core.errors import InvalidImage, UnsupportedContent
from gwd.core.request import (
    CacheTtl,
    Extras,
    FilePart,
    ImagePart,
    InlineSource,
    Part,
    ReasoningPart,
    RefusalPart,
    Source,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    UrlSource,
    VendorFileSource,
)
from gwd.vendors.anthropic_messages.format import SIGNATURE_FORMAT
from gwd.vendors.images import image_type
from gwd.vendors.tool_names import ToolNames, call_id_for

Block = dict[str, Any]

ID_LENGTH: Final = 64
BAD_ARGUMENTS_NOTE: Final = (
    "Note: the arguments of this call were not valid JSON and were replaced by an empty object.\n"
)

# It compares the bytes with the declared type.
_IMAGE_TYPES: Final = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
_TEXT_TYPES: Final = frozenset(
    ("application/json", "application/xml", "application/yaml", "application/x-yaml")
)


class Blocks:
    """Builds the blocks of one request. `own` tells whether the client speaks this vendor's format."""

    def __init__(self, names: ToolNames, *, own: bool, thinks: bool, no_documents: bool) -> None:
        self._names = names
        self._own = own
        self._thinks = thinks
        self._no_documents = no_documents

    def system(self, part: Part) -> Block | None:
        """A block of system text; anything but text has no place there."""
        return self._text(part) if isinstance(part, TextPart) else None

    def user(self, part: Part) -> Block | None:
        """A block of a user turn, tool results excepted; None for what is left out."""
        match part:
            case TextPart():
                return self._text(part)
            case ImagePart():
                return self._image(part)
            case FilePart():
                return self._file(part)
            case RefusalPart():
                return _plain(part.text)
            case ToolCallPart() | ToolResultPart() | ReasoningPart():
                return None

    def assistant(self, part: Part) -> Block | None:
        """A block of an assistant turn, calls excepted. Images are dropped: the vendor refuses them there."""
        match part:
            case TextPart():
                return self._text(part)
            case RefusalPart():
                return _plain(part.text)
            case ReasoningPart():
                return self._reasoning(part)
            case FilePart() if self._own and not self._no_documents:
                return self._file(part)
            case _:
                return None

    def call(self, part: ToolCallPart, upstream_id: str) -> tuple[Block, bool]:
        """A tool_use block, and whether its arguments were a JSON object."""
        value, valid = _arguments(part.arguments)
        block: Block = {
            "type": "tool_use",
            "id": upstream_id,
            "name": self._names.upstream(part.name),
            "input": value,
        }
        return self._finished(block, part.cache, part.extras), valid

    def result(self, part: ToolResultPart, upstream_id: str, note: str = "") -> Block:
        """A tool_result block; one plain text is sent as a string, which is what clients write."""
        inner = [
            block
            for item in part.parts
            if (block := self.user(item)) is not None and not _is_blank(block)
        ]
        if note:
            inner.insert(0, _text_block(note))
        result: Block = {"type": "tool_result", "tool_use_id": upstream_id}
        if len(inner) == 1 and inner[0].keys() == {"type", "text"}:
            result["content"] = inner[0]["text"]
        elif inner:
            result["content"] = inner
        if part.is_error:
            result["is_error"] = True
        return self._finished(result, part.cache, part.extras)

    def result_as_text(self, part: ToolResultPart) -> list[Block]:
        """What a result without a call says, as blocks of a user turn."""
        inner = [
            b for item in part.parts if (b := self.user(item)) is not None and not _is_blank(b)
        ]
        return [_text_block(f"Result of an earlier tool call ({part.call_id}):"), *inner]

    def _text(self, part: TextPart) -> Block | None:
        if self._own and part.extras and "type" in part.extras:
            return dict(part.extras) if part.extras["type"] is not None else None
        if not part.text.strip():
            return None
        return self._finished(_text_block(part.text), part.cache, part.extras)

    def _reasoning(self, part: ReasoningPart) -> Block | None:
        """Only what this format made and signed goes back, in its place; the vendor refuses marks on it."""
        if part.format != SIGNATURE_FORMAT or not self._thinks:
            return None
        if part.redacted is not None:
            block: Block = {"type": "redacted_thinking", "data": part.redacted}
        elif part.signature:
            block = {"type": "thinking", "thinking": part.text, "signature": part.signature}
        else:
            return None
        return {**block, **part.extras} if self._own and part.extras else block

    def _image(self, part: ImagePart) -> Block | None:
        if self._own and part.extras and part.extras.get("type", "") is None:
            return None
        return self._finished(
            {"type": "image", "source": self._image_source(part)}, part.cache, part.extras
        )

    def _image_source(self, part: ImagePart) -> Block:
        source = part.source
        match source:
            case UrlSource() if source.url.startswith("data:"):
                return _base64_image(_inline_from_url(source.url))
            case UrlSource():
                return {"type": "url", "url": source.url}
            case InlineSource():
                return _base64_image(source)
            case VendorFileSource():
                return self._vendor_file(source)

    def _file(self, part: FilePart) -> Block | None:
        source = part.source
        if isinstance(source, UrlSource) and source.url.startswith("data:"):
            source = _inline_from_url(source.url)
        if isinstance(source, InlineSource) and source.media_type in _IMAGE_TYPES:
            image: Block = {"type": "image", "source": _base64_image(source)}
            return self._finished(image, part.cache, None)
        block: Block = {"type": "document", "source": self._document_source(source)}
        if part.filename:
            block["title"] = part.filename
        return self._finished(block, part.cache, part.extras)

    def _document_source(self, source: Source) -> Block:
        match source:
            case UrlSource():
                return {"type": "url", "url": source.url}
            case VendorFileSource():
                return self._vendor_file(source)
            case InlineSource():
                return _inline_document(source)

    def _vendor_file(self, source: VendorFileSource) -> Block:
        if not self._own:
            raise UnsupportedContent(
                "a file id belongs to another vendor's account; send the file's content or a URL"
            )
        return {"type": "file", "file_id": source.file_id}

    def _finished(self, block: Block, cache: CacheTtl | None, extras: Extras | None) -> Block:
        if cache is not None:
            block["cache_control"] = mark(cache)
        if self._own and extras:
            block |= extras
        return block


def mark(ttl: CacheTtl) -> dict[str, str]:
    """A cache mark; five minutes is the vendor's default and goes without saying."""
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def upstream_id(call_id: str) -> str:
    """A call id in the vendor's alphabet."""
    return call_id_for(call_id, length=ID_LENGTH)


def _plain(text: str) -> Block | None:
    return _text_block(text) if text.strip() else None


def _text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def _is_blank(block: Block) -> bool:
    return block["type"] == "text" and not str(block.get("text", "")).strip()


def _arguments(text: str) -> tuple[dict[str, Any], bool]:
    if not text.strip():
        return {}, True
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}, False
    return (value, True) if isinstance(value, dict) else ({}, False)


def _base64_image(source: InlineSource) -> Block:
    media_type = image_type(source)
    if media_type not in _IMAGE_TYPES:
        raise InvalidImage(
            f"images of type {media_type} are not taken here; send JPEG, PNG, GIF or WebP"
        )
    return {"type": "base64", "media_type": media_type, "data": source.data}


def _inline_document(source: InlineSource) -> Block:
    media_type = source.media_type
    if media_type == "application/pdf":
        return {"type": "base64", "media_type": media_type, "data": source.data}
    if media_type.startswith("text/") or media_type in _TEXT_TYPES:
        try:
            text = base64.b64decode(source.data).decode("utf-8")
        except (binascii.Error, ValueError):
            raise UnsupportedContent("a text file must be UTF-8") from None
        return {"type": "text", "media_type": "text/plain", "data": text}
    raise UnsupportedContent(
        f"files of type {media_type} are not taken here; send a PDF or a text file"
    )


def _inline_from_url(url: str) -> InlineSource:
    """The bytes of a data URL: parameters dropped, url-safe alphabet and missing padding corrected."""
    head, comma, data = url.removeprefix("data:").partition(",")
    # A longer head is none: it is not taken apart.
    media_type, *parameters = [piece.strip().lower() for piece in head[:1_024].split(";")]
    if not comma or "base64" not in parameters:
        raise InvalidImage("a data URL must hold base64 data")
    data = "".join(data.split()).replace("-", "+").replace("_", "/").rstrip("=")
    return InlineSource(
        media_type=media_type or "application/octet-stream", data=data + "=" * (-len(data) % 4)
    )
