"""Contents and their parts to messages.

Streamed answers come back chunk by chunk, as SDKs keep them: neighbouring contents of the model are one turn here, and
pieces of one text one part. Calls without an id get one by their place, so that the same conversation always reads the
same; results without an id belong to the earliest call of their name that has none.
"""

import mimetypes
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gwd.core.errors import (
    InvalidValue,
    MissingParameter,
    UnsupportedContent,
    UnsupportedParameter,
)
from gwd.core.request import (
    Extras,
    FilePart,
    ImagePart,
    InlineSource,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    UrlSource,
)
from gwd.dialects import data_url, json_input
from gwd.dialects.gemini.provenance import OWN_FORMAT, Signed, signed_by
from gwd.dialects.gemini.wire import (
    BlobWire,
    ContentWire,
    FileDataWire,
    FunctionCallWire,
    FunctionResponseWire,
    PartWire,
    ResultPartWire,
)
from gwd.dialects.messages.media import inline_from_url, standard_base64

Media = ImagePart | FilePart

_PART_FIELDS: Final = json_input.field_names(PartWire)
_ROLES: Final = {"user": "user", "function": "user", "tool": "user", "model": "assistant"}
_OUTPUTS: Final = ("output", "result")
# Where Google keeps what was uploaded to it: of no use to anybody else, and nothing is uploaded here.
_STORED: Final = ("files/", "https://generativelanguage.googleapis.com/", "gs://")
_HTTP: Final = ("https://", "http://")
_CODE: Final = ("executableCode", "codeExecutionResult")


def messages_of(
    contents: Sequence[ContentWire], raw: Sequence[dict[str, Any]], path: str
) -> tuple[Message, ...]:
    """The conversation. Raises InvalidRequest subclasses with the path of the field."""
    return _Conversation().read(contents, raw, path)


def system_message(content: ContentWire, path: str) -> Message | None:
    """The system text; None where it holds none. Raises UnsupportedContent for anything but text."""
    parts = []
    for index, part in enumerate(content.parts or ()):
        if part.text is None:
            at = f"{path}.parts[{index}]"
            raise UnsupportedContent(f"`{at}`: system text holds text only", param=at)
        if part.text:
            parts.append(TextPart(text=part.text))
    return Message(role="system", parts=tuple(parts)) if parts else None


def text_of(content: ContentWire, path: str) -> str:
    """The text that is to be embedded. Raises UnsupportedContent for anything else."""
    for index, part in enumerate(content.parts or ()):
        if part.text is None:
            at = f"{path}.parts[{index}]"
            raise UnsupportedContent(f"`{at}`: only text is embedded", param=at)
    return "".join(part.text or "" for part in content.parts or ())


class _Conversation:
    """One reading; `waiting` are the calls that have no result yet, `by_name` the ids of all calls in their order."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._said: list[Part] = []
        self._waiting: set[str] = set()
        self._by_name: defaultdict[str, deque[str]] = defaultdict(deque)

    def read(
        self, contents: Sequence[ContentWire], raw: Sequence[dict[str, Any]], path: str
    ) -> tuple[Message, ...]:
        for index, (content, source) in enumerate(zip(contents, raw, strict=True)):
            at = f"{path}[{index}]"
            role = _ROLES.get(content.role or "user")
            if role is None:
                raise InvalidValue(f"`{at}.role` must be user or model", param=f"{at}.role")
            parts: list[Part] = []
            for place, part in enumerate(content.parts or ()):
                found = source["parts"][place]
                parts.append(self._part(part, found, role, f"{at}.parts[{place}]"))
            if role == "assistant":
                self._said += parts
                continue
            self._end_turn()
            self._messages.append(Message(role="user", parts=tuple(parts)))
        self._end_turn()
        return tuple(self._messages)

    def _end_turn(self) -> None:
        if self._said:
            self._messages.append(Message(role="assistant", parts=_joined(self._said)))
            self._said = []

    def _part(self, part: PartWire, raw: dict[str, Any], role: str, at: str) -> Part:
        for name in _CODE:
            if raw.get(name) is not None:
                raise UnsupportedContent(
                    f"`{at}.{name}` is not supported: no code is run here; send what it printed as text",
                    param=f"{at}.{name}",
                )
        extras = _extras(raw)
        if part.function_call is not None:
            _check_role(role, "assistant", f"{at}.functionCall", "model")
            return self._call(part.function_call, part.thought_signature, extras, at)
        if part.function_response is not None:
            _check_role(role, "user", f"{at}.functionResponse", "user")
            return self._result(part.function_response, f"{at}.functionResponse")
        if part.inline_data is not None:
            return _inline(part.inline_data, extras, f"{at}.inlineData")
        if part.file_data is not None:
            return _by_address(part.file_data, extras, f"{at}.fileData")
        if part.text is None:
            raise MissingParameter(
                f"`{at}` must hold text, inlineData, fileData, functionCall or functionResponse",
                param=at,
            )
        signed = signed_by(part.thought_signature) if part.thought_signature else None
        if role == "assistant":
            return _said(part.text, signed, extras, is_thought=part.thought is True)
        return TextPart(text=part.text, extras=extras)

    def _call(
        self, call: FunctionCallWire, signature: str | None, extras: Extras | None, at: str
    ) -> ToolCallPart:
        call_id = call.id or _made_up(at)
        self._waiting.add(call_id)
        self._by_name[call.name].append(call_id)
        carried = dict(extras or {})
        if signature:
            signed = signed_by(signature)
            carried |= {"signature": signed.value, "format": signed.format}
        return ToolCallPart(
            call_id=call_id,
            name=call.name,
            arguments=msgspec.json.encode(call.args or {}).decode(),
            extras=carried or None,
        )

    def _result(self, result: FunctionResponseWire, at: str) -> ToolResultPart:
        text, is_error = _outcome(result.response or {})
        parts: list[TextPart | ImagePart | FilePart] = [TextPart(text=text)] if text else []
        for index, part in enumerate(result.parts or ()):
            parts.append(_result_media(part, f"{at}.parts[{index}]"))
        return ToolResultPart(
            call_id=self._answered(result, at),
            parts=tuple(parts),
            is_error=is_error,
            extras={"response": result.response or {}},
        )

    def _answered(self, result: FunctionResponseWire, at: str) -> str:
        """The call that a result belongs to; one that nobody made keeps an id of its own."""
        if result.id:
            self._waiting.discard(result.id)
            return result.id
        named = self._by_name[result.name]
        while named:
            call_id = named.popleft()
            if call_id in self._waiting:
                self._waiting.remove(call_id)
                return call_id
        return _made_up(at)


def _said(text: str, signed: Signed | None, extras: Extras | None, *, is_thought: bool) -> Part:
    """A piece of the model's text or of its thoughts. A signature on an empty text is of a thought not shown."""
    if is_thought or (signed is not None and not text):
        return ReasoningPart(text=text, summary=True) if signed is None else signed.reasoning(text)
    carried = dict(extras or {})
    if signed is not None:
        carried |= {"signature": signed.value, "format": signed.format}
    return TextPart(text=text, extras=carried or None)


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Pieces of one text, or of one thought up to its signature, as one part."""
    joined: list[Part] = []
    texts: list[str] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, TextPart | ReasoningPart):
            if last is not None and _goes_on(last, part):
                joined[-1] = part
            else:
                _write(joined, texts)
                texts = []
                joined.append(part)
            texts.append(part.text)
        else:
            _write(joined, texts)
            texts = []
            joined.append(part)
    _write(joined, texts)
    return tuple(joined)


def _write(joined: list[Part], texts: list[str]) -> None:
    """Give the last part the text of all its pieces."""
    last = joined[-1] if joined else None
    if len(texts) > 1 and isinstance(last, TextPart | ReasoningPart):
        joined[-1] = msgspec.structs.replace(last, text="".join(texts))


def _goes_on(last: Part, part: TextPart | ReasoningPart) -> bool:
    match last, part:
        case TextPart(extras=None), TextPart():
            return True
        case ReasoningPart(signature=None, redacted=None), ReasoningPart(redacted=None):
            return not _stands_alone(part)
        case _:
            return False


def _stands_alone(part: TextPart | ReasoningPart) -> bool:
    """Whether it is a signature of Google's own without a thought: that is of the part behind it."""
    return isinstance(part, ReasoningPart) and part.format == OWN_FORMAT and not part.text


def _outcome(response: dict[str, Any]) -> tuple[str, bool]:
    """What a tool gave as text, and whether it failed; an object of other names is its own text."""
    if len(response) == 1:
        [(name, value)] = response.items()
        if name in (*_OUTPUTS, "error") and value is not None:
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            return text, name == "error"
    return (msgspec.json.encode(response).decode() if response else ""), False


def _result_media(part: ResultPartWire, at: str) -> Media:
    if part.inline_data is not None:
        return _inline(part.inline_data, None, f"{at}.inlineData")
    if part.file_data is not None:
        return _by_address(part.file_data, None, f"{at}.fileData")
    raise MissingParameter(f"`{at}` must hold inlineData or fileData", param=at)


def _inline(blob: BlobWire, extras: Extras | None, at: str) -> Media:
    media_type = blob.mime_type.partition(";")[0].strip().lower()
    if not media_type:
        raise InvalidValue(f"`{at}.mimeType` must not be empty", param=f"{at}.mimeType")
    source = InlineSource(
        media_type=media_type, data=standard_base64(blob.data, f"{at}.data") if blob.data else ""
    )
    if not source.data:
        raise InvalidValue(f"`{at}.data` must not be empty", param=f"{at}.data")
    if media_type.startswith("image/"):
        return ImagePart(source=source, extras=extras)
    return FilePart(source=source, filename=blob.display_name, extras=extras)


def _by_address(file: FileDataWire, extras: Extras | None, at: str) -> Media:
    where = f"{at}.fileUri"
    if data_url.read(file.file_uri) is not None:
        source = inline_from_url(file.file_uri, where)
        blob = BlobWire(data=source.data, mime_type=source.media_type)
        return _inline(blob, extras, at)
    if file.file_uri.startswith(_STORED):
        raise UnsupportedParameter(
            f"`{where}`: files are not stored here; send the bytes as inlineData, or an https address",
            param=where,
        )
    if not file.file_uri.startswith(_HTTP):
        raise InvalidValue(f"`{where}` must be an https address", param=where)
    media_type = file.mime_type or mimetypes.guess_type(file.file_uri.partition("?")[0])[0] or ""
    url = UrlSource(url=file.file_uri)
    if file.mime_type:
        extras = {**(extras or {}), "mimeType": file.mime_type}
    if media_type.startswith("image/"):
        return ImagePart(source=url, extras=extras)
    return FilePart(source=url, filename=file.display_name, extras=extras)


def _extras(raw: dict[str, Any]) -> Extras | None:
    """Fields of a part that only its own vendor knows."""
    found = json_input.extras(raw, _PART_FIELDS) or {}
    return {name: value for name, value in found.items() if value is not None} or None


def _check_role(role: str, wanted: str, at: str, name: str) -> None:
    if role != wanted:
        raise InvalidValue(f"`{at}` stands in a content of role {name}", param=at)


def _made_up(at: str) -> str:
    """An id by the place, such as call_3_0."""
    return "call_" + "_".join("".join(c if c.isdigit() else " " for c in at).split())
