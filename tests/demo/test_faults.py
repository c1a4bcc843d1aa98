"""Every scripted fault, over raw HTTP: what is on the wire is what the fault says."""

import asyncio
import time
from typing import Any

import httpx
import pytest

from gwd.demo import BEFORE_HEADERS, Behaviour, PlannedCall, SimulatedVendor
from tests.demo.requests import BODIES, CHAT_TOOL, MESSAGES_TOOL, PATHS, RESPONSES_TOOL, events

FORMATS = ("chat", "messages", "responses")
TOOLS = {"chat": [CHAT_TOOL], "messages": [MESSAGES_TOOL], "responses": [RESPONSES_TOOL]}


def body_of(form: str, *args: str, **fields: Any) -> dict[str, Any]:
    body = BODIES[form](*args, **fields)
    if form == "chat" and body.get("stream"):
        body["stream_options"] = {"include_usage": True}
    return body


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Caller:
    """Plays one scripted fault and reads what came."""

    def __init__(self, vendor: SimulatedVendor, http: httpx.AsyncClient, form: str) -> None:
        self.vendor, self.http, self.form = vendor, http, form

    async def whole(self, fault: Behaviour | str, *args: str, **fields: Any) -> httpx.Response:
        self.vendor.script.next(fault)
        return await self.http.post(PATHS[self.form], json=body_of(self.form, *args, **fields))

    async def stream(self, fault: Behaviour | str, *args: str, **fields: Any) -> "Streamed":
        self.vendor.script.next(fault)
        body = body_of(self.form, *args, stream=True, **fields)
        streamed = Streamed()
        started = time.perf_counter()
        async with self.http.stream("POST", PATHS[self.form], json=body) as answer:
            streamed.status, streamed.headers = answer.status_code, answer.headers
            streamed.head_s = time.perf_counter() - started
            try:
                async for piece in answer.aiter_raw():
                    streamed.pieces.append(piece)
                    streamed.piece_s.append(time.perf_counter() - started)
            except httpx.TransportError as error:
                streamed.broken = error
        return streamed


class Streamed:
    def __init__(self) -> None:
        self.status = 0
        self.headers = httpx.Headers()
        self.pieces: list[bytes] = []
        self.piece_s: list[float] = []
        self.head_s = 0.0
        self.broken: httpx.TransportError | None = None

    @property
    def raw(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def events(self) -> list[tuple[str, Any]]:
        return events(self.raw)


@pytest.fixture
def caller(vendor: SimulatedVendor, http: httpx.AsyncClient, form: str) -> Caller:
    return Caller(vendor, http, form)


def usage_in(data: Any) -> Any:
    """The usage object of a whole answer or an event, wherever the format has it."""
    if not isinstance(data, dict):
        return None
    for inner in (data, data.get("message"), data.get("response")):
        if isinstance(inner, dict) and inner.get("usage"):
            return inner["usage"]
    return None


def output_in(form: str, data: Any) -> str:
    match form:
        case "chat":
            return "".join(choice["delta"].get("content") or "" for choice in data["choices"])
        case "messages":
            return str(data.get("delta", {}).get("text", ""))
        case _:
            return str(data["delta"]) if data["type"] == "response.output_text.delta" else ""


# Status, headers, bodies


@pytest.mark.parametrize(
    ("status", "openai_code", "anthropic_type"),
    [
        (400, None, "invalid_request_error"),
        (401, "invalid_api_key", "authentication_error"),
        (404, "model_not_found", "not_found_error"),
        (429, "rate_limit_exceeded", "rate_limit_error"),
        (500, None, "api_error"),
        (503, "server_is_overloaded", "api_error"),
        (529, "server_is_overloaded", "overloaded_error"),
    ],
)
async def test_status_with_the_vendors_own_body(
    caller: Caller, form: str, status: int, openai_code: str | None, anthropic_type: str
):
    answer = await caller.whole(Behaviour(status=status, headers={"x-extra": "1"}))
    assert answer.status_code == status
    assert answer.headers["x-extra"] == "1"
    error = answer.json()["error"]
    if form == "messages":
        assert error["type"] == anthropic_type
    else:
        assert error["code"] == openai_code
    streamed = await caller.stream(Behaviour(status=status))
    assert (streamed.status, streamed.headers["content-type"]) == (status, "application/json")


async def test_status_with_hint_and_words(caller: Caller):
    answer = await caller.whole("status=429 retry_after=7 message='Slow down' code=slow")
    assert answer.headers["retry-after"] == "7"
    assert answer.json()["error"]["message"] == "Slow down"
    quota = await caller.whole("quota")
    assert quota.status_code == 429
    assert quota.json()["error"]["type"] in ("insufficient_quota", "billing_error")


async def test_body_is_sent_as_it_is(caller: Caller):
    answer = await caller.whole(Behaviour(status=502, body="oops", content_type="text/plain"))
    assert (answer.status_code, answer.text) == (502, "oops")
    assert answer.headers["content-type"] == "text/plain"
    raw = await caller.whole(Behaviour(body_bytes=b"\x1f\x8b\xff"))
    assert (raw.status_code, raw.content) == (200, b"\x1f\x8b\xff")
    moved = await caller.whole(Behaviour(status=302, headers={"location": "http://127.0.0.1:1/"}))
    assert moved.status_code == 302


# Time


@pytest.mark.alone
async def test_delays_fall_where_they_should(caller: Caller):
    late = await caller.stream("delay_s=0.2")
    assert late.head_s >= 0.2
    silent = await caller.stream("first_event_delay_s=0.2")
    assert silent.head_s < 0.15
    assert silent.piece_s[0] >= 0.2
    slow = await caller.stream("event_delay_s=0.02 tokens=5")
    assert slow.piece_s[0] < 0.15
    assert slow.piece_s[-1] >= 0.02 * (len(slow.events) - 1)
    whole = time.perf_counter()
    await caller.whole("delay_s=0.2")
    assert time.perf_counter() - whole >= 0.2


async def test_speed_is_tokens_per_second(caller: Caller):
    streamed = await caller.stream("tokens_per_second=100 tokens=20")
    assert 0.2 <= streamed.piece_s[-1] < 1.5
    started = time.perf_counter()
    await caller.whole("tokens_per_second=100 tokens=20")
    assert time.perf_counter() - started >= 0.2


@pytest.mark.parametrize("stall_after", [BEFORE_HEADERS, 0, 3])
async def test_stall_lasts_until_the_caller_closes(
    vendor: SimulatedVendor, http: httpx.AsyncClient, form: str, stall_after: int
):
    vendor.script.next(Behaviour(stall_after=stall_after))
    seen = bytearray()

    async def read_all() -> None:
        body = body_of(form, stream=True)
        async with http.stream("POST", PATHS[form], json=body, timeout=0.2) as answer:
            async for piece in answer.aiter_raw():
                seen.extend(piece)

    with pytest.raises(httpx.ReadTimeout):
        await read_all()
    assert len(events(bytes(seen))) == max(stall_after, 0)
    await asyncio.wait_for(vendor.calls.last.finished.wait(), 2)
    assert vendor.calls.last.closed_early
    assert (vendor.calls.last.status is None) == (stall_after == BEFORE_HEADERS)


async def test_whole_answer_may_stall_in_its_middle(caller: Caller, vendor: SimulatedVendor):
    caller.http.timeout = httpx.Timeout(0.2)
    with pytest.raises(httpx.ReadTimeout):
        await caller.whole("stall")
    await vendor.calls.all_finished()
    assert vendor.calls.last.closed_early


# The connection


@pytest.mark.parametrize("cut", ["close", "reset"])
async def test_cut_before_headers(caller: Caller, vendor: SimulatedVendor, cut: Any):
    fault = Behaviour(cut=cut, cut_after=BEFORE_HEADERS)
    with pytest.raises(httpx.TransportError):
        await caller.stream(fault)
    with pytest.raises(httpx.TransportError):
        await caller.whole(fault)
    await vendor.calls.all_finished()
    assert [call.status for call in vendor.calls] == [None, None]
    assert not any(call.closed_early for call in vendor.calls)


@pytest.mark.parametrize("cut", ["close", "reset"])
@pytest.mark.parametrize("after", [0, 1, 4])
async def test_cut_after_events(caller: Caller, vendor: SimulatedVendor, cut: Any, after: int):
    streamed = await caller.stream(Behaviour(cut=cut, cut_after=after))
    assert streamed.status == 200
    assert streamed.broken is not None
    assert len(streamed.events) == after
    await vendor.calls.all_finished()
    assert not vendor.calls.last.closed_early
    assert (await caller.whole(Behaviour())).status_code == 200


async def test_reset_is_a_reset(vendor: SimulatedVendor):
    host, port = vendor.url.removeprefix("http://").split(":")
    vendor.script.next("reset_before_headers")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()


async def test_truncated_stream_ends_in_good_order(caller: Caller):
    streamed = await caller.stream("truncate cut_after=4")
    assert streamed.broken is None
    assert len(streamed.events) == 4


async def test_whole_answer_cut_in_its_middle(caller: Caller):
    with pytest.raises(httpx.RemoteProtocolError):
        await caller.whole("cut")


async def test_single_bytes_and_drip(caller: Caller):
    plain = await caller.stream("tokens=3")
    streamed = await caller.stream("one_byte tokens=3")
    assert max(map(len, streamed.pieces)) < len(plain.raw) / 4
    assert len(streamed.events) == len(plain.events)
    dripped = await caller.stream("drip write_bytes=100 write_delay_s=0.005 tokens=3")
    assert dripped.piece_s[-1] >= 0.005 * (len(plain.raw) // 100 - 1)
    whole = await caller.whole("write_bytes=7 tokens=3")
    assert whole.status_code == 200
    assert whole.json()


@pytest.mark.parametrize(("fault", "ending"), [("crlf", b"\r\n\r\n"), ("cr", b"\r\r")])
async def test_line_endings(caller: Caller, fault: str, ending: bytes):
    streamed = await caller.stream(f"{fault} tokens=3")
    plain = await caller.stream("tokens=3")
    assert streamed.raw.endswith(ending)
    assert b"\n" not in streamed.raw.replace(b"\r\n", b"")
    assert len(streamed.events) == len(plain.events)


async def test_odd_but_legal_framing(caller: Caller):
    plain = await caller.stream("tokens=3")
    commented = await caller.stream("comments tokens=3")
    assert commented.raw.count(b": keep-alive\n\n") == len(plain.events)
    marked = await caller.stream("bom tokens=3")
    assert marked.raw.startswith(b"\xef\xbb\xbf")
    tight = await caller.stream("no_space tokens=3")
    assert b"data: " not in tight.raw
    split = await caller.stream("multi_line tokens=3")
    assert split.raw.count(b"\ndata: ") > len(plain.events)
    for streamed in (commented, tight, split):
        assert len(streamed.events) == len(plain.events)
        assert all(isinstance(data, dict) or data == "[DONE]" for _, data in streamed.events)


async def test_odd_json_is_the_same_answer_for_a_lenient_reader(caller: Caller):
    plain = await caller.stream("tokens=3")
    odd = await caller.stream("odd_json tokens=3")
    assert odd.raw.count(b"NaN") >= len(plain.events) - 1
    assert b"NaN" not in plain.raw


# What the answer says


async def test_bad_json_and_wrong_shape(caller: Caller):
    broken = await caller.stream("bad_json malformed_after=2")
    assert isinstance(broken.events[1][1], str)
    assert isinstance(broken.events[2][1], dict)
    shapeless = await caller.stream("wrong_shape malformed_after=2")
    assert shapeless.events[1][1] == ["not", "an", "event"]
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        (await caller.whole("bad_json")).json()
    assert isinstance((await caller.whole("wrong_shape")).json(), list)
    huge = await caller.stream("big_line")
    assert max(map(len, huge.raw.split(b"\n"))) > 1024 * 1024


async def test_another_kind_of_answer_than_asked(caller: Caller, form: str):
    for streamed in (True, False):
        page = await caller.whole("html", stream=streamed)
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert page.text.startswith("<!DOCTYPE html>")
        empty = await caller.whole("empty_body", stream=streamed)
        assert (empty.status_code, empty.content) == (200, b"")
    json_answer = await caller.stream("json_for_stream")
    assert json_answer.headers["content-type"] == "application/json"
    assert json_answer.raw.startswith(b"{")
    sse = await caller.whole("stream_for_json")
    assert sse.headers["content-type"].startswith("text/event-stream")
    said = [data for _, data in events(sse.content) if isinstance(data, dict)]
    assert any(usage_in(data) for data in said)


async def test_missing_and_null_usage(caller: Caller):
    streamed = await caller.stream("no_usage")
    assert all(usage_in(data) is None for _, data in streamed.events)
    assert "usage" not in (await caller.whole("no_usage")).json()
    assert (await caller.whole("usage=null")).json()["usage"] is None


@pytest.mark.parametrize(
    ("kind", "holds"),
    [
        ("zero", lambda value: value == 0),
        ("negative", lambda value: value < 0),
        ("string", lambda value: isinstance(value, str)),
        ("float", lambda value: isinstance(value, float)),
        ("boolean", lambda value: value is True),
        ("huge", lambda value: value >= 2**63),
    ],
)
async def test_absurd_numbers_in_usage(caller: Caller, kind: str, holds: Any):
    answer = (await caller.whole(f"usage={kind}")).json()["usage"]
    streamed = await caller.stream(f"usage={kind}")
    reported = [usage for _, data in streamed.events if (usage := usage_in(data))]
    assert reported
    for usage in (answer, *reported):
        numbers = [
            value
            for name, value in usage.items()
            if name.endswith("_tokens") and not isinstance(value, dict)
        ]
        assert numbers
        assert all(holds(number) for number in numbers)


async def test_parts_larger_than_their_whole(caller: Caller, form: str):
    usage = (await caller.whole("usage=cached_over_prompt")).json()["usage"]
    if form == "messages":
        assert usage["cache_read_input_tokens"] > usage["input_tokens"]
    elif form == "chat":
        assert usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"]
    else:
        assert usage["input_tokens_details"]["cached_tokens"] > usage["input_tokens"]
    usage = (await caller.whole("usage=reasoning_over_completion")).json()["usage"]
    if form == "chat":
        assert usage["completion_tokens_details"]["reasoning_tokens"] > usage["completion_tokens"]
    else:
        details = usage["output_tokens_details"]
        assert next(iter(details.values())) > usage["output_tokens"]
    if form != "messages":
        usage = (await caller.whole("usage=wrong_total")).json()["usage"]
        assert usage["total_tokens"] > sum(
            value for name, value in usage.items() if name in ("prompt_tokens", "completion_tokens")
        )


async def test_usage_on_every_event_and_twice(caller: Caller, form: str):
    every = await caller.stream("usage=every_event")
    honest = await caller.stream("tokens=20")

    def reports(streamed: Streamed) -> int:
        return sum(usage_in(data) is not None for _, data in streamed.events)

    twice = await caller.stream("usage=twice tokens=20")
    assert reports(twice) == reports(honest) + 1
    if form == "responses":
        assert usage_in(every.events[0][1]) is not None
    else:
        assert reports(every) > 10


async def test_named_counts_and_an_exact_usage_object(caller: Caller, form: str):
    usage = (
        await caller.whole(
            "prompt_tokens=1000 completion_tokens=50 cached_tokens=600 reasoning_tokens=20 "
            "cache_write_tokens=100 cache_write_1h_tokens=50"
        )
    ).json()["usage"]
    if form == "messages":
        assert usage["input_tokens"] == 250
        assert usage["cache_read_input_tokens"] == 600
        assert usage["cache_creation_input_tokens"] == 150
        assert usage["cache_creation"]["ephemeral_1h_input_tokens"] == 50
        assert usage["output_tokens_details"] == {"thinking_tokens": 20}
    else:
        assert usage["total_tokens"] == 1050
    exact = await caller.whole(Behaviour(usage_object={"tokens": "many"}))
    assert exact.json()["usage"] == {"tokens": "many"}


async def test_empty_completion_has_a_blank_finish(caller: Caller, form: str):
    answer = (await caller.whole("empty")).json()
    streamed = await caller.stream("empty")
    assert not any(output_in(form, data) for _, data in streamed.events if isinstance(data, dict))
    match form:
        case "chat":
            assert answer["choices"][0]["finish_reason"] == ""
            assert answer["choices"][0]["message"]["content"] == ""
            assert answer["usage"]["completion_tokens"] == 0
        case "messages":
            assert (answer["stop_reason"], answer["content"]) == (None, [])
            assert answer["usage"]["output_tokens"] == 0
        case _:
            assert answer["output"] == []
            assert answer["usage"]["output_tokens"] == 0


async def test_no_closing_mark_and_no_finish_reason(caller: Caller, form: str):
    ending = {
        "chat": ("", "[DONE]"),
        "messages": ("message_stop", {"type": "message_stop"}),
    }
    whole = await caller.stream("tokens=3")
    unmarked = await caller.stream("no_done tokens=3")
    assert len(unmarked.events) == len(whole.events) - 1
    if form in ending:
        assert whole.events[-1] == ending[form]
    else:
        assert whole.events[-1][0] == "response.completed"
    unfinished = await caller.stream("no_finish tokens=3")
    words = unfinished.raw.decode()
    assert '"finish_reason":"' not in words
    assert '"stop_reason":"' not in words
    assert "response.completed" not in words


async def test_other_finish_words(caller: Caller, form: str):
    answer = (await caller.whole("finish=surprise")).json()
    match form:
        case "chat":
            assert answer["choices"][0]["finish_reason"] == "surprise"
        case "messages":
            assert answer["stop_reason"] == "surprise"
        case _:
            assert answer["status"] == "surprise"
    blank = (await caller.whole("finish=blank")).json()
    assert "" in (
        blank.get("stop_reason"),
        blank.get("status"),
        *(choice["finish_reason"] for choice in blank.get("choices", [])),
    )


async def test_refusal_and_content_filter(caller: Caller, form: str):
    refused = (await caller.whole("refusal")).json()
    filtered = (await caller.whole("content_filter")).json()
    match form:
        case "chat":
            assert refused["choices"][0]["message"]["refusal"].startswith("I'm sorry")
            assert refused["choices"][0]["finish_reason"] == "stop"
            assert filtered["choices"][0]["finish_reason"] == "content_filter"
            assert filtered["choices"][0]["message"]["content"]
        case "messages":
            assert refused["stop_reason"] == filtered["stop_reason"] == "refusal"
            assert refused["stop_details"]["explanation"].startswith("I'm sorry")
            assert (refused["content"], len(filtered["content"])) == ([], 1)
        case _:
            assert refused["output"][0]["content"][0]["type"] == "refusal"
            assert filtered["incomplete_details"] == {"reason": "content_filter"}
    streamed = await caller.stream("refusal")
    assert b"I'm sorry" in streamed.raw


@pytest.mark.parametrize("after", [0, 1, 5])
async def test_error_in_the_stream(caller: Caller, form: str, after: int):
    streamed = await caller.stream(f"error=overloaded error_after={after}")
    assert streamed.status == 200
    found = streamed.events
    failure = found[after:]
    match form:
        case "chat":
            assert [data["error"]["code"] for _, data in failure] == ["server_is_overloaded"]
        case "messages":
            assert [name for name, _ in failure] == ["error"]
            assert failure[0][1]["error"]["type"] == "overloaded_error"
        case _:
            assert [name for name, _ in failure] == ["error", "response.failed"]
            assert failure[1][1]["response"]["error"]["code"] == "server_is_overloaded"
    assert len(found) == after + len(failure)


async def test_error_object_with_status_200(caller: Caller):
    answer = await caller.whole("error=server_error")
    assert answer.status_code == 200
    assert answer.json()["error"]["message"]


# Tools


def interleaved_order(form: str, found: list[tuple[str, Any]]) -> list[Any]:
    """Which call each argument part belongs to, in order of arrival."""
    order = []
    for _, data in found:
        if not isinstance(data, dict):
            continue
        if form == "chat":
            for choice in data["choices"]:
                for part in choice["delta"].get("tool_calls") or []:
                    order.append(part["index"])
        elif form == "messages" and data.get("delta", {}).get("type") == "input_json_delta":
            order.append(data["index"])
        elif data.get("type") == "response.function_call_arguments.delta":
            order.append(data["output_index"])
    return order


async def test_parts_of_two_calls_interleave(caller: Caller, form: str):
    asked = "Get weather for both Rome and Oslo"
    plain = await caller.stream("", asked, tools=TOOLS[form])
    order = interleaved_order(form, plain.events)
    assert order == sorted(order)
    mixed = await caller.stream("interleave", asked, tools=TOOLS[form])
    order = interleaved_order(form, mixed.events)
    assert len(set(order)) == 2
    assert order != sorted(order)


async def test_index_is_always_zero(caller: Caller, form: str):
    asked = "Get weather for both Rome and Oslo"
    streamed = await caller.stream("index_zero", asked, tools=TOOLS[form])
    assert set(interleaved_order(form, streamed.events)) == {0}


async def test_planned_text_and_calls_are_sent_as_they_are(caller: Caller, form: str):
    words = await caller.whole(Behaviour(text="Exactly this: \u2028 and \U0001f642."))
    assert "Exactly this: \u2028 and \U0001f642." in _all_text(form, words.json())
    calls = (PlannedCall(name="a", arguments='{"x":1'), PlannedCall(name="b"))
    streamed = await caller.stream(Behaviour(calls=calls))
    assert b'"name":"a"' in streamed.raw
    assert b'"name":"b"' in streamed.raw


def _all_text(form: str, answer: dict[str, Any]) -> str:
    match form:
        case "chat":
            return str(answer["choices"][0]["message"]["content"])
        case "messages":
            return str(answer["content"][0]["text"])
        case _:
            return str(answer["output"][0]["content"][0]["text"])


# Embeddings


async def test_embeddings_fail_in_the_same_ways(vendor: SimulatedVendor, http: httpx.AsyncClient):
    async def post(fault: str) -> httpx.Response:
        vendor.script.next(fault)
        return await http.post("/v1/embeddings", json={"model": "embed-demo", "input": "tea"})

    assert (await post("status=429 retry_after=2")).headers["retry-after"] == "2"
    assert "usage" not in (await post("no_usage")).json()
    assert (await post("zero_usage")).json()["usage"] == {"prompt_tokens": 0, "total_tokens": 0}
    assert (await post("empty")).json()["data"] == []
    assert (await post("html")).text.startswith("<!DOCTYPE html>")
    assert (await post("error=server_error")).json()["error"]["message"]
    with pytest.raises(httpx.RemoteProtocolError):
        await post("cut")
