"""Pictures and files that a target cannot take: a sentence in results and earlier turns, with every vendor format."""

from typing import Any

import msgspec
import pytest

from gwd.core.errors import InvalidRequest, UnsupportedContent
from gwd.core.request import (
    FilePart,
    Generate,
    ImagePart,
    InlineSource,
    Message,
    Part,
    Request,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    UrlSource,
    VendorFileSource,
)
from gwd.core.target import Flags, Target
from gwd.pipeline.dispatch.unsupported_media import prepared, without_unsupported_media
from gwd.pipeline.plan.media import question_begins
from gwd.vendors import anthropic_messages, gemini, openai_chat, openai_responses
from gwd.vendors.base import Adapter
from tests.golden.golden import target

ADAPTERS = (
    openai_chat.ADAPTER,
    anthropic_messages.ADAPTER,
    gemini.ADAPTER,
    openai_responses.ADAPTER,
)
TEXT_ONLY = frozenset(("text",))
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
PICTURE = ImagePart(source=InlineSource(media_type="image/png", data=PNG))
BITMAP = ImagePart(source=InlineSource(media_type="image/bmp", data="Qk0="))
LINK = ImagePart(source=UrlSource(url="https://x.example/a.png"))
PDF = FilePart(source=InlineSource(media_type="application/pdf", data="JVBERi0="), filename="a.pdf")
KEPT = FilePart(source=VendorFileSource(file_id="file_1"))
NO_PICTURE = "[A picture stood here. This model cannot see it.]"


def request(*messages: Message) -> Request:
    return Request(
        dialect="chat_completions",
        family="openai_chat",
        models=("test/model",),
        body=Generate(messages=messages),
    )


def user(*parts: Part) -> Message:
    return Message(role="user", parts=parts)


def said(text: str = "ok") -> Message:
    return Message(role="assistant", parts=(TextPart(text=text),))


def result(*parts: Any) -> tuple[Message, Message]:
    call = Message(role="assistant", parts=(ToolCallPart(call_id="c", name="f", arguments="{}"),))
    return call, Message(role="tool", parts=(ToolResultPart(call_id="c", parts=parts),))


def sent(adapter: Adapter, asked: Request, to: Target) -> str:
    return prepared(adapter, asked, to)[1].body.decode()


def test_results_and_earlier_turns_hold_a_sentence_at_every_vendor():
    asked = request(
        user(PICTURE, PDF), *result(PICTURE, TextPart(text="seen")), user(TextPart(text="?"))
    )
    for adapter in ADAPTERS:
        body = sent(adapter, asked, target(adapter.format.name, input_modalities=TEXT_ONLY))
        assert body.count(NO_PICTURE) == 2, adapter.format.name
        assert body.count("[The file a.pdf stood here. This model cannot read it.]") == 1
        assert PNG not in body
        assert "seen" in body


def test_a_model_that_sees_is_sent_everything_as_it_is():
    asked = request(user(PICTURE, PDF), *result(PICTURE))
    for adapter in ADAPTERS:
        to = target(adapter.format.name, flags=Flags(takes_file_urls=True))
        assert without_unsupported_media(adapter, asked, to) is asked


@pytest.mark.parametrize("part", [BITMAP, LINK, KEPT], ids=["kind", "address", "stored elsewhere"])
def test_what_a_format_has_no_form_for_is_told_too(part: Any):
    """Beside what the model cannot take at all: a kind of picture, an address, a file of another vendor's."""
    asked = request(user(TextPart(text="x")), *result(part))
    reported = {}
    for adapter in ADAPTERS:
        built = sent(adapter, asked, target(adapter.format.name))
        reported[adapter.format.name] = "stood here. This model cannot" in built
    takes_bitmaps = {"openai_chat": False, "openai_responses": False}
    wanted = {
        BITMAP: {**dict.fromkeys(reported, True), **takes_bitmaps},
        LINK: {**dict.fromkeys(reported, False), "gemini": True},
        KEPT: {**dict.fromkeys(reported, True), "openai_chat": False, "openai_responses": False},
    }
    assert reported == next(value for key, value in wanted.items() if key is part)


def test_the_question_itself_is_refused():
    for part in (BITMAP, KEPT):
        with pytest.raises(InvalidRequest):
            prepared(anthropic_messages.ADAPTER, request(user(part)), target("anthropic_messages"))
    with pytest.raises(UnsupportedContent):
        prepared(gemini.ADAPTER, request(user(LINK)), target("gemini"))


def test_where_the_question_begins():
    table = [
        ([user()], 0),
        ([user(), user()], 0),
        ([user(), said(), user()], 2),
        ([user(), said()], 0),
        ([user(), said(), user(), said("begun")], 2),
        ([user(), *result(), user()], 2),
        ([], 0),
    ]
    assert [question_begins(messages) for messages, _ in table] == [at for _, at in table]


def test_a_mark_for_the_prompt_cache_stays_where_it_was():
    marked = msgspec.structs.replace(PICTURE, cache="5m")
    asked = request(user(marked), said(), user(TextPart(text="?")))
    seen = without_unsupported_media(
        anthropic_messages.ADAPTER,
        asked,
        target("anthropic_messages", input_modalities=TEXT_ONLY),
    )
    assert isinstance(seen.body, Generate)
    assert seen.body.messages[0].parts == (TextPart(text=NO_PICTURE, cache="5m"),)
