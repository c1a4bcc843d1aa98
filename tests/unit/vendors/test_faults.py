"""A vendor's failed answer is one of the fault's reasons, whatever status it came with."""

import pytest

from gwd.core.clock import US_PER_S
from gwd.vendors import faults


class FixedClock:
    def now_us(self) -> int:
        return 1_767_225_600 * US_PER_S  # 2026-01-01T00:00:00Z

    def monotonic_s(self) -> float:
        return 0.0


def _reason(status: int | None, message: str = "", code: str = "", kind: str = "") -> str:
    return faults.classify(status, {}, code=code, kind=kind, message=message).reason


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (429, "rate_limited"),
        (401, "auth_invalid"),
        (402, "quota_exhausted"),
        (403, "model_access_denied"),
        (404, "model_access_denied"),
        (408, "upstream_error"),
        (425, "upstream_error"),
        (500, "upstream_error"),
        (502, "upstream_error"),
        (503, "overloaded"),
        (504, "upstream_error"),
        (520, "upstream_error"),
        (529, "overloaded"),
        (301, "upstream_error"),
        (400, "bad_request"),
        (413, "bad_request"),
        (422, "bad_request"),
    ],
)
def test_a_status_alone_has_a_reason(status: int, reason: str):
    assert _reason(status) == reason


@pytest.mark.parametrize(
    ("status", "message", "code", "reason"),
    [
        (400, "Your credit balance is too low to access the API", "", "quota_exhausted"),
        (429, "You exceeded your current quota", "insufficient_quota", "quota_exhausted"),
        (403, "Payment required", "", "quota_exhausted"),
        (400, "API key not valid. Please pass a valid API key.", "", "auth_invalid"),
        (500, "Overloaded", "", "overloaded"),
        (None, "overloaded", "", "overloaded"),
        (None, "slow down", "rate_limit_exceeded", "rate_limited"),
        (None, "boom", "", "upstream_error"),
    ],
)
def test_wording_wins_over_the_status(status: int | None, message: str, code: str, reason: str):
    assert _reason(status, message, code) == reason


def test_the_callers_own_fault_is_not_a_quota_problem():
    assert _reason(400, "max_tokens must be positive") == "bad_request"


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        ("This model's maximum context length is 8192 tokens", "context_length"),
        ("prompt is too long: 210000 tokens > 200000 maximum", "context_length"),
        ("Invalid `signature` in thinking block", "invalid_signature"),
        ("rejected by our safety system", "content_policy"),
        ("something else", None),
    ],
)
def test_a_bad_request_is_told_apart(message: str, detail: str | None):
    fault = faults.classify(400, {}, code=None, kind=None, message=message)
    assert (fault.reason, fault.detail) == ("bad_request", detail)
    assert not fault.retryable


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ({"retry-after": "17"}, 17.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:09 GMT"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 2020 00:00:00 GMT"}, None),
        ({"retry-after": "86400"}, faults.MAX_HINT_S),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "x"}, None),
        ({}, None),
    ],
)
def test_retry_hints_are_read_and_capped(headers: dict[str, str], hint: float | None):
    fault = faults.classify(429, headers, code=None, kind=None, message="", clock=FixedClock())
    assert fault.retry_after_s == hint


def test_a_hint_in_the_body_wins():
    fields = {"details": [{"retryDelay": "37s"}]}
    fault = faults.classify(
        429, {"retry-after": "5"}, code=None, kind=None, message="", fields=fields
    )
    assert fault.retry_after_s == 37.0


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop",
        "gwi_0123456789abcdef",
        "AIzaSyA1234567890abcdefg",
        "xai-abcdefghijkl",
        "gsk_abcdefghijkl",
    ],
)
def test_anything_like_a_credential_is_removed(secret: str):
    for text in (f"Incorrect API key provided: {secret}.", f"Bearer {secret} refused", secret):
        assert secret not in faults.scrub(text)


def test_messages_are_cut_and_hold_no_control_characters():
    scrubbed = faults.scrub("a\n\x00b" + "x" * 5_000)
    assert len(scrubbed) == faults.MAX_MESSAGE
    assert scrubbed.startswith("a  b")


def test_a_fault_always_has_a_message():
    assert faults.classify(500, {}, code=None, kind=None, message="").message
