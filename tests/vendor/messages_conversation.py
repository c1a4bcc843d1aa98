"""What the vendor refuses in a conversation at messages: order of roles, tool calls without results, its end."""

from collections.abc import Sequence

from gwd.demo.traits import ModelTraits
from gwd.demo.wire import Json, as_list, as_object
from tests.vendor.messages_block_checks import check_block
from tests.vendor.messages_errors import extra_input, refuse, required

NEW_VERSION = "2026-10-21"
_USER_BLOCKS = ("text", "image", "document", "search_result", "tool_result")
_ASSISTANT_BLOCKS = ("text", "thinking", "redacted_thinking", "tool_use", "document")


def check_conversation(body: Json, traits: ModelTraits, version: str) -> None:
    _check_system(body)
    if "messages" not in body:
        raise required("messages")
    messages = body["messages"]
    if not isinstance(messages, list):
        raise refuse("messages: Input should be a valid list")
    if not messages:
        raise refuse("messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(message, index, messages, traits, version)
    if messages[0]["role"] != "user":
        raise refuse('messages: first message must use the "user" role')
    _check_pairs(messages)
    _check_tools_defined(body)
    _check_end(messages, traits)
    if as_object(body.get("thinking")).get("type") == "enabled":
        _check_thinking_kept(messages)


def _check_system(body: Json) -> None:
    system = body.get("system")
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise refuse("system: Input should be a valid list")
    for index, block in enumerate(system):
        if as_object(block).get("type") != "text":
            raise refuse(f"system.{index}.type: Input should be 'text'")
        check_block(block, ("text",), f"system.{index}", "system")


def _check_message(
    message: object, index: int, messages: list[Json], traits: ModelTraits, version: str
) -> None:
    path = f"messages.{index}"
    if not isinstance(message, dict):
        raise refuse(f"{path}: Input should be an object")
    for name in message:
        if name not in ("role", "content"):
            raise extra_input(f"{path}.{name}")
    for name in ("role", "content"):
        if name not in message:
            raise required(f"{path}.{name}")
    role, content = message["role"], message["content"]
    if role == "system" and not (traits.mid_system and index > 0):
        raise refuse(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        )
    if role not in ("user", "assistant", "system"):
        raise refuse(f"{path}.role: Input should be 'user' or 'assistant'")
    if not isinstance(content, str | list):
        raise refuse(f"{path}.content: Input should be a valid list")
    last = index == len(messages) - 1
    if not content and not (last and role == "assistant"):
        raise refuse(
            f"{path}: all messages must have non-empty content except for the optional final assistant "
            "message"
        )
    if isinstance(content, list):
        _check_blocks(content, role, f"{path}.content", version)


def _check_blocks(content: list[object], role: str, path: str, version: str) -> None:
    allowed = _allowed(role, version)
    for position, block in enumerate(content):
        check_block(block, allowed, f"{path}.{position}", "messages")
        cited = as_object(block).get("citations")
        if role == "user" and version == NEW_VERSION and cited:
            raise refuse(f"{path}.{position}.citations: Extra inputs are not permitted")


def _allowed(role: str, version: str) -> Sequence[str]:
    if role == "system":
        return ("text",)
    if role == "user":
        return _USER_BLOCKS
    if version == NEW_VERSION:
        return tuple(kind for kind in _ASSISTANT_BLOCKS if kind != "document")
    return _ASSISTANT_BLOCKS


def _check_pairs(messages: list[Json]) -> None:
    """Every call is answered at the very start of the next message, and every result has its call there."""
    turns = _merged(messages)
    waiting: list[str] = []
    for index, _role, blocks in turns:
        results = [block for block in blocks if block.get("type") == "tool_result"]
        lead = [block["tool_use_id"] for block in blocks[: len(results)] if block in results]
        left = [call for call in waiting if call not in lead]
        if left:
            raise refuse(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(left)}. Each `tool_use` block must have a corresponding `tool_result` "
                "block in the next message."
            )
        for position, block in enumerate(blocks):
            if block in results and block["tool_use_id"] not in waiting:
                raise refuse(
                    f"messages.{index}.content.{position}: unexpected `tool_use_id` found in `tool_result` "
                    f"blocks: {block['tool_use_id']}. Each `tool_result` block must have a corresponding "
                    "`tool_use` block in the previous message."
                )
        if len({block["tool_use_id"] for block in results}) < len(results):
            raise refuse(
                f"messages.{index}: each tool_use must have a single result. Found multiple `tool_result` "
                "blocks with one id."
            )
        waiting = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        if len(set(waiting)) < len(waiting):
            raise refuse(f"messages.{index}: `tool_use` ids must be unique")
    if waiting:
        raise refuse(
            f"messages.{turns[-1][0]}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {', '.join(waiting)}. Each `tool_use` block must have a corresponding `tool_result` "
            "block in the next message."
        )


def _merged(messages: list[Json]) -> list[tuple[int, str, list[Json]]]:
    """Index, role and blocks of each turn: neighbours of one role count as one."""
    turns: list[tuple[int, str, list[Json]]] = []
    for index, message in enumerate(messages):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][1] == message["role"]:
            turns[-1][2].extend(blocks)
        else:
            turns.append((index, message["role"], list(blocks)))
    return turns


def _check_tools_defined(body: Json) -> None:
    if body.get("tools"):
        return
    for message in body["messages"]:
        for block in as_list(message["content"]):
            if block.get("type") in ("tool_use", "tool_result"):
                raise refuse(
                    "Requests which include `tool_use` or `tool_result` blocks must define tools."
                )


def _check_end(messages: list[Json], traits: ModelTraits) -> None:
    last = messages[-1]
    if last["role"] != "assistant":
        return
    if not traits.prefill:
        raise refuse(
            "This model does not support assistant message prefill. The conversation must end with a user "
            "message."
        )
    content = last["content"]
    text = content
    if isinstance(content, list):
        text = content[-1].get("text") if content else ""
    if isinstance(text, str) and text != text.rstrip():
        raise refuse("messages: final assistant content cannot end with trailing whitespace")


def _check_thinking_kept(messages: list[Json]) -> None:
    """While a tool loop is open, the assistant's turn still starts with its thinking."""
    turns = _merged(messages)
    for turn, (index, role, blocks) in enumerate(turns):
        kinds = [block.get("type") for block in blocks]
        answered = turn + 1 < len(turns) and any(
            block.get("type") == "tool_result" for block in turns[turn + 1][2]
        )
        in_open_loop = turn >= len(turns) - 2
        if role != "assistant" or "tool_use" not in kinds or not (answered and in_open_loop):
            continue
        if kinds[0] not in ("thinking", "redacted_thinking"):
            raise refuse(
                f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{kinds[0]}`. When `thinking` is enabled, a final `assistant` message must start with a "
                "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
            )
