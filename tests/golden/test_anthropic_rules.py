"""Rules of the Anthropic format that make or break a call, one test a rule."""

import contextlib
from typing import Any

import msgspec
import pytest

from gwd.core.errors import InvalidImage, InvalidRequest
from gwd.core.events import PartStarted, collect
from gwd.core.request import ReasoningPart, Request, TextPart, ToolCallPart
from gwd.core.target import Flags, Target
from gwd.dialects.chat_completions import DIALECT as CHAT
from gwd.dialects.messages import DIALECT as MESSAGES
from gwd.vendors.anthropic_messages import ADAPTER, signatures
from gwd.vendors.anthropic_messages.history import CONTINUE, NOT_EXECUTED
from tests.golden import golden

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def chat(*messages: dict[str, Any], **fields: Any) -> Request:
    body = {"model": "test/model", "messages": list(messages) or [user("hi")], **fields}
    return CHAT.parse(msgspec.json.encode(body), {})


def own(*messages: dict[str, Any], headers: dict[str, str] | None = None, **fields: Any) -> Request:
    body = {"model": "test/model", "max_tokens": 4000, "messages": list(messages) or [user("hi")]}
    return MESSAGES.parse(msgspec.json.encode({**body, **fields}), headers or {})


def to(words: frozenset[str] = golden.WORDS, **flags: Any) -> Target:
    return golden.target("anthropic_messages", flags=Flags(**flags), supported_parameters=words)


def sent(request: Request, target: Target | None = None) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(ADAPTER.build(request, target or to()).body)
    return body


def dropped(request: Request, target: Target | None = None) -> tuple[str, ...]:
    return ADAPTER.build(request, target or to()).dropped


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any = None, *calls: str, arguments: str = "{}") -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        function = {"name": "look", "arguments": arguments}
        message["tool_calls"] = [
            {"id": call, "type": "function", "function": function} for call in calls
        ]
    return message


def result(call: str, content: Any = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


class TestHistory:
    def test_leading_system_text_is_hoisted_and_later_system_text_stays_in_place(self):
        system = {"role": "system", "content": "A"}
        developer = {"role": "developer", "content": "B"}
        later = {"role": "system", "content": "C"}
        asked = chat(system, developer, user("q"), later, user("r"))
        body = sent(asked)
        assert [block["text"] for block in body["system"]] == ["A", "B"]
        assert [block["text"] for block in body["messages"][0]["content"]] == ["q", "C", "r"]
        flagged = sent(asked, to(mid_system=True))
        assert [message["role"] for message in flagged["messages"]] == ["user", "system", "user"]

    def test_a_messages_own_fields_stay_on_its_turn_for_its_own_vendor_only(self):
        asked = own({**user("a"), "clear_at": 3})
        assert sent(asked)["messages"][0]["clear_at"] == 3
        assert "name" not in sent(chat({**user("a"), "name": "ann"}))["messages"][0]

    def test_the_first_message_is_always_the_users(self):
        body = sent(chat(assistant("Hello."), user("q")))
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
        assert body["messages"][0]["content"] == [{"type": "text", "text": "."}]

    def test_empty_and_blank_text_is_dropped_and_its_neighbours_are_one_turn(self):
        body = sent(
            chat(user("a"), assistant(" \n"), user([{"type": "text", "text": ""}]), user("b"))
        )
        assert body["messages"] == [
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            }
        ]

    @pytest.mark.parametrize("messages", [[user(" ")], [user("a"), assistant("b"), user("")]])
    def test_a_last_message_without_content_is_refused(self, messages: list[dict[str, Any]]):
        with pytest.raises(InvalidRequest):
            sent(chat(*messages))

    def test_a_call_without_result_and_a_result_without_call_are_repaired(self):
        body = sent(
            chat(
                user("q"),
                assistant(None, "a", "b"),
                result("b"),
                result("zz", "stray"),
                tools=[TOOL],
            )
        )
        content = body["messages"][2]["content"]
        assert [block.get("tool_use_id") for block in content[:2]] == ["b", "a"]
        assert content[1]["content"] == NOT_EXECUTED
        assert "stray" in content[-1]["text"]

    def test_a_result_behind_other_turns_moves_to_its_call(self):
        body = sent(
            chat(user("q"), assistant(None, "a"), user("wait"), result("a", "found"), tools=[TOOL])
        )
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
        kinds = [block["type"] for block in body["messages"][2]["content"]]
        assert kinds == ["tool_result", "text"]

    def test_ids_that_a_server_uses_twice_are_told_apart(self):
        body = sent(
            chat(
                user("q"),
                assistant(None, "call 0"),
                result("call 0", "one"),
                assistant(None, "call 0"),
                result("call 0", "two"),
                tools=[TOOL],
            )
        )
        calls = [body["messages"][i]["content"][0]["id"] for i in (1, 3)]
        results = [body["messages"][i]["content"][0] for i in (2, 4)]
        assert len(set(calls)) == 2
        assert [block["tool_use_id"] for block in results] == calls
        assert [block["content"] for block in results] == ["one", "two"]

    @pytest.mark.parametrize("arguments", ['{"city": "Os', "[1]", '"text"', "nope"])
    def test_arguments_that_are_no_object_become_an_empty_one_with_a_note(self, arguments: str):
        body = sent(
            chat(user("q"), assistant(None, "a", arguments=arguments), result("a"), tools=[TOOL])
        )
        assert body["messages"][1]["content"][0]["input"] == {}
        reported = body["messages"][2]["content"][0]["content"]
        assert "not valid JSON" in reported[0]["text"]
        assert reported[1]["text"] == "done"

    def test_history_with_calls_keeps_tools_declared_but_out_of_use(self):
        body = sent(chat(user("q"), assistant(None, "a"), result("a")))
        assert [tool["name"] for tool in body["tools"]] == ["look"]
        assert body["tool_choice"] == {"type": "none"}

    def test_a_begun_answer_is_trimmed_or_continued(self):
        asked = chat(user("Capital of Peru?"), assistant("Answer: \n"))
        assert sent(asked)["messages"][-1]["content"][0]["text"] == "Answer:"
        last = sent(asked, to(supports_prefill=False))["messages"][-1]
        assert last == {"role": "user", "content": [{"type": "text", "text": CONTINUE}]}


class TestContent:
    @pytest.mark.parametrize(
        "url",
        [
            f"data:image/jpeg;charset=utf-8;base64,{PNG}",
            f"data:image/png;base64,{PNG.replace('+', '-').replace('/', '_').rstrip('=')}",
        ],
    )
    def test_images_are_standard_base64_of_their_real_type(self, url: str):
        body = sent(chat(user([{"type": "image_url", "image_url": {"url": url}}])))
        source = body["messages"][0]["content"][0]["source"]
        assert source == {"type": "base64", "media_type": "image/png", "data": PNG}

    def test_an_image_type_the_vendor_lacks_is_refused_by_name(self):
        url = "data:image/bmp;base64,Qk1GAAAAAAAAAD4AAAA="
        with pytest.raises(InvalidImage, match="image/bmp"):
            sent(chat(user([{"type": "image_url", "image_url": {"url": url}}])))

    def test_a_text_file_is_sent_as_text_and_a_pdf_as_a_document(self):
        files = [
            {
                "type": "file",
                "file": {"filename": "a.md", "file_data": "data:text/markdown;base64,R3LDvMOfZQ=="},
            },
            {
                "type": "file",
                "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
            },
            {"type": "file", "file": {"file_data": "https://example.com/c.pdf"}},
        ]
        sources = [b["source"] for b in sent(chat(user(files)))["messages"][0]["content"]]
        assert sources[0] == {"type": "text", "media_type": "text/plain", "data": "Grüße"}
        assert sources[1]["media_type"] == "application/pdf"
        assert sources[2] == {"type": "url", "url": "https://example.com/c.pdf"}

    def test_at_most_four_marks_the_last_ones_and_no_long_one_behind_a_short_one(self):
        marks: list[dict[str, Any]] = [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}]
        parts = [{"type": "text", "text": str(n), "cache_control": marks[n % 2]} for n in range(6)]
        content = sent(chat(user(parts)))["messages"][0]["content"]
        assert [block.get("cache_control") for block in content] == [None, None] + [marks[0]] * 4

    def test_marks_on_thinking_are_stripped(self):
        block = {
            "type": "thinking",
            "thinking": "t",
            "signature": "cw==",
            "cache_control": {"type": "ephemeral"},
        }
        body = sent(own(user("a"), {"role": "assistant", "content": [block]}, user("b")))
        assert "cache_control" not in body["messages"][1]["content"][0]


class TestTools:
    def test_root_unions_become_one_object(self):
        schema = {
            "anyOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"$ref": "#/$defs/B"},
            ],
            "$defs": {"B": {"type": "object", "properties": {"b": {"type": "integer"}}}},
        }
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        root = sent(chat(tools=[tool]))["tools"][0]["input_schema"]
        assert root["type"] == "object"
        assert "anyOf" not in root
        assert root["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
        assert "required" not in root

    def test_all_of_at_the_root_keeps_every_requirement(self):
        schema = {
            "allOf": [
                {"properties": {"a": {}}, "required": ["a"]},
                {"properties": {"b": {}}, "required": ["b"]},
            ]
        }
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        root = sent(chat(tools=[tool]))["tools"][0]["input_schema"]
        assert root["required"] == ["a", "b"]

    def test_names_are_repaired_both_ways(self):
        name = "functions.look at:this/" + "x" * 80
        tool = {"type": "function", "function": {"name": name}}
        asked = chat(tools=[tool], tool_choice={"type": "function", "function": {"name": name}})
        body = sent(asked)
        upstream = body["tools"][0]["name"]
        assert body["tool_choice"]["name"] == upstream
        assert len(upstream) <= 64
        answer = {"content": [{"type": "tool_use", "id": "t", "name": upstream, "input": {}}]}
        events = ADAPTER.decode(msgspec.json.encode(answer), asked, to())
        assert next(e for e in events if isinstance(e, PartStarted)).name == name

    def test_an_empty_list_of_tools_leaves_nothing_behind(self):
        body = sent(chat(tools=[], tool_choice="auto", parallel_tool_calls=False))
        assert body.keys().isdisjoint({"tools", "tool_choice"})

    def test_parallel_calls_are_switched_off_inside_the_choice(self):
        body = sent(chat(tools=[TOOL], parallel_tool_calls=False))
        assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
        none = sent(chat(tools=[TOOL], tool_choice="none", parallel_tool_calls=False))
        assert none["tool_choice"] == {"type": "none"}

    def test_allowed_tools_are_the_only_ones_sent(self):
        other = {"type": "function", "function": {"name": "other"}}
        allowed = {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "look"}}],
            },
        }
        body = sent(chat(tools=[TOOL, other], tool_choice=allowed))
        assert [tool["name"] for tool in body["tools"]] == ["look"]
        assert body["tool_choice"] == {"type": "any"}

    def test_a_forced_tool_wins_over_thinking_that_can_be_off(self):
        asked = chat(tools=[TOOL], tool_choice="required", reasoning={"effort": "high"})
        body = sent(asked, to(thinking_form="adaptive"))
        assert body["tool_choice"] == {"type": "any"}
        assert body["thinking"] == {"type": "disabled"}
        assert "reasoning" in dropped(asked, to(thinking_form="adaptive"))

    @pytest.mark.parametrize("flag", ["rejects_thinking_disabled", "rejects_forced_tools"])
    def test_a_forced_tool_gives_way_where_it_must(self, flag: str):
        asked = chat(tools=[TOOL], tool_choice="required", reasoning={"effort": "high"})
        flags: dict[str, Any] = {"thinking_form": "adaptive", flag: True}
        target = to(**flags)
        assert sent(asked, target)["tool_choice"] == {"type": "auto"}
        assert "tool_choice" in dropped(asked, target)

    def test_a_model_without_tools_is_sent_none(self):
        words = golden.WORDS - {"tools", "tool_choice"}
        asked = chat(tools=[TOOL], tool_choice="required")
        assert "tools" not in sent(asked, to(words))
        assert set(dropped(asked, to(words))) >= {"tools", "tool_choice"}


class TestAnswerFormat:
    SCHEMA: dict[str, Any] = {  # noqa: RUF012
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 0, "description": "Years."},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 1},
        },
    }

    def asked(self, **fields: Any) -> Request:
        schema = {"name": "person", "schema": self.SCHEMA}
        return chat(response_format={"type": "json_schema", "json_schema": schema}, **fields)

    def test_native_output_closes_objects_and_moves_refused_keywords(self):
        schema = sent(self.asked())["output_config"]["format"]["schema"]
        assert schema["additionalProperties"] is False
        assert schema["properties"]["age"] == {
            "type": "integer",
            "description": "Years. (minimum: 0)",
        }
        assert schema["properties"]["tags"]["items"]["description"] == "(maxLength: 9)"

    def test_without_native_output_one_forced_tool_is_the_answer(self):
        target = to(native_json_schema=False)
        body = sent(self.asked(), target)
        assert body["tool_choice"] == {"type": "tool", "name": "person"}
        answer = {
            "content": [{"type": "tool_use", "id": "t", "name": "person", "input": {"age": 9}}],
            "stop_reason": "tool_use",
        }
        done = collect(ADAPTER.decode(msgspec.json.encode(answer), self.asked(), target))
        assert done.parts == (TextPart(text='{"age":9}'),)
        assert done.finished.reason == "stop"

    def test_the_answer_tool_never_takes_a_clients_name(self):
        tool = {"type": "function", "function": {"name": "person"}}
        body = sent(self.asked(tools=[tool]), to(native_json_schema=False))
        assert [tool["name"] for tool in body["tools"]] == ["person", "person_answer"]
        assert body["tool_choice"] == {"type": "any"}

    def test_json_object_is_asked_for_in_words(self):
        body = sent(chat(response_format={"type": "json_object"}))
        assert "JSON" in body["system"][-1]["text"]

    def test_a_model_without_structured_output_and_tools_is_asked_for_neither(self):
        words = golden.WORDS - {"structured_outputs", "tools"}
        body = sent(self.asked(), to(words))
        assert body.keys().isdisjoint({"output_config", "tools"})
        assert "structured_outputs" in dropped(self.asked(), to(words))


class TestThinking:
    @pytest.mark.parametrize(
        ("cap", "effort", "budget"),
        [
            (2000, "high", 1600),
            (2000, "minimal", 1024),
            (1500, "max", 1425),
            (1025, "max", 1024),
            (1024, "high", None),
        ],
    )
    def test_a_budget_is_below_the_cap_and_at_least_1024(
        self, cap: int, effort: str, budget: int | None
    ):
        body = sent(chat(max_tokens=cap, temperature=0.2, top_k=3, reasoning={"effort": effort}))
        if budget is None:
            assert "thinking" not in body
            assert body["temperature"] == 0.2
            return
        assert body["thinking"] == {"type": "enabled", "budget_tokens": budget}
        assert body.keys().isdisjoint({"temperature", "top_k"})

    def test_adaptive_models_get_the_nearest_effort_and_show_their_reasoning(self):
        target = to(thinking_form="adaptive", supported_efforts=("low", "high"))
        body = sent(chat(reasoning={"effort": "xhigh"}), target)
        assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
        assert body["output_config"] == {"effort": "high"}
        tie = sent(chat(reasoning={"effort": "medium"}), target)
        assert tie["output_config"] == {"effort": "low"}

    def test_a_budget_is_kept_where_the_model_takes_both_forms(self):
        body = sent(chat(max_tokens=8000, reasoning={"max_tokens": 3000}), to(thinking_form="both"))
        assert body["thinking"] == {"type": "enabled", "budget_tokens": 3000}

    def test_none_means_disabled_or_the_lowest_the_model_knows(self):
        asked = chat(reasoning={"effort": "none"})
        assert sent(asked, to(thinking_form="adaptive"))["thinking"] == {"type": "disabled"}
        always = to(thinking_form="adaptive", rejects_thinking_disabled=True)
        body = sent(asked, always)
        assert "thinking" not in body
        assert body["output_config"] == {"effort": "low"}

    def test_disabled_keeps_the_effort_within_what_the_model_allows(self):
        asked = own(thinking={"type": "disabled"}, output_config={"effort": "max"})
        efforts = ("low", "high", "max")
        target = to(
            thinking_form="adaptive", supported_efforts=efforts, rejects_disabled_above_high=True
        )
        # Effort is dropped from the internal wish by `disabled`; the client's own word decides.
        assert sent(asked, target)["output_config"]["effort"] == "high"

    def test_a_model_that_does_not_think_is_not_asked_to(self):
        asked = chat(reasoning={"effort": "high"})
        target = to(thinking_form="none")
        assert sent(asked, target).keys().isdisjoint({"thinking", "output_config"})
        assert "reasoning" in dropped(asked, target)

    def test_an_agents_adaptive_thinking_becomes_a_budget_on_an_older_model(self):
        asked = own(thinking={"type": "adaptive"}, output_config={"effort": "high"})
        body = sent(asked, to(thinking_form="budget"))
        assert body["thinking"] == {"type": "enabled", "budget_tokens": 3200}
        assert "output_config" not in body

    def test_an_unknown_kind_of_thinking_goes_to_its_own_vendor_as_it_is(self):
        kind = {"type": "between_tools", "x": 1}
        assert sent(own(thinking=kind), to(thinking_form="adaptive"))["thinking"] == kind

    def test_a_tool_loop_that_lost_its_signature_is_answered_without_thinking(self):
        messages = (user("q"), assistant(None, "a"), result("a"))
        asked = chat(*messages, tools=[TOOL], reasoning={"effort": "high"}, max_tokens=4000)
        body = sent(asked)
        assert body["thinking"] == {"type": "disabled"}
        adaptive = sent(asked, to(thinking_form="adaptive"))
        assert adaptive["thinking"]["type"] == "adaptive"

    def test_remembered_reasoning_is_put_back_and_keeps_thinking_on(self):
        thought = ReasoningPart(text="t", signature="cw==", format="anthropic-claude-v1")
        call = ToolCallPart(call_id="a", name="look", arguments="{}")
        memory = signatures.remember([thought, TextPart(text="x"), call])
        messages = (user("q"), assistant("x", "a"), result("a"))
        asked = chat(*messages, tools=[TOOL], reasoning={"effort": "high"}, max_tokens=4000)
        assert signatures.missing(asked) == ("a",)
        repaired = signatures.reattach(asked, memory)
        assert signatures.missing(repaired) == ()
        body = sent(repaired)
        assert body["thinking"]["type"] == "enabled"
        kinds = [block["type"] for block in body["messages"][1]["content"]]
        assert kinds == ["thinking", "text", "tool_use"]
        assert ADAPTER.without_signatures(repaired) == asked

    def test_reasoning_of_another_vendor_is_not_sent(self):
        details = [
            {
                "type": "reasoning.text",
                "text": "x",
                "signature": "s",
                "format": "openai-responses-v1",
            }
        ]
        message = {**assistant("hi"), "reasoning_details": details}
        body = sent(chat(user("q"), message, user("r")))
        assert [b["type"] for b in body["messages"][1]["content"]] == ["text"]


class TestParameters:
    def test_sampling_within_the_vendors_bounds(self):
        body = sent(chat(temperature=1.7, top_k=4, stop=["\n", " ", "END", ""]))
        assert (body["temperature"], body["top_k"], body["stop_sequences"]) == (1.0, 4, ["END"])

    def test_only_blank_stop_strings_leave_no_field(self):
        assert "stop_sequences" not in sent(chat(stop=["\n", " "]))

    def test_what_the_format_or_the_model_lacks_is_named_as_dropped(self):
        asked = chat(seed=1, frequency_penalty=0.5, temperature=0.5)
        assert dropped(asked) == ("frequency_penalty", "seed")
        target = to(rejects_sampling=True)
        assert dropped(asked, target) == ("frequency_penalty", "seed", "temperature")
        assert "temperature" not in sent(asked, target)

    def test_the_cap_is_the_clients_or_the_models_and_never_above_the_endpoints(self):
        assert sent(chat())["max_tokens"] == 4096
        assert sent(chat(max_tokens=7))["max_tokens"] == 7
        assert sent(chat(max_tokens=10**6))["max_tokens"] == 64_000
        bare = golden.target("anthropic_messages", default_max_tokens=None)
        assert sent(chat(), bare)["max_tokens"] == 64_000

    @pytest.mark.parametrize(
        "base",
        [
            "https://h",
            "https://h/",
            "https://h/v1",
            "https://h/v1/",
            "https://h/v1/messages",
        ],
    )
    def test_the_path_is_right_for_every_base(self, base: str):
        target = golden.target("anthropic_messages", base_url=base)
        assert ADAPTER.build(chat(), target).url == "https://h/v1/messages"

    def test_versions_and_betas_go_only_to_their_own_vendor(self):
        headers = {"anthropic-version": "2026-10-21", "anthropic-beta": "a-1,b-2"}
        target = golden.target("anthropic_messages", headers={"Anthropic-Beta": "host-1"})
        call = ADAPTER.build(own(headers=headers), target)
        assert call.headers["anthropic-version"] == "2026-10-21"
        assert call.headers["anthropic-beta"] == "host-1,a-1,b-2"
        translated = ADAPTER.build(chat(), to())
        assert translated.headers["anthropic-version"] == "2023-06-01"
        assert "anthropic-beta" not in translated.headers

    def test_the_newest_version_loses_what_it_refuses(self):
        cited = {"type": "text", "text": "a", "citations": [{"type": "char_location"}]}
        asked = own(
            user([cited]),
            headers={"vendor-version": "2026-10-21"},
            temperature=0.5,
            top_p=0.9,
            top_k=5,
        )
        body = sent(asked)
        assert body.keys().isdisjoint({"temperature", "top_p", "top_k"})
        assert "citations" not in body["messages"][0]["content"][0]
        assert dropped(asked) == ("temperature", "top_k", "top_p")

    def test_the_credential_stands_in_one_header_only(self):
        call = ADAPTER.build(chat(), to())
        assert call.headers["x-api-key"] == "up-key"
        assert "authorization" not in call.headers
        assert "up-key" not in repr(call)

    @pytest.mark.parametrize("depth", [100, 400, 700, 900, 5000])
    def test_a_schema_nested_beyond_reason_is_a_400_at_worst(self, depth: int):
        schema = '{"type":"object","properties":{"a":' * depth + "{}" + "}}" * depth
        body = (
            '{"model":"m","messages":[{"role":"user","content":"q"}],"response_format":'
            '{"type":"json_schema","json_schema":{"name":"n","schema":' + schema + "}}}"
        )
        with contextlib.suppress(InvalidRequest):
            ADAPTER.build(CHAT.parse(body.encode(), {}), to())
