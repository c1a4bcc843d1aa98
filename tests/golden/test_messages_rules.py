"""Rules of the messages dialect, one test a rule."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwd.core.cost import Cost
from gwd.core.errors import (
    BudgetExceeded,
    Fault,
    GatewayError,
    InternalError,
    InvalidImage,
    InvalidRequest,
    InvalidValue,
    MissingParameter,
    ModelNotFound,
    NoAvailableEndpoint,
    RateLimited,
    RequestTooLarge,
    UnknownParameter,
    UpstreamFailed,
    UpstreamRefused,
)
from gwd.core.events import (
    Event,
    Failed,
    Finished,
    PartDelta,
    PartEnded,
    PartStarted,
    Settled,
    Started,
    collect,
)
from gwd.core.request import Generate, Reasoning, ReasoningPart, Request, TextPart
from gwd.core.sse import COMMENT, SseSplitter
from gwd.core.usage import Usage
from gwd.dialects.messages import DIALECT
from gwd.dialects.messages.render import PING
from gwd.vendors import openai_chat
from tests.golden import golden

USAGE = Usage(input=500, cache_read=1500, cache_write_1h=40, output=60, reasoning=40)


def parse(headers: dict[str, str] | None = None, **fields: Any) -> Request:
    body = {"model": "test/model", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    return DIALECT.parse(msgspec.json.encode({**body, **fields}), headers or {})


def generate(request: Request) -> Generate:
    assert isinstance(request.body, Generate)
    return request.body


def blocks(*content: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(content)}]}


def settled(receipt: str | None = None) -> Settled:
    raw = msgspec.Raw(receipt.encode()) if receipt else None
    return Settled(USAGE, Cost(prompt_nano=1000, total_nano=1000), raw)


def stream(*events: Event, asked: Request | None = None, at: Settled | None = None) -> list[Any]:
    """The data of the client's events; each must be named for its type."""
    renderer = DIALECT.renderer(asked or parse(stream=True), golden.REPLY)
    data = renderer.feed(events) + renderer.feed([at or settled()])
    frames = SseSplitter().feed(data)
    bodies = [msgspec.json.decode(frame.data) for frame in frames]
    assert [frame.event.decode() for frame in frames] == [body["type"] for body in bodies]
    return bodies


def whole(*events: Event, asked: Request | None = None, at: Settled | None = None) -> Any:
    renderer = DIALECT.renderer(asked or parse(), golden.REPLY)
    return msgspec.json.decode(renderer.whole(collect(events), at or settled()))


def text(index: int, said: str) -> tuple[Event, ...]:
    return PartStarted(index, "text"), PartDelta(index, said), PartEnded(index)


def call(index: int, *pieces: str) -> tuple[Event, ...]:
    deltas = [PartDelta(index, piece) for piece in pieces]
    return PartStarted(index, "tool_call", call_id="c", name="f"), *deltas, PartEnded(index)


class TestHeaders:
    @pytest.mark.parametrize("name", ["vendor-version", "anthropic-version"])
    @pytest.mark.parametrize("date", ["2023-06-01", "2026-10-21"])
    def test_a_version_is_a_date_in_either_header(self, name: str, date: str):
        assert parse({name: date}).vendor_headers == {"anthropic-version": date}

    @pytest.mark.parametrize(
        "date", ["latest", "2023-6-1", "2023-13-01", "20230601", "2023-06-01T0"]
    )
    def test_a_malformed_version_is_a_400(self, date: str):
        with pytest.raises(InvalidValue, match="2023-06-01"):
            parse({"vendor-version": date})

    def test_a_missing_version_is_allowed(self):
        assert parse().vendor_headers == {}

    def test_betas_travel_unread(self):
        found = parse({"anthropic-beta": "a-1, never-heard-of-2"}).vendor_headers
        assert found == {"anthropic-beta": "a-1, never-heard-of-2"}

    def test_an_agents_session_header_stands_in_for_ours(self):
        agent = {"x-claude-code-session-id": "agent"}
        assert parse(agent).sender.session_id == "agent"
        assert parse({**agent, "x-gw-session-id": "ours"}).sender.session_id == "ours"
        assert parse(agent, session_id="body").sender.session_id == "body"


class TestBody:
    def test_what_an_agent_adds_is_kept_for_its_own_vendor(self):
        fields: dict[str, Any] = {
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "high"},
            "context_management": {"edits": []},
            "metadata": {"user_id": "x" * 300},
            "brand_new": {"a": [1]},
        }
        asked = parse(**fields)
        assert asked.extras == fields
        assert asked.sender.user_id == "x" * 256

    def test_an_answer_replayed_whole_loses_what_belongs_to_answers(self):
        replayed = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "a", "citations": None}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1},
            "clear_at": 3,
        }
        message = generate(parse(messages=[replayed])).messages[0]
        assert message.parts == (TextPart(text="a"),)
        assert message.extras == {"clear_at": 3}

    def test_fields_of_other_routers_are_not_kept(self):
        assert parse(transforms=["x"], plugins=[]).extras is None

    @pytest.mark.parametrize(
        ("thinking", "config", "wish"),
        [
            ({"type": "adaptive"}, None, Reasoning(enabled=True, adaptive=True)),
            (
                {"type": "adaptive"},
                {"effort": "max"},
                Reasoning(enabled=True, adaptive=True, effort="max"),
            ),
            (
                {"type": "enabled", "budget_tokens": 2048},
                None,
                Reasoning(enabled=True, max_tokens=2048),
            ),
            ({"type": "disabled"}, {"effort": "high"}, Reasoning(enabled=False)),
            (
                {"type": "adaptive", "display": "omitted"},
                None,
                Reasoning(enabled=True, adaptive=True, exclude=True),
            ),
            ({"type": "some_day"}, None, None),
            (None, {"effort": "low"}, Reasoning(effort="low")),
            (None, {"effort": "colossal"}, None),
        ],
    )
    def test_thinking_in_the_internal_form(
        self, thinking: Any, config: Any, wish: Reasoning | None
    ):
        assert generate(parse(thinking=thinking, output_config=config)).reasoning == wish

    def test_fallbacks_are_another_spelling_of_models(self):
        asked = parse(fallbacks=[{"model": "a/b"}, {"model": "c/d"}])
        assert asked.models == ("test/model", "a/b", "c/d")

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"fallbacks": [{"model": "a"}], "models": ["b"]}, InvalidRequest),
            ({"fallbacks": [{"model": "a", "x": 1}]}, UnknownParameter),
            ({"fallbacks": [{"model": str(n)} for n in range(4)]}, InvalidValue),
            ({"tools": [{"type": "function", "function": {}}]}, MissingParameter),
        ],
    )
    def test_what_is_refused(self, fields: dict[str, Any], error: type[InvalidRequest]):
        with pytest.raises(error):
            parse(**fields)

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({"messages": []}, "messages"),
            ({"messages": None}, "messages"),
            ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
            ({"max_tokens": -1}, "max_tokens"),
            ({"max_tokens": "9"}, "max_tokens"),
            ({"temperature": 3}, "temperature"),
            ({"thinking": {"type": "enabled", "budget_tokens": -5}}, "thinking.budget_tokens"),
            ({"tool_choice": {"type": "tool"}, "tools": [{"name": "a"}]}, "tool_choice.name"),
            ({"tool_choice": {"type": "force"}}, "tool_choice.type"),
            ({"tools": [{"description": "x"}]}, "tools[0].name"),
            ({"tools": [{"name": "a", "input_schema": ["x"]}]}, "tools[0].input_schema"),
            (blocks({"type": "text"}), "messages[0].content[0].text"),
            (blocks({"text": "x"}), "messages[0].content[0].type"),
            (blocks({"type": "image"}), "messages[0].content[0].source"),
            (
                blocks({"type": "image", "source": {"type": "base64", "data": "%%"}}),
                "messages[0].content[0].source.data",
            ),
            (
                blocks({"type": "image", "source": {"type": "url"}}),
                "messages[0].content[0].source.url",
            ),
            (
                blocks(
                    {
                        "type": "text",
                        "text": "x",
                        "cache_control": {"type": "ephemeral", "ttl": "2h"},
                    }
                ),
                "messages[0].content[0].cache_control.ttl",
            ),
            (blocks({"type": "tool_use", "id": "a", "name": "b"}), "messages[0].content[0]"),
            (
                blocks({"type": "tool_use", "id": "a", "name": "b", "input": []}, role="assistant"),
                "messages[0].content[0].input",
            ),
            ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ],
    )
    def test_a_400_names_the_field(self, fields: dict[str, Any], param: str):
        with pytest.raises(InvalidRequest) as caught:
            parse(**fields)
        assert caught.value.param == param
        assert param.rsplit(".", maxsplit=1)[-1] in caught.value.message

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"null",
            b"[]",
            b"{",
            b'"x"',
            b"\xff",
            b'{"model":NaN}',
            b'{"a":' * 50_000,
            b'{"messages":"\\ud800"}',
        ],
    )
    def test_a_body_that_is_no_request_is_a_400(self, body: bytes):
        with pytest.raises(InvalidRequest):
            DIALECT.parse(body, {})
        with pytest.raises(InvalidRequest):
            DIALECT.parse_count(body, {})

    def test_a_count_needs_no_cap_and_reads_the_rest_alike(self):
        body = {
            "model": "m",
            "system": "s",
            "messages": [{"role": "user", "content": "hi"}],
            "speed": "fast",
        }
        counted = DIALECT.parse_count(msgspec.json.encode(body), {})
        assert (
            generate(counted).messages
            == generate(DIALECT.parse(msgspec.json.encode(body), {})).messages
        )
        assert DIALECT.count(12) == b'{"input_tokens":12}'

    @pytest.mark.parametrize("tail", ["", "\nYou are an agent."])
    def test_the_billing_line_reaches_its_own_vendor_only(self, tail: str):
        line = "x-anthropic-billing-header: cc_version=2.1.197; cch=1f;"
        system = [{"type": "text", "text": line + tail}, {"type": "text", "text": "Rules."}]
        part = generate(parse(system=system)).messages[0].parts[0]
        assert isinstance(part, TextPart)
        assert part.text == tail.strip()
        assert part.extras == {"type": "text", "text": line + tail}
        built = openai_chat.ADAPTER.build(parse(system=system), golden.target("openai_chat"))
        assert b"billing" not in built.body

    def test_a_block_of_an_unknown_kind_is_kept_whole(self):
        block = {
            "type": "search_result",
            "title": "T",
            "source": "S",
            "content": [{"type": "text", "text": "C"}],
        }
        part = generate(parse(**blocks(block))).messages[0].parts[0]
        assert part == TextPart(text="T\nS\nC", extras=block)

    @pytest.mark.parametrize("nested", [True, False])
    def test_an_image_block_of_another_dialect_is_taken(self, nested: bool):
        url = "data:image/png;base64,+/8="
        given = {"url": url, "detail": "low"} if nested else url
        other = {"type": "image_url", "image_url": given, "cache_control": {"type": "ephemeral"}}
        source = {"type": "base64", "media_type": "image/png", "data": "+/8="}
        own = {"type": "image", "source": source, "cache_control": {"type": "ephemeral"}}
        assert parse(**blocks(other)).body == parse(**blocks(own)).body

    def test_urls_safe_base64_is_made_standard(self):
        source = {"type": "base64", "media_type": "image/png; charset=x", "data": "-_8\n"}
        part = msgspec.to_builtins(
            generate(parse(**blocks({"type": "image", "source": source}))).messages
        )
        assert part[0]["parts"][0]["source"] == {
            "type": "inline",
            "media_type": "image/png",
            "data": "+/8=",
        }
        with pytest.raises(InvalidImage):
            parse(**blocks({"type": "image", "source": {"type": "url", "url": "data:image/png,x"}}))


class TestStream:
    def test_the_order_of_events(self):
        kinds = [body["type"] for body in stream(Started(), *text(0, "a"), Finished("stop"))]
        assert kinds == [
            "message_start",
            "ping",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]

    def test_message_start_waits_for_output_and_the_end_for_the_ledger(self):
        renderer = DIALECT.renderer(parse(), golden.REPLY)
        assert renderer.feed([Started()]) == b""
        assert renderer.idle() == COMMENT
        assert b"message_start" in renderer.feed([PartStarted(0, "text")])
        assert renderer.idle() == PING
        assert b"message_delta" not in renderer.feed([PartEnded(0), Finished("stop")])
        assert renderer.feed([settled()]).endswith(b'{"type":"message_stop"}\n\n')
        assert renderer.idle() == b""

    def test_the_counts_exclude_cache_and_include_thinking(self):
        bodies = stream(Started(), *text(0, "a"), Finished("stop"))
        assert bodies[0]["message"]["usage"]["input_tokens"] == 7
        usage = bodies[-2]["usage"]
        assert usage["input_tokens"] == 500
        assert usage["cache_read_input_tokens"] == 1500
        assert usage["cache_creation_input_tokens"] == 40
        assert usage["cache_creation"]["ephemeral_1h_input_tokens"] == 40
        assert usage["output_tokens"] == 100
        assert usage["output_tokens_details"] == {"thinking_tokens": 40}
        assert "cost" not in usage

    def test_cost_and_receipt_only_where_asked_for(self):
        asked = parse({"x-gw-metadata": "enabled"}, usage={"include": True}, stream=True)
        end = stream(*text(0, "a"), Finished("stop"), asked=asked, at=settled('{"a":1}'))[-2]
        assert end["usage"]["cost"] == 0.000001
        assert end["usage"]["is_byok"] is False
        assert end["gateway_metadata"] == {"a": 1}
        plain = stream(*text(0, "a"), Finished("stop"), at=settled('{"a":1}'))[-2]
        assert "gateway_metadata" not in plain

    @pytest.mark.parametrize(
        ("pieces", "joined"),
        [
            ((), "{}"),
            (("",), "{}"),
            ((" ", "\n"), "{}"),
            (('{"a":', "1}"), '{"a":1}'),
            ((" ", ' {"a":', " 1}"), ' {"a": 1}'),
            (("null",), "{}"),
            (("nu", "ll"), "{}"),
            (("[", "1", "]"), "{}"),
            (('"{\\"a\\"', ':1}"'), '{"a":1}'),
            (('"null"',), "{}"),
            (('"cut',), "{}"),
        ],
    )
    def test_a_call_has_at_least_one_delta_and_valid_json(
        self, pieces: tuple[str, ...], joined: str
    ):
        bodies = stream(*call(0, *pieces), Finished("stop"))
        deltas = [b["delta"] for b in bodies if b["type"] == "content_block_delta"]
        assert {delta["type"] for delta in deltas} == {"input_json_delta"}
        assert "".join(delta["partial_json"] for delta in deltas) == joined
        assert bodies[-2]["delta"]["stop_reason"] == "tool_use"

    def test_thinking_ends_with_its_whole_signature(self):
        events = (
            PartStarted(0, "reasoning", format="anthropic-claude-v1"),
            PartDelta(0, "hm"),
            PartEnded(0, "c2ln"),
        )
        bodies = stream(*events, Finished("stop"))
        assert bodies[2]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}
        assert bodies[4]["delta"] == {"type": "signature_delta", "signature": "c2ln"}

    def test_an_error_ends_the_stream_without_a_stop(self):
        failed = Failed(Fault(reason="upstream_error", message="x"), UpstreamFailed("broke off"))
        asked = parse({"x-gw-metadata": "enabled"}, stream=True)
        bodies = stream(
            Started(),
            PartStarted(0, "text"),
            PartDelta(0, "Half"),
            failed,
            asked=asked,
            at=settled("{}"),
        )
        kinds = [body["type"] for body in bodies]
        assert kinds[-1] == "error"
        assert "message_stop" not in kinds
        assert bodies[-1]["error"]["type"] == "api_error"
        assert bodies[-1]["error"]["message"] == "broke off"
        assert bodies[-1]["error"]["metadata"] == {"gateway_metadata": {}}

    def test_an_error_before_any_output_is_the_only_event(self):
        failed = Failed(Fault(reason="timeout", message="x"), NoAvailableEndpoint("none is live"))
        assert [body["type"] for body in stream(failed)] == ["error"]

    def test_an_answer_that_the_vendor_ended_in_error_is_no_normal_end(self):
        bodies = stream(*text(0, "a"), Finished("error", "MALFORMED_FUNCTION_CALL"))
        assert bodies[-1]["type"] == "error"
        assert "MALFORMED_FUNCTION_CALL" in bodies[-1]["error"]["message"]


class TestAnswer:
    @pytest.mark.parametrize(
        ("finished", "reason"),
        [
            (Finished("stop"), "end_turn"),
            (Finished("stop", "pause_turn"), "pause_turn"),
            (Finished("stop", stop_sequence="END"), "stop_sequence"),
            (Finished("length"), "max_tokens"),
            (Finished("length", "model_context_window_exceeded"), "model_context_window_exceeded"),
            (Finished("tool_calls"), "tool_use"),
            (Finished("content_filter"), "refusal"),
            (Finished(None), "end_turn"),
        ],
    )
    def test_stop_reasons(self, finished: Finished, reason: str):
        body = whole(Started(), *text(0, "a"), finished)
        assert body["stop_reason"] == reason
        assert body["stop_sequence"] == finished.stop_sequence
        assert ("stop_details" in body) is (reason == "refusal")

    def test_a_refusal_says_why(self):
        refused = (
            PartStarted(0, "refusal"),
            PartDelta(0, "I "),
            PartDelta(0, "won't."),
            PartEnded(0),
        )
        details = {"type": "refusal", "category": None, "explanation": "I won't."}
        body = whole(Started(), *refused, Finished("stop"))
        assert (body["stop_reason"], body["stop_details"]) == ("refusal", details)
        streamed = stream(*refused, Finished("stop"))
        assert streamed[-2]["delta"]["stop_details"] == details

    @pytest.mark.parametrize("arguments", ["", " ", "{}", '{"cut', "[1]", "null", '"[1]"', '"x"'])
    def test_the_input_of_a_call_is_always_an_object(self, arguments: str):
        body = whole(Started(), *call(0, arguments), Finished("tool_calls"))
        assert body["content"] == [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]

    def test_the_input_of_a_call_may_be_the_text_of_one(self):
        body = whole(Started(), *call(0, '"{\\"a\\":1}"'), Finished("tool_calls"))
        assert body["content"][0]["input"] == {"a": 1}

    def test_half_an_answer_is_an_error_and_no_answer(self):
        with pytest.raises(UpstreamFailed, match="MALFORMED_FUNCTION_CALL"):
            whole(Started(), *text(0, "a"), Finished("error", "MALFORMED_FUNCTION_CALL"))

    def test_thinking_always_carries_a_signature(self):
        events = (PartStarted(0, "reasoning"), PartDelta(0, "hm"), PartEnded(0))
        body = whole(Started(), *events, Finished("stop"))
        assert body["content"] == [{"type": "thinking", "thinking": "hm", "signature": ""}]

    def test_empty_text_leaves_no_block(self):
        assert whole(Started(), *text(0, ""), Finished("stop"))["content"] == []
        kinds = [body["type"] for body in stream(*text(0, ""), *text(1, "a"), Finished("stop"))]
        assert kinds.count("content_block_start") == 1

    def test_ids_share_their_suffix_and_the_model_is_the_one_that_served(self):
        body = whole(Started(), *text(0, "a"), Finished("stop"))
        assert body["id"] == "msg_0000000000000000000001"
        assert (body["model"], body["provider"]) == ("test/model", "Test")

    def test_extras_of_another_vendor_do_not_leak(self):
        events = (
            Started(extras={"system_fingerprint": "fp"}),
            PartStarted(0, "text"),
            PartDelta(0, "a", {"logprobs": [1]}),
            PartEnded(0, extras={"annotations": [1]}),
            Finished("stop", extras={"service_tier": "x"}),
        )
        body = whole(*events)
        assert body["content"] == [{"type": "text", "text": "a"}]
        assert body.keys().isdisjoint({"system_fingerprint", "service_tier", "logprobs"})

    @pytest.mark.parametrize("format_", ["openai-responses-v1", "google-gemini-v1"])
    @pytest.mark.parametrize("summary", [True, False])
    def test_reasoning_of_any_vendor_survives_the_client(self, format_: str, summary: bool):
        events = (
            PartStarted(0, "reasoning", format=format_, summary=summary, item_id="rs_1"),
            PartDelta(0, "why"),
            PartEnded(0, "a:b:c"),
        )
        body = whole(Started(), *events, Finished("stop"))
        back = parse(messages=[{"role": "assistant", "content": body["content"]}])
        assert generate(back).messages[0].parts == (
            ReasoningPart(
                text="why", signature="a:b:c", format=format_, summary=summary, item_id="rs_1"
            ),
        )

    def test_omitted_thinking_shows_its_proof_only(self):
        asked = parse(thinking={"type": "adaptive", "display": "omitted"}, stream=True)
        signed = (
            PartStarted(0, "reasoning", format="anthropic-claude-v1"),
            PartDelta(0, "secret"),
            PartEnded(0, "c2ln"),
        )
        unsigned = (PartStarted(1, "reasoning"), PartDelta(1, "secret"), PartEnded(1))
        bodies = stream(*signed, *unsigned, *text(2, "a"), Finished("stop"), asked=asked)
        assert "secret" not in str(bodies)
        starts = [b for b in bodies if b["type"] == "content_block_start"]
        assert [b["content_block"]["type"] for b in starts] == ["thinking", "text"]
        assert [b["index"] for b in starts] == [0, 1]


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (InvalidRequest("x", param="messages"), "invalid_request_error"),
            (BudgetExceeded("x", metadata={"budget_scope": "key"}), "billing_error"),
            (ModelNotFound("x"), "not_found_error"),
            (RateLimited("x"), "rate_limit_error"),
            (RequestTooLarge("x"), "request_too_large"),
            (UpstreamFailed("x"), "api_error"),
            (NoAvailableEndpoint("x"), "overloaded_error"),
            (UpstreamRefused("x", status=422), "invalid_request_error"),
        ],
    )
    def test_the_envelope(self, error: GatewayError, kind: str):
        body = msgspec.json.decode(DIALECT.error(error, "req_1"))
        assert (body["type"], body["request_id"]) == ("error", "req_1")
        assert body["error"]["type"] == kind
        assert body["error"]["message"] == "x"
        assert body["error"]["details"]["error_code"] == error.code
        assert body["error"].get("metadata") == error.metadata

    def test_a_500_says_nothing_of_its_cause(self):
        body = DIALECT.error(InternalError("KeyError: 'secret'"), "req_1")
        assert b"secret" not in body
        assert b"req_1" in body


_JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "text", "role", "content", "id", "name", "input", "source", "data", "x"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=10,
)
_FIELDS = st.dictionaries(
    st.sampled_from(
        [
            "model",
            "messages",
            "system",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
            "metadata",
            "stop_sequences",
            "fallbacks",
            "models",
            "provider",
            "usage",
            "stream",
            "max_tokens",
        ]
    ),
    _JSON,
)
_BLOCK_FIELDS = (
    "text",
    "source",
    "id",
    "name",
    "input",
    "tool_use_id",
    "content",
    "thinking",
    "signature",
    "cache_control",
)
_BLOCK = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text", "image", "document", "tool_use", "tool_result", "thinking", "new"]
        )
    },
    optional=dict.fromkeys(_BLOCK_FIELDS, _JSON),
)


@settings(max_examples=300, deadline=None)
@given(
    fields=_FIELDS,
    content=st.lists(_BLOCK, max_size=3),
    role=st.sampled_from(["user", "assistant"]),
)
def test_any_json_is_a_request_or_a_400(fields: dict[str, Any], content: list[Any], role: str):
    body = {"model": "m", "messages": [{"role": role, "content": content}], **fields}
    with contextlib.suppress(InvalidRequest):
        DIALECT.parse(msgspec.json.encode(body), {})


@settings(max_examples=200, deadline=None)
@given(
    said=st.lists(st.text(max_size=8), min_size=1, max_size=4),
    thought=st.text(max_size=8),
    arguments=st.dictionaries(st.text(max_size=4), st.integers(-9, 9), max_size=3),
)
def test_a_whole_answer_says_what_the_stream_said(
    said: list[str], thought: str, arguments: dict[str, int]
):
    encoded = msgspec.json.encode(arguments).decode()
    events: list[Event] = [
        Started(),
        PartStarted(0, "reasoning", format="anthropic-claude-v1"),
        PartDelta(0, thought),
        PartEnded(0, "c2ln"),
        PartStarted(1, "text"),
        *(PartDelta(1, piece) for piece in said),
        PartEnded(1),
        *call(2, encoded),
        Finished("tool_calls"),
    ]
    built: list[dict[str, Any]] = []
    for body in stream(*events):
        match body["type"]:
            case "content_block_start":
                built.append({**body["content_block"], "input_text": ""})
            case "content_block_delta":
                delta = body["delta"]
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        built[-1][name] += delta[name]
                built[-1]["input_text"] += delta.get("partial_json", "")
            case _:
                pass
    for block in built:
        piece = block.pop("input_text")
        if block["type"] == "tool_use":
            block["input"] = msgspec.json.decode(piece)
    assert built == whole(*events)["content"]
