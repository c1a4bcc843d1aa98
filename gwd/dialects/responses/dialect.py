"""The dialect object: parse, renderer and error envelope of POST /responses."""

from collections.abc import Mapping

from gwd.core.clock import Clock, SystemClock
from gwd.core.errors import GatewayError
from gwd.core.request import DialectName, Request
from gwd.dialects.base import Reply
from gwd.dialects.envelope import error_body
from gwd.dialects.responses.items import ItemResolver
from gwd.dialects.responses.parse import ResponsesRequest, parse
from gwd.dialects.responses.render import ResponsesRenderer


class Responses:
    """The responses API; `clock` dates the completion of an answer."""

    name: DialectName = "responses"
    path = "/responses"

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def parse(
        self, body: bytes, headers: Mapping[str, str], resolve: ItemResolver | None = None
    ) -> ResponsesRequest:
        """`resolve` finds items emitted earlier to the same caller; without it references are skipped."""
        return parse(body, headers, resolve)

    def renderer(self, request: Request, reply: Reply) -> ResponsesRenderer:
        return ResponsesRenderer(request, reply, self._clock)

    def error(self, error: GatewayError, request_id: str) -> bytes:
        return error_body(error, request_id)


DIALECT = Responses()
