"""From a vendor's failed answer to a `Fault`: statuses, retry hints, scrubbing.

The table is api.md 6.4. What the error's code, type and message say (`fault_words`) decides before the status does.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final

from gwd.core.clock import Clock, SystemClock
from gwd.core.errors import Fault
from gwd.core.secret_looks import hide_credentials
from gwd.vendors.fault_words import Finding, reason_by_words

MAX_MESSAGE: Final = 1_000
MAX_HINT_S: Final = 300.0


def scrub(text: str) -> str:
    """A vendor's text without anything that looks like a credential, control characters or endless length."""
    cleaned = hide_credentials(text)
    cleaned = "".join(c if c.isprintable() else " " for c in cleaned)
    return cleaned[:MAX_MESSAGE]


def classify(
    status: int | None,
    headers: Mapping[str, str],
    *,
    code: str | None,
    kind: str | None,
    message: str,
    readable: bool = True,
    retry_after_s: float | None = None,
    clock: Clock | None = None,
) -> Fault:
    """The fault of an error answer: `code` and `kind` are the vendor's error code and type, `message` its text.

    `status` is None for an error inside a stream of status 200. `readable` is whether the body was of the vendor's
    format at all: what stands in front of a vendor answers in its own. `retry_after_s` is a hint found in the body.
    """
    codes = " ".join(filter(None, (code, kind)))
    reason, detail = reason_by_words(status, codes, message, kind or "") or (
        _reason_by_status(status, readable=readable)
    )
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


def _reason_by_status(status: int | None, *, readable: bool) -> Finding:
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
        case 400 | 405 | 406 | 424 if not readable:
            return "upstream_error", None
        case 400 | 405 | 406 | 410 | 411 | 413 | 414 | 415 | 416 | 417 | 422 | 424:
            return "bad_request", None
        case _:
            return "upstream_error", None
