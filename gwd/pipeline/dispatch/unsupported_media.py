"""Pictures and files that a target cannot take, where they may be left out: in results of tools and in earlier turns.

A sentence stands in their place, so that the model knows of them and an agent's session goes on. In the question itself
nothing is left out: there the request is refused (see eligibility and the adapters).
"""

from typing import Final

import msgspec

from gwd.core.errors import InvalidRequest
from gwd.core.foreign_blocks import refuse_foreign_question
from gwd.core.request import (
    FilePart,
    Generate,
    ImagePart,
    Message,
    Part,
    Request,
    TextPart,
    ToolResultPart,
    UrlSource,
)
from gwd.core.target import Target, UpstreamCall
from gwd.core.vendor_format import MediaKind
from gwd.pipeline.dispatch.priced_extras import build
from gwd.pipeline.plan.media import question_begins, takes_address
from gwd.vendors.base import Adapter

Medium = ImagePart | FilePart
_LONGEST_URL: Final = 200


def prepared(adapter: Adapter, request: Request, target: Target) -> tuple[Request, UpstreamCall]:
    """The request as this target can take it, itself where nothing had to be left out, and its call.

    Raises InvalidRequest for a question that the target cannot take.
    """
    refuse_foreign_question(request, adapter.format.family, target.model)
    try:
        prepared_request = without_unsupported_media(adapter, request, target)
        return prepared_request, build(adapter, prepared_request, target)
    except RecursionError:
        raise InvalidRequest("the request is nested too deeply") from None


def without_unsupported_media(adapter: Adapter, request: Request, target: Target) -> Request:
    """The request with a sentence in the place of what this target cannot take."""
    body = request.body
    if not isinstance(body, Generate) or not any(map(_holds_media, body.messages)):
        return request
    begins = question_begins(body.messages)
    media = _MediaFilter(adapter, request, target)
    messages = tuple(
        media.message(message, is_earlier=place < begins)
        for place, message in enumerate(body.messages)
    )
    if not media.left_out:
        return request
    return msgspec.structs.replace(request, body=msgspec.structs.replace(body, messages=messages))


class _MediaFilter:
    """What one target can take of one request; `left_out` tells whether there was anything it cannot."""

    def __init__(self, adapter: Adapter, request: Request, target: Target) -> None:
        self._adapter = adapter
        self._request = request
        self._target = target
        self.left_out = False

    def message(self, message: Message, *, is_earlier: bool) -> Message:
        if not _holds_media(message):
            return message
        parts = tuple(self._part(part, is_earlier=is_earlier) for part in message.parts)
        return msgspec.structs.replace(message, parts=parts)

    def _part(self, part: Part, *, is_earlier: bool) -> Part:
        match part:
            case ToolResultPart():
                inner = tuple(
                    self._or_sentence(piece) if isinstance(piece, Medium) else piece
                    for piece in part.parts
                )
                return msgspec.structs.replace(part, parts=inner)
            case ImagePart() | FilePart() if is_earlier:
                return self._or_sentence(part)
            case _:
                return part

    def _or_sentence(self, part: Medium) -> Medium | TextPart:
        """The part, or the sentence that stands for it."""
        if self._takes(part):
            return part
        self.left_out = True
        return TextPart(text=_sentence(part), cache=part.cache)

    def _takes(self, part: Medium) -> bool:
        target = self._target
        kind: MediaKind = "image" if isinstance(part, ImagePart) else "file"
        if kind not in target.input_modalities:
            return False
        if isinstance(part.source, UrlSource) and not takes_address(
            target.format, target.flags, kind
        ):
            return False
        try:
            return self._adapter.takes(part, self._request, self._target)
        except InvalidRequest:
            return False


def _sentence(part: Medium) -> str:
    source = part.source
    at = f" ({source.url[:_LONGEST_URL]})" if isinstance(source, UrlSource) else ""
    if isinstance(part, ImagePart):
        return f"[A picture{at} stood here. This model cannot see it.]"
    named = f"The file {part.filename}" if part.filename else "A file"
    return f"[{named}{at} stood here. This model cannot read it.]"


def _holds_media(message: Message) -> bool:
    for part in message.parts:
        if isinstance(part, TextPart):  # nearly always
            continue
        if isinstance(part, Medium):
            return True
        if isinstance(part, ToolResultPart) and any(isinstance(p, Medium) for p in part.parts):
            return True
    return False
