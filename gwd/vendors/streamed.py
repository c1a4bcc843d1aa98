"""A whole answer that came as a stream: some servers send server-sent events whatever was asked."""

from typing import Final

from gwd.core.events import Event
from gwd.core.sse import SseError, SseSplitter
from gwd.vendors.base import StreamDecoder, UndecodableError

_STARTS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")


def looks_streamed(body: bytes) -> bool:
    """Whether a body begins as server-sent events do; JSON never does."""
    return body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_STARTS)


def decode_streamed(body: bytes, decoder: StreamDecoder) -> list[Event]:
    """The events of the whole stream. Raises UndecodableError."""
    splitter = SseSplitter()
    try:
        frames = splitter.feed(body) + splitter.close()
    except SseError as error:
        raise UndecodableError(str(error)) from None
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.close()
