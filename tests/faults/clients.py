"""One client a dialect, each on the adapter of its own format, but Google's on that of chat: how it asks, and what it
sees of an answer."""

import json
from decimal import Decimal
from typing import Any

import httpx
import msgspec

from gwd.dialects import chat_completions, gemini, messages, responses
from gwd.dialects.base import Dialect
from gwd.pricing.estimate import estimate_prompt
from gwd.pricing.tokens import estimate_text
from tests.support.node import CLAUDE_PRICES, PRICES, Gateway

CONTENT = "Write about the sea."
NANO = 1_000_000_000


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """`upstream` is the model's name at the vendor: what its script is queued for."""

    name: str
    path: str
    model: str
    upstream: str
    prices: dict[str, str]

    def body(self, *, stream: bool, content: str = CONTENT, **fields: Any) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "stream": stream}
        if self.name == "gemini":
            cap = fields.pop("max_tokens", None)
            config = {} if cap is None else {"maxOutputTokens": cap}
            return {
                "contents": [{"parts": [{"text": content}]}],
                "generationConfig": config,
            } | fields
        if self.name == "responses":
            body["input"] = content
        else:
            body["messages"] = [{"role": "user", "content": content}]
        if self.name == "messages":
            body["max_tokens"] = 1_000
        return body | fields

    async def ask(self, node: Gateway, *, stream: bool, **fields: Any) -> "Seen":
        headers = fields.pop("headers", {})
        model = fields.get("model", self.model)
        path = self.path.format(model=model, stream=":streamGenerateContent?alt=sse")
        if not stream:
            path = path.replace(":streamGenerateContent?alt=sse", ":generateContent")
        reply = await node.client.post(
            path, json=self.body(stream=stream, **fields), headers=headers
        )
        return Seen(self, reply)

    def prompt_estimate(self) -> int:
        dialects: dict[str, Dialect] = {
            "chat": chat_completions.DIALECT,
            "messages": messages.DIALECT,
            "responses": responses.DIALECT,
            "gemini": gemini.DIALECT,
        }
        body = json.dumps(self.body(stream=True)).encode()
        return estimate_prompt(dialects[self.name].parse(body, {}))

    def cost_nano(self, prompt: int, completion: int, *, cached: int = 0, written: int = 0) -> int:
        """The exact cost, computed apart from the gateway: no price here needs rounding."""
        price = {name: Decimal(text) * NANO for name, text in self.prices.items()}
        total = (prompt - cached - written) * price["prompt"] + completion * price["completion"]
        total += cached * price["input_cache_read"]
        if written:
            total += written * price["input_cache_write"]
        assert total == int(total)
        return int(total)


CHAT = Client(
    name="chat",
    path="/chat/completions",
    model="demo/chat",
    upstream="gpt-demo",
    prices=PRICES,
)
MESSAGES = Client(
    name="messages",
    path="/messages",
    model="demo/claude",
    upstream="claude-demo",
    prices=CLAUDE_PRICES,
)
RESPONSES = Client(
    name="responses",
    path="/responses",
    model="demo/responses",
    upstream="o-demo",
    prices=PRICES,
)
GEMINI = Client(
    name="gemini",
    path="/models/{model}{stream}",
    model="demo/chat",
    upstream="gpt-demo",
    prices=PRICES,
)
CLIENTS = [CHAT, MESSAGES, RESPONSES, GEMINI]


class Seen:
    """An answer as the client of a dialect sees it, whole or streamed."""

    def __init__(self, client: Client, reply: httpx.Response) -> None:
        self.client = client
        self.reply = reply
        self.status = reply.status_code
        self.streamed = reply.headers["content-type"].startswith("text/event-stream")
        lines = reply.text.splitlines() if self.streamed else []
        self.events: list[Any] = [json.loads(x[6:]) for x in lines if x.startswith("data: {")]
        self.body: Any = None if self.streamed else reply.json()

    @property
    def text(self) -> str:
        match self.client.name, self.streamed:
            case "chat", True:
                return "".join(
                    choice["delta"].get("content") or ""
                    for event in self.events
                    for choice in event.get("choices", ())
                )
            case "chat", False:
                return str(self.body["choices"][0]["message"]["content"] or "")
            case "gemini", _:
                return "".join(
                    part["text"]
                    for event in (self.events if self.streamed else [self.body])
                    for candidate in event.get("candidates", ())
                    for part in candidate["content"]["parts"]
                )
            case "messages", True:
                return "".join(
                    event["delta"].get("text", "")
                    for event in self.events
                    if event["type"] == "content_block_delta"
                )
            case "messages", False:
                return "".join(b["text"] for b in self.body["content"] if b["type"] == "text")
            case _, True:
                return "".join(
                    event["delta"]
                    for event in self.events
                    if event["type"] == "response.output_text.delta"
                )
            case _:
                return str(self.body["output_text"])

    @property
    def error(self) -> Any:
        """The error object, if the client was told of one."""
        if not self.streamed:
            return self.body.get("error")
        for event in self.events:
            if event.get("error"):
                return event["error"]
            if event.get("type") == "response.failed":
                return event["response"]["error"]
        return None

    @property
    def ended_well(self) -> bool:
        """Whether a client of the dialect takes this for a complete answer."""
        if not self.streamed:
            return self.status == 200 and not self.body.get("error")
        match self.client.name:
            case "chat":
                return self.reply.text.endswith("data: [DONE]\n\n") and self.error is None
            case "gemini":
                last = self.events[-1].get("candidates", [{}])[0]
                return "finishReason" in last and self.error is None
            case "messages":
                return self.events[-1]["type"] == "message_stop" and self.error is None
            case _:
                return self.events[-1]["type"] in ("response.completed", "response.incomplete")


def received_tokens(text: str) -> int:
    return estimate_text(text)
