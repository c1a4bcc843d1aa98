"""The content blocks of a message: how each looks whole, how it opens, and the deltas that fill it."""

import msgspec

from gwd.demo.formats import Reply
from gwd.demo.signatures import redact, sign
from gwd.demo.wire import Json, as_object, mint


class Block(msgspec.Struct, frozen=True, kw_only=True):
    whole: Json
    start: Json
    deltas: tuple[tuple[Json, int], ...] = ()
    """Each delta and the tokens it stands for."""


def blocks_of(reply: Reply) -> list[Block]:
    answer = reply.answer
    blocks = []
    if answer.reasoning:
        blocks.append(_thinking(reply))
    if answer.text:
        blocks.append(_text(answer.text))
    for index in range(len(answer.calls)):
        blocks.append(_tool_use(reply, index))
    return blocks


def _text(pieces: tuple[str, ...]) -> Block:
    return Block(
        whole={"type": "text", "text": "".join(pieces)},
        start={"type": "text", "text": ""},
        deltas=tuple(({"type": "text_delta", "text": piece}, 1) for piece in pieces),
    )


def _thinking(reply: Reply) -> Block:
    pieces = reply.answer.reasoning
    text = "".join(pieces)
    if reply.behaviour.redacted:
        block = {"type": "redacted_thinking", "data": redact(text)}
        return Block(whole=block, start=block)
    signature = sign(text)
    deltas: list[tuple[Json, int]] = []
    if as_object(reply.body.get("thinking")).get("display") == "omitted":
        text = ""
    else:
        deltas = [({"type": "thinking_delta", "thinking": piece}, 1) for piece in pieces]
    deltas.append(({"type": "signature_delta", "signature": signature}, 0))
    return Block(
        whole={"type": "thinking", "thinking": text, "signature": signature},
        start={"type": "thinking", "thinking": "", "signature": ""},
        deltas=tuple(deltas),
    )


def _tool_use(reply: Reply, index: int) -> Block:
    call = reply.answer.calls[index]
    head: Json = {
        "type": "tool_use",
        "id": mint("toolu_01", seed=reply.call_seed + bytes([index % 256]), length=22),
        "name": call.name,
    }
    arguments = "".join(call.arguments)
    # The first delta is empty, and an input without members gets no other one.
    pieces = ("", *call.arguments) if arguments not in ("", "{}") else ("",)
    return Block(
        whole={**head, "input": object_of(arguments)},
        start={**head, "input": {}},
        deltas=tuple(
            ({"type": "input_json_delta", "partial_json": piece}, 1 if piece else 0)
            for piece in pieces
        ),
    )


def object_of(arguments: str) -> Json:
    """The object; arguments that were cut off in the middle leave an empty one."""
    try:
        value = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}
