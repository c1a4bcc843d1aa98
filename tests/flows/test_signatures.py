"""Signed reasoning of a tool turn survives a client that drops it."""

import json
from typing import Any

from tests.support.node import Gateway

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "the weather of a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


async def test_a_chat_client_that_drops_reasoning_gets_it_reattached(gateway: Gateway) -> None:
    asked = {"role": "user", "content": "use the tool weather for Oslo"}
    common: dict[str, Any] = {
        "model": "demo/claude",
        "tools": TOOLS,
        "reasoning": {"max_tokens": 1024},
        "max_tokens": 4000,
    }
    for stream in (False, True):
        first = await gateway.client.post(
            "/chat/completions", json={**common, "messages": [asked], "stream": stream}
        )
        assert first.status_code == 200, first.text
        [call] = await _calls(gateway, first, stream=stream)
        answered = await gateway.client.post(
            "/chat/completions",
            json={
                **common,
                "messages": [
                    asked,
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": call["id"], "content": "rain"},
                ],
            },
        )
        assert answered.status_code == 200, answered.text
        sent = gateway.vendor.calls.last.body
        assert sent is not None
        blocks = sent["messages"][1]["content"]
        assert blocks[0]["type"] in ("thinking", "redacted_thinking")
        assert sent["thinking"]["type"] == "enabled"


async def _calls(gateway: Gateway, reply: Any, *, stream: bool) -> list[dict[str, Any]]:
    if not stream:
        calls: list[dict[str, Any]] = reply.json()["choices"][0]["message"]["tool_calls"]
        return calls
    await gateway.at_rest()
    found: dict[str, Any] = {}
    for line in reply.text.splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            for delta in choice["delta"].get("tool_calls", []):
                function = delta["function"]
                if "id" in delta:
                    found = {"id": delta["id"], "type": "function", "function": {**function}}
                else:
                    found["function"]["arguments"] += function["arguments"]
    return [found]
