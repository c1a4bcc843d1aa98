"""The gateway's own fields and headers mean the same in every dialect."""

import msgspec
import pytest

from gwd.core.errors import InvalidValue, MissingParameter
from gwd.core.request import Embed, Generate, Preferences, Request
from gwd.dialects import extensions, json_input
from gwd.dialects.chat_completions import ChatCompletions
from gwd.dialects.completions import Completions
from gwd.dialects.embeddings import Embeddings
from gwd.dialects.extensions import ProviderWire, UsageWire
from gwd.dialects.messages import Messages
from gwd.dialects.responses import Responses


def test_the_primary_model_comes_first_and_only_once():
    assert extensions.models_of("a/x", ["b/y", "a/x", "b/y"]) == ("a/x", "b/y")


def test_models_alone_name_the_primary():
    assert extensions.models_of(None, ["b/y"]) == ("b/y",)


@pytest.mark.parametrize(("model", "models"), [(None, None), ("", None), (None, []), ("", [])])
def test_a_request_without_a_model_gets_the_default_or_is_refused(
    model: str | None, models: list[str] | None
):
    request = Request(
        dialect="chat_completions",
        family="openai_chat",
        models=extensions.models_of(model, models),
        body=Generate(messages=()),
    )
    assert extensions.with_model(request, "a/x").models == ("a/x",)
    embed = msgspec.structs.replace(request, body=Embed(inputs=("x",)))
    for refused, default in ((request, None), (embed, "a/x")):
        with pytest.raises(MissingParameter) as caught:
            extensions.with_model(refused, default)
        assert caught.value.param == "model"


def test_a_model_that_is_named_is_not_replaced():
    request = Request(
        dialect="messages",
        family="anthropic_messages",
        models=("b/y",),
        body=Generate(messages=()),
    )
    assert extensions.with_model(request, "a/x") is request


def test_data_collection_is_allowed_unless_denied():
    assert extensions.preferences_of(ProviderWire()).data_collection == "allow"
    assert extensions.preferences_of(ProviderWire(data_collection="deny")).data_collection == "deny"
    with pytest.raises(InvalidValue):
        json_input.typed({"data_collection": "never"}, ProviderWire)


def test_at_most_four_models_in_all():
    assert len(extensions.models_of("a", ["b", "c", "d"])) == 4
    with pytest.raises(InvalidValue) as caught:
        extensions.models_of("a", ["b", "c", "d", "e"])
    assert caught.value.param == "models"


def test_an_empty_fallback_name_is_refused():
    with pytest.raises(InvalidValue):
        extensions.models_of("a", ["b", ""])


def test_preferences_default_to_fallbacks_allowed():
    assert extensions.preferences_of(None) == Preferences()
    assert extensions.preferences_of(ProviderWire()) == Preferences()
    assert not extensions.preferences_of(ProviderWire(allow_fallbacks=False)).allow_fallbacks


@pytest.mark.parametrize(
    ("sort", "by", "partition"),
    [
        ("price", "price", "model"),
        ({"by": "latency", "partition": "none"}, "latency", "none"),
        ({}, None, "model"),
        (None, None, "model"),
    ],
)
def test_sort_is_a_word_or_an_object(sort: object, by: str | None, partition: str):
    wire = json_input.typed({"sort": sort, "unknown": 1}, ProviderWire)
    preferences = extensions.preferences_of(wire)
    assert (preferences.sort, preferences.partition) == (by, partition)


def test_an_unknown_sort_names_the_field():
    with pytest.raises(InvalidValue) as caught:
        json_input.typed({"sort": "beauty"}, ProviderWire)
    assert caught.value.param == "sort"


def test_body_fields_win_over_headers():
    headers = {"x-gw-session-id": "h", "x-gw-user-id": "h", "http-referer": "r", "x-title": "t"}
    sender = extensions.sender_of(headers, session_id="b", user="b")
    assert (sender.session_id, sender.user_id, sender.referer, sender.title) == ("b", "b", "r", "t")
    sender = extensions.sender_of(headers)
    assert (sender.session_id, sender.user_id) == ("h", "h")


def test_a_name_of_256_characters_is_taken_and_one_more_is_not():
    assert extensions.sender_of({}, user="u" * 256).user_id == "u" * 256
    for field in ("session_id", "user"):
        with pytest.raises(InvalidValue) as caught:
            extensions.sender_of({}, **{field: "u" * 257})
        assert caught.value.param == field


def test_header_text_is_cleaned_and_cut():
    raw = b"\xff\xfe title\r\n".decode("utf-8", "surrogateescape") + "x" * 400
    title = extensions.sender_of({"x-title": raw}).title
    assert title is not None
    assert len(title) <= 256
    title.encode("utf-8")
    assert "\n" not in title


@pytest.mark.parametrize(
    ("value", "wanted"), [("enabled", True), (" Enabled ", True), ("1", False), ("", False)]
)
def test_the_receipt_is_asked_for_by_one_word(value: str, wanted: bool):
    assert extensions.wants_receipt({"x-gw-metadata": value}) is wanted


def test_cost_is_asked_for_by_usage_include():
    assert extensions.wants_cost(UsageWire(include=True))
    assert not extensions.wants_cost(UsageWire(include=None))
    assert not extensions.wants_cost(None)


def test_tags_come_from_the_header_and_from_metadata_which_wins():
    header = {"x-gw-tags": "a, b"}
    assert extensions.sender_of({}).tags == ()
    assert extensions.sender_of(header).tags == ("a", "b")
    for given in ("c,d", ["c", "d"]):
        assert extensions.sender_of(header, metadata={"tags": given}).tags == ("c", "d")
    for other in (None, "text", {}, {"tags": None}, {"team": "x"}):
        assert extensions.sender_of(header, metadata=other).tags == ("a", "b")


@pytest.mark.parametrize("given", [7, {"a": "b"}, ["a", 7], "a" * 65, ["a,b"]])
def test_metadata_tags_that_are_none_name_the_field(given: object):
    with pytest.raises(InvalidValue) as caught:
        extensions.sender_of({}, metadata={"tags": given})
    assert caught.value.param == "metadata.tags"


def test_every_dialect_reads_tags_and_sends_metadata_on_as_it_came():
    metadata = {"tags": "a, b", "team": "x"}
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    for dialect, fields, extras in (
        (ChatCompletions(), chat, {"metadata": metadata}),
        (Completions(), {"prompt": "hi"}, None),
        (Embeddings(), {"input": "hi"}, {"metadata": metadata}),
        (Responses(), {"input": "hi"}, {"metadata": metadata}),
    ):
        body = msgspec.json.encode({"model": "m", "metadata": metadata, **fields})
        request = dialect.parse(body, {"x-gw-tags": "of the header"})
        assert (request.sender.tags, request.extras) == (("a", "b"), extras), dialect.name
    body = msgspec.json.encode({"model": "m", "max_tokens": 1, **chat})
    assert Messages().parse(body, {"x-gw-tags": "a,b"}).sender.tags == ("a", "b")
