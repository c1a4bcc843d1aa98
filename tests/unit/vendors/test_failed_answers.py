"""One reading of failed answers for every format: each row is the same error in the envelope of each vendor."""

import time
from typing import Any

import msgspec

from gwd.core.clock import US_PER_S
from gwd.core.errors import Fault
from gwd.vendors import error_body, faults, retry_after
from gwd.vendors.anthropic_messages import ADAPTER as ANTHROPIC
from gwd.vendors.base import Adapter
from gwd.vendors.gemini import ADAPTER as GEMINI
from gwd.vendors.openai_chat import ADAPTER as CHAT
from gwd.vendors.openai_embeddings import ADAPTER as EMBEDDINGS
from gwd.vendors.openai_responses import ADAPTER as RESPONSES
from gwd.vendors.second_try import detail_of

ADAPTERS: list[Adapter] = [ANTHROPIC, GEMINI, CHAT, EMBEDDINGS, RESPONSES]
RPC = "type.googleapis.com/google.rpc."
Row = tuple[int, dict[str, str], Any, str, float | None]


class FixedClock:
    def now_us(self) -> int:
        return 1_767_225_600 * US_PER_S  # 2026-01-01T00:00:00Z

    def monotonic_s(self) -> float:
        return 0.0


CLOCK = FixedClock()


def _google(message: str, *details: Any, status: str = "RESOURCE_EXHAUSTED") -> dict[str, Any]:
    return {"code": 429, "message": message, "status": status, "details": list(details)}


def _delay(text: str) -> dict[str, Any]:
    return {"@type": f"{RPC}RetryInfo", "retryDelay": text}


def _quota(name: str) -> dict[str, Any]:
    return {"@type": f"{RPC}QuotaFailure", "violations": [{"quotaId": name}]}


OVER = "You exceeded your current quota, please check your plan and billing details."
MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"

ROWS: dict[str, Row] = {
    # structure
    "a minute by its delay": (429, {}, _google(OVER, _quota(MINUTE), _delay("38s")), "rate", 38),
    "a minute by its name": (429, {}, _google(OVER, _quota(MINUTE)), "rate", None),
    "a delay alone": (429, {}, _google(OVER, _delay("4.5s")), "rate", 4.5),
    "a day by its name": (429, {}, _google(OVER, _quota(DAY), _delay("20s")), "quota", 20),
    "a delay of hours": (429, {}, _google("slow", _delay("7200s")), "quota", 7200),
    "a code for money": (429, {"retry-after": "5"}, {"code": "insufficient_quota"}, "quota", 5),
    "a spent plan": (
        429,
        {},
        {"type": "usage_limit_reached", "message": "limit", "resets_in_seconds": 3600},
        "quota",
        3600,
    ),
    "a moment in a field": (429, {}, {"message": "x", "resets_at": 1_767_225_660}, "rate", 60),
    "headers passed on": (
        429,
        {},
        {
            "message": "Rate limit exceeded: free-models-per-min.",
            "metadata": {"headers": {"X-RateLimit-Reset": "1767225620000"}},
        },
        "rate",
        20,
    ),
    "a key by its details": (
        400,
        {},
        _google(
            "no",
            {"@type": f"{RPC}ErrorInfo", "reason": "API_KEY_INVALID"},
            status="INVALID_ARGUMENT",
        ),
        "auth_invalid",
        None,
    ),
    # headers
    "seconds": (429, {"retry-after": "17"}, {"message": OVER}, "rate", 17),
    "a date": (429, {"retry-after": "Thu, 01 Jan 2026 00:00:09 GMT"}, {"message": "x"}, "rate", 9),
    "milliseconds": (429, {"retry-after-ms": "1500", "retry-after": "9"}, {}, "rate", 1.5),
    "a length": (429, {"retry-after": "1m30s"}, {}, "rate", 90),
    "hours are cut": (429, {"retry-after": "86400"}, {"message": "slow"}, "rate", 300),
    "hours of a quota": (429, {"retry-after": "86400"}, {"message": OVER}, "quota", 86400),
    "the limit that is used up": (
        429,
        {
            "x-ratelimit-remaining-requests": "99",
            "x-ratelimit-reset-requests": "9m0s",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "6.5s",
        },
        {"message": "slow"},
        "rate",
        6.5,
    ),
    "the first to end": (
        429,
        {"x-ratelimit-reset-requests": "20s", "x-ratelimit-reset-tokens": "40s"},
        {"message": "slow"},
        "rate",
        20,
    ),
    "a limit's moment": (
        429,
        {"anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:21Z"},
        {"message": "slow"},
        "rate",
        21,
    ),
    "a limit's epoch": (429, {"x-ratelimit-reset": "1767225612"}, {}, "rate", 12),
    "a hint that is none": (429, {"retry-after": "soon"}, {"message": "slow"}, "rate", None),
    "a hint below zero": (429, {"retry-after": "-5"}, {"message": "slow"}, "rate", None),
    "a hint in a text": (429, {"retry-after": "0"}, {"message": "try again in 2s"}, "rate", 2),
    # a time in the text
    "a text of seconds": (
        429,
        {},
        {"message": "Limit 15000, Used 9, Requested 43. Please try again in 25.289s."},
        "rate",
        25.289,
    ),
    "a text of minutes": (429, {}, {"message": "Quota exceeded, retry in 4 minutes"}, "rate", 240),
    "a text of hours": (429, {}, {"message": "slow down, try again in 5h 30m"}, "quota", 19800),
    "a text with a moment": (
        429,
        {},
        {"message": "You will regain access on 2026-01-02 at 00:00 UTC."},
        "quota",
        86400,
    ),
    "a text of another tongue": (429, {}, {"message": "请求过多，请在 12 秒后重试"}, "rate", 12),
    "a quoted text is not the vendor's": (
        429,
        {},
        {"message": "slow: 'try again in 9 hours'"},
        "rate",
        None,
    ),
    # words
    "a subscription": (
        429,
        {},
        {
            "type": "rate_limit_error",
            "message": "Subscription quota exceeded. You can continue using free models.",
        },
        "quota",
        None,
    ),
    "a day's limit": (429, {}, {"message": "You have reached your daily limit."}, "quota", None),
    "a plan": (429, {}, {"message": "Your plan's usage limit has been reached"}, "quota", None),
    "a quota of minutes": (
        429,
        {},
        {"message": "Quota exceeded for requests per minute"},
        "rate",
        None,
    ),
    "tokens of a day": (429, {}, {"message": "Limit on tokens per day (TPD)"}, "quota", None),
    "no words": (429, {}, {}, "rate", None),
    "money under 402": (402, {"retry-after": "30"}, {"message": "pay"}, "quota", 30),
    "a busy server": (503, {"retry-after": "900"}, {"message": "busy"}, "overloaded", 300),
    "limits on every answer": (503, {"x-ratelimit-reset": "9"}, {}, "overloaded", None),
    "the caller's text": (400, {}, {"message": "try again in 5 hours is no value"}, "bad", None),
    # 403 and 404
    "no such model": (404, {}, {"message": "The model `x` does not exist"}, "access", None),
    "no such deployment": (
        404,
        {},
        {"message": "The API deployment does not exist"},
        "access",
        None,
    ),
    "nothing said": (404, {}, {}, "access", None),
    "bare": (404, {}, {"message": "Not Found"}, "access", None),
    "another path": (404, {}, {"message": "Invalid URL (POST /v1/v1/messages)"}, "address", None),
    "no route": (404, {}, {"message": "No endpoints found for a/b."}, "access", None),
    "the account": (403, {}, {"message": "Your organization must be verified"}, "access", None),
    "the place": (403, {}, {"message": "Country or region not supported"}, "access", None),
    "no tools there": (
        404,
        {},
        {"message": "No endpoints found that support tool use. See the docs", "code": 404},
        "elsewhere",
        None,
    ),
    "no pictures there": (
        404,
        {},
        {"message": "No endpoints found that support image input"},
        "elsewhere",
        None,
    ),
    "a picture for a model": (
        403,
        {},
        {"message": "This model takes no images"},
        "elsewhere",
        None,
    ),
    "a blocked prompt": (403, {}, {"message": "Your prompt was blocked"}, "elsewhere", None),
    "a conversation": (404, {}, {"message": "Conversation conv_1 not found"}, "elsewhere", None),
    "never seen": (404, {}, {"message": "The flux is not coupled"}, "elsewhere", None),
    # for one request alone
    "more than a minute holds": (
        429,
        {"retry-after": "50"},
        {"message": "Request too large (TPM): Limit 30,000, Requested 45,000. Reduce it."},
        "this_request",
        50,
    ),
}
_SHORT = {
    "rate": ("rate_limited", None),
    "quota": ("quota_exhausted", None),
    "bad": ("bad_request", None),
    "access": ("model_access_denied", None),
    "address": ("model_access_denied", "address"),
    "elsewhere": ("bad_request", "elsewhere"),
    "this_request": ("rate_limited", "this_request"),
}


def _envelopes(error: Any) -> list[Any]:
    return [
        {"error": error},
        [{"error": error}],
        {"type": "error", "error": error, "request_id": "r"},
        {"error": {"type": "error", "error": error}},
        error,
    ]


def test_every_format_reads_the_same():
    wrong = []
    for name, (status, headers, error, reason, wait_s) in ROWS.items():
        wanted = _SHORT.get(reason, (reason, None))
        for envelope in _envelopes(error):
            body = msgspec.json.encode(envelope)
            read = error_body.read(body)
            fault = faults.fault_of_error(
                read, status, headers, without_message="nothing", clock=CLOCK
            )
            reported = None if fault.retry_after_s is None else round(fault.retry_after_s, 3)
            if ((fault.reason, fault.detail), reported) != (wanted, wait_s):
                wrong.append((name, envelope, fault))
    assert wrong == []


def test_every_adapter_reads_by_it():
    wrong = []
    error = _google(OVER, _quota(MINUTE), _delay("38s"))
    for adapter in ADAPTERS:
        for envelope in _envelopes(error):
            fault = adapter.fault(429, {}, msgspec.json.encode(envelope))
            if (fault.reason, fault.retry_after_s) != ("rate_limited", 38.0):
                wrong.append((adapter.format.name, envelope, fault))
        for body in (
            b"",
            b"<html>slow down",
            b"{",
            b"[[",
            b"null",
            b"[]",
            b"7",
            b'"slow"',
            b"\xff",
        ):
            fault = adapter.fault(429, {}, body)
            if (fault.reason, fault.retry_after_s) != ("rate_limited", None) or not fault.message:
                wrong.append((adapter.format.name, body, fault))
        page = adapter.fault(404, {}, b"<html>tool prompt image")
        if page.reason != "model_access_denied":
            wrong.append((adapter.format.name, "a page", page))
    assert wrong == []


def test_bodies_of_odd_shapes_say_what_they_hold():
    rows = {
        b'{"detail": "no such thing"}': (None, None, "no such thing"),
        b'{"detail": [{"loc": ["a"], "msg": "bad"}]}': (None, None, '[{"loc":["a"],"msg":"bad"}]'),
        b'{"error": "flat"}': (None, None, "flat"),
        b'{"code": 1113, "message": "x"}': ("1113", None, "x"),
        b'{"base_resp": {"status_code": 1008, "status_msg": "poor"}}': ("1008", None, "poor"),
        b'{"error": {"message": null, "type": "error", "code": null}}': (None, None, ""),
        b'{"errors": [{"message": "first"}, {"message": "second"}]}': (None, None, "first"),
        b'{"error": [], "message": "outer"}': (None, None, "outer"),
        b'{"error": {"code": "ctx"}, "message": "outer"}': ("ctx", None, "outer"),
    }
    wrong = []
    for body, wanted in rows.items():
        read = error_body.read(body)
        if (read.code, read.kind, read.message) != wanted:
            wrong.append((body, read))
    assert wrong == []


def test_a_text_that_holds_much_is_read_quickly_and_in_part():
    texts = ["try again in " * 40_000, "1" * 500_000, "retry " + "1s " * 200_000, "'" * 300_000]
    began_s = time.process_time()
    for text in texts:
        body = msgspec.json.encode({"error": {"message": text}})
        assert CHAT.fault(429, {}, body).message
        assert CHAT.fault(404, {}, body).message
        retry_after.in_text(text[: faults.MAX_READ], CLOCK)
    assert time.process_time() - began_s < 4.0


WITH, WITHOUT, SIGNATURE = "reasoning_missing", "reasoning_refused", "invalid_signature"
REFUSALS = [
    ("property 'reasoning_content' is unsupported", WITHOUT),
    ("messages.1.reasoning_content: Extra inputs are not permitted", WITHOUT),
    ("Unknown parameter: 'messages[1].reasoning_content'", WITHOUT),
    ("Please remove the reasoning_content from your message", WITHOUT),
    ("reasoning_content must not be included in the input", WITHOUT),
    ("The `reasoning_content` in the thinking mode must be passed back to the API.", WITH),
    ("thinking is enabled but reasoning_content is missing in message at index 2", WITH),
    ("Missing `reasoning_content` field in the assistant message at message index 1.", WITH),
    ("messages.2.reasoning_content: Field required", WITH),
    ("assistant messages must include reasoning_content", WITH),
    ("reasoning `encrypted_content` was not issued to this caller", SIGNATURE),
    ("Encrypted content is bound to another organization", SIGNATURE),
    ("This signature has expired", SIGNATURE),
    ("thinking blocks of another model cannot be used", SIGNATURE),
    ("Bad thought_signature", SIGNATURE),
    (
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        SIGNATURE,
    ),
    ("max_tokens must be positive", None),
    ("the reason is unknown", None),
]


def test_what_a_second_call_leaves_out_or_brings_along():
    wrong = []
    for message, detail in REFUSALS:
        for adapter in ADAPTERS:
            for status in (400, 422):
                body = msgspec.json.encode({"error": {"message": message, "type": "invalid"}})
                fault: Fault = adapter.fault(status, {}, body)
                if (fault.reason, fault.detail) != ("bad_request", detail):
                    wrong.append((message, adapter.format.name, status, fault))
    assert wrong == []
    assert detail_of(500, "", "invalid signature") is None


def test_another_trouble_that_names_thinking_keeps_its_name():
    rows = [
        (400, "Model kimi-k2-thinking does not exist", "model_not_found", "model_access_denied"),
        (400, "Your credit balance is too low for thinking", "", "quota_exhausted"),
        (404, "The model x-thinking does not exist", "", "model_access_denied"),
    ]
    for status, message, code, reason in rows:
        fault = faults.classify(status, {}, code=code, kind=None, message=message)
        assert (fault.reason, fault.detail) == (reason, None)
    full = faults.classify(
        400, {}, code=None, kind=None, message="maximum context length with thinking is 8 tokens"
    )
    assert full.detail == "context_length"
