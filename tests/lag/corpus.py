"""The worst input of each kind that is allowed: a table to add to.

A row is a name, a model of the test's node (by the format of its vendor), a path with a client's body, and what the
vendor answers. `None` for the body is a small one of the path's dialect, `None` for the answer a small one of the
vendor's format. A row is right when the loop stays free, whatever the request comes to.
"""

import json
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

CHAT, MESSAGES, RESPONSES = "/chat/completions", "/messages", "/responses"
BODY_MAX = 32_000_000
ANSWER_MAX = 64_000_000


class Row(NamedTuple):
    """Body and answer are made when the row's turn comes."""

    name: str
    model: str
    path: str
    make_body: Callable[[], bytes] | None = None
    make_answer: Callable[[], list[bytes]] | None = None
    stream: bool = False
    is_compressed: bool = False


def small_body(row: Row) -> bytes:
    """What a client says that does not matter."""
    fields: dict[str, Any] = {"model": f"demo/{row.model}", "stream": row.stream}
    match row.path:
        case "/responses":
            fields["input"] = "hello"
        case "/embeddings":
            fields = {"model": f"demo/{row.model}", "input": "hello"}
        case _:
            fields |= {"max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
    return json.dumps(fields).encode()


SMALL_ANSWERS: dict[str, bytes] = {
    "chat": b'{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1}}',
    "messages": b'{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",'
    b'"usage":{"input_tokens":1,"output_tokens":1}}',
    "responses": b'{"status":"completed","output":[{"type":"message","content":[{"type":"output_text",'
    b'"text":"hi"}]}],"usage":{"input_tokens":1,"output_tokens":1}}',
    "gemini": b'{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],'
    b'"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}',
    "embeddings": b'{"data":[{"embedding":[1.0],"index":0}],"usage":{"prompt_tokens":1}}',
}


def whole(body: bytes, kind: str = "application/json", status: int = 200) -> list[bytes]:
    """An answer that is one body."""
    head = f"HTTP/1.1 {status} OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return [head.encode() + body]


def streamed(*frames: bytes) -> list[bytes]:
    """An answer in server-sent events, in as few reads as the network makes of it."""
    return whole(b"".join(frames), "text/event-stream")


def chunked(pieces: list[bytes]) -> list[bytes]:
    """An answer in chunks."""
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    return [head + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"]


def many(template: bytes, count: int) -> bytes:
    """A JSON list's content: the template so many times, `#` in it numbered."""
    if b"#" not in template:
        return b",".join([template] * count)
    return b",".join(template.replace(b"#", b"%d" % number) for number in range(count))


def chat(messages: bytes, more: bytes = b"", model: str = "chat") -> Callable[[], bytes]:
    """A chat body around its messages."""
    return lambda: (
        b'{"model":"demo/%b","max_tokens":50,%b"messages":[%b]}' % (model.encode(), more, messages)
    )


def text(content: bytes) -> bytes:
    return b'{"role":"user","content":"%b"}' % content


def parts(template: bytes, count: int) -> bytes:
    return b'{"role":"user","content":[%b]}' % many(template, count)


def responses(items: bytes, more: bytes = b"") -> Callable[[], bytes]:
    return lambda: b'{"model":"demo/responses",%b"input":[%b]}' % (more, items)


_A_CALL = (
    b'{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{%b}}]},'
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[%b]}]}'
)
A_TEXT = b'{"type":"text","text":"a"}'
A_USER = b'{"role":"user","content":"a"}'
_CALL = b'{"id":"c#","type":"function","function":{"name":"f","arguments":"{}"}}'
_TOOL_TURN = (
    b'{"role":"assistant","content":[{"type":"tool_use","id":"c#","name":"f","input":{}}]},'
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"c#","content":"x"}]}'
)


def _gemini_rows() -> Iterator[Row]:
    path = "/models/demo/chat:generateContent"
    chunk = b'{"role":"model","parts":[{"text":"aB1 c. "}]}'
    turn = (
        b'{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},'
        b'{"parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}'
    )
    for name, contents, more in (
        ("49,000 chunks that come back", many(chunk, 49_000), b""),
        ("20,000 turns of calls without ids", many(turn, 20_000), b""),
        ("300,000 names to be read in camelCase", chunk, many(b'"a_b_c#":1', 299_000) + b","),
    ):
        yield Row(name, "chat", path, partial(_contents, contents, more))


def _contents(contents: bytes, more: bytes) -> bytes:
    return b'{%b"contents":[%b]}' % (more, contents)


def _client_rows() -> Iterator[Row]:
    yield from _gemini_rows()
    for model in ("chat", "messages", "responses", "gemini"):
        yield Row(f"99,000 parts to {model}", model, CHAT, chat(parts(A_TEXT, 99_000), model=model))
        yield Row(
            f"8,000 tool turns to {model}",
            model,
            MESSAGES,
            chat(A_USER + b"," + many(_TOOL_TURN, 8_000), model=model),
        )
    odd_calls = b'{"role":"assistant","content":null,"tool_calls":[%b]}' % many(
        _CALL.replace(b"c#", b"same"), 49_000
    )
    yield Row(
        "a model's name of 31 MB",
        "chat",
        CHAT,
        lambda: b'{"model":"%b","messages":[%b]}' % (b"demo/" * 6_000_000, A_USER),
    )
    yield Row(
        "900,000 providers to try",
        "chat",
        CHAT,
        chat(A_USER, b'"provider":{"order":[%b]},' % many(b'"a"', 900_000)),
    )
    yield Row("300,000 parts", "chat", CHAT, chat(parts(A_TEXT, 300_000)))
    yield Row("240,000 messages", "chat", MESSAGES, chat(many(A_USER, 240_000)))
    yield Row("calls of one id", "chat", CHAT, chat(A_USER + b"," + odd_calls))
    yield Row(
        "calls of one id to messages",
        "messages",
        CHAT,
        chat(A_USER + b"," + odd_calls, model="messages"),
    )
    yield Row(
        "120,000 tools",
        "chat",
        CHAT,
        chat(
            A_USER,
            b'"tools":[%b],' % many(b'{"type":"function","function":{"name":"f#"}}', 120_000),
        ),
    )
    yield Row(
        "a schema of 240,000 properties",
        "messages",
        CHAT,
        chat(
            A_USER,
            b'"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{%b}}}}],'
            % many(b'"p#":{"type":"string"}', 240_000),
            model="messages",
        ),
    )
    yield Row("300,000 unknown fields", "chat", CHAT, chat(A_USER, many(b'"x#":1', 299_000) + b","))
    yield Row(
        "900,000 unknown fields", "chat", CHAT, chat(A_USER, many(b'"x#" :1', 900_000) + b",")
    )
    yield Row(
        "900,000 stop texts",
        "chat",
        CHAT,
        chat(A_USER, b'"stop":[%b],' % many(b'"a"', 900_000)),
    )
    yield Row(
        "900,000 floats",
        "chat",
        CHAT,
        chat(A_USER, b'"max_tokens":5.0,"x":[%b],' % many(b"1.0", 900_000)),
    )
    yield Row(
        "lists in lists",
        "chat",
        CHAT,
        chat(A_USER, b'"x":[%b],' % many(b"[" * 60 + b"]" * 60, 8_000)),
    )
    yield Row("490,000 objects", "chat", CHAT, chat(A_USER, b'"x":[%b],' % many(b"{}", 490_000)))
    yield Row(
        "a million commas too many",
        "chat",
        CHAT,
        chat(A_USER, b'"x":[%b],' % many(b"[1]", 490_000) + b"}"),
    )
    yield Row("32 MB of words", "chat", CHAT, chat(text(b"lorem ipsum " * 2_600_000)))
    yield Row("32 MB of one word", "chat", CHAT, chat(text(b"Ab1" * 10_500_000)))
    yield Row("32 MB of escapes", "chat", CHAT, chat(text(b"\\u00e9" * 5_000_000)))
    yield Row(
        "a sign that normalisation makes long",
        "chat",
        CHAT,
        chat(text("\ufdfa".encode() * 10_000_000)),
    )
    yield Row(
        "a run of combining marks",
        "chat",
        CHAT,
        chat(text("\u0915".encode() + "\u0325\u0301\u0327".encode() * 1_000_000)),
    )
    yield Row("300 texts of 100,000", "chat", CHAT, chat(many(text(b"aB1 c. " * 14_000), 300)))
    yield Row(
        "parameters of a data URL",
        "chat",
        CHAT,
        chat(
            parts(
                b'{"type":"image_url","image_url":{"url":"data:image/png;%bbase64,AAAA"}}'
                % (b"a=b;" * 7_000_000),
                1,
            )
        ),
    )
    yield Row(
        "a picture of 31 MB",
        "messages",
        CHAT,
        chat(
            parts(
                b'{"type":"image_url","image_url":{"url":"data:image/png;base64,%b"}}'
                % (b"A" * 30_000_000),
                1,
            ),
            model="messages",
        ),
    )
    yield Row(
        "a text file of 22 MB",
        "chat",
        CHAT,
        chat(
            parts(
                b'{"type":"file","file":{"filename":"a","file_data":"data:text/plain;base64,%b"}}'
                % (b"QUJD" * 7_500_000),
                1,
            )
        ),
    )
    yield Row(
        "a document of 28 MB",
        "messages",
        MESSAGES,
        chat(
            parts(
                b'{"type":"document","source":{"type":"text","media_type":"text/plain","data":"%b"}}'
                % (b"a b " * 7_000_000),
                1,
            ),
            model="messages",
        ),
    )
    yield Row(
        "100,000 results in one",
        "chat",
        MESSAGES,
        chat(
            A_USER + b"," + _A_CALL % (b"", many(A_TEXT, 98_000)),
        ),
    )
    yield Row(
        "an input of 300,000 fields",
        "gemini",
        MESSAGES,
        chat(
            A_USER + b"," + _A_CALL % (many(b'"p#":1', 299_000), A_TEXT),
            model="gemini",
        ),
    )
    yield Row(
        "99,000 thoughts",
        "messages",
        MESSAGES,
        chat(
            A_USER
            + b',{"role":"assistant","content":[%b]},{"role":"user","content":"b"}'
            % many(b'{"type":"thinking","thinking":"a","signature":"s"}', 99_000),
            model="messages",
        ),
    )
    yield Row(
        "150,000 blocks of an unknown kind",
        "chat",
        MESSAGES,
        chat(parts(b'{"type":"zzz","a":1}', 150_000)),
    )
    yield Row(
        "48,000 calls, then their results",
        "responses",
        RESPONSES,
        responses(
            many(b'{"type":"function_call","call_id":"c#","name":"f","arguments":"{}"}', 24_000)
            + b","
            + many(b'{"type":"function_call_output","call_id":"c#","output":"x"}', 24_000)
        ),
    )
    yield Row(
        "200,000 references",
        "responses",
        RESPONSES,
        responses(many(b'{"type":"item_reference","id":"i#"}', 200_000) + b"," + A_USER),
    )
    yield Row(
        "240,000 tools in a namespace",
        "responses",
        RESPONSES,
        responses(
            A_USER,
            b'"tools":[{"type":"namespace","name":"n","tools":[%b]}],'
            % many(b'{"type":"function","name":"f#"}', 120_000),
        ),
    )
    yield Row(
        "a schema of 240,000 that is echoed",
        "responses",
        RESPONSES,
        responses(
            A_USER,
            b'"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{%b}}}],'
            % many(b'"p#":{"type":"string"}', 240_000),
        ),
    )
    yield Row(
        "2,048 long inputs",
        "embeddings",
        "/embeddings",
        lambda: (
            b'{"model":"demo/embeddings","input":[%b]}' % many(b'"%b"' % (b"a b " * 3_700), 2_048)
        ),
    )
    yield Row(
        "900,000 tokens to embed",
        "embeddings",
        "/embeddings",
        lambda: (
            b'{"model":"demo/embeddings","input":[%b]}' % many(b"[%b]" % many(b"1", 440), 2_048)
        ),
    )
    yield Row(
        "a body packed a thousandfold",
        "chat",
        CHAT,
        lambda: _compressed(
            b'{"model":"demo/chat","x":"' + b" " * 31_000_000 + b'","messages":[]}'
        ),
        is_compressed=True,
    )
    yield Row(
        "300,000 parts to count",
        "messages",
        "/messages/count_tokens",
        chat(parts(A_TEXT, 98_000), model="messages"),
    )


def _operator_rows() -> Iterator[Row]:
    """What a manager sends: at most 1 MB, to the paths of the management API."""
    yield Row(
        "a field given twice behind 60,000",
        "chat",
        "/catalog/models",
        lambda: b'{%b,"p59999":1}' % many(b'"p#":1', 60_000),
    )
    yield Row("a body in brackets", "chat", "/catalog/models", lambda: b"[" * 1_000_000)
    yield Row(
        "a price of 900,000 digits",
        "chat",
        "/catalog/models",
        lambda: MODEL % b'"pricing":{"prompt":"%b","completion":"1"}' % (b"9" * 900_000),
    )
    yield Row(
        "a price of a great exponent",
        "chat",
        "/catalog/models",
        lambda: MODEL % b'"pricing":{"prompt":"1e999999999999","completion":"1"}',
    )
    yield Row(
        "a number of 900,000 digits",
        "chat",
        "/catalog/models",
        lambda: MODEL % b'"default_max_tokens":%b' % (b"9" * 900_000),
    )
    yield Row(
        "120,000 aliases",
        "chat",
        "/catalog/models",
        lambda: MODEL % b'"aliases":[%b]' % many(b'"a#"', 100_000),
    )
    yield Row(
        "10,000 price tiers",
        "chat",
        "/catalog/models",
        lambda: (
            MODEL
            % b'"pricing_tiers":[%b]'
            % many(b'{"above_prompt_tokens":#,"pricing":{"prompt":"1"}}', 15_000)
        ),
    )
    yield Row(
        "a slug of hyphens",
        "chat",
        "/catalog/models",
        lambda: MODEL % b'"family":"%b"' % (b"a-" * 450_000),
    )
    yield Row(
        "60,000 headers of a provider",
        "chat",
        "/catalog/providers",
        lambda: (
            b'{"slug":"x","name":"x","adapter":"openai_chat","base_url":"https://a","headers":{%b}}'
            % many(b'"h#":"v"', 60_000)
        ),
    )
    yield Row(
        "an address of 900 KB",
        "chat",
        "/catalog/providers",
        lambda: (
            b'{"slug":"x","name":"x","adapter":"openai_chat","base_url":"https://%b"}'
            % (b"a." * 450_000)
        ),
    )
    yield Row(
        "a key for 100,000 models",
        "chat",
        "/keys",
        lambda: b'{"name":"x","allowed_models":[%b]}' % many(b'"m#"', 100_000),
    )


MODEL = (
    b'{"id":"demo/x","name":"x","vendor":"x","context_length":5,"max_completion_tokens":5,'
    b'"supported_parameters":[],%b}'
)


def _compressed(body: bytes) -> bytes:
    return zlib.compress(body, 9)


def _delta(fields: bytes) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{%b}}]}\n\n' % fields


_CHAT_END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
_START = b'data: {"type":"message_start","message":{"type":"message","content":[]}}\n\n'
_STOP = b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}\n\n'


def _chat_message(fields: bytes) -> list[bytes]:
    return whole(b'{"choices":[{"index":0,"message":{%b},"finish_reason":"stop"}]}' % fields)


def _call_delta(index: int, arguments: bytes, more: bytes = b"") -> bytes:
    return _delta(
        b'"tool_calls":[{"index":%d,%b"function":{%b"arguments":"%b"}}]'
        % (index, b'"id":"c%d",' % index if more else b"", more, arguments)
    )


def _vendor_rows() -> Iterator[Row]:
    tiny = _delta(b'"content":"a"')
    named = b'"name":"f",'
    for model, path in (("chat", CHAT), ("chat", MESSAGES), ("chat", RESPONSES)):
        yield Row(
            f"60,000 deltas at once on {path}",
            model,
            path,
            None,
            lambda: streamed(tiny * 60_000, _CHAT_END),
            stream=True,
        )
    yield Row(
        "400,000 lines in an event",
        "chat",
        CHAT,
        None,
        lambda: streamed(b"data: 1\n" * 400_000 + b"\n"),
        stream=True,
    )
    yield Row(
        "lines without an end",
        "chat",
        CHAT,
        None,
        lambda: streamed(b"data: 1\r" * 9_000 + b"data: " + b"x" * 900_000, b"y" * 200_000),
        stream=True,
    )
    yield Row(
        "300,000 comments",
        "chat",
        CHAT,
        None,
        lambda: streamed(b": a\n\n" * 300_000, _CHAT_END),
        stream=True,
    )
    yield Row(
        "chunks of a byte",
        "chat",
        CHAT,
        None,
        lambda: chunked([b"%c" % b for b in tiny * 3_000 + _CHAT_END]),
        stream=True,
    )
    yield Row(
        "an event of 1 MB",
        "chat",
        CHAT,
        None,
        lambda: streamed(
            tiny, _delta(b'"reasoning_details":[%b]' % many(b'{"text":"a"}', 70_000)), _CHAT_END
        ),
        stream=True,
    )
    yield Row(
        "an event of a million elements",
        "chat",
        CHAT,
        None,
        lambda: streamed(tiny, _delta(b'"x":[%b]' % many(b"[]", 300_000)), _CHAT_END),
        stream=True,
    )
    yield Row(
        "nested events",
        "chat",
        CHAT,
        None,
        lambda: streamed(
            tiny, _delta(b'"annotations":' + b"[" * 900 + b"]" * 900) * 500, _CHAT_END
        ),
        stream=True,
    )
    yield Row(
        "20,000 calls",
        "chat",
        CHAT,
        None,
        lambda: streamed(b"".join(_call_delta(n, b"{}", named) for n in range(20_000)), _CHAT_END),
        stream=True,
    )
    yield Row(
        "calls that begin again and again",
        "chat",
        CHAT,
        None,
        lambda: streamed(
            b"".join(_call_delta(n % 2, b"{}", named) for n in range(20_000)), _CHAT_END
        ),
        stream=True,
    )
    yield Row(
        "arguments that seem whole at every piece",
        "chat",
        CHAT,
        None,
        lambda: streamed(
            _call_delta(0, b'{\\"a\\":[0', named),
            _call_delta(0, b",{}", named) * 30_000,
            _CHAT_END,
        ),
        stream=True,
    )
    yield Row(
        "arguments of braces only",
        "chat",
        CHAT,
        None,
        lambda: streamed(
            _call_delta(0, b'{\\"a\\":', named),
            _call_delta(0, b'{\\"b\\":{}}') * 50_000,
            _CHAT_END,
        ),
        stream=True,
    )
    yield Row(
        "interleaved calls",
        "chat",
        RESPONSES,
        None,
        lambda: streamed(
            b"".join(_call_delta(n, b'{\\"a\\":\\"', named) for n in range(500)),
            b"".join(_call_delta(n % 500, b"x") for n in range(30_000)),
            b"".join(_call_delta(n, b'\\"}') for n in range(500)),
            _CHAT_END,
        ),
        stream=True,
    )
    yield Row(
        "a whole answer of 60 MB",
        "chat",
        CHAT,
        None,
        lambda: _chat_message(b'"content":"%b"' % (b"lorem " * 10_000_000)),
    )
    yield Row(
        "a whole answer of 60 MB to a stream",
        "chat",
        RESPONSES,
        None,
        lambda: _chat_message(b'"content":"%b"' % (b"lorem " * 10_000_000)),
        stream=True,
    )
    yield Row(
        "300,000 parts of an answer",
        "chat",
        CHAT,
        None,
        lambda: _chat_message(b'"content":[%b]' % many(b'{"type":"text","text":"a"}', 300_000)),
    )
    yield Row(
        "300,000 parts of an answer to a stream",
        "chat",
        MESSAGES,
        None,
        lambda: _chat_message(b'"content":[%b]' % many(b'{"type":"text","text":"a"}', 300_000)),
        stream=True,
    )
    yield Row(
        "500 calls of a whole answer",
        "chat",
        RESPONSES,
        None,
        lambda: _chat_message(
            b'"tool_calls":[%b]'
            % many(b'{"id":"c#","function":{"name":"f","arguments":"{}"}}', 500)
        ),
    )
    yield Row(
        "5,000,000 elements",
        "chat",
        CHAT,
        None,
        lambda: _chat_message(b'"content":"a","x":[%b]' % many(b"[]", 5_000_000)),
    )
    yield Row(
        "a report of 300,000 counts",
        "chat",
        CHAT,
        None,
        lambda: whole(
            b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{%b}}'
            % many(b'"p#":1', 300_000)
        ),
    )
    yield Row(
        "a number of a million digits",
        "chat",
        CHAT,
        None,
        lambda: whole(
            b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%b}}'
            % (b"9" * 1_000_000)
        ),
    )
    yield Row(
        "100,000 choices",
        "chat",
        CHAT,
        None,
        lambda: whole(
            b'{"choices":[%b]}' % many(b'{"index":1,"message":{"content":"a"}}', 100_000)
        ),
    )
    yield Row(
        "an answer that is all brackets", "chat", CHAT, None, lambda: whole(b"[" * 60_000_000)
    )
    yield Row("an answer of 64 MB of blanks", "chat", CHAT, None, lambda: whole(b" " * 63_000_000))
    yield Row(
        "an answer packed a hundredfold",
        "chat",
        CHAT,
        None,
        lambda: _compressed_answer(
            _chat_message(b'"content":"%b"' % bytes(range(97, 120)) * 1_300_000)
        ),
    )
    yield Row(
        "20,000 blocks",
        "messages",
        MESSAGES,
        None,
        lambda: streamed(
            _START,
            b"".join(
                b'data: {"type":"content_block_start","index":%d,"content_block":{"type":"text","text":"a"}}\n\n'
                % n
                for n in range(20_000)
            ),
            _STOP,
        ),
        stream=True,
    )
    yield Row(
        "blocks that wait",
        "messages",
        MESSAGES,
        None,
        lambda: streamed(
            _START,
            b"".join(
                b'data: {"type":"content_block_start","index":%d,"content_block":{"type":"text","text":"a"}}\n\n'
                % n
                for n in range(200)
            ),
            b"".join(
                b'data: {"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":"a"}}\n\n'
                % (n % 200)
                for n in range(100_000)
            ),
            _STOP,
        ),
        stream=True,
    )
    yield Row(
        "blocks of a whole answer",
        "messages",
        MESSAGES,
        None,
        lambda: whole(
            b'{"type":"message","content":[%b],"stop_reason":"end_turn"}'
            % many(b'{"type":"text","text":"a"}', 300_000)
        ),
        stream=True,
    )
    yield Row(
        "20,000 parts of a chunk",
        "gemini",
        CHAT,
        None,
        lambda: streamed(
            b'data: {"candidates":[{"content":{"parts":[%b]},"finishReason":"STOP"}]}\n\n'
            % many(b'{"text":"a"},{"text":"b","thought":true}', 9_000)
        ),
        stream=True,
    )
    yield Row(
        "calls of a whole answer",
        "gemini",
        CHAT,
        None,
        lambda: whole(
            b'{"candidates":[{"content":{"parts":[%b]},"finishReason":"STOP"}]}'
            % many(b'{"functionCall":{"name":"f","args":{}}}', 100_000)
        ),
    )
    yield Row(
        "500 items",
        "responses",
        RESPONSES,
        None,
        lambda: whole(
            b'{"status":"completed","output":[%b]}'
            % many(
                b'{"type":"function_call","id":"i#","call_id":"c#","name":"f","arguments":"{}"}',
                500,
            )
        ),
        stream=True,
    )
    yield Row(
        "100,000 items",
        "responses",
        RESPONSES,
        None,
        lambda: whole(
            b'{"status":"completed","output":[%b]}'
            % many(
                b'{"type":"message","id":"i#","content":[{"type":"output_text","text":"a"}]}',
                100_000,
            )
        ),
        stream=True,
    )
    yield Row(
        "100,000 items that are streamed",
        "responses",
        CHAT,
        None,
        lambda: streamed(
            b"".join(
                b'data: {"type":"response.output_item.added","output_index":%d,'
                b'"item":{"type":"message","id":"i%d"}}\n\n' % (n, n)
                for n in range(100_000)
            )
        ),
        stream=True,
    )
    yield Row(
        "2,048 vectors of 3,072",
        "embeddings",
        "/embeddings",
        lambda: b'{"model":"demo/embeddings","input":[%b]}' % many(b'"a"', 1_000),
        lambda: whole(
            b'{"data":[%b]}'
            % many(b'{"index":#,"embedding":[%b]}' % many(b"-0.0123456", 3_072), 1_000)
        ),
    )
    yield Row(
        "an error of 60 MB",
        "chat",
        CHAT,
        None,
        lambda: whole(b'{"error":{"message":"%b"}}' % (b"key: sk-" * 7_000_000), status=400),
    )
    for name, said in HOSTILE_TEXTS.items():
        error = json.dumps({"error": {"message": said}}).encode()
        yield Row(f"an error text of {name}", "chat", CHAT, None, partial(whole, error, status=400))


HOSTILE_TEXTS = {
    "quotes": "'a \"b `c " * 25_000,
    "quotes without an end": '"' + "a" * 200_000,
    "openings": '"error": {"message": "' * 10_000,
    "escapes": '"error":{"message":"' + "\\\\" * 100_000,
    "blanks": "model " + " " * 200_000 + "x",
    "words": "the model does not exist or is not " * 6_000,
    "keys": "key: bearer sk- " * 15_000,
    "a long key": "sk-" + "a" * 200_000,
    "times": "try again in 1h2m3s " * 10_000,
    "digits": "retry in " + "1" * 200_000,
    "braces": "{" * 200_000,
    "odd quotes": "“" * 100_000,
}
"""What a regular expression may go back and forth in."""


def _compressed_answer(answer: list[bytes]) -> list[bytes]:
    head, _, body = answer[0].partition(b"\r\n\r\n")
    compressed = zlib.compress(body)
    kept = head.split(b"content-length")[0]
    return [
        kept
        + b"content-encoding: deflate\r\ncontent-length: %d\r\n\r\n" % len(compressed)
        + compressed
    ]


def rows() -> Iterator[Row]:
    """One after the other: all at once they would fill the memory."""
    yield from _client_rows()
    yield from _operator_rows()
    yield from _vendor_rows()
