"""From a vendor's failed answer to a `Fault`, for every format: whose fault it was, and how long to wait.

Read in this order: what the error says in its structure (details, codes, types), the headers of limits, a time in its
sentence (up to five minutes it is a throttle, longer an allowance that is used up until then), then its words
(`fault_words`), then the status. The adapters only say where in an answer their errors stand.
"""

from collections.abc import Mapping
from typing import Any, Final

from gwd.core.clock import Clock, SystemClock
from gwd.core.connection_trouble import is_redirect, redirect_trouble
from gwd.core.errors import Fault, FaultReason
from gwd.core.secret_patterns import hide_credentials
from gwd.vendors import retry_after
from gwd.vendors.error_body import ErrorBody, read
from gwd.vendors.fault_structure import reason_by_structure
from gwd.vendors.fault_words import (
    Finding,
    is_throttled_code,
    is_too_large_for_a_minute,
    own_words,
    reason_by_words,
)
from gwd.vendors.second_try import detail_of

MAX_MESSAGE: Final = 1_000
MAX_READ: Final = 4_000
"""Of a vendor's text no more is looked at: the rules for its words take a time that grows with its square."""
MAX_HINT_S: Final = 300.0
_WHERE: Final = "the provider's base_url has to name where it serves"


def scrub(text: str) -> str:
    """A vendor's text without anything that looks like a credential, control characters or endless length."""
    cleaned = hide_credentials(text[:MAX_READ])
    cleaned = "".join(c if c.isprintable() else " " for c in cleaned)
    return cleaned[:MAX_MESSAGE]


def fault_of(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """Why an HTTP answer of another status than 200 failed, in whatever shape it says so."""
    if is_redirect(status):
        reported = redirect_trouble(status, headers.get("location"))
        message = f"the vendor {reported}, which is not followed; {_WHERE}"
        return Fault(reason="upstream_error", message=message, status=status, detail="redirect")
    error = read(body)
    if status in (404, 405) and not error.readable and not error.message:
        message = f"the vendor has nothing at this address (status {status}); {_WHERE}"
        reason: FaultReason = "model_access_denied" if status == 404 else "upstream_error"
        return Fault(reason=reason, message=message, status=status, detail="address")
    without = f"the vendor answered with status {status} and without an error message"
    return fault_of_error(error, status, headers, without_message=without)


def fault_of_error(
    error: ErrorBody,
    status: int | None,
    headers: Mapping[str, str],
    *,
    without_message: str,
    clock: Clock | None = None,
) -> Fault:
    """The fault of an error that was read; `without_message` stands for a text where it has none."""
    return classify(
        status,
        headers,
        code=error.code,
        kind=error.kind,
        message=error.message or without_message,
        is_silent=not error.message,
        readable=error.readable,
        fields=error.fields,
        clock=clock,
    )


def classify(
    status: int | None,
    headers: Mapping[str, str],
    *,
    code: str | None,
    kind: str | None,
    message: str,
    is_silent: bool = False,
    readable: bool = True,
    fields: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
) -> Fault:
    """The fault of an error answer: `code` and `kind` are the vendor's error code and type, `message` its text.

    `status` is None for an error inside a stream of status 200. `readable` is whether the body was JSON at all: what
    stands in front of a vendor answers in its own form. `is_silent` tells that `message` is our own stand-in. `fields`
    are all fields of the error object.
    """
    code, kind = code and code[:MAX_READ], kind and kind[:MAX_READ]
    reported = _Reported(status, headers, code, kind, message[:MAX_READ], fields or {}, clock)
    reason, detail = reported.finding(is_silent=is_silent, readable=readable)
    if reason == "bad_request" and detail in (None, "elsewhere", "invalid_signature"):
        detail = detail_of(status, reported.codes, reported.message) or detail
    wait_s = reported.wait_s()
    if wait_s is not None and reason != "quota_exhausted":
        wait_s = min(wait_s, MAX_HINT_S)
    return Fault(
        reason=reason,
        message=scrub(message[:MAX_READ]) or "the vendor gave no message",
        status=status,
        code=scrub(code or kind or "") or None,
        retry_after_s=wait_s,
        detail=detail,
    )


class _Reported:
    """What an error answer says, from the most reliable sign to the least."""

    def __init__(
        self,
        status: int | None,
        headers: Mapping[str, str],
        code: str | None,
        kind: str | None,
        message: str,
        fields: Mapping[str, Any],
        clock: Clock | None,
    ) -> None:
        clock = clock or SystemClock()
        self.status = status
        self.codes = " ".join(filter(None, (code, kind))).lower()
        self.kind = kind or ""
        self.message = message.lower()
        self.said = own_words(self.message)
        self.fields = fields
        self.in_fields_s = retry_after.in_fields(fields, clock) if fields else None
        self.in_headers_s = (
            retry_after.in_headers(headers, clock, of_limits=self.is_throttle) if headers else None
        )
        self.in_text_s = retry_after.in_text(self.said, clock) if self.is_throttle else None

    @property
    def is_throttle(self) -> bool:
        """Whether it is refused for now, for a rate or for an allowance."""
        if self.status in (402, 429):
            return True
        return self.status in (None, 400, 403, 413, 422, 500, 503) and is_throttled_code(self.codes)

    def wait_s(self) -> float | None:
        return self.in_fields_s or self.in_headers_s or self.in_text_s

    def finding(self, *, is_silent: bool, readable: bool) -> Finding:
        found = reason_by_structure(self.status, self.codes, self.fields)
        if found is None and self.is_throttle and self.status != 402:
            found = self._by_wait()
        if found is None:
            words = "" if is_silent else self.message
            found = reason_by_words(self.status, self.codes, words, self.kind)
        found = found or _reason_by_status(self.status, readable=readable)
        if found == ("rate_limited", None) and is_too_large_for_a_minute(self.said):
            return "rate_limited", "this_request"
        return found

    def _by_wait(self) -> Finding | None:
        """A wait of minutes is a throttle, whatever is said of quotas beside it; a longer one an empty allowance."""
        reported_s = self.in_fields_s or self.in_headers_s or self.in_text_s
        if reported_s is None:
            return None
        if reported_s <= MAX_HINT_S:
            return "rate_limited", None
        # A header of hours may be anybody's mistake; the error's own words for as long are meant.
        is_meant = self.in_headers_s is None or self.in_fields_s is not None
        return ("quota_exhausted", None) if is_meant else None


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
