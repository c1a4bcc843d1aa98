"""Small valid requests of each format, and how to read a stream back."""

from typing import Any

import msgspec

WEATHER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 2}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER_SCHEMA}}
MESSAGES_TOOL = {"name": "get_weather", "input_schema": WEATHER_SCHEMA}
RESPONSES_TOOL = {
    "type": "function",
    "name": "get_weather",
    "parameters": WEATHER_SCHEMA,
    "strict": True,
}
PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}


def chat(words: str = "Tell me about green tea.", **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-demo", "messages": [{"role": "user", "content": words}], **fields}


def messages(words: str = "Tell me about green tea.", **fields: Any) -> dict[str, Any]:
    return {
        "model": "claude-demo",
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": words}],
        **fields,
    }


def responses(words: str = "Tell me about green tea.", **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-demo", "input": words, **fields}


BODIES = {"chat": chat, "messages": messages, "responses": responses}


def events(raw: bytes) -> list[tuple[str, Any]]:
    """Name and JSON of every event; text that is no JSON stays text."""
    found = []
    for block in raw.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        name, data = "", []
        for line in block.split("\n"):
            field, _, value = line.partition(":")
            if field == "event":
                name = value.removeprefix(" ")
            elif field == "data":
                data.append(value.removeprefix(" "))
        if data:
            found.append((name, _json_or_text("\n".join(data))))
    return found


def _json_or_text(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
