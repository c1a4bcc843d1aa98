"""From a vendor's failed answer to a `Fault`: statuses, wording that betrays the real reason, retry hints, scrubbing.

The table is api.md 6.4. Vendors disagree with their own status codes (an empty account as 400 or 429, an overload as
500), so the wording of error code, type and message decides before the status does.
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final

from gwd.core.clock import Clock, SystemClock
from gwd.core.errors import Fault, FaultDetail, FaultReason

MAX_MESSAGE: Final = 1_000
MAX_HINT_S: Final = 300.0

_QUOTA: Final = (
    "insufficient_quota",
    "insufficient quota",
    "exceeded your current quota",
    "credit balance is too low",
    "credit balance too low",
    "payment required",
    "account is not active",
    "spending limit",
    "out of credits",
    "insufficient credits",
    "insufficient balance",
)
_CONTEXT: Final = (
    "context_length_exceeded",
    "context length",
    "context window",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "exceeds the maximum number of tokens",
    "input length and `max_tokens` exceed",
)
_POLICY: Final = (
    "content_policy",
    "content policy",
    "content_filter",
    "content management policy",
    "moderation system",
    "input was flagged",
    "safety system",
    "usage policy",
    "usage policies",
)
# Words that say it as an error code or under a status of that meaning; in other texts they may be the client's own.
_QUOTA_WORD: Final = ("billing",)
_POLICY_WORD: Final = ("moderation",)
_SIGNATURE: Final = (
    "invalid signature",
    "invalid `signature`",
    "signature in thinking",
    "thought_signature",
)
_OVERLOADED: Final = ("overloaded", "over capacity", "at capacity", "server_is_overloaded")
_AUTH: Final = ("invalid_api_key", "api key not valid", "incorrect api key", "invalid x-api-key")

# Anything that looks like a credential: known prefixes, bearer values, long unbroken tokens behind the word key.
_SECRET: Final = re.compile(
    r"(?i)(?:\b(?:sk|pk|rk|gw[im]|xai|gsk|hf|AIza|ya29)[-_][A-Za-z0-9_\-.*]{6,}"
    r"|\bAIza[A-Za-z0-9_\-]{8,}"
    r"|(?<=bearer )[A-Za-z0-9_\-.=+/*]{6,}"
    r"|(?<=key: )[A-Za-z0-9_\-.=+/*]{6,}|(?<=key provided: )[A-Za-z0-9_\-.=+/*]{4,})"
)


def scrub(text: str) -> str:
    """A vendor's text without anything that looks like a credential, control characters or endless length."""
    cleaned = _SECRET.sub("***", text)
    cleaned = "".join(c if c.isprintable() else " " for c in cleaned)
    return cleaned[:MAX_MESSAGE]


def classify(
    status: int | None,
    headers: Mapping[str, str],
    *,
    code: str | None,
    kind: str | None,
    message: str,
    retry_after_s: float | None = None,
    clock: Clock | None = None,
) -> Fault:
    """The fault of an error answer: `code` and `kind` are the vendor's error code and type, `message` its text.

    `status` is None for an error inside a stream of status 200. `retry_after_s` is a hint found in the body.
    """
    codes = " ".join(filter(None, (code, kind))).lower()
    reason, detail = _reason(status, codes, f"{codes} {message.lower()}", kind or "")
    hint = (
        retry_after_s if retry_after_s is not None else retry_hint(headers, clock or SystemClock())
    )
    return Fault(
        reason=reason,
        message=scrub(message) or "the vendor gave no message",
        status=status,
        code=scrub(code or kind or "") or None,
        retry_after_s=None if hint is None else min(max(hint, 0.0), MAX_HINT_S),
        detail=detail,
    )


def retry_hint(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after` (seconds or an HTTP date); None without a sensible one."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
            return seconds if isfinite(seconds) else None
        text = headers.get("retry-after")
        if text is None:
            return None
        if text.strip().replace(".", "", 1).isdigit():
            return float(text)
        return parsedate_to_datetime(text).timestamp() - clock.now_us() / 1_000_000
    except (ValueError, TypeError, OverflowError):
        return None


def _reason(
    status: int | None, codes: str, wording: str, kind: str
) -> tuple[FaultReason, FaultDetail | None]:
    by_wording = _reason_by_wording(status, codes, wording, kind)
    if by_wording is not None:
        return by_wording
    match status:
        case 429:
            return "rate_limited", None
        case 401:
            return "auth_invalid", None
        case 402:
            return "quota_exhausted", None
        case 403 | 404:
            return "model_access_denied", None
        case 503 | 529:
            return "overloaded", None
        case 400 | 405 | 406 | 409 | 410 | 411 | 413 | 414 | 415 | 416 | 417 | 422 | 424:
            return "bad_request", None
        case _:
            return "upstream_error", None


def _reason_by_wording(
    status: int | None, codes: str, wording: str, kind: str
) -> tuple[FaultReason, FaultDetail | None] | None:
    refused = status in (None, 400, 413, 422)
    account = status in (402, 403, 429)
    if (account or status in (None, 400)) and (
        _any(_QUOTA, wording) or _any(_QUOTA_WORD, wording if account else codes)
    ):
        return "quota_exhausted", None
    if refused and _any(_CONTEXT, wording):
        return "bad_request", "context_length"
    if refused and _any(_SIGNATURE, wording):
        return "bad_request", "invalid_signature"
    if (refused or status == 403) and (
        _any(_POLICY, wording) or _any(_POLICY_WORD, wording if status == 403 else codes)
    ):
        return "bad_request", "content_policy"
    if status in (None, 400, 403) and _any(_AUTH, wording):
        return "auth_invalid", None
    if status is None or status >= 500:
        if _any(_OVERLOADED, wording):
            return "overloaded", None
        if status is None and ("rate_limit" in wording or "rate limit" in wording):
            return "rate_limited", None
        if status is None and kind == "invalid_request_error":
            return "bad_request", None
    return None


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)
