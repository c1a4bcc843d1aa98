"""What the vendor refuses in a single content block of a message."""

import base64
import binascii
import re
from collections.abc import Sequence

from gwd.demo.wire import Json, as_object
from tests.vendor.messages_errors import extra_input, refuse, required
from tests.vendor.signatures import is_redacted, is_signature

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MARK = "cache_control"
_KEYS = {
    "text": frozenset({"type", "text", "citations", _MARK}),
    "image": frozenset({"type", "source", _MARK}),
    "document": frozenset({"type", "source", "title", "context", "citations", _MARK}),
    "search_result": frozenset({"type", "source", "title", "content", "citations", _MARK}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", _MARK}),
    "tool_use": frozenset({"type", "id", "name", "input", "caller", _MARK}),
    # A thinking block takes no cache mark.
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
_IN_RESULT = ("text", "image", "document", "search_result")
_HEADS = {
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def check_block(block: object, allowed: Sequence[str], path: str, area: str) -> None:
    if not isinstance(block, dict):
        raise refuse(f"{path}: Input should be an object")
    kind = block.get("type")
    if kind is None:
        raise required(f"{path}.type")
    if kind not in allowed:
        listed = ", ".join(f"'{one}'" for one in allowed)
        raise refuse(
            f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
            f"{listed}"
        )
    for name in block:
        if name not in _KEYS[kind]:
            raise extra_input(f"{path}.{kind}.{name}")
    if kind == "text":
        _check_text(block, path, area)
    elif check := _CHECKS.get(kind):
        check(block, f"{path}.{kind}")


def _check_text(block: Json, path: str, area: str) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        raise refuse(f"{path}.text.text: Input should be a valid string")
    if text:
        if not text.strip() and area == "messages":
            raise refuse(f"{area}: text content blocks must contain non-whitespace text")
        return
    if block.get(_MARK) is not None:
        raise refuse(f"{path}.text: cache_control cannot be set for empty text blocks")
    raise refuse(f"{area}: text content blocks must be non-empty")


def _check_image(block: Json, path: str) -> None:
    source = as_object(block.get("source"))
    match source.get("type"):
        case "url":
            _check_url(source.get("url"), path)
        case "base64":
            media_type = source.get("media_type")
            if media_type not in _HEADS:
                listed = ", ".join(f"'{one}'" for one in _HEADS)
                raise refuse(f"{path}.source.base64.media_type: Input should be {listed}")
            data = _decoded(source.get("data"), f"{path}.source.base64")
            if not data.startswith(_HEADS[media_type]):
                raise refuse(
                    f"{path}.source.base64: The image does not have the media type {media_type} that was "
                    "specified for it"
                )
        case "file":
            raise refuse(f"{path}.source.file.file_id: File not found: {source.get('file_id')}")
        case other:
            raise refuse(
                f"{path}.source: Input tag '{other}' found using 'type' does not match any of the expected "
                "tags: 'base64', 'url'"
            )


def _check_document(block: Json, path: str) -> None:
    source = as_object(block.get("source"))
    match source.get("type"):
        case "url":
            _check_url(source.get("url"), path)
        case "base64":
            if source.get("media_type") != "application/pdf":
                raise refuse(f"{path}.source.base64.media_type: Input should be 'application/pdf'")
            if not _decoded(source.get("data"), f"{path}.source.base64").startswith(b"%PDF"):
                raise refuse(f"{path}.source.base64.data: The PDF specified was not valid.")
        case "text":
            if source.get("media_type") != "text/plain":
                raise refuse(f"{path}.source.text.media_type: Input should be 'text/plain'")
            if not isinstance(source.get("data"), str) or not source["data"]:
                raise refuse(f"{path}.source.text.data: Input should be a non-empty string")
        case "content":
            return
        case other:
            raise refuse(
                f"{path}.source: Input tag '{other}' found using 'type' does not match any of the expected "
                "tags: 'base64', 'content', 'text', 'url'"
            )


def _check_url(url: object, path: str) -> None:
    if not isinstance(url, str) or not url.startswith("https://"):
        raise refuse(f"{path}.source.url: Only HTTPS URLs are supported.")


def _decoded(data: object, path: str) -> bytes:
    try:
        return base64.b64decode(data if isinstance(data, str) else "!", validate=True)
    except binascii.Error:
        raise refuse(f"{path}.data: invalid base64 data") from None


def _check_tool_use(block: Json, path: str) -> None:
    for name in ("id", "name", "input"):
        if name not in block:
            raise required(f"{path}.{name}")
    if not isinstance(block["id"], str) or not _CALL_ID.fullmatch(block["id"]):
        raise refuse(f"{path}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(block["name"], str) or not _CALL_ID.fullmatch(block["name"]):
        raise refuse(f"{path}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if not isinstance(block["input"], dict):
        raise refuse(f"{path}.input: Input should be an object")


def _check_tool_result(block: Json, path: str) -> None:
    if "tool_use_id" not in block:
        raise required(f"{path}.tool_use_id")
    if not isinstance(block.get("is_error", False), bool):
        raise refuse(f"{path}.is_error: Input should be a valid boolean")
    content = block.get("content")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise refuse(f"{path}.content: Input should be a valid list")
    for index, inner in enumerate(content):
        check_block(inner, _IN_RESULT, f"{path}.content.{index}", "messages")


def _check_signature(block: Json, path: str) -> None:
    for name in ("thinking", "signature"):
        if name not in block:
            raise required(f"{path}.{name}")
    if not is_signature(block["signature"], block["thinking"]):
        raise refuse(f"{path.removesuffix('.thinking')}: Invalid `signature` in `thinking` block")


def _check_redacted(block: Json, path: str) -> None:
    if not is_redacted(block.get("data")):
        raise refuse(f"{path}.data: Invalid `data` in `redacted_thinking` block")


_CHECKS = {
    "image": _check_image,
    "document": _check_document,
    "tool_use": _check_tool_use,
    "tool_result": _check_tool_result,
    "thinking": _check_signature,
    "redacted_thinking": _check_redacted,
}
