"""A body that is not of the vendor's format comes from something in front of it: no fault of the caller's."""

import pytest

from gwd.vendors.anthropic_messages import ADAPTER as ANTHROPIC
from gwd.vendors.base import Adapter
from gwd.vendors.gemini import ADAPTER as GEMINI
from gwd.vendors.openai_chat import ADAPTER as CHAT
from gwd.vendors.openai_responses import ADAPTER as RESPONSES

ADAPTERS = [ANTHROPIC, GEMINI, CHAT, RESPONSES]
PAGE = b"<html><head><title>400 Bad Request</title></head><body>proxy</body></html>"


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.format.name)
@pytest.mark.parametrize("status", [400, 405, 406, 424])
@pytest.mark.parametrize("body", [PAGE, b"", b'{"error": ', b"\xff"], ids=["page", "", "cut", "ff"])
def test_a_web_page_is_a_failed_attempt(adapter: Adapter, status: int, body: bytes):
    assert adapter.fault(status, {}, body).reason == "upstream_error"


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.format.name)
@pytest.mark.parametrize(
    "body", [b'{"error": {"message": "no"}}', b'{"detail": "no"}', b"{}", b'["no"]']
)
def test_json_of_any_shape_is_the_callers_fault(adapter: Adapter, body: bytes):
    assert adapter.fault(400, {}, body).reason == "bad_request"


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.format.name)
@pytest.mark.parametrize("status", [413, 422])
def test_a_page_that_finds_the_body_too_large_is_right(adapter: Adapter, status: int):
    assert adapter.fault(status, {}, PAGE).reason == "bad_request"
