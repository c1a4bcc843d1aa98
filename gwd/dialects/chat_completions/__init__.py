"""The chat completions dialect."""

from collections.abc import Mapping
from typing import Final

from gwd.core.errors import GatewayError
from gwd.core.request import DialectName, Request
from gwd.dialects.base import EVENT_STREAM, Reply
from gwd.dialects.chat_completions.parse import parse
from gwd.dialects.chat_completions.render import ChatRenderer
from gwd.dialects.envelope import error_body

__all__ = ["DIALECT", "ChatCompletions", "error_body"]


class ChatCompletions:
    """Stateless; one instance serves every request."""

    name: DialectName = "chat_completions"
    path = "/chat/completions"
    framing = EVENT_STREAM

    def parse(self, body: bytes, headers: Mapping[str, str]) -> Request:
        return parse(body, headers)

    def renderer(self, request: Request, reply: Reply) -> ChatRenderer:
        return ChatRenderer(request, reply)

    def error(self, error: GatewayError, request_id: str) -> bytes:
        return error_body(error, request_id)


DIALECT: Final = ChatCompletions()
