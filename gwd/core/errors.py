"""What can go wrong, as a tree of refusals and one value for upstream trouble.

GatewayError                         status, type and code are class data; message, param, metadata are per case
  InvalidRequest 400 …               the request is wrong
  Unauthenticated 401 …              no or bad credential
  PaymentRequired 402 …              the money is not there
  Forbidden 403 …                    known, but not allowed
  NotFound 404 …                     no such thing (foreign things included)
  Conflict 409 …                     the state does not allow it
  RateLimited 429 …                  wait
  UpstreamFailed 502, Unavailable 503 …  routing happened or could not

Fault                                why one upstream attempt failed; a value, never raised
"""

from typing import Any, ClassVar, Final, Literal

import msgspec

Metadata = dict[str, Any]


class GatewayError(Exception):
    """A refusal or failure as the client sees it: `message` says what was wrong and what would fix it."""

    status: int = 500
    type: str = "api_error"
    code: str = "internal_error"
    retry_by_client: ClassVar[bool | None] = (
        None  # False: `x-should-retry: false` tells SDKs to stop
    )

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        metadata: Metadata | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.metadata = metadata
        self.retry_after_s = retry_after_s


class InternalError(GatewayError):
    """Ours to mend; the client gets a generic text."""


class InvalidRequest(GatewayError):
    status = 400
    type = "invalid_request_error"
    code = "invalid_request"


class InvalidJson(InvalidRequest):
    code = "invalid_json"


class MissingParameter(InvalidRequest):
    code = "missing_parameter"


class InvalidValue(InvalidRequest):
    code = "invalid_value"


class UnknownParameter(InvalidRequest):
    code = "unknown_parameter"


class UnsupportedParameter(InvalidRequest):
    code = "unsupported_parameter"


class UnsupportedContent(InvalidRequest):
    code = "unsupported_content"


class UnsupportedTool(InvalidRequest):
    code = "unsupported_tool"


class UnsupportedInput(InvalidRequest):
    code = "unsupported_input"


class WrongEndpoint(InvalidRequest):
    code = "wrong_endpoint"


class ContextLengthExceeded(InvalidRequest):
    code = "context_length_exceeded"


class ContentPolicyViolation(InvalidRequest):
    code = "content_policy_violation"


class InvalidImage(InvalidRequest):
    code = "invalid_image"


class BudgetOrderViolation(InvalidRequest):
    code = "budget_order_violation"


class Unauthenticated(GatewayError):
    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class MissingApiKey(Unauthenticated):
    code = "missing_api_key"


class KeyDisabled(Unauthenticated):
    code = "key_disabled"


class KeyExpired(Unauthenticated):
    code = "key_expired"


class PaymentRequired(GatewayError):
    status = 402
    type = "insufficient_credits_error"
    code = "insufficient_credits"


class InsufficientCredits(PaymentRequired):
    pass


class KeyLimitExceeded(PaymentRequired):
    code = "key_limit_exceeded"


class BudgetExceeded(PaymentRequired):
    code = "budget_exceeded"


class Forbidden(GatewayError):
    status = 403
    type = "permission_error"
    code = "insufficient_role"


class ModelNotAllowed(Forbidden):
    code = "model_not_allowed"


class WrongKeyType(Forbidden):
    code = "wrong_key_type"


class OrganizationSuspended(Forbidden):
    code = "organization_suspended"


class NotFound(GatewayError):
    status = 404
    type = "not_found_error"
    code = "not_found"


class ModelNotFound(NotFound):
    code = "model_not_found"


class ModelRetired(NotFound):
    code = "model_retired"


class NoEligibleEndpoints(NotFound):
    code = "no_eligible_endpoints"


class GenerationNotFound(NotFound):
    code = "generation_not_found"


class MethodNotAllowed(GatewayError):
    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"


class RequestTimeout(GatewayError):
    status = 408
    type = "timeout_error"
    code = "request_timeout"


class Conflict(GatewayError):
    status = 409
    type = "conflict_error"
    code = "conflict"
    retry_by_client = False


class AlreadyExists(Conflict):
    code = "already_exists"


class PriceNotAccepted(Conflict):
    """A price that looks like a slip of the hand: the same body with `accept: true` is taken."""

    code = "price_not_accepted"


class AlreadyRotated(Conflict):
    code = "already_rotated"


class IdempotencyConflict(Conflict):
    code = "idempotency_conflict"


class RequestTooLarge(GatewayError):
    status = 413
    type = "invalid_request_error"
    code = "request_too_large"


class UnsupportedMediaType(GatewayError):
    status = 415
    type = "invalid_request_error"
    code = "unsupported_media_type"


class RateLimited(GatewayError):
    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class EndpointsThrottled(RateLimited):
    code = "endpoints_throttled"


class TooManyInFlight(RateLimited):
    code = "too_many_in_flight"


class UpstreamFailed(GatewayError):
    status = 502
    type = "upstream_error"
    code = "upstream_error"


class Unavailable(GatewayError):
    status = 503
    type = "overloaded_error"
    code = "upstream_unavailable"


class NoAvailableEndpoint(Unavailable):
    code = "no_available_endpoint"


class Overloaded(Unavailable):
    code = "overloaded"


class Draining(Unavailable):
    code = "draining"


class StorageUnavailable(Unavailable):
    code = "storage_unavailable"


class LedgerQuarantined(Unavailable):
    code = "ledger_quarantined"


class UpstreamRefused(GatewayError):
    """The vendor's own 4xx about the request itself, passed on with its status and a scrubbed message."""

    type = "invalid_request_error"
    code = "invalid_request"

    def __init__(self, message: str, *, status: int, metadata: Metadata | None = None) -> None:
        super().__init__(message, metadata=metadata)
        self.status = status
        if status == 422:
            self.code = "unprocessable"
        elif status == 413:
            self.code = "request_too_large"


FaultReason = Literal[
    "rate_limited",
    "overloaded",
    "upstream_error",
    "timeout",
    "network",
    "model_access_denied",
    "quota_exhausted",
    "auth_invalid",
    "bad_request",
]
FaultDetail = Literal[
    "context_length",
    "content_policy",
    "invalid_signature",
    "reasoning_refused",
    "reasoning_missing",
    "elsewhere",
    "this_request",
    "by_words",
    "redirect",
    "certificate",
]

_RETRYABLE: Final = frozenset(
    (
        "rate_limited",
        "overloaded",
        "upstream_error",
        "timeout",
        "network",
        "model_access_denied",
        "quota_exhausted",
        "auth_invalid",
    )
)


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why one upstream attempt failed: the spec's eight reasons, and `bad_request` for the caller's own fault.

    `status` is the vendor's HTTP status (None before one arrived), `code` its own error code, `message` its text with
    anything that looks like a credential removed, `retry_after_s` its hint, for `quota_exhausted` as long as was said.
    `detail` refines the reason: what a bad_request names or is worth trying again without or with, `elsewhere` where
    another endpoint may take it; `this_request` for a throttle that holds for one request alone; `by_words` for a
    refused key of which only a sentence tells; `redirect` and `certificate` where the address or the trust in it has to
    be corrected, and the message says which.
    """

    reason: FaultReason
    message: str
    status: int | None = None
    code: str | None = None
    retry_after_s: float | None = None
    detail: FaultDetail | None = None

    @property
    def retryable(self) -> bool:
        """Whether another endpoint may be tried before any output."""
        return self.reason in _RETRYABLE
