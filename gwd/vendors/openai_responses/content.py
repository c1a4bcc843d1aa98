"""Parts of messages as this format's content: texts, images, files, and what tools answered."""

import mimetypes
from collections.abc import Sequence
from typing import Any, Final, assert_never

from gwd.core.errors import UnsupportedContent
from gwd.core.request import (
    FilePart,
    ImagePart,
    InlineSource,
    Part,
    Request,
    Source,
    TextPart,
    ToolResultPart,
    UrlSource,
    VendorFileSource,
)
from gwd.core.target import Flags
from gwd.vendors.agent_text import without_billing_line

Block = dict[str, Any]
FAMILY: Final = "openai_responses"
_OWN_FILES: Final = ("openai_responses", "openai_chat")


class Contents:
    """Builds content for one request and one target."""

    def __init__(self, request: Request, flags: Flags) -> None:
        self.is_own_family = request.family == FAMILY
        self._has_own_files = request.family in _OWN_FILES
        self._is_foreign_agent = request.family == "anthropic_messages"
        self._flags = flags

    def inputs(self, parts: Sequence[Part]) -> list[Block]:
        """Content of a user or developer message; empty texts are left out."""
        blocks = []
        for part in parts:
            match part:
                case TextPart():
                    text = self.text(part)
                    if text:
                        blocks.append(self._marked({"type": "input_text", "text": text}, part))
                case ImagePart():
                    blocks.append(self._image(part))
                case FilePart():
                    blocks.append(self._file(part))
                case _:
                    pass
        return blocks

    def text(self, part: TextPart) -> str:
        return without_billing_line(part.text) if self._is_foreign_agent else part.text

    def result(self, part: ToolResultPart) -> str | list[Block]:
        """What a tool answered: a text where there is nothing but text."""
        prefix = "Error: " if part.is_error else ""
        is_marked = self._flags.cache_breakpoints and part.cache is not None
        if not is_marked and all(isinstance(piece, TextPart) for piece in part.parts):
            return prefix + "\n".join(p.text for p in part.parts if isinstance(p, TextPart))
        blocks = self.inputs(part.parts)
        if prefix:
            blocks.insert(0, {"type": "input_text", "text": prefix.strip()})
        if is_marked and blocks:
            blocks[-1]["prompt_cache_breakpoint"] = {"mode": "explicit"}
        return blocks or ""

    def _image(self, part: ImagePart) -> Block:
        block: Block = {"type": "input_image", "detail": part.detail or "auto"}
        match part.source:
            case InlineSource():
                block["image_url"] = _data_url(part.source)
            case UrlSource(url=url):
                if self._flags.takes_image_urls is False:
                    raise _unreadable("the address of an image")
                block["image_url"] = url
            case VendorFileSource(file_id=file_id):
                if not self._has_own_files:
                    raise _unreadable("a file stored at another vendor")
                block["file_id"] = file_id
            case _:
                assert_never(part.source)
        return self._marked(block, part)

    def _file(self, part: FilePart) -> Block:
        block: Block = {"type": "input_file"}
        match part.source:
            case InlineSource():
                block["filename"] = part.filename or _filename(part.source)
                block["file_data"] = _data_url(part.source)
            case UrlSource(url=url):
                if self._flags.takes_file_urls is False:
                    raise _unreadable("the address of a file")
                block["file_url"] = url
            case VendorFileSource(file_id=file_id):
                if not self._has_own_files:
                    raise _unreadable("a file stored at another vendor")
                block["file_id"] = file_id
            case _:
                assert_never(part.source)
        return self._marked(block, part)

    def _marked(self, block: Block, part: TextPart | ImagePart | FilePart) -> Block:
        if self.is_own_family and part.extras:
            block = {**part.extras, **block}
            block.pop("phase", None)
        if self._flags.cache_breakpoints and part.cache is not None:
            block.setdefault("prompt_cache_breakpoint", {"mode": "explicit"})
        return block


def _unreadable(what: str) -> UnsupportedContent:
    return UnsupportedContent(f"this endpoint cannot read {what}: send the bytes as a data URL")


def _data_url(source: InlineSource) -> str:
    return f"data:{source.media_type};base64,{source.data}"


def _filename(source: Source) -> str:
    """A name for a file that came without one; the vendor wants one and reads the kind off it."""
    assert isinstance(source, InlineSource)
    return "file" + (mimetypes.guess_extension(source.media_type) or "")
