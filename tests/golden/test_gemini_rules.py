"""Rules of the Gemini format that make or break a call, one test a rule."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from gwd.core.errors import InvalidImage, InvalidRequest, InvalidValue, UnsupportedContent
from gwd.core.request import Request
from gwd.core.target import Flags, Target
from gwd.dialects.chat_completions import DIALECT as CHAT
from gwd.dialects.messages import DIALECT as MESSAGES
from gwd.dialects.responses import DIALECT as RESPONSES
from gwd.vendors.gemini import ADAPTER
from gwd.vendors.gemini.history import CONTINUE, NO_SIGNATURE, NOT_EXECUTED
from tests.golden import golden

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
GIF = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="

FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "p", "schema": {"$schema": "x", **SCHEMA}},
}


def tool(name: str = "look", **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA, **function}}


def chat(*messages: dict[str, Any], **fields: Any) -> Request:
    body = {"model": "test/model", "messages": list(messages) or [user("hi")], **fields}
    return CHAT.parse(msgspec.json.encode(body), {})


def to(words: frozenset[str] = golden.WORDS, **flags: Any) -> Target:
    return golden.target("gemini", flags=Flags(**flags), supported_parameters=words)


def sent(request: Request, target: Target | None = None) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(ADAPTER.build(request, target or to()).body)
    return body


def config(target: Target | None = None, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = sent(chat(**fields), target).get("generationConfig", {})
    return found


def thinking(target: Target, **fields: Any) -> Any:
    return config(target, **fields).get("thinkingConfig")


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


def image(data: str, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}


def responses_of(turn: dict[str, Any]) -> list[dict[str, Any]]:
    return [p["functionResponse"] for p in turn["parts"] if "functionResponse" in p]


class TestCall:
    @pytest.mark.parametrize(
        "base",
        [
            "https://g.example",
            "https://g.example/",
            "https://g.example/v1beta/",
            "https://g.example/v1beta",
        ],
    )
    def test_any_spelling_of_the_base_url_leads_to_the_method(self, base: str):
        target = golden.target("gemini", base_url=base)
        call = ADAPTER.build(chat(), target)
        assert call.url == "https://g.example/v1beta/models/model-up:generateContent"
        assert ADAPTER.build(chat(stream=True), target).url == (
            "https://g.example/v1beta/models/model-up:streamGenerateContent?alt=sse"
        )

    def test_a_base_url_keeps_its_version_and_its_query(self):
        target = golden.target(
            "gemini", base_url="https://g.example/v1?tenant=a", upstream_model="tuned/é"
        )
        assert ADAPTER.build(chat(stream=True), target).url == (
            "https://g.example/v1/tuned/%C3%A9:streamGenerateContent?tenant=a&alt=sse"
        )

    def test_the_credential_is_a_header_and_nothing_else(self):
        call = ADAPTER.build(chat(), golden.target("gemini", headers={"X-Team": "a", "x-bad": "é"}))
        assert call.headers["x-goog-api-key"] == "up-key"
        assert call.headers["x-team"] == "a"
        assert "x-bad" not in call.headers
        assert "authorization" not in call.headers
        assert b"up-key" not in call.body
        assert "up-key" not in call.url


class TestHistory:
    def test_leading_system_text_is_an_instruction_and_later_system_text_stays_in_place(self):
        body = sent(
            chat(
                {"role": "developer", "content": "A"},
                {"role": "system", "content": "B"},
                user("q"),
                assistant("a"),
                {"role": "system", "content": "C"},
                user("r"),
            )
        )
        assert body["systemInstruction"] == {"parts": [{"text": "A"}, {"text": "B"}]}
        assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
        assert body["contents"][2]["parts"] == [{"text": "C"}, {"text": "r"}]

    def test_neighbours_of_one_role_are_one_turn_and_empty_text_is_dropped(self):
        body = sent(chat(user("a"), assistant(""), user([{"type": "text", "text": ""}]), user("b")))
        assert body["contents"] == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]

    def test_the_first_turn_is_always_the_users(self):
        body = sent(chat(assistant("Hello."), user("q")))
        assert body["contents"][0] == {"role": "user", "parts": [{"text": "."}]}

    @pytest.mark.parametrize(
        "messages",
        [
            [user("")],
            [user("a"), assistant("b"), user("")],
            [{"role": "system", "content": ""}],
            [{"role": "system", "content": "a"}, user("")],
        ],
    )
    def test_a_conversation_with_nothing_to_answer_is_refused(self, messages: list[dict[str, Any]]):
        with pytest.raises(InvalidRequest) as refused:
            sent(chat(*messages))
        assert refused.value.param == "messages"

    def test_a_begun_answer_is_followed_by_a_request_to_go_on_where_the_model_refuses_it(self):
        begun = chat(user("q"), assistant("It is"))
        assert sent(begun)["contents"][-1]["role"] == "model"
        last = sent(begun, to(supports_prefill=False))["contents"][-1]
        assert last == {"role": "user", "parts": [{"text": CONTINUE}]}

    def test_results_follow_their_calls_in_the_order_of_the_calls_whatever_order_they_came_in(self):
        body = sent(
            chat(
                user("q"),
                assistant(None, "a", "b", "c"),
                user("hurry"),
                result("c", "three"),
                result("a", "one"),
                result("zz", "stray"),
            )
        )
        assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
        answers = responses_of(body["contents"][2])
        assert [(a["id"], a["name"], a["response"]) for a in answers] == [
            ("a", "look", {"output": "one"}),
            ("b", "look", {"error": NOT_EXECUTED}),
            ("c", "look", {"output": "three"}),
        ]
        rest = body["contents"][2]["parts"][3:]
        assert [part["text"] for part in rest] == [
            "hurry",
            "Result of an earlier tool call (zz):",
            "stray",
        ]

    def test_calls_of_two_messages_in_a_row_are_one_turn_with_one_signature(self):
        body = sent(
            chat(user("q"), assistant(None, "a"), assistant("so", "b"), result("a"), result("b"))
        )
        assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
        signed = [part.get("thoughtSignature") for part in body["contents"][1]["parts"]]
        assert signed == [NO_SIGNATURE, None, None]
        assert len(responses_of(body["contents"][2])) == 2

    def test_a_conversation_that_ends_with_a_call_is_answered_too(self):
        body = sent(chat(user("q"), assistant(None, "a")))
        assert responses_of(body["contents"][2])[0]["response"] == {"error": NOT_EXECUTED}

    def test_ids_that_a_server_uses_twice_are_told_apart(self):
        body = sent(
            chat(
                user("q"),
                assistant(None, "call 0"),
                result("call 0", "one"),
                assistant(None, "call 0"),
                result("call 0", "two"),
            )
        )
        calls = [body["contents"][i]["parts"][0]["functionCall"]["id"] for i in (1, 3)]
        answers = [responses_of(body["contents"][i])[0] for i in (2, 4)]
        assert len(set(calls)) == 2
        assert [answer["id"] for answer in answers] == calls
        assert [answer["response"]["output"] for answer in answers] == ["one", "two"]

    @pytest.mark.parametrize("arguments", ['{"city": "Os', "[1]", '"text"', "nope"])
    def test_arguments_that_are_no_object_become_an_empty_one_with_a_note(self, arguments: str):
        body = sent(chat(user("q"), assistant(None, "a", arguments=arguments), result("a", "ok")))
        assert body["contents"][1]["parts"][0]["functionCall"]["args"] == {}
        output = responses_of(body["contents"][2])[0]["response"]["output"]
        assert output.startswith("Note:")
        assert output.endswith("ok")

    def test_an_error_is_told_as_one(self):
        blocks = [
            {"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": "no net"}
        ]
        call = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
        messages = [user("q"), {"role": "assistant", "content": [call]}, user(blocks)]
        body = {"model": "test/model", "max_tokens": 50, "messages": messages}
        request = MESSAGES.parse(msgspec.json.encode(body), {})
        assert responses_of(sent(request)["contents"][2])[0]["response"] == {"error": "no net"}

    def test_the_first_line_of_another_vendors_agent_is_left_out(self):
        system = [{"type": "text", "text": "x-anthropic-billing-header: cc=1;\nBe kind."}]
        body = {"model": "m/m", "max_tokens": 5, "system": system, "messages": [user("q")]}
        request = MESSAGES.parse(msgspec.json.encode(body), {})
        assert sent(request)["systemInstruction"] == {"parts": [{"text": "Be kind."}]}

    def test_images_in_a_result_stand_inside_it_for_the_newer_models_and_behind_it_for_the_older(
        self,
    ):
        request = chat(
            user("q"),
            assistant(None, "a", "b"),
            result("a", [{"type": "text", "text": "see"}, image(PNG)]),
            result("b", [image(PNG)]),
        )
        inline = {"inlineData": {"mimeType": "image/png", "data": PNG}}
        newer = sent(request, to(thinking_form="adaptive"))["contents"][2]["parts"]
        assert [part["functionResponse"]["parts"] for part in newer] == [[inline], [inline]]
        older = sent(request, to(thinking_form="budget"))["contents"][2]["parts"]
        assert [list(part) for part in older[:2]] == [["functionResponse"]] * 2
        assert older[2:] == [inline, inline]
        assert "parts" not in older[0]["functionResponse"]


class TestSignatures:
    def replay(self, message: dict[str, Any], target: Target | None = None) -> list[dict[str, Any]]:
        asked = chat(user("q"), {"role": "assistant", **message}, user("and?"))
        parts: list[dict[str, Any]] = sent(asked, target)["contents"][1]["parts"]
        return parts

    @staticmethod
    def detail(data: str, call: str | None = None, format_: str = "google-gemini-v1") -> Any:
        return {"type": "reasoning.encrypted", "data": data, "format": format_, "id": call}

    def test_a_calls_signature_goes_back_with_it_and_only_the_first_call_needs_one(self):
        parts = self.replay(
            {**assistant(None, "a", "b"), "reasoning_details": [self.detail("s1", "a")]}
        )
        assert [part.get("thoughtSignature") for part in parts] == ["s1", None]

    @pytest.mark.parametrize("form", [None, "adaptive", "both"])
    def test_a_call_without_its_signature_gets_the_vendors_stand_in(self, form: str | None):
        foreign = self.detail("s1", "a", "openai-responses-v1")
        parts = self.replay(
            {**assistant(None, "a", "b"), "reasoning_details": [foreign]}, to(thinking_form=form)
        )
        assert [part.get("thoughtSignature") for part in parts] == [NO_SIGNATURE, None]

    @pytest.mark.parametrize("form", ["budget", "none"])
    def test_models_that_ask_for_no_signature_get_no_stand_in(self, form: str):
        parts = self.replay(assistant(None, "a"), to(thinking_form=form))
        assert "thoughtSignature" not in parts[0]

    def test_the_signature_of_a_text_goes_back_on_the_text(self):
        summary = {"type": "reasoning.summary", "summary": "hm", "format": "google-gemini-v1"}
        parts = self.replay(
            {"content": "Seven.", "reasoning_details": [summary, self.detail("s2")]}
        )
        assert parts == [{"text": "Seven.", "thoughtSignature": "s2"}]

    def test_a_signature_of_its_own_goes_back_on_an_empty_text(self):
        details = [self.detail("s1", "a"), self.detail("s2")]
        parts = self.replay({**assistant(None, "a"), "reasoning_details": details})
        assert parts[0]["thoughtSignature"] == "s1"
        assert parts[1] == {"text": "", "thoughtSignature": "s2"}

    @pytest.mark.parametrize("scenario", ["tool_call.json", "text__signed.json", "reasoning.json"])
    def test_what_a_chat_client_sends_back_holds_the_vendors_own_signatures(self, scenario: str):
        path = golden.ROOT / "answers/gemini" / scenario
        received = msgspec.json.decode(path.read_bytes())["candidates"][0]["content"]["parts"]
        shown = golden.render(CHAT, golden.request(), path, golden.events_of(ADAPTER, path))
        parts = self.replay(msgspec.json.decode(shown)["choices"][0]["message"])
        assert parts == [part for part in received if not part.get("thought")]


class TestContent:
    @pytest.mark.parametrize("kind", ["image/jpg", "image/webp", "application/octet-stream"])
    def test_an_image_goes_by_what_it_really_is(self, kind: str):
        body = sent(chat(user([image(PNG, kind)])))
        assert body["contents"][0]["parts"][0]["inlineData"]["mimeType"] == "image/png"

    def test_an_image_of_a_kind_that_is_not_taken_is_refused(self):
        with pytest.raises(InvalidImage, match="image/gif"):
            sent(chat(user([image(GIF)])))

    def test_an_address_is_not_fetched(self):
        there = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
        paper = {"type": "file", "file": {"file_data": "https://example.com/a.pdf"}}
        for part in (there, paper):
            with pytest.raises(UnsupportedContent, match="data URL"):
                sent(chat(user([part])))
            sent(chat(user([part])), to(takes_image_urls=True, takes_file_urls=True))

    def test_images_of_the_assistant_are_dropped(self):
        body = sent(
            chat(user("q"), assistant([{"type": "text", "text": "a"}, image(PNG)]), user("r"))
        )
        assert body["contents"][1]["parts"] == [{"text": "a"}]


class TestTools:
    @pytest.mark.parametrize(
        "name", ["9lives", "-a", "look at/this", "x" * 200, "naïve", "a.b:c-d_e", "mcp__git__log"]
    )
    def test_a_name_fits_the_vendor_and_comes_back(self, name: str):
        asked = chat(user("q"), tools=[tool(name), tool("_9lives")], tool_choice="required")
        upstream = sent(asked)["tools"][0]["functionDeclarations"][0]["name"]
        assert len(upstream) <= 128
        assert upstream[0].isalpha() or upstream[0] == "_"
        answer = {"candidates": [{"content": {"parts": [{"functionCall": {"name": upstream}}]}}]}
        events = ADAPTER.decode(msgspec.json.encode(answer), asked, to())
        assert getattr(events[1], "name", None) == name

    def test_names_the_vendor_takes_stay(self):
        declared = sent(chat(tools=[tool("a.b:c-d_e")]))["tools"][0]["functionDeclarations"]
        assert declared[0]["name"] == "a.b:c-d_e"

    def test_schemas_go_as_json_schema_without_the_name_of_their_dialect(self):
        schema = {
            "$schema": "s",
            "$defs": {"a": {"const": 1}},
            "properties": {"a": {"$ref": "#/$defs/a"}},
        }
        declared = sent(chat(tools=[tool(parameters=schema)]))["tools"][0]["functionDeclarations"][
            0
        ]
        assert declared["parametersJsonSchema"] == {
            "$defs": {"a": {"const": 1}},
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "type": "object",
        }

    @pytest.mark.parametrize(
        "schema", [{}, {"type": "object"}, {"type": "object", "properties": {}, "required": []}]
    )
    def test_a_schema_that_says_nothing_is_left_out(self, schema: dict[str, Any]):
        declared = sent(chat(tools=[tool(parameters=schema)]))["tools"][0]["functionDeclarations"][
            0
        ]
        assert "parametersJsonSchema" not in declared

    @pytest.mark.parametrize(
        ("choice", "strict", "expected"),
        [
            (None, None, None),
            (None, True, {"mode": "VALIDATED"}),
            ("auto", None, {"mode": "AUTO"}),
            ("auto", True, {"mode": "VALIDATED"}),
            ("none", True, {"mode": "NONE"}),
            ("required", None, {"mode": "ANY"}),
            (
                {"type": "function", "function": {"name": "look"}},
                None,
                {"mode": "ANY", "allowedFunctionNames": ["look"]},
            ),
        ],
    )
    def test_each_choice_has_its_mode(self, choice: Any, strict: bool | None, expected: Any):
        fields = {} if choice is None else {"tool_choice": choice}
        body = sent(chat(tools=[tool(strict=strict), tool("b")], **fields))
        assert body.get("toolConfig", {}).get("functionCallingConfig") == expected

    @pytest.mark.parametrize(("mode", "word"), [("auto", "VALIDATED"), ("required", "ANY")])
    def test_a_choice_among_some_tools_names_them(self, mode: str, word: str):
        allowed = {"mode": mode, "tools": [{"type": "function", "function": {"name": "b c"}}]}
        choice = {"type": "allowed_tools", "allowed_tools": allowed}
        body = sent(chat(tools=[tool(), tool("b c")], tool_choice=choice))
        found = body["toolConfig"]["functionCallingConfig"]
        assert found == {"mode": word, "allowedFunctionNames": ["b_c"]}
        assert len(body["tools"][0]["functionDeclarations"]) == 2

    def test_what_cannot_be_told_is_dropped_and_noted(self):
        asked = chat(tools=[tool()], tool_choice="required", parallel_tool_calls=False)
        assert dropped(asked) == ("parallel_tool_calls",)
        unforced = sent(asked, to(rejects_forced_tools=True))
        assert unforced["toolConfig"]["functionCallingConfig"] == {"mode": "AUTO"}
        assert "tool_choice" in dropped(asked, to(rejects_forced_tools=True))
        assert "tools" not in sent(asked, to(words=frozenset()))
        assert dropped(asked, to(words=frozenset())) == (
            "parallel_tool_calls",
            "tool_choice",
            "tools",
        )

    def test_a_choice_without_tools_is_left_out(self):
        body = sent(chat(tools=[], tool_choice="auto"))
        assert body.keys() == {"contents"}


class TestOutput:
    def test_a_schema_goes_with_the_json_type(self):
        found = config(response_format=FORMAT)
        assert found == {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
        assert config(response_format={"type": "json_object"}) == {
            "responseMimeType": "application/json"
        }
        assert config(response_format={"type": "text"}) == {}

    def test_a_model_that_takes_no_json_beside_tools_keeps_its_tools_and_is_told_the_schema(self):
        older = to(no_json_with_tools=True)
        asked = chat(
            {"role": "system", "content": "S"},
            user("q"),
            tools=[tool()],
            response_format=FORMAT,
        )
        body = sent(asked, older)
        assert "generationConfig" not in body
        assert body["tools"]
        first, reported = [part["text"] for part in body["systemInstruction"]["parts"]]
        assert first == "S"
        assert '"city"' in reported
        assert dropped(asked, older) == ("response_format", "structured_outputs")
        assert config(older, response_format=FORMAT)["responseJsonSchema"] == SCHEMA

    def test_sampling_has_the_vendors_names_and_bounds(self):
        found = config(
            temperature=1.5, top_p=0.5, top_k=7, seed=2**40 + 5, stop=["a", "b", "c", "d", "e", "f"]
        )
        assert found == {
            "temperature": 1.5,
            "topP": 0.5,
            "topK": 7,
            "seed": 5,
            "stopSequences": ["a", "b", "c", "d", "e"],
        }
        fixed = to(rejects_sampling=True)
        assert config(fixed, temperature=1, top_p=0.5, top_k=7) == {}
        assert dropped(chat(temperature=1, top_k=7, min_p=0.1), fixed) == (
            "min_p",
            "temperature",
            "top_k",
        )

    def test_a_cap_is_sent_only_if_named_and_within_what_the_endpoint_gives(self):
        assert config() == {}
        assert config(max_tokens=100) == {"maxOutputTokens": 100}
        assert config(max_completion_tokens=90_000) == {"maxOutputTokens": 64_000}


class TestThinking:
    LEVELS = to(thinking_form="adaptive")
    BUDGET = to(thinking_form="budget")

    @pytest.mark.parametrize(
        ("effort", "level"),
        [
            ("minimal", "MINIMAL"),
            ("low", "LOW"),
            ("medium", "MEDIUM"),
            ("high", "HIGH"),
            ("xhigh", "HIGH"),
            ("max", "HIGH"),
        ],
    )
    def test_an_effort_is_a_level(self, effort: str, level: str):
        expected = {"thinkingLevel": level, "includeThoughts": True}
        assert thinking(self.LEVELS, reasoning={"effort": effort}) == expected

    def test_a_level_the_model_lacks_is_the_nearest_one(self):
        few = to(thinking_form="adaptive", supported_efforts=("low", "high", "xhigh"))
        assert thinking(few, reasoning={"effort": "max"})["thinkingLevel"] == "XHIGH"
        assert thinking(few, reasoning={"effort": "medium"})["thinkingLevel"] == "LOW"
        assert thinking(few, reasoning={"effort": "none"}) == {"thinkingLevel": "LOW"}

    @pytest.mark.parametrize(
        ("effort", "max_tokens", "budget"),
        [
            ("low", 20_000, 4_000),
            ("medium", 3_000, 1_500),
            ("high", 10_000, 8_000),
            ("max", 2_000, 1_900),
            ("minimal", 2_000, 1_024),
            ("low", 1_025, 1_024),
            ("high", 64_000, 24_576),
        ],
    )
    def test_an_effort_is_a_share_of_the_answer_within_bounds(
        self, effort: str, max_tokens: int, budget: int
    ):
        for target in (self.BUDGET, to()):
            found = thinking(target, reasoning={"effort": effort}, max_tokens=max_tokens)
            assert found == {"thinkingBudget": budget, "includeThoughts": True}

    def test_a_budget_is_taken_as_given_but_stays_below_the_answer(self):
        assert thinking(self.BUDGET, reasoning={"max_tokens": 3_000})["thinkingBudget"] == 3_000
        assert thinking(self.BUDGET, reasoning={"max_tokens": 5})["thinkingBudget"] == 1_024
        small = thinking(self.BUDGET, reasoning={"max_tokens": 3_000}, max_tokens=2_000)
        assert small["thinkingBudget"] == 1_999

    def test_an_answer_too_short_to_think_for_turns_thinking_off(self):
        asked = chat(reasoning={"effort": "high"}, max_tokens=1_024)
        assert sent(asked, self.BUDGET)["generationConfig"]["thinkingConfig"] == {
            "thinkingBudget": 0
        }
        assert "reasoning" in dropped(asked, self.BUDGET)

    @pytest.mark.parametrize("wish", [{"effort": "none"}, {"enabled": False}])
    def test_thinking_is_switched_off_or_as_low_as_the_model_lets_it_be(self, wish: dict[str, Any]):
        assert thinking(self.BUDGET, reasoning=wish) == {"thinkingBudget": 0}
        assert thinking(self.LEVELS, reasoning=wish) == {"thinkingLevel": "MINIMAL"}
        always = to(thinking_form="budget", mandatory_reasoning=True)
        alias = msgspec.structs.replace(chat(reasoning=wish), models=("~test/latest",))
        found = sent(alias, always)["generationConfig"]["thinkingConfig"]
        assert found == {"thinkingBudget": 128}
        with pytest.raises(InvalidValue, match="always reasons"):
            sent(chat(reasoning=wish), always)

    def test_thoughts_are_shown_unless_excluded(self):
        wish = {"effort": "low", "exclude": True}
        assert thinking(self.LEVELS, reasoning=wish)["includeThoughts"] is False
        assert thinking(self.BUDGET, reasoning=wish)["includeThoughts"] is False

    def test_depth_left_to_the_model_is_left_to_it(self):
        body = {
            "model": "m/m",
            "max_tokens": 9000,
            "messages": [user("q")],
            "thinking": {"type": "adaptive"},
        }
        asked = MESSAGES.parse(msgspec.json.encode(body), {})
        found = [
            sent(asked, t)["generationConfig"]["thinkingConfig"] for t in (self.LEVELS, self.BUDGET)
        ]
        assert found == [
            {"includeThoughts": True},
            {"thinkingBudget": -1, "includeThoughts": True},
        ]

    def test_nothing_is_sent_unasked_or_to_a_model_that_does_not_think(self):
        assert thinking(self.LEVELS) is None
        asked = chat(reasoning={"effort": "high"})
        for dull in (to(thinking_form="none"), to(words=frozenset(("tools",)))):
            assert "generationConfig" not in sent(asked, dull)
            assert "reasoning" in dropped(asked, dull)

    def test_a_model_that_takes_both_gets_what_was_asked(self):
        both = to(thinking_form="both")
        assert "thinkingLevel" in thinking(both, reasoning={"effort": "high"})
        assert "thinkingBudget" in thinking(both, reasoning={"max_tokens": 2_000})


@pytest.mark.parametrize("dialect", [CHAT, MESSAGES, RESPONSES], ids=lambda d: d.name)
@pytest.mark.parametrize("form", [None, "none", "budget", "adaptive"])
def test_every_request_of_every_dialect_is_built_or_refused(dialect: Any, form: Any):
    built = 0
    for path in golden.inputs(f"requests/{dialect.name}", ".json"):
        request = dialect.parse(path.read_bytes(), {})
        try:
            body = sent(request, to(thinking_form=form))
        except InvalidRequest:
            continue
        built += 1
        assert body["contents"][0]["role"] == "user"
        roles = [turn["role"] for turn in body["contents"]]
        assert all(one != other for one, other in pairwise(roles))
        assert all(turn["parts"] for turn in body["contents"])
        for model, answer in pairwise(body["contents"]):
            calls = [p["functionCall"]["name"] for p in model["parts"] if "functionCall" in p]
            assert [found["name"] for found in responses_of(answer)] == calls
    assert built >= 5
