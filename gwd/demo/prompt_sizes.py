"""How many tokens a prompt has, part by part, in each format (the rule is in `tokens`)."""

from typing import Any

from gwd.demo import tokens
from gwd.demo.prompt_cache import Piece
from gwd.demo.wire import Json, as_list, as_object, as_text, compact

_TEXT_FIELDS = ("text", "refusal", "thinking", "content")


def text_in(content: object) -> str:
    """All text of a message's content, whatever form it has."""
    if isinstance(content, str):
        return content
    texts = []
    for part in as_list(content):
        for name in _TEXT_FIELDS:
            if isinstance(value := as_object(part).get(name), str | list):
                texts.append(text_in(value))
    return "\n".join(texts)


def chat_pieces(body: Json) -> list[Piece]:
    pieces = _tool_pieces(body.get("tools"))
    if (wanted := body.get("response_format")) is not None:
        pieces.append(_piece(compact(wanted)))
    for message in as_list(body.get("messages")):
        size = tokens.PER_MESSAGE + _content_size(message.get("content"))
        size += sum(tokens.count(compact(call)) for call in as_list(message.get("tool_calls")))
        pieces.append(Piece(compact(message), size))
    return pieces


def responses_pieces(body: Json) -> list[Piece]:
    pieces = _tool_pieces(body.get("tools"))
    if instructions := as_text(body.get("instructions")):
        pieces.append(Piece(instructions, tokens.PER_MESSAGE + tokens.count(instructions)))
    given = body.get("input")
    items = [given] if isinstance(given, str) else as_list(given)
    for item in items:
        pieces.append(Piece(compact(item), tokens.PER_MESSAGE + _item_size(item)))
    return pieces


def messages_pieces(body: Json) -> list[Piece]:
    """Tools, system, messages: the order in which cache marks work. One piece for each block."""
    pieces = [_marked(tool, tokens.count(compact(tool))) for tool in as_list(body.get("tools"))]
    system = body.get("system")
    for block in [{"text": system}] if isinstance(system, str) else as_list(system):
        pieces.append(_marked(block, tokens.count(as_text(block.get("text")))))
    for message in as_list(body.get("messages")):
        content = message.get("content")
        blocks = [{"text": content}] if isinstance(content, str) else as_list(content)
        pieces.append(Piece(as_text(message.get("role")), tokens.PER_MESSAGE))
        pieces += [_marked(block, _block_size(block)) for block in blocks]
    if pieces and isinstance(body.get("cache_control"), dict):
        # A mark on the request itself stands on its last block.
        last = pieces[-1]
        pieces[-1] = Piece(last.key, last.tokens, _ttl(body["cache_control"]))
    return pieces


def gemini_pieces(body: Json) -> list[Piece]:
    """Tools, system text, turns. The answer's form counts for nothing."""
    pieces = [
        _piece(compact(declaration))
        for tool in as_list(body.get("tools"))
        for declaration in as_list(as_object(tool).get("functionDeclarations"))
    ]
    system = [as_object(body["systemInstruction"])] if "systemInstruction" in body else []
    for turn in [*system, *as_list(body.get("contents"))]:
        parts = as_list(as_object(turn).get("parts"))
        size = tokens.PER_MESSAGE + sum(_gemini_part_size(as_object(part)) for part in parts)
        pieces.append(Piece(compact(turn), size))
    return pieces


def total(pieces: list[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _piece(text: str) -> Piece:
    return Piece(text, tokens.count(text))


def _tool_pieces(tools: object) -> list[Piece]:
    return [_piece(compact(tool)) for tool in as_list(tools)]


def _marked(block: Json, size: int) -> Piece:
    mark = block.get("cache_control")
    bare = {name: value for name, value in block.items() if name != "cache_control"}
    return Piece(compact(bare), size, _ttl(mark) if isinstance(mark, dict) else None)


def _ttl(mark: Json) -> Any:
    return mark.get("ttl") or "5m"


def _content_size(content: object) -> int:
    if isinstance(content, str):
        return tokens.count(content)
    return sum(_part_size(as_object(part)) for part in as_list(content))


def _part_size(part: Json) -> int:
    """A part of chat or responses content."""
    match part.get("type"):
        case "image_url":
            return _image(as_object(part["image_url"]).get("detail"))
        case "input_image":
            return _image(part.get("detail"))
        case "file":
            return _file(as_object(part["file"]))
        case "input_file":
            return _file(part)
        case _:
            return tokens.count(text_in([part]))


def _image(detail: object) -> int:
    return tokens.IMAGE_LOW_DETAIL if detail == "low" else tokens.IMAGE


def _file(file: Json) -> int:
    if data := as_text(file.get("file_data")):
        return tokens.count_file(data)
    return tokens.NAMED_FILE


def _item_size(item: object) -> int:
    """An input item of the responses format."""
    if isinstance(item, str):
        return tokens.count(item)
    item = as_object(item)
    match item.get("type"):
        case "function_call" | "custom_tool_call":
            said = as_text(item.get("arguments")) or as_text(item.get("input"))
            return tokens.count(as_text(item.get("name"))) + tokens.count(said)
        case "function_call_output" | "custom_tool_call_output":
            return _content_size(item.get("output"))
        case "reasoning":
            return tokens.count(text_in(item.get("summary")))
        case _:
            return _content_size(item.get("content"))


def _block_size(block: Json) -> int:
    """A content block of the messages format."""
    source = as_object(block.get("source"))
    match block.get("type"):
        case "image":
            return tokens.IMAGE
        case "document":
            return _document(source)
        case "tool_use":
            return tokens.count(as_text(block.get("name"))) + tokens.count(
                compact(block.get("input"))
            )
        case "tool_result":
            content = block.get("content")
            if isinstance(content, str):
                return tokens.count(content)
            return sum(_block_size(as_object(inner)) for inner in as_list(content))
        case "redacted_thinking":
            return tokens.count_file(as_text(block.get("data")))
        case _:
            return tokens.count(text_in([block]))


def _gemini_part_size(part: Json) -> int:
    if data := as_object(part.get("inlineData")):
        if as_text(data.get("mimeType")).startswith("image/"):
            return tokens.IMAGE
        return tokens.count_file(as_text(data.get("data")))
    if "fileData" in part:
        return tokens.NAMED_FILE
    for name in ("functionCall", "functionResponse"):
        if name in part:
            return tokens.count(compact(part[name]))
    return tokens.count(as_text(part.get("text")))


def _document(source: Json) -> int:
    match source.get("type"):
        case "base64":
            return tokens.count_file(as_text(source.get("data")))
        case "text":
            return tokens.count(as_text(source.get("data")))
        case "content":
            return _content_size(source.get("content"))
        case _:
            return tokens.NAMED_FILE
