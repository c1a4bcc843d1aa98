"""What a vendor of each format sends for a few pieces of one kind of text, as bytes that a test may make as odd as it
likes: the pieces stand in them as they are given, already written as the inside of a JSON string."""

from collections.abc import Callable, Iterator

from gwd.core.events import Event, PartDelta, PartStarted
from gwd.core.sse import SseSplitter
from gwd.vendors.anthropic_messages import ADAPTER as ANTHROPIC
from gwd.vendors.base import Adapter
from gwd.vendors.gemini import ADAPTER as GEMINI
from gwd.vendors.openai_chat import ADAPTER as CHAT
from gwd.vendors.openai_responses import ADAPTER as RESPONSES
from tests.golden import golden

ADAPTERS: dict[str, Adapter] = {
    adapter.format.name: adapter for adapter in (CHAT, ANTHROPIC, GEMINI, RESPONSES)
}
KINDS: dict[str, tuple[str, ...]] = {
    "openai_chat": ("text", "reasoning", "refusal", "tool_call"),
    "anthropic_messages": ("text", "reasoning", "tool_call"),
    "gemini": ("text", "reasoning"),
    "openai_responses": ("text", "reasoning", "refusal", "tool_call"),
}
ALL = [(name, kind) for name, kinds in KINDS.items() for kind in kinds]

Build = Callable[[str, list[bytes]], Iterator[bytes]]


def stream(format_: str, kind: str, pieces: list[bytes], *, finish: bytes | None = None) -> bytes:
    """The whole stream: data events. `finish` is JSON for the vendor's word, `stop` in its spelling if left out."""
    events = _STREAMS[format_](kind, pieces, finish)
    return b"".join(b"data: " + event.replace(b"\n", b"\ndata: ") + b"\n\n" for event in events)


def events_of(format_: str, data: bytes) -> list[Event]:
    """What the stream decodes to, fed whole and in small pieces of bytes: the same."""
    request, to = golden.request(), golden.target(format_)
    runs = []
    for size in (len(data), 5):
        splitter, decoder = SseSplitter(), ADAPTERS[format_].decoder(request, to)
        events: list[Event] = []
        with golden.fixed_ids():
            for piece in golden.pieces(data, size):
                for frame in splitter.feed(piece):
                    events += decoder.feed(frame)
            for frame in splitter.close():
                events += decoder.feed(frame)
            events += decoder.close()
        runs.append(events)
    assert runs[0] == runs[1]
    return runs[0]


def text_of(events: list[Event], kind: str) -> str:
    """All text of a kind."""
    kinds = {event.index: event.kind for event in events if isinstance(event, PartStarted)}
    return "".join(
        event.text
        for event in events
        if isinstance(event, PartDelta) and kinds[event.index] == kind
    )


def _chat(kind: str, pieces: list[bytes], finish: bytes | None) -> Iterator[bytes]:
    def chunk(delta: bytes, end: bytes = b"null") -> bytes:
        return b'{"id":"c","model":"m","choices":[{"index":0,"delta":{%b},"finish_reason":%b}]}' % (
            delta,
            end,
        )

    opening = b'"tool_calls":[{"index":0,"id":"c1","function":{"name":"get_weather"}}]'
    yield chunk(opening if kind == "tool_call" else b'"role":"assistant"')
    form = {
        "text": b'"content":"%b"',
        "reasoning": b'"reasoning_content":"%b"',
        "refusal": b'"refusal":"%b"',
        "tool_call": b'"tool_calls":[{"index":0,"function":{"arguments":"%b"}}]',
    }[kind]
    for piece in pieces:
        yield chunk(form % piece)
    yield chunk(b"", finish or b'"stop"')
    yield b'{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}'
    yield b"[DONE]"


def _anthropic(kind: str, pieces: list[bytes], finish: bytes | None) -> Iterator[bytes]:
    block, delta = {
        "text": (b'"text","text":""', b'"text_delta","text":"%b"'),
        "reasoning": (b'"thinking","thinking":""', b'"thinking_delta","thinking":"%b"'),
        "tool_call": (
            b'"tool_use","id":"c1","name":"get_weather","input":{}',
            b'"input_json_delta","partial_json":"%b"',
        ),
    }[kind]
    yield b'{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"output_tokens":1}}}'
    yield b'{"type":"content_block_start","index":0,"content_block":{"type":%b}}' % block
    for piece in pieces:
        yield (b'{"type":"content_block_delta","index":0,"delta":{"type":' + delta % piece + b"}}")
    yield b'{"type":"content_block_stop","index":0}'
    yield (
        b'{"type":"message_delta","delta":{"stop_reason":%b},"usage":{"output_tokens":2}}'
        % (finish or b'"end_turn"')
    )
    yield b'{"type":"message_stop"}'


def _gemini(kind: str, pieces: list[bytes], finish: bytes | None) -> Iterator[bytes]:
    thought = b',"thought":true' if kind == "reasoning" else b""
    for piece in pieces:
        yield b'{"candidates":[{"content":{"parts":[{"text":"%b"%b}]}}]}' % (piece, thought)
    yield (
        b'{"candidates":[{"finishReason":%b}],"usageMetadata":'
        b'{"promptTokenCount":10,"candidatesTokenCount":2,"totalTokenCount":12}}'
        % (finish or b'"STOP"')
    )


def _responses(kind: str, pieces: list[bytes], finish: bytes | None) -> Iterator[bytes]:
    item, event = {
        "text": (b'{"type":"message","id":"i"}', b"output_text"),
        "refusal": (b'{"type":"message","id":"i"}', b"refusal"),
        "reasoning": (b'{"type":"reasoning","id":"i"}', b"reasoning_summary_text"),
        "tool_call": (
            b'{"type":"function_call","id":"i","call_id":"c1","name":"get_weather"}',
            b"function_call_arguments",
        ),
    }[kind]
    yield b'{"type":"response.created","response":{"id":"r","model":"m"}}'
    yield b'{"type":"response.output_item.added","output_index":0,"item":%b}' % item
    for piece in pieces:
        yield (
            b'{"type":"response.%b.delta","item_id":"i","output_index":0,"delta":"%b"}'
            % (event, piece)
        )
    yield b'{"type":"response.output_item.done","output_index":0,"item":%b}' % item
    yield (
        b'{"type":"response.completed","response":{"id":"r","status":%b,'
        b'"usage":{"input_tokens":10,"output_tokens":2}}}' % (finish or b'"completed"')
    )


_STREAMS = {
    "openai_chat": _chat,
    "anthropic_messages": _anthropic,
    "gemini": _gemini,
    "openai_responses": _responses,
}
