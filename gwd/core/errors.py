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
Money = Literal["none", "released", "received"]
"""What became of credit: none was held · what was held was given back · as released, save what the client received."""
Again = Literal["never", "cured", "later"]
"""Whether the same request may work: not as it is · once the remedy is done · later, by itself."""


class GatewayError(Exception):
    """A refusal or failure as the client sees it: `message` says what was wrong and what would fix it.

    The first sentence of a class says the cause, `remedy` what ends it; the page of errors is made of both.
    """

    status: int = 500
    type: str = "api_error"
    code: str = "internal_error"
    remedy: ClassVar[str] = ""
    money: ClassVar[Money] = "none"
    again: ClassVar[Again] = "never"
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
    """A fault of the gateway itself; the client gets a generic text."""

    remedy = "Try again, and quote the request id to the operator if it persists: the log says more under it."
    money: ClassVar[Money] = "received"
    again: ClassVar[Again] = "later"


class StatementMismatch(GatewayError):
    """A statement does not add up to the ledger, so it is not shown."""

    code = "statement_mismatch"
    remedy = "List the differences with `gwctl ledger verify`; the operator mends them."
    again: ClassVar[Again] = "cured"
    retry_by_client: ClassVar[bool | None] = False


class InvalidRequest(GatewayError):
    """The request is wrong; the message and `param` name the field."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_request"
    remedy = "Correct the field that `param` names."


class InvalidJson(InvalidRequest):
    """The body is no JSON, or a management body names a field twice."""

    code = "invalid_json"
    remedy = "Send one JSON object in UTF-8; the message says where reading stopped."


class MissingParameter(InvalidRequest):
    """A field that is needed is not there."""

    code = "missing_parameter"
    remedy = "Add the field that `param` names."


class InvalidValue(InvalidRequest):
    """A field has a value it cannot have."""

    code = "invalid_value"
    remedy = "Give `param` a value of the kind that the message names."


class UnknownParameter(InvalidRequest):
    """A management body or query has a field that does not exist."""

    code = "unknown_parameter"
    remedy = "Take it out, or spell it as the message suggests."


class UnsupportedParameter(InvalidRequest):
    """A field exists in this dialect and does not work here, `n` above 1 for one."""

    code = "unsupported_parameter"
    remedy = "Leave it out, or do what the message names instead."


class UnsupportedContent(InvalidRequest):
    """A part of the conversation is of a kind that the dialect or the model does not take."""

    code = "unsupported_content"
    remedy = "Send it in a form that the message names, or name a model that takes it."


class UnsupportedTool(InvalidRequest):
    """A tool that the model's vendors do not have or that has no price here."""

    code = "unsupported_tool"
    remedy = "Take the tool out, or have the operator price it: `gwctl model price set`."


class UnsupportedInput(InvalidRequest):
    """The input of embeddings or a completion is of a kind that does not work here, token numbers for one."""

    code = "unsupported_input"
    remedy = "Send text, in as many requests as the message says."


class WrongEndpoint(InvalidRequest):
    """The model exists and answers at another address: a chat model at `/embeddings`, for one."""

    code = "wrong_endpoint"
    remedy = "Call the address that the message names."


class ContextLengthExceeded(InvalidRequest):
    """Prompt and answer do not fit into the model's context."""

    code = "context_length_exceeded"
    remedy = (
        "Shorten the prompt, ask for fewer output tokens, or name a model with a longer context."
    )
    money: ClassVar[Money] = "received"


class ContentPolicyViolation(InvalidRequest):
    """The vendor refuses the content."""

    code = "content_policy_violation"
    remedy = "Change the content, or name a model of another vendor."
    money: ClassVar[Money] = "received"


class InvalidImage(InvalidRequest):
    """A picture or file is no valid base64, data URL or address."""

    code = "invalid_image"
    remedy = "Send it again in the form that the message names."


class ReportTooLarge(InvalidRequest):
    """A question to analytics takes longer to answer than the node allows."""

    code = "report_too_large"
    remedy = "Ask for a shorter range, fewer dimensions, no percentiles, or days of UTC."


class BudgetOrderViolation(InvalidRequest):
    """A budget of a longer interval would be smaller than one of a shorter interval of the same scope."""

    code = "budget_order_violation"
    remedy = "Raise the longer one first, or lower the shorter one."


class Unauthenticated(GatewayError):
    """The key is unknown: misspelt, cut short, deleted, or of another gateway."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"
    remedy = "Use a key of this gateway as `authorization: Bearer` or `x-api-key`."
    again: ClassVar[Again] = "cured"


class MissingApiKey(Unauthenticated):
    """No key was sent."""

    code = "missing_api_key"
    remedy = "Send `authorization: Bearer KEY` or `x-api-key: KEY`."


class KeyDisabled(Unauthenticated):
    """The key was disabled, or what it belongs to was deleted."""

    code = "key_disabled"
    remedy = "Enable it, or use another key."


class KeyExpired(Unauthenticated):
    """The key's time is over, or a rotation's overlap has ended."""

    code = "key_expired"
    remedy = "Use the newer key, or make one."


class PaymentRequired(GatewayError):
    """The money is not there."""

    status = 402
    type = "insufficient_credits_error"
    code = "insufficient_credits"
    again: ClassVar[Again] = "cured"


class InsufficientCredits(PaymentRequired):
    """The free balance does not cover the hold of even the cheapest endpoint."""

    remedy = "Add credit, or ask for fewer output tokens: `metadata` says what is needed and what is there."


class KeyLimitExceeded(PaymentRequired):
    """What the key has spent in its window reached its limit."""

    code = "key_limit_exceeded"
    remedy = "Raise the key's limit, or wait for the reset that `metadata` names."


class BudgetExceeded(PaymentRequired):
    """What was spent in the interval reached a hard budget.

    `metadata` has its scope, interval, limit, reset and id; of a tag or user the scope is the organization, and
    `budget_subject` says which.
    """

    code = "budget_exceeded"
    remedy = "Raise the budget that `metadata` names, or wait for its reset."


class Forbidden(GatewayError):
    """The key is known and its role is too small for this."""

    status = 403
    type = "permission_error"
    code = "insufficient_role"
    remedy = "Use a key with a higher role, or ask an owner."
    again: ClassVar[Again] = "cured"


class ModelNotAllowed(Forbidden):
    """The key or the organization may not use this model."""

    code = "model_not_allowed"
    remedy = "Name an allowed model, or allow this one."


class WrongKeyType(Forbidden):
    """A management key at inference, or an inference key at management."""

    code = "wrong_key_type"
    remedy = "Use `gwi_…` for inference and `gwm_…` for management."


class OrganizationSuspended(Forbidden):
    """The operator has suspended the organization."""

    code = "organization_suspended"
    remedy = "Ask the operator of the gateway."


class NotFound(GatewayError):
    """No such record or address; what belongs to somebody else answers the same."""

    status = 404
    type = "not_found_error"
    code = "not_found"
    remedy = "Check the id and the address."


class ModelNotFound(NotFound):
    """No model has this name; `metadata.suggestions` names the nearest."""

    code = "model_not_found"
    remedy = "Name one that `GET /models` lists."


class ModelRetired(NotFound):
    """The model was retired, and forwarding to its successor is off."""

    code = "model_retired"
    remedy = "Name the successor, or turn forwarding on."


class NoEligibleEndpoints(NotFound):
    """The model exists, and every endpoint was left out; `metadata.excluded_by` says why, `chosen_by` who chose so."""

    code = "no_eligible_endpoints"
    remedy = "Drop the demand that excludes them, or add an endpoint that meets it."
    again: ClassVar[Again] = "cured"


class GenerationNotFound(NotFound):
    """No generation of this organization has this id."""

    code = "generation_not_found"
    remedy = "Use the id of `x-gw-generation-id`; a generation is on record once it has ended."


class MethodNotAllowed(GatewayError):
    """The address exists and does not take this method."""

    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"

    def __init__(self, message: str, *, allowed: tuple[str, ...] = ()) -> None:
        """`allowed` are the methods that the path takes, for the header `allow`."""
        super().__init__(message)
        self.allowed = allowed

    remedy = "Use a method that the `allow` header names."


class RequestTimeout(GatewayError):
    """The request took too long to arrive: its head has 10 s, its body needs 1 KiB a second."""

    status = 408
    type = "timeout_error"
    code = "request_timeout"
    remedy = "Send it again over a better line."
    again: ClassVar[Again] = "later"


class Conflict(GatewayError):
    """The state of the record does not allow it."""

    status = 409
    type = "conflict_error"
    code = "conflict"
    retry_by_client = False
    remedy = "Look at the record as it is now, then decide again."
    again: ClassVar[Again] = "cured"


class AlreadyExists(Conflict):
    """A record of that name or id exists."""

    code = "already_exists"
    remedy = "Change that one, or choose another name."


class PriceNotAccepted(Conflict):
    """A price that looks like a slip of the hand: the same body with `accept: true` is taken."""

    code = "price_not_accepted"
    remedy = "Correct the price, or send `accept: true`."


class PriceNeedsAcceptance(Conflict):
    """Prices of the price book change so much that each model has to be accepted by name; nothing was changed."""

    code = "price_needs_acceptance"
    remedy = "Look at `GET /catalog/prices/diff`, then name in `accept` the models that are meant."


class AlreadyRotated(Conflict):
    """The key was rotated before; its successor is the one to rotate."""

    code = "already_rotated"
    remedy = "Rotate the newer key."


class IdempotencyConflict(Conflict):
    """The `Idempotency-Key` was used for another request."""

    code = "idempotency_conflict"
    remedy = "Use a new one for a new request, the same one only for the same body."


class RequestTooLarge(GatewayError):
    """The body, unpacked, is larger than the node or the vendor takes."""

    status = 413
    type = "invalid_request_error"
    code = "request_too_large"
    remedy = "Send less, or have the operator raise `[limits] request_body_max_bytes`."


class UnsupportedMediaType(GatewayError):
    """The body is not JSON by its `content-type`, or is packed in an unknown way."""

    status = 415
    type = "invalid_request_error"
    code = "unsupported_media_type"
    remedy = "Send `content-type: application/json`, unpacked or as gzip or deflate."


class RateLimited(GatewayError):
    """The key made as many requests in 60 seconds as it may."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"
    remedy = "Wait as long as `retry-after` says, or raise the key's rate limit."
    again: ClassVar[Again] = "later"


class EndpointsThrottled(RateLimited):
    """Every endpoint of the model is throttled by its vendor."""

    code = "endpoints_throttled"
    remedy = "Wait as long as `retry-after` says, or name further models in `models`."
    money: ClassVar[Money] = "received"


class TooManyInFlight(RateLimited):
    """The key has as many requests open as it may."""

    code = "too_many_in_flight"
    remedy = "Wait for one to end, or raise the key's cap."


class UpstreamFailed(GatewayError):
    """The vendors failed to answer, or one broke an answer off; `metadata.previous_errors` lists the attempts."""

    status = 502
    type = "upstream_error"
    code = "upstream_error"
    remedy = "Try again, or name further models in `models`."
    money: ClassVar[Money] = "received"
    again: ClassVar[Again] = "later"


class Unavailable(GatewayError):
    """No endpoint of the model could be reached or is free."""

    status = 503
    type = "overloaded_error"
    code = "upstream_unavailable"
    remedy = "Try again after `retry-after`, or name further models in `models`."
    money: ClassVar[Money] = "released"
    again: ClassVar[Again] = "later"


class NoAvailableEndpoint(Unavailable):
    """Every endpoint that could serve this has no usable credential, or is within the wait that its vendor named."""

    code = "no_available_endpoint"
    remedy = (
        "Try again after `retry-after`; the operator sees the reason in `gwctl endpoint health`."
    )
    money: ClassVar[Money] = "none"


class Overloaded(Unavailable):
    """The node or the vendor has more to do than it can."""

    code = "overloaded"
    remedy = "Try again after `retry-after`, more slowly."
    money: ClassVar[Money] = "received"


class Draining(Unavailable):
    """The node is stopping."""

    code = "draining"
    remedy = "Try again in a moment."
    money: ClassVar[Money] = "received"


class StorageUnavailable(Unavailable):
    """The disk is full or does not answer, so nothing can be booked."""

    code = "storage_unavailable"
    remedy = "The operator has to look at the disk; then try again."
    money: ClassVar[Money] = "received"


class LedgerQuarantined(Unavailable):
    """The ledger was found not to add up, so the node sells nothing."""

    code = "ledger_quarantined"
    remedy = "The operator lists the differences with `gwctl ledger verify`, mends them and starts the node again."
    money: ClassVar[Money] = "received"
    again: ClassVar[Again] = "cured"


class UpstreamRefused(GatewayError):
    """The vendor's own 4xx about the request itself, passed on with its status and a scrubbed message."""

    type = "invalid_request_error"
    code = "invalid_request"
    remedy = "Correct what the message names; it is the vendor's own."
    money: ClassVar[Money] = "received"
    codes: ClassVar[dict[int, str]] = {413: "request_too_large", 422: "unprocessable"}

    def __init__(self, message: str, *, status: int, metadata: Metadata | None = None) -> None:
        super().__init__(message, metadata=metadata)
        self.status = status
        self.code = self.codes.get(status, self.code)


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
    "address",
    "other_format",
    "our_limit",
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
    """Why one upstream attempt failed: the vendor's or the network's fault, or `bad_request` for the caller's.

    `status` is the vendor's HTTP status (None before one arrived), `code` its own error code, `message` its text with
    anything that looks like a credential removed, `retry_after_s` its hint, for `quota_exhausted` as long as was said.
    `detail` refines the reason: what a bad_request names or is worth trying again without or with, `elsewhere` where
    another endpoint may take it; `this_request` for a throttle that holds for one request alone; `by_words` for a
    refused key of which only a sentence tells; `redirect`, `certificate`, `address` and `other_format` where the
    provider's address, the trust in it or its adapter has to be corrected, and the message says which; `our_limit`
    where the gateway has as many calls there as it allows itself.
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
