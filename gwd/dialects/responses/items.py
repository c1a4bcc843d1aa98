"""Input items to messages: what one assistant turn produced becomes one message, in the client's order."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from gwd.core.errors import (
    InvalidValue,
    MissingParameter,
    UnsupportedContent,
)
from gwd.core.foreign_blocks import described
from gwd.core.request import (
    FilePart,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from gwd.core.vendor_items import is_vendor_item
from gwd.dialects import json_input
from gwd.dialects.json_input import typed_at
from gwd.dialects.responses import media
from gwd.dialects.responses.cache import cache_of
from gwd.dialects.responses.namespaces import Namespaces
from gwd.dialects.responses.sealing import OPENAI_FORMAT, unseal
from gwd.dialects.responses.wire import (
    CallItem,
    CustomCallItem,
    FileContent,
    ImageContent,
    MessageItem,
    OutputItem,
    ReasoningItem,
    ReferenceItem,
    RefusalContent,
    TextContent,
)

ItemResolver = Callable[[str], Mapping[str, Any] | None]
"""An item emitted earlier to the same caller, by its id; None when it is no longer held."""

_KEPT_PAIRS: Final = (
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
)
_SEALED: Final = frozenset(("type", "id", "status", "encrypted_content"))
_MESSAGE_FIELDS: Final = json_input.field_names(MessageItem) | {"type", "id", "status"}
# `item` is ours: it holds an item that only this format knows.
_TEXT_FIELDS: Final = frozenset(
    ("type", "text", "annotations", "logprobs", "cache_control", "item")
)
_IMAGE_FIELDS: Final = json_input.field_names(ImageContent) | {"type", "cache_control"}
_FILE_FIELDS: Final = json_input.field_names(FileContent) | {"type", "cache_control"}


def messages_of(
    items: str | Sequence[dict[str, Any]],
    *,
    namespaces: Namespaces,
    resolve: ItemResolver | None,
) -> tuple[Message, ...]:
    """The conversation in `input`. Raises InvalidRequest subclasses that name the item and the field."""
    if isinstance(items, str):
        if not items:
            raise InvalidValue("`input` must not be empty", param="input")
        return (Message(role="user", parts=(TextPart(text=items),)),)
    reader = _Reader(namespaces, _kept_call_ids(items))
    for at, item in enumerate(items):
        path = f"input[{at}]"
        if _kind(path, item) == "item_reference":
            # A reference we no longer hold is skipped: calls and their results always come inline.
            found = resolve(typed_at(path, item, ReferenceItem).id) if resolve is not None else None
            if found is None:
                continue
            item = dict(found)
        reader.read(path, item)
    messages = reader.messages()
    if all(message.parts and all(map(_is_own_item, message.parts)) for message in messages):
        raise InvalidValue("`input` must hold at least one message", param="input")
    return messages


class _Reader:
    """Collects parts into turns: consecutive items of the assistant are one turn, consecutive results another."""

    def __init__(self, namespaces: Namespaces, kept_call_ids: frozenset[str]) -> None:
        self._namespaces = namespaces
        self._kept_call_ids = kept_call_ids
        self._done: list[Message] = []
        self._role: Literal["assistant", "tool"] | None = None
        self._parts: list[Part] = []

    def messages(self) -> tuple[Message, ...]:
        self._close()
        return tuple(self._done)

    def read(self, path: str, item: dict[str, Any]) -> None:
        match _kind(path, item):
            case "message":
                self._message(path, item)
            case "function_call":
                call = typed_at(path, item, CallItem)
                self._call(call.call_id, call.namespace, call.name, call.arguments)
            case "custom_tool_call":
                custom = typed_at(path, item, CustomCallItem)
                arguments = msgspec.json.encode({"input": custom.input}).decode()
                self._call(custom.call_id, custom.namespace, custom.name, arguments)
            case "function_call_output" | "custom_tool_call_output":
                self._output(path, typed_at(path, item, OutputItem))
            case "reasoning":
                reasoning = _reasoning(typed_at(path, item, ReasoningItem))
                if reasoning != ReasoningPart():
                    self._add("assistant", reasoning)
            case kind:
                if item.get("call_id") in self._kept_call_ids:
                    raise UnsupportedContent(
                        f"`{path}`: items of type {kind!r} are not supported, and this one belongs to a call "
                        "or result that is kept; leave both out",
                        param=f"{path}.type",
                    )
                if is_vendor_item(kind):
                    # Whole for a vendor of this format; any other is told what can be read of it, which of a
                    # sealed item is nothing.
                    readable = any(item[name] is not None for name in item.keys() - _SEALED)
                    text = described(item) if readable else ""
                    self._add("assistant", TextPart(text=text, extras={"item": item}))

    def _message(self, path: str, item: dict[str, Any]) -> None:
        message = typed_at(path, item, MessageItem)
        extras = {"phase": message.phase} if message.phase else None
        parts = _content(f"{path}.content", message.content, message.role, extras)
        match message.role:
            case "assistant":
                self._add("assistant", *parts)
            case "user" | "system" | "developer":
                self._close()
                self._done.append(
                    Message(
                        role="user" if message.role == "user" else "system",
                        parts=parts,
                        developer=message.role == "developer",
                        extras=json_input.extras(item, _MESSAGE_FIELDS),
                    )
                )

    def _call(self, call_id: str, namespace: str | None, name: str, arguments: str) -> None:
        flat = self._namespaces.flat(namespace, name)
        self._add(
            "assistant", ToolCallPart(call_id=call_id, name=flat, arguments=arguments or "{}")
        )

    def _output(self, path: str, output: OutputItem) -> None:
        parts = tuple(
            part
            for part in _content(f"{path}.output", output.output, "tool", None)
            if isinstance(part, TextPart | ImagePart | FilePart)
        )
        self._add("tool", ToolResultPart(call_id=output.call_id, parts=parts))

    def _add(self, role: Literal["assistant", "tool"], *parts: Part) -> None:
        if self._role != role:
            self._close()
            self._role = role
        self._parts += parts

    def _close(self) -> None:
        if self._role is not None:
            self._done.append(Message(role=self._role, parts=tuple(self._parts)))
            self._role, self._parts = None, []


def _is_own_item(part: Part) -> bool:
    return isinstance(part, TextPart) and part.extras is not None and "item" in part.extras


def _kept_call_ids(items: Sequence[dict[str, Any]]) -> frozenset[str]:
    return frozenset(
        call_id
        for item in items
        if item.get("type") in _KEPT_PAIRS and isinstance(call_id := item.get("call_id"), str)
    )


def _kind(path: str, item: dict[str, Any]) -> str:
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    if kind is not None:
        raise InvalidValue(f"`{path}.type` must be a string", param=f"{path}.type")
    if "role" in item:
        return "message"
    if "id" in item:
        return "item_reference"
    raise MissingParameter(f"`{path}.type` is required", param=f"{path}.type")


def _reasoning(item: ReasoningItem) -> ReasoningPart:
    sealed = unseal(item.encrypted_content)
    raw = "".join(entry.text for entry in item.content or ())
    summary = "\n\n".join(entry.text for entry in item.summary or ())
    return ReasoningPart(
        text=raw or summary,
        signature=sealed.signature,
        redacted=sealed.redacted,
        format=sealed.format,
        summary=not raw and bool(summary),
        # OpenAI binds its encrypted content to the id of the item that held it.
        item_id=item.id if sealed.format == OPENAI_FORMAT else None,
    )


def _content(
    path: str, content: str | list[dict[str, Any]], role: str, extras: dict[str, Any] | None
) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(text=content, extras=extras),)
    return tuple(_part(f"{path}[{at}]", part, role, extras) for at, part in enumerate(content))


def _part(path: str, part: dict[str, Any], role: str, extras: dict[str, Any] | None) -> Part:
    kind = part.get("type")
    match kind:
        case "input_text" | "output_text" | "text":
            text = typed_at(path, part, TextContent).text
            return TextPart(
                text=text, cache=cache_of(path, part), extras=_extras(part, _TEXT_FIELDS, extras)
            )
        case "refusal" if role == "assistant":
            return RefusalPart(text=typed_at(path, part, RefusalContent).refusal)
        case "input_image" if role != "system":
            image = typed_at(path, part, ImageContent)
            return ImagePart(
                source=media.image_source(image, path),
                detail=image.detail,
                cache=cache_of(path, part),
                extras=_extras(part, _IMAGE_FIELDS, None),
            )
        case "input_file" if role != "system":
            file = typed_at(path, part, FileContent)
            return FilePart(
                source=media.file_source(file, path),
                filename=file.filename,
                cache=cache_of(path, part),
                extras=_extras(part, _FILE_FIELDS, None),
            )
        case str() if role == "tool":
            return TextPart(text=described(part))
        case None:
            raise MissingParameter(f"`{path}.type` is required", param=f"{path}.type")
        case _:
            raise UnsupportedContent(
                f"`{path}`: content of type {kind!r} is not supported here; "
                "use input_text, input_image or input_file",
                param=f"{path}.type",
            )


def _extras(
    part: dict[str, Any], known: frozenset[str], more: dict[str, Any] | None
) -> dict[str, Any] | None:
    unknown = json_input.extras(part, known)
    return {**(more or {}), **unknown} if unknown else more
