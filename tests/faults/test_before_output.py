"""The fault matrix before the first output: what the client gets, that it costs nothing."""

import gzip
from typing import Any

import pytest

from gwd.demo import Behaviour
from tests.faults.bills import billed
from tests.faults.clients import Client
from tests.support.node import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

REDIRECT = {"location": "/v1/chat/completions"}
COMPRESSED = {"content-encoding": "gzip"}
Row = tuple[str, Behaviour | str, int, str, str]

ROWS: list[Row] = [
    ("closed", "cut_before_headers", 503, "upstream_unavailable", "network"),
    ("reset", "reset_before_headers", 503, "upstream_unavailable", "network"),
    *(
        (f"status {status}", Behaviour(status=status), 502, "upstream_error", "upstream_error")
        for status in (408, 409, 425, 500, 501, 502, 504, 520, 524)
    ),
    ("status 503", Behaviour(status=503), 503, "upstream_unavailable", "overloaded"),
    ("status 529", Behaviour(status=529), 503, "upstream_unavailable", "overloaded"),
    ("throttled", Behaviour(status=429), 429, "endpoints_throttled", "rate_limited"),
    ("no quota", "quota", 502, "upstream_error", "quota_exhausted"),
    ("unpaid", Behaviour(status=402), 502, "upstream_error", "quota_exhausted"),
    (
        "empty account as 400",
        Behaviour(status=400, message="Your credit balance is too low"),
        502,
        "upstream_error",
        "quota_exhausted",
    ),
    ("key refused", Behaviour(status=401), 502, "upstream_error", "auth_invalid"),
    ("no access", Behaviour(status=403), 502, "upstream_error", "model_access_denied"),
    ("unknown model", Behaviour(status=404), 502, "upstream_error", "model_access_denied"),
    *(
        (
            f"redirect {status}",
            Behaviour(status=status, headers=REDIRECT),
            502,
            "upstream_error",
            "upstream_error",
        )
        for status in (301, 302, 303, 307, 308)
    ),
    ("no content", Behaviour(status=204, body=""), 502, "upstream_error", "upstream_error"),
    ("web page", "html", 502, "upstream_error", "upstream_error"),
    ("empty body", "empty_body", 502, "upstream_error", "upstream_error"),
    ("another shape", "wrong_shape", 502, "upstream_error", "upstream_error"),
    ("half a JSON", "bad_json", 502, "upstream_error", "upstream_error"),
    ("error first", "error_first", 502, "upstream_error", "upstream_error"),
    ("overloaded first", "overloaded_first", 503, "upstream_unavailable", "overloaded"),
    (
        "web page as error",
        Behaviour(status=502, body="<html>Bad gateway", content_type="text/html"),
        502,
        "upstream_error",
        "upstream_error",
    ),
    (
        "bytes that are no text",
        Behaviour(body_bytes=b"\xff\xfe\x00{", content_type="application/json"),
        502,
        "upstream_error",
        "upstream_error",
    ),
    (
        "stream of bytes that are no text",
        Behaviour(body_bytes=b'data: {"a": "\xff"}\n\n', content_type="text/event-stream"),
        502,
        "upstream_error",
        "upstream_error",
    ),
    (
        "JSON without end",
        Behaviour(body_bytes=b"[" * 200_000, content_type="application/json"),
        502,
        "upstream_error",
        "upstream_error",
    ),
    (
        "JSON null",
        Behaviour(body_bytes=b"null", content_type="application/json"),
        502,
        "upstream_error",
        "upstream_error",
    ),
    (
        "empty object",
        Behaviour(body_bytes=b"{}", content_type="application/json"),
        502,
        "upstream_error",
        "upstream_error",
    ),
    (
        "packed and cut",
        Behaviour(body_bytes=gzip.compress(b'{"a": 1}')[:-4], headers=COMPRESSED),
        502,
        "upstream_error",
        "upstream_error",
    ),
    (
        "packed in name only",
        Behaviour(body_bytes=b"{}", headers=COMPRESSED),
        502,
        "upstream_error",
        "upstream_error",
    ),
    (
        "packed in an unknown way",
        Behaviour(body_bytes=b"{}", headers={"content-encoding": "br"}),
        502,
        "upstream_error",
        "upstream_error",
    ),
    (
        "stream without an event",
        Behaviour(body_bytes=b": only a comment\n\n", content_type="text/event-stream"),
        502,
        "upstream_error",
        "upstream_error",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
async def test_fault_is_told_recorded_and_free(
    node: Gateway, client: Client, stream: bool, row: Row
) -> None:
    _, fault, status, code, reason = row
    node.vendor.script.next(fault, model=client.upstream)
    headers = {"x-gw-metadata": "enabled"}
    seen, bill = await billed(node, client, stream=stream, headers=headers)
    assert (seen.status, seen.ended_well) == (status, False)
    assert seen.error["message"]
    assert bill.outcome == ("failed", code, False)
    assert bill.charged_nano == 0
    assert bill.tokens == (0, 0)
    [fallback] = bill.record["gateway_metadata"]["routing"]["fallbacks"]
    assert fallback["reason"] == reason
    assert len(node.vendor.calls) == 1
    assert ("retry-after" in seen.reply.headers) == (status == 429)


REFUSALS = [(400, "invalid_request"), (413, "request_too_large"), (422, "unprocessable")]


@pytest.mark.parametrize(("status", "code"), REFUSALS)
async def test_vendors_refusal_of_the_request_is_passed_on(
    node: Gateway, client: Client, stream: bool, status: int, code: str
) -> None:
    fault = Behaviour(status=status, message="`fnord` is not a word; key sk-abcdefgh1234 said so")
    node.vendor.script.next(fault, model=client.upstream)
    seen, bill = await billed(node, client, stream=stream)
    assert seen.status == status
    assert "fnord" in seen.error["message"]
    assert "sk-abcdefgh1234" not in seen.reply.text
    assert (bill.outcome, bill.charged_nano) == (("failed", code, False), 0)
    health = node.running.node.state.health
    assert health._rests._pairs == {}
    assert all(ok for one in health._endpoints.values() for _, ok in one.attempts)


async def test_a_compressed_bomb_is_not_decompressed(
    node: Gateway, client: Client, stream: bool
) -> None:
    bomb: Any = gzip.compress(b" " * 50_000_000)
    fault = Behaviour(body_bytes=bomb, headers=COMPRESSED, content_type="text/event-stream")
    node.vendor.script.next(fault, model=client.upstream)
    seen, bill = await billed(node, client, stream=stream)
    assert (seen.status, bill.charged_nano) == (502, 0)
    assert node.vendor.calls.last.headers["accept-encoding"] == "identity"
