"""messages: the dialect of the Anthropic SDKs and of Claude Code.

Owns: parse of POST /messages and /messages/count_tokens, the event stream and message object, the error envelope.
Does not own: counting tokens, versions of the upstream, anything a vendor needs.
Invariants: unknown fields and blocks are kept for their own family; blocks are strictly sequential; every event is
named; the closing events wait for `Settled`; thinking always carries a signature, and whose it is (provenance.py).
Speaks to: core only.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gwd.core.errors import GatewayError
from gwd.core.request import DialectName, Request
from gwd.dialects.base import EVENT_STREAM, Renderer, Reply
from gwd.dialects.messages.envelope import error_body
from gwd.dialects.messages.parse import parse, parse_count
from gwd.dialects.messages.render import MessagesRenderer


class Messages:
    """The dialect; stateless."""

    name: DialectName = "messages"
    path = "/messages"
    framing = EVENT_STREAM
    count_path = "/messages/count_tokens"

    def parse(self, body: bytes, headers: Mapping[str, str]) -> Request:
        return parse(body, headers)

    def parse_count(self, body: bytes, headers: Mapping[str, str]) -> Request:
        """The body of a token count as a Request whose messages, tools and system text are to be counted."""
        return parse_count(body, headers)

    def count(self, input_tokens: int) -> bytes:
        """The answer to a token count."""
        return msgspec.json.encode({"input_tokens": input_tokens})

    def renderer(self, request: Request, reply: Reply) -> Renderer:
        return MessagesRenderer(request, reply)

    def error(self, error: GatewayError, request_id: str) -> bytes:
        return error_body(error, request_id)


DIALECT: Final = Messages()
