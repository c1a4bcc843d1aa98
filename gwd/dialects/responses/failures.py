"""How a failure inside a stream is named: the codes that Codex and the SDKs understand."""

from typing import Final

from gwd.core.errors import Fault, FaultReason, GatewayError, InvalidRequest
from gwd.core.events import Failed
from gwd.dialects.envelope import error_object
from gwd.dialects.responses.wire import ErrorObject

_CODES: Final = {
    "context_length_exceeded": "context_length_exceeded",
    "insufficient_credits": "insufficient_quota",
    "key_limit_exceeded": "insufficient_quota",
    "budget_exceeded": "insufficient_quota",
    "rate_limit_exceeded": "rate_limit_exceeded",
    "too_many_in_flight": "rate_limit_exceeded",
    "endpoints_throttled": "rate_limit_exceeded",
    "overloaded": "server_is_overloaded",
    "no_available_endpoint": "server_is_overloaded",
}
_REASONS: Final[dict[FaultReason, str]] = {
    "rate_limited": "endpoints_throttled",
    "overloaded": "overloaded",
}


def failure_of(failed: Failed, request_id: str) -> tuple[ErrorObject, str]:
    """The error of a failed response, and our own precise code for it."""
    if failed.error is None:
        return _from_fault(failed.fault)
    error = failed.error
    message = error_object(error, request_id)["message"]
    return ErrorObject(code=_vendor_code(error), message=message), error.code


def _vendor_code(error: GatewayError) -> str:
    known = _CODES.get(error.code)
    if known is not None:
        return known
    caused_by_caller = isinstance(error, InvalidRequest) or error.status in (400, 413, 422)
    return "invalid_prompt" if caused_by_caller else "server_error"


def _from_fault(fault: Fault) -> tuple[ErrorObject, str]:
    if fault.reason == "bad_request":
        if fault.detail == "context_length":
            code = "context_length_exceeded"
            return ErrorObject(code=code, message=fault.message), code
        return ErrorObject(code="invalid_prompt", message=fault.message), "invalid_request"
    code = _REASONS.get(fault.reason, "upstream_error")
    message = f"the vendor's answer broke off: {fault.message}"
    return ErrorObject(code=_CODES.get(code, "server_error"), message=message), code
