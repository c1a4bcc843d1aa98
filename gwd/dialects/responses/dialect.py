"""The dialect object: parse, renderer and error envelope of POST /responses."""

from collections.abc import Mapping
from typing import Any, Protocol

from gwd.core.clock import Clock, SystemClock
from gwd.core.errors import GatewayError
from gwd.core.request import DialectName, Request
from gwd.dialects.base import EVENT_STREAM, Reply
from gwd.dialects.envelope import error_body
from gwd.dialects.responses.parse import ResponsesRequest, parse
from gwd.dialects.responses.render import ResponsesRenderer


class CallerItems(Protocol):
    """Items emitted earlier to the same caller; replay holds them."""

    def remember(self, items: Mapping[str, bytes]) -> None: ...
    def recall(self, item_id: str) -> Mapping[str, Any] | None: ...


class Responses:
    """The responses API. `clock` dates the completion of an answer; `items` is the memory of one caller's items:
    without it references are skipped."""

    name: DialectName = "responses"
    path = "/responses"
    framing = EVENT_STREAM

    def __init__(self, clock: Clock | None = None, items: CallerItems | None = None) -> None:
        self._clock = clock or SystemClock()
        self._items = items

    def remembering(self, items: CallerItems) -> "Responses":
        """The same dialect for one caller, whose references are resolved and whose items are kept."""
        return Responses(self._clock, items)

    def parse(self, body: bytes, headers: Mapping[str, str]) -> ResponsesRequest:
        return parse(body, headers, self._items.recall if self._items is not None else None)

    def renderer(self, request: Request, reply: Reply) -> ResponsesRenderer:
        keep = self._items.remember if self._items is not None else None
        return ResponsesRenderer(request, reply, self._clock, keep)

    def error(self, error: GatewayError, request_id: str) -> bytes:
        return error_body(error, request_id)


DIALECT = Responses()
