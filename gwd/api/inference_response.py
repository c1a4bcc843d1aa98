"""The response of an inference request: sanic's, without its sanitizing of every header's name and value.

That sanitizing costs as much as the rest of a response together. The headers here are our own (`gwd.api.headers`): ids,
numbers, slugs, and a vendor's name, which the catalog takes only if it is printable.
"""

from sanic import HTTPResponse


class InferenceResponse(HTTPResponse):
    """Only for headers that hold no line break."""

    __slots__ = ()

    @property
    def processed_headers(self) -> list[tuple[bytes, bytes]]:  # type: ignore[override]
        """Names and values as they go over the wire."""
        self.headers.setdefault("content-type", self.content_type)
        return [
            (name.encode(), f"{value}".encode("latin-1", "replace"))
            for name, value in self.headers.items()
        ]
