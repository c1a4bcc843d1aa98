"""What goes to an OpenAI-format server: only what it takes."""

from typing import Any

import msgspec
import pytest

from gwd.core.errors import InvalidValue, UnsupportedContent
from gwd.core.request import (
    FilePart,
    Generate,
    ImagePart,
    InlineSource,
    Message,
    Part,
    Reasoning,
    Request,
    TextPart,
    Tool,
    ToolCallPart,
    ToolResultPart,
    UrlSource,
    VendorFileSource,
)
from gwd.core.target import Credential, Flags
from gwd.vendors.call import url_for
from gwd.vendors.openai_chat import ADAPTER
from gwd.vendors.openai_chat.effort import nearest
from tests.golden.golden import WORDS
from tests.unit.vendors.builders import chat, dropped, sent, target


def _from_messages(*messages: Message, **generate: Any) -> Request:
    """The request of a client of the messages dialect."""
    return Request(
        dialect="messages",
        family="anthropic_messages",
        models=("test/model",),
        body=Generate(messages=messages, **generate),
    )


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com//", "https://api.openai.com/v1/chat/completions"),
        ("http://127.0.0.1:8000/v1//", "http://127.0.0.1:8000/v1/chat/completions"),
        ("https://x.example/api/paas/v4", "https://x.example/api/paas/v4/chat/completions"),
        ("https://x.example/v1beta/openai/", "https://x.example/v1beta/openai/chat/completions"),
        ("https://x.example/v1/chat/completions", "https://x.example/v1/chat/completions"),
        (
            "https://x.example/openai/v1?api-version=1",
            "https://x.example/openai/v1/chat/completions?api-version=1",
        ),
    ],
)
def test_the_path_is_right_whatever_the_base_url_looks_like(base: str, url: str):
    assert url_for(base, "chat/completions") == url


def test_the_credential_goes_into_a_header_and_nowhere_else():
    to = target(credential=Credential(id="c", secret="up-secret"), headers={"X-Org": "o"})
    call = ADAPTER.build(chat(), to)
    assert call.headers["authorization"] == "Bearer up-secret"
    assert call.headers["x-org"] == "o"
    assert b"up-secret" not in call.body
    assert "up-secret" not in call.url + repr(call)


def test_a_server_without_a_key_gets_no_credential_header():
    call = ADAPTER.build(chat(), target(credential=Credential(id="c", secret="")))
    assert "authorization" not in call.headers


def test_usage_is_always_asked_for_in_a_stream():
    assert sent(chat(stream=True))["stream_options"] == {"include_usage": True}
    assert "stream_options" not in sent(chat(stream_options={"include_usage": True}))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"max_tokens", "max_completion_tokens"}, "max_tokens"),
        ({"max_completion_tokens"}, "max_completion_tokens"),
        ({"max_tokens"}, "max_tokens"),
        (set(), "max_tokens"),
    ],
)
def test_a_cap_is_always_sent_under_the_name_the_model_lists(words: set[str], name: str):
    body = sent(chat(max_tokens=100), target(supported_parameters=frozenset(words)))
    assert [key for key in body if key.startswith("max")] == [name]
    assert body[name] == 100


def test_a_cap_above_the_models_is_cut_to_it():
    assert sent(chat(max_tokens=10**6), target(max_completion_tokens=500))["max_tokens"] == 500


def test_no_cap_is_invented():
    assert not [key for key in sent(chat()) if key.startswith("max")]


def test_what_the_model_lacks_is_dropped_and_named():
    request = chat(temperature=0.5, seed=1, top_k=3, logit_bias={"1": 1}, verbosity="low", stop="x")
    to = target(supported_parameters=frozenset({"seed"}))
    body = sent(request, to)
    assert body["seed"] == 1
    assert not {"temperature", "top_k", "logit_bias", "verbosity", "stop"} & body.keys()
    assert set(dropped(request, to)) == {"temperature", "top_k", "logit_bias", "verbosity", "stop"}


def test_sampling_is_dropped_where_the_model_rejects_it():
    request = chat(temperature=0.5, top_p=0.5, seed=1)
    to = target(flags=Flags(rejects_sampling=True))
    assert set(sent(request, to)) == {"model", "messages", "seed"}
    assert dropped(request, to) == ("temperature", "top_p")


def test_nothing_sent_is_null_or_empty():
    request = chat(
        messages=[{"role": "assistant", "content": None}, {"role": "user", "content": "hi"}],
        tools=[],
        stop=[""],
        tool_choice="auto",
    )
    assert sent(request) == {"model": "model-up", "messages": [{"role": "user", "content": "hi"}]}


def test_unknown_fields_go_only_to_their_own_family():
    request = chat(brand_new=1)
    assert sent(request)["brand_new"] == 1
    foreign = msgspec.structs.replace(request, family="anthropic_messages")
    assert "brand_new" not in sent(foreign)


def test_the_gateways_own_fields_never_go_upstream():
    request = chat(
        usage={"include": True}, provider={"order": ["a"]}, models=["b/c"], session_id="s"
    )
    assert set(sent(request)) == {"model", "messages"}


def test_the_end_user_is_sent_as_a_hash_only():
    body = sent(chat(user="ann@example.com"))
    assert "ann" not in body["user"]
    assert body["user"] == sent(chat(user="ann@example.com"))["user"]
    assert body["user"] != sent(chat(user="bob@example.com"))["user"]


# --- roles and order


def test_a_developer_message_is_a_system_message_for_models_without_that_role():
    request = chat(
        messages=[{"role": "developer", "content": "x"}, {"role": "user", "content": "y"}]
    )
    assert sent(request)["messages"][0]["role"] == "system"
    knows = target(flags=Flags(developer_role=True))
    assert sent(request, knows)["messages"][0]["role"] == "developer"


def test_text_before_tool_results_follows_them():
    results: list[Part] = [
        TextPart(text="use km"),
        ToolResultPart(call_id="t1", parts=(TextPart(text="7"),)),
        ToolResultPart(call_id="t2", parts=(TextPart(text="9"),)),
    ]
    calls = [ToolCallPart(call_id=i, name="d", arguments="{}") for i in ("t1", "t2")]
    request = _from_messages(
        Message(role="user", parts=(TextPart(text="far?"),)),
        Message(role="assistant", parts=tuple(calls)),
        Message(role="user", parts=tuple(results)),
    )
    messages = sent(request)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert messages[4]["content"] == "use km"


def test_images_in_results_follow_all_results_in_one_user_message():
    calls = [ToolCallPart(call_id=i, name="d", arguments="{}") for i in ("t1", "t2")]
    image = ImagePart(source=UrlSource(url="https://example.com/a.png"))
    request = _from_messages(
        Message(role="user", parts=(TextPart(text="look"),)),
        Message(role="assistant", parts=tuple(calls)),
        Message(role="tool", parts=(ToolResultPart(call_id="t1", parts=(image,)),)),
        Message(role="tool", parts=(ToolResultPart(call_id="t2", parts=(TextPart(text="9"),)),)),
    )
    messages = sent(request)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert messages[2]["content"]
    assert messages[4]["content"][0]["type"] == "image_url"


def test_an_error_result_says_so():
    request = _from_messages(
        Message(role="assistant", parts=(ToolCallPart(call_id="t", name="d", arguments="{}"),)),
        Message(
            role="user",
            parts=(ToolResultPart(call_id="t", parts=(TextPart(text="boom"),), is_error=True),),
        ),
    )
    assert sent(request)["messages"][1]["content"] == "Error: boom"


def _said(*steps: str) -> list[tuple[str, str]]:
    """Role and content of what a conversation becomes: `t1+t2` calls, `=t1` is a result, `u:` and `a:` are texts."""
    messages: list[dict[str, Any]] = []
    for step in steps:
        who, _, text = step.partition(":")
        if step.startswith("="):
            messages.append(
                {"role": "tool", "tool_call_id": step[1:3], "content": f"of {step[1:]}"}
            )
        elif text:
            role = {"u": "user", "a": "assistant", "s": "system"}[who]
            messages.append({"role": role, "content": text})
        else:
            calls = [{"id": one, "function": {"name": "f"}} for one in step.split("+")]
            messages.append({"role": "assistant", "tool_calls": calls})
    built = sent(chat(messages=messages))["messages"]
    shown = []
    for message in built:
        called = "+".join(call["id"] for call in message.get("tool_calls", ()))
        shown.append((message["role"], f"{message.get('content', '')} {called}".strip()))
    return shown


NOT_RUN = ("tool", "This call was not executed.")


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        (
            ("u:go", "t1", "t2", "=t1", "=t2"),
            [("assistant", "t1+t2"), ("tool", "of t1"), ("tool", "of t2")],
        ),
        (("u:go", "t1", "a:running", "=t1"), [("assistant", "running t1"), ("tool", "of t1")]),
        (("u:go", "a:so", "t1", "=t1"), [("assistant", "so t1"), ("tool", "of t1")]),
        (
            ("u:go", "t1+t2", "=t1", "a:more", "t3", "=t2", "=t3"),
            [
                *(("assistant", "t1+t2"), ("tool", "of t1"), ("tool", "of t2")),
                *(("assistant", "more t3"), ("tool", "of t3")),
            ],
        ),
        (
            ("u:go", "t1", "s:note", "t2", "=t1", "=t2"),
            [
                *(("assistant", "t1"), ("tool", "of t1"), ("system", "note")),
                *(("assistant", "t2"), ("tool", "of t2")),
            ],
        ),
        # One id used again: each call has the result behind it.
        (
            ("u:go", "t1", "=t1 a", "t1", "=t1 b"),
            [("assistant", "t1"), ("tool", "of t1 a"), ("assistant", "t1"), ("tool", "of t1 b")],
        ),
        (
            ("u:go", "t1", "s:note", "t1", "=t1"),
            [
                *(("assistant", "t1"), NOT_RUN, ("system", "note")),
                *(("assistant", "t1"), ("tool", "of t1")),
            ],
        ),
        # A new word of the user ends the turn.
        (
            ("u:go", "t1", "u:stop", "a:ok", "=t1"),
            [
                *(("assistant", "t1"), NOT_RUN, ("user", "stop"), ("assistant", "ok")),
                ("user", "Result of an earlier tool call: of t1"),
            ],
        ),
        (("u:go", "a:one", "a:two"), [("assistant", "one"), ("assistant", "two")]),
    ],
)
def test_the_calls_of_a_turn_find_their_results(
    steps: tuple[str, ...], wanted: list[tuple[str, str]]
):
    assert _said(*steps) == [("user", "go"), *wanted]


def test_texts_and_fields_of_joined_messages_are_kept():
    call = {"id": "t1", "function": {"name": "f"}}
    history = [
        {"role": "assistant", "name": "ann", "content": "one", "tool_calls": [call], "x": 1},
        {"role": "assistant", "content": "two", "y": 2},
        {"role": "tool", "tool_call_id": "t1", "content": "r"},
    ]
    assistant, _ = sent(chat(messages=history))["messages"]
    assert [part["text"] for part in assistant["content"]] == ["one", "two"]
    assert (assistant["name"], assistant["x"], assistant["y"]) == ("ann", 1, 2)


@pytest.mark.parametrize("length", [40, 41, 72, 400])
def test_call_ids_have_at_most_40_characters_and_pair_up(length: int):
    call_id = "t" * length
    request = _from_messages(
        Message(role="assistant", parts=(ToolCallPart(call_id=call_id, name="d", arguments="{}"),)),
        Message(role="user", parts=(ToolResultPart(call_id=call_id, parts=()),)),
    )
    assistant, result = sent(request)["messages"]
    assert len(assistant["tool_calls"][0]["id"]) <= 40
    assert result["tool_call_id"] == assistant["tool_calls"][0]["id"]


def test_the_first_line_of_another_vendors_agent_is_not_sent():
    billing = TextPart(text="x-anthropic-billing-header: cc=1")
    request = _from_messages(
        Message(role="system", parts=(billing, TextPart(text="Be brief."))),
        Message(role="user", parts=(TextPart(text="hi"),)),
    )
    assert sent(request)["messages"][0] == {"role": "system", "content": "Be brief."}


# --- content


def test_a_text_file_of_another_dialect_is_sent_as_text():
    source = InlineSource(media_type="text/plain", data="aGVsbG8=")
    request = _from_messages(
        Message(role="user", parts=(FilePart(source=source, filename="a.txt"),))
    )
    assert sent(request)["messages"][0]["content"] == "a.txt:\nhello"


@pytest.mark.parametrize(
    "part",
    [
        FilePart(source=UrlSource(url="https://example.com/a.pdf")),
        FilePart(source=VendorFileSource(file_id="file_1")),
        ImagePart(source=VendorFileSource(file_id="file_1")),
    ],
)
def test_content_this_format_cannot_carry_is_refused(part: FilePart | ImagePart):
    with pytest.raises(UnsupportedContent):
        ADAPTER.build(_from_messages(Message(role="user", parts=(part,))), target())


def test_cache_marks_are_sent_as_breakpoints_only_where_the_model_takes_them():
    marked = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    request = chat(messages=[{"role": "user", "content": [marked]}])
    assert sent(request)["messages"][0]["content"] == "x"
    (part,) = sent(request, target(flags=Flags(cache_breakpoints=True)))["messages"][0]["content"]
    assert part["prompt_cache_breakpoint"] == {"mode": "explicit"}


# --- tools


def test_names_this_format_refuses_are_renamed_everywhere_and_come_back():
    name = "mcp.server/look at"
    tools = [{"type": "function", "function": {"name": name}}]
    history = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": name}}]},
        {"role": "tool", "tool_call_id": "c", "content": "y"},
    ]
    choice = {"type": "function", "function": {"name": name}}
    request = chat(messages=history, tools=tools, tool_choice=choice)
    body = sent(request)
    upstream = body["tools"][0]["function"]["name"]
    assert upstream.replace("_", "").isalnum()
    assert body["messages"][1]["tool_calls"][0]["function"]["name"] == upstream
    assert body["tool_choice"]["function"]["name"] == upstream
    answer = {
        "choices": [{"message": {"tool_calls": [{"id": "d", "function": {"name": upstream}}]}}]
    }
    events = ADAPTER.decode(msgspec.json.encode(answer), request, target())
    assert events[1].name == name  # type: ignore[union-attr]


def test_forced_tools_fall_back_to_auto_where_they_are_rejected():
    tools = [{"type": "function", "function": {"name": "f"}}]
    request = chat(tools=tools, tool_choice="required")
    to = target(flags=Flags(rejects_forced_tools=True))
    assert sent(request, to)["tool_choice"] == "auto"
    assert dropped(request, to) == ("tool_choice",)


def test_what_a_server_refuses_is_left_out():
    """Fields of the body are told to the client as left out, save the one that only the gateway asks for."""
    named = {"role": "user", "content": "hi", "name": "ada"}
    request = chat(messages=[named], stream=True, user="u-1", store=True, metadata={"a": "b"})
    plain = sent(request)
    assert {"stream_options", "user", "store", "metadata"} <= plain.keys()
    assert plain["messages"] == [named]
    to = target(flags=Flags(refused_fields=("stream_options", "user", "store", "messages.name")))
    strict = sent(request, to)
    left = {name: value for name, value in plain.items() if name in strict}
    assert strict == left | {"messages": [{"role": "user", "content": "hi"}]}
    assert plain.keys() - strict.keys() == {"stream_options", "user", "store"}
    assert dropped(request, to) == ("user", "store")


def test_ids_of_calls_are_nine_letters_and_digits_where_that_is_asked_for():
    """Its own ids stay; those of other vendors are the same for a call and its result, also where two are equal."""
    given = ["aB3xY9kLm", "call_abc", "call_abc", "functions.look:0"]
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": each, "type": "function", "function": function} for each in given]
    results = [
        {"role": "tool", "tool_call_id": each, "content": str(n)} for n, each in enumerate(given)
    ]
    turn = {"role": "assistant", "tool_calls": calls}
    request = chat(messages=[{"role": "user", "content": "go"}, turn, *results])
    _, built, *answers = sent(request, target(flags=Flags(short_call_ids=True)))["messages"]
    ids = [call["id"] for call in built["tool_calls"]]
    assert ids[0] == given[0]
    assert len(set(ids)) == len(ids)
    assert all(len(each) == 9 and each.isascii() and each.isalnum() for each in ids)
    assert [answer["tool_call_id"] for answer in answers] == ids
    assert [answer["content"] for answer in answers] == ["0", "1", "2", "3"]


def test_a_schema_mark_of_another_family_is_removed():
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}
    request = _from_messages(
        Message(role="user", parts=(TextPart(text="x"),)),
        tools=(Tool(name="f", parameters=schema),),
    )
    assert sent(request)["tools"][0]["function"]["parameters"] == {"type": "object"}


# --- output and reasoning


def test_json_object_needs_the_word_json():
    asked = {"response_format": {"type": "json_object"}}
    assert "JSON" in str(sent(chat(**asked))["messages"])
    named = chat(messages=[{"role": "user", "content": "As json, please"}], **asked)
    assert len(sent(named)["messages"]) == 1


def test_a_schema_without_a_name_gets_one():
    schema = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
    assert (
        sent(chat(response_format=schema))["response_format"]["json_schema"]["name"] == "response"
    )


@pytest.mark.parametrize(
    ("wanted", "supported", "level"),
    [
        ("none", ("low", "high"), "low"),
        ("minimal", ("low", "medium", "high"), "low"),
        ("medium", ("low", "high"), "low"),
        ("max", ("low", "medium", "high"), "high"),
        ("xhigh", ("high", "max"), "high"),
        ("high", ("high",), "high"),
    ],
)
def test_an_unknown_level_becomes_the_nearest_and_ties_go_down(
    wanted: Any, supported: Any, level: str
):
    assert nearest(wanted, supported) == level


@pytest.mark.parametrize(
    ("reasoning", "effort"),
    [
        ({"effort": "high"}, "high"),
        ({"effort": "none"}, "none"),
        ({"enabled": False}, "none"),
        ({"enabled": True}, "medium"),
        ({"max_tokens": 1_000}, "medium"),
        ({"max_tokens": 1_900}, "xhigh"),
        ({"max_tokens": 0}, "none"),
        ({"exclude": True}, None),
    ],
)
def test_reasoning_becomes_one_level(reasoning: dict[str, Any], effort: str | None):
    to = target(
        flags=Flags(supported_efforts=("none", "minimal", "low", "medium", "high", "xhigh"))
    )
    assert sent(chat(max_tokens=2_000, reasoning=reasoning), to).get("reasoning_effort") == effort


def test_thinking_left_to_the_model_sends_no_level():
    request = _from_messages(
        Message(role="user", parts=(TextPart(text="x"),)),
        reasoning=Reasoning(enabled=True, adaptive=True),
    )
    assert "reasoning_effort" not in sent(request)


def test_reasoning_is_dropped_where_the_model_does_not_reason():
    to = target(supported_parameters=WORDS - {"reasoning", "reasoning_effort"})
    request = chat(reasoning={"effort": "high"})
    assert "reasoning_effort" not in sent(request, to)
    assert dropped(request, to) == ("reasoning",)
    assert dropped(chat(reasoning={"effort": "none"}), to) == ()


def test_no_reasoning_at_a_model_that_always_reasons_is_refused_or_the_least_of_an_alias():
    to = target(flags=Flags(mandatory_reasoning=True, supported_efforts=("low", "high")))
    with pytest.raises(InvalidValue) as caught:
        ADAPTER.build(chat(reasoning={"effort": "none"}), to)
    assert caught.value.param == "reasoning.effort"
    alias = chat(model="~test/model-latest", reasoning={"effort": "none"})
    assert sent(alias, to)["reasoning_effort"] == "low"


def test_reasoning_of_another_family_never_goes_back():
    detail = {
        "type": "reasoning.text",
        "text": "hm",
        "signature": "s",
        "format": "anthropic-claude-v1",
    }
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "reasoning_details": [detail], "tool_calls": [call]}
    body = sent(chat(messages=[{"role": "user", "content": "x"}, message]))
    assert "hm" not in str(body["messages"])
