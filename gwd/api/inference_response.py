"""The response of an inference request: its head is written in one step, without the framework's work on each header.

That work (a multidict, sanitizing of names and values, one line at a time) costs as much as the rest of a response
together. The headers here are our own (`gwd.api.headers`): ids, numbers, slugs, and a vendor's name, which the catalog
takes only if it is printable.
"""

from sanic import HTTPResponse
from sanic.response import BaseHTTPResponse


class InferenceResponse(HTTPResponse):
    """Status 200, a whole body or none as yet, and headers that hold no line break and say nothing of framing."""

    __slots__ = ()

    def __init__(self, body: bytes | None, headers: dict[str, str], content_type: str) -> None:
        BaseHTTPResponse.__init__(self)  # type: ignore[no-untyped-call]
        self.body = body
        self.status = 200
        self.content_type = content_type
        self.headers = headers  # type: ignore[assignment]
        self._cookies = None

    def head(self, framing: str) -> bytes:
        """The head up to its end; `framing` are the lines that say how the body comes."""
        own = "".join([f"{name}: {value}\r\n" for name, value in self.headers.items()])
        text = f"HTTP/1.1 200 OK\r\n{own}content-type: {self.content_type}\r\n{framing}\r\n"
        return text.encode("latin-1", "replace")
