"""Text, images and files as content of chat messages."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Any, Final, assert_never

from gwd.core.errors import UnsupportedContent
from gwd.core.request import (
    CacheTtl,
    FilePart,
    ImagePart,
    InlineSource,
    Request,
    Source,
    TextPart,
    UrlSource,
    VendorFileSource,
)
from gwd.core.target import Target
from gwd.vendors.agent_text import without_billing_line

Json = dict[str, Any]
ContentPart = TextPart | ImagePart | FilePart

_BREAKPOINT: Final = {"mode": "explicit"}


class ContentBuilder:
    """Builds the `content` of messages for one call."""

    def __init__(self, request: Request, target: Target) -> None:
        self._same_family = request.family == "openai_chat"
        self._from_agent = request.family == "anthropic_messages"
        self._flags = target.flags

    def build(
        self, parts: Sequence[ContentPart], *, cache: CacheTtl | None = None
    ) -> str | list[Json]:
        """A string where one plain text is all there is, else a list of parts; "" for nothing.

        `cache` marks the whole content: the breakpoint goes on its last text.
        """
        built: list[Json] = []
        for part in parts:
            one = self._part(part)
            if one is not None:
                built.append(one)
        if cache is not None and self._flags.cache_breakpoints:
            last = next((part for part in reversed(built) if part["type"] == "text"), None)
            if last is not None:
                last["prompt_cache_breakpoint"] = _BREAKPOINT
        if not built:
            return ""
        only = built[0]
        if len(built) == 1 and only["type"] == "text" and len(only) == 2:
            text: str = only["text"]
            return text
        return built

    def _part(self, part: ContentPart) -> Json | None:
        match part:
            case TextPart():
                return self._text(part)
            case ImagePart():
                built: Json = {"type": "image_url", "image_url": {"url": _image_url(part.source)}}
                if part.detail and part.detail != "original":
                    built["image_url"]["detail"] = part.detail
                return self._with_extras(built, part)
            case FilePart():
                return self._file(part)
            case _:
                assert_never(part)

    def _text(self, part: TextPart) -> Json | None:
        text = without_billing_line(part.text) if self._from_agent else part.text
        if not text:
            return None
        built: Json = {"type": "text", "text": text}
        if part.cache is not None and self._flags.cache_breakpoints:
            built["prompt_cache_breakpoint"] = _BREAKPOINT
        return self._with_extras(built, part)

    def _file(self, part: FilePart) -> Json:
        source = part.source
        match source:
            case InlineSource():
                if not self._same_family and _is_text(source.media_type):
                    return {"type": "text", "text": _decoded_text(source, part.filename)}
                file = {
                    "filename": part.filename or _filename(source.media_type),
                    "file_data": _data_url(source),
                }
            case UrlSource():
                if not self._flags.takes_file_urls:
                    raise UnsupportedContent(
                        "files by URL are not taken by this endpoint; send the file as a data URL"
                    )
                file = {
                    "filename": part.filename or source.url.rpartition("/")[2] or "file",
                    "file_data": source.url,
                }
            case VendorFileSource():
                if not self._same_family:
                    raise UnsupportedContent("the file is stored at another vendor; send its bytes")
                file = {"file_id": source.file_id}
            case _:
                assert_never(source)
        return self._with_extras({"type": "file", "file": file}, part)

    def _with_extras(self, built: Json, part: ContentPart) -> Json:
        if self._same_family:
            for name, value in (part.extras or {}).items():
                if value is not None:
                    built.setdefault(name, value)
        return built


def joined_text(parts: Iterable[TextPart]) -> str:
    return "\n".join(part.text for part in parts)


def _image_url(source: Source) -> str:
    match source:
        case UrlSource():
            return source.url
        case InlineSource():
            return _data_url(source)
        case VendorFileSource():
            raise UnsupportedContent(
                "images by file id are not taken here; send a URL or the bytes"
            )
        case _:
            assert_never(source)


def _data_url(source: InlineSource) -> str:
    return f"data:{source.media_type};base64,{source.data}"


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in ("application/json", "application/xml")


def _decoded_text(source: InlineSource, filename: str | None) -> str:
    try:
        text = base64.b64decode(source.data).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        raise UnsupportedContent("the file's data is not valid base64") from None
    return f"{filename}:\n{text}" if filename else text


def _filename(media_type: str) -> str:
    return "document.pdf" if media_type == "application/pdf" else "file"
