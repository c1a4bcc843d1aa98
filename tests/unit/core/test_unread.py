"""A last user message of which the vendor would see nothing is refused (api.md 5.2)."""

from typing import Any

import msgspec
import pytest

from gwd.core.errors import InvalidRequest
from gwd.core.request import Request
from gwd.core.unread import refuse_unread_question
from gwd.dialects.messages import DIALECT

UPLOAD = {"type": "container_upload", "file_id": "f"}
TEXT = {"type": "text", "text": "read it"}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "x"}


def asked(*content: dict[str, Any], after: list[dict[str, Any]] | None = None) -> Request:
    messages = [{"role": "user", "content": "first"}, {"role": "user", "content": list(content)}]
    body = {"model": "m", "messages": messages + (after or []), "system": "s"}
    return DIALECT.parse(msgspec.json.encode(body), {})


@pytest.mark.parametrize("family", ["openai_chat", "openai_responses", None])
@pytest.mark.parametrize("after", [[], [{"role": "system", "content": "reminder"}]])
def test_it_is_refused_and_the_blocks_are_named(family: Any, after: list[dict[str, Any]]):
    with pytest.raises(InvalidRequest, match="container_upload, later_kind") as caught:
        refuse_unread_question(asked(UPLOAD, {"type": "later_kind"}, after=after), family)
    assert caught.value.code == "invalid_request"


def test_its_own_family_reads_it():
    refuse_unread_question(asked(UPLOAD), "anthropic_messages")


@pytest.mark.parametrize("content", [[UPLOAD, TEXT], [UPLOAD, IMAGE], [RESULT, UPLOAD], [TEXT], []])
def test_a_message_that_says_something_is_left_alone(content: list[dict[str, Any]]):
    refuse_unread_question(asked(*content), None)


def test_an_earlier_message_is_left_alone():
    refuse_unread_question(asked(UPLOAD, after=[{"role": "user", "content": "more"}]), None)
