"""What newer agents put among the input items of a responses request: tools, and items of the vendor's own kind."""

from typing import Any

import msgspec
import pytest

from gwd.core.errors import InvalidValue
from gwd.core.events import Event, Finished, Settled, check_grammar, collect
from gwd.core.request import Generate, TextPart, Tool
from gwd.core.sse import SseSplitter
from gwd.dialects import chat_completions, messages
from gwd.dialects.base import Dialect
from gwd.dialects.responses import ResponsesRequest
from gwd.vendors import anthropic_messages, gemini, openai_chat, openai_responses
from gwd.vendors.base import Adapter
from tests.golden import golden
from tests.golden.test_responses import RENDERING

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}
ASK = {"type": "custom", "name": "ask"}
HI = {"role": "user", "content": "hi"}
COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "ENC"}
TRIGGER = {"type": "compaction_trigger"}


def parse(*items: dict[str, Any], **fields: Any) -> ResponsesRequest:
    body = {"model": "test/model", "input": list(items), **fields}
    return RENDERING.parse(msgspec.json.encode(body), {})


def additional(*tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "additional_tools", "role": "developer", "tools": list(tools)}


def namespace(name: str, *tools: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "tools": list(tools), **fields}


def tools_of(request: ResponsesRequest) -> tuple[Tool, ...]:
    assert isinstance(request.body, Generate)
    return request.body.tools


def sent(adapter: Adapter, request: ResponsesRequest) -> Any:
    return msgspec.json.decode(adapter.build(request, golden.target(adapter.format.name)).body)


class TestAdditionalTools:
    @pytest.mark.parametrize(
        "adapter",
        [
            openai_chat.ADAPTER,
            openai_responses.ADAPTER,
            anthropic_messages.ADAPTER,
            gemini.ADAPTER,
        ],
        ids=lambda adapter: adapter.format.name,
    )
    def test_they_go_to_every_vendor_like_the_bodys_own(self, adapter: Adapter):
        added = parse(
            additional(LOOK), HI, additional(namespace("collab", ASK)), tool_choice="auto"
        )
        listed = parse(HI, tools=[LOOK, namespace("collab", ASK)], tool_choice="auto")
        assert sent(adapter, added) == sent(adapter, listed)
        assert "collab__ask" in str(sent(adapter, added))
        assert added.sent_parameters == listed.sent_parameters

    def test_they_are_merged_with_the_bodys_own_and_the_later_of_one_name_counts(self):
        newer = {**LOOK, "description": "newer"}
        request = parse(
            additional(newer, namespace("n", LOOK)),
            HI,
            additional(namespace("n", {**LOOK, "description": "again"})),
            tools=[LOOK, ASK],
        )
        described = [(tool.name, tool.description) for tool in tools_of(request)]
        assert described == [("look", "newer"), ("ask", None), ("n__look", "again")]
        assert request.echo.tools == (
            {"description": None, "strict": None, **LOOK},
            ASK,
        )

    def test_the_choice_may_name_one(self):
        choice = {"type": "function", "name": "look", "namespace": "n"}
        request = parse(additional(namespace("n", LOOK)), HI, tool_choice=choice)
        assert isinstance(request.body, Generate)
        assert request.body.tool_choice is not None
        assert request.body.tool_choice.name == "n__look"

    def test_hosted_ones_are_dropped_and_none_is_no_tool(self):
        assert parse(additional({"type": "web_search"}), HI).dropped_tools == ("web_search",)
        assert tools_of(parse({"type": "additional_tools", "tools": None}, HI)) == ()
        with pytest.raises(InvalidValue) as caught:
            parse(HI, additional({"type": "function", "name": ""}))
        assert caught.value.param == "input[1].tools[0].name"
        with pytest.raises(InvalidValue):
            parse(additional(LOOK))

    def test_the_namespace_of_plain_tools_is_none(self):
        """Codex knows the calls of these by the name alone."""
        request = parse(additional(namespace("functions", ASK, LOOK), namespace("n", ASK)), HI)
        assert [tool.name for tool in tools_of(request)] == ["ask", "look", "n__ask"]
        assert set(request.namespaces) == {"n__ask"}
        choice = {"type": "namespace", "name": "functions"}
        chosen = parse(additional(namespace("functions", ASK, LOOK)), HI, tool_choice=choice).body
        assert isinstance(chosen, Generate)
        assert chosen.tool_choice is not None
        assert chosen.tool_choice.allowed == ("ask", "look")
        call = {"type": "function_call", "call_id": "c", "name": "look", "namespace": "functions"}
        assert (
            '"name":"look"'
            in msgspec.json.encode(sent(openai_chat.ADAPTER, parse(HI, call))).decode()
        )

    def test_a_plain_name_is_not_shadowed_by_a_joined_one(self):
        joined = {**LOOK, "name": "n__look"}
        request = parse(additional(namespace("n", LOOK), namespace("functions", joined)), HI)
        first, second = tools_of(request)
        assert (first.name != "n__look", second.name) == (True, "n__look")

    def test_a_cache_mark_counts_on_a_tool_and_on_a_namespace(self):
        mark = {"type": "ephemeral", "ttl": "1h"}
        request = parse(
            HI,
            tools=[
                {**LOOK, "cache_control": mark},
                namespace("n", ASK, LOOK, cache_control={"type": "ephemeral"}),
            ],
        )
        assert [tool.cache for tool in tools_of(request)] == ["1h", None, "5m"]
        assert all(tool.extras is None for tool in tools_of(request))
        body = sent(anthropic_messages.ADAPTER, request)
        assert body["tools"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


ANSWER: dict[str, Any] = {
    "id": "resp_up",
    "object": "response",
    "status": "completed",
    "model": "up",
    "output": [
        {"id": "cmp_2", "type": "compaction", "encrypted_content": "ENC2"},
        {"id": "ws_1", "type": "web_search_call", "status": "completed"},
        {"id": "msg_1", "type": "message", "content": [{"type": "output_text", "text": "ok"}]},
    ],
    "usage": {"input_tokens": 3, "output_tokens": 1},
}


def answered(streamed: bool) -> list[Event]:
    to = golden.target("openai_responses")
    if not streamed:
        return openai_responses.ADAPTER.decode(msgspec.json.encode(ANSWER), parse(HI), to)
    decoder = openai_responses.ADAPTER.decoder(parse(HI), to)
    lines: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "resp_up"}}]
    for index, item in enumerate(ANSWER["output"]):
        for kind in ("added", "done"):
            lines.append(
                {"type": f"response.output_item.{kind}", "output_index": index, "item": item}
            )
    lines.append({"type": "response.completed", "response": ANSWER})
    data = b"".join(b"data: " + msgspec.json.encode(line) + b"\n\n" for line in lines)
    return [event for frame in SseSplitter().feed(data) for event in decoder.feed(frame)]


class TestItemsOfTheVendor:
    def test_they_go_to_a_vendor_of_this_format_in_their_place(self):
        said = {"role": "assistant", "content": "a"}
        request = parse(COMPACTION, HI, said, {"type": "later_kind", "x": None}, HI, TRIGGER)
        items = sent(openai_responses.ADAPTER, request)["input"]
        assert [item["type"] for item in items] == [
            *("compaction", "message", "message", "later_kind", "message", "compaction_trigger")
        ]
        assert (items[0], items[3], items[5]) == (
            COMPACTION,
            {"type": "later_kind", "x": None},
            TRIGGER,
        )

    @pytest.mark.parametrize(
        "adapter",
        [openai_chat.ADAPTER, anthropic_messages.ADAPTER, gemini.ADAPTER],
        ids=lambda adapter: adapter.format.name,
    )
    def test_no_other_vendor_hears_of_them(self, adapter: Adapter):
        call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": "c", "output": "x"}
        plain = [HI, call, output]
        mixed = [COMPACTION, HI, call, COMPACTION, output, TRIGGER]
        assert sent(adapter, parse(*mixed)) == sent(adapter, parse(*plain))

    def test_calls_of_hosted_tools_are_left_out_as_ever(self):
        foreign = [{"type": kind} for kind in ("web_search_call", "mcp_list_tools", "shell_call")]
        items = sent(openai_responses.ADAPTER, parse(HI, *foreign))["input"]
        assert [item["type"] for item in items] == ["message"]

    def test_alone_they_are_no_conversation(self):
        with pytest.raises(InvalidValue):
            parse(COMPACTION, TRIGGER)

    def test_content_cannot_pass_for_one(self):
        odd = {"type": "output_text", "text": "", "item": {"type": "message"}}
        request = parse(HI, {"role": "assistant", "content": [odd]})
        assert len(sent(openai_responses.ADAPTER, request)["input"]) == 1

    @pytest.mark.parametrize("streamed", [True, False])
    def test_a_vendors_own_item_comes_back_to_a_client_of_this_format(self, streamed: bool):
        events = answered(streamed)
        check_grammar(events)
        settled = Settled(golden_usage(events), golden.COST)
        whole = RENDERING.renderer(parse(HI), golden.REPLY).whole(collect(events), settled)
        output = msgspec.json.decode(whole)["output"]
        assert output[0] == ANSWER["output"][0]
        assert [item["type"] for item in output] == ["compaction", "message"]
        frames = SseSplitter().feed(
            RENDERING.renderer(parse(HI), golden.REPLY).feed([*events, settled])
        )
        reported = [msgspec.json.decode(frame.data) for frame in frames]
        done = [event["item"] for event in reported if event["type"] == "response.output_item.done"]
        assert done == reported[-1]["response"]["output"]
        assert done[0] == output[0]

    @pytest.mark.parametrize(
        "dialect", [chat_completions.DIALECT, messages.DIALECT], ids=lambda dialect: dialect.name
    )
    def test_clients_of_other_formats_see_nothing_of_it(self, dialect: Dialect):
        events = answered(streamed=True)
        settled = Settled(golden_usage(events), golden.COST)
        asked = golden.request(dialect=dialect.name)
        whole = dialect.renderer(asked, golden.REPLY).whole(collect(events), settled)
        stream = dialect.renderer(asked, golden.REPLY).feed([*events, settled])
        for shown in (whole, stream):
            assert b"ENC2" not in shown
            assert b"ok" in shown
        assert stream.count(b"event: content_block_start") == (dialect.name == "messages")


def golden_usage(events: list[Event]) -> Any:
    ended = events[-1]
    assert isinstance(ended, Finished)
    return ended.usage


def test_an_own_item_is_an_empty_text_inside():
    request = parse(COMPACTION, HI)
    assert isinstance(request.body, Generate)
    assert request.body.messages[0].parts == (TextPart(text="", extras={"item": COMPACTION}),)
