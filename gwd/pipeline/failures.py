"""What the client is told when attempts failed (the table of api.md 6.5), before and inside an answer."""

from math import ceil
from typing import Any, Final

from gwd.core.errors import (
    ContentPolicyViolation,
    ContextLengthExceeded,
    EndpointsThrottled,
    Fault,
    GatewayError,
    InternalError,
    Overloaded,
    Unavailable,
    UpstreamFailed,
    UpstreamRefused,
)
from gwd.pipeline.attempt import FailedAttempt

_UNREACHABLE: Final = frozenset(("network", "timeout", "overloaded", "rate_limited"))
_OUR_ACCOUNT: Final = frozenset(("auth_invalid", "quota_exhausted", "model_access_denied"))
MAX_RETRY_AFTER_S: Final = 60


def final_error(failures: list[FailedAttempt], *, allows_fallbacks: bool) -> GatewayError:
    """The error when no attempt gave output; `metadata.previous_errors` lists them all.

    A client that allowed no fallbacks asked for the vendor's own answer, so it is told of a 529 as such.
    """
    if not failures:
        return InternalError("the request could not be sent to any endpoint")
    faults = [failure.fault for failure in failures]
    metadata: dict[str, Any] = {
        "previous_errors": [
            {
                "provider": failure.planned.target.tag,
                "code": failure.fault.reason,
                "status": failure.fault.status,
            }
            for failure in failures
        ]
    }
    last = faults[-1]
    if last.reason == "bad_request":
        return _refused(last, metadata)
    reasons = {fault.reason for fault in faults}
    if reasons == {"rate_limited"}:
        return EndpointsThrottled(
            "every endpoint of this model is throttled; wait and try again",
            retry_after_s=_retry_after(faults),
            metadata=metadata,
        )
    if not allows_fallbacks and last.status == 529:
        error = Overloaded("the vendor is overloaded; try again", metadata=metadata)
        error.status = 529
        return error
    if reasons <= _UNREACHABLE:
        return Unavailable(
            "no endpoint of this model could be reached or is free; try again",
            retry_after_s=_retry_after(faults) if "rate_limited" in reasons else None,
            metadata=metadata,
        )
    if reasons <= _OUR_ACCOUNT:
        return UpstreamFailed(
            "the gateway's access to this model's vendors does not work; its operator has to look at it",
            metadata=metadata,
        )
    return UpstreamFailed(
        "the vendors of this model failed to answer; try again or name another model",
        metadata=metadata,
    )


def in_band_error(fault: Fault) -> GatewayError:
    """The error inside an answer that had begun."""
    metadata = {"provider_code": fault.code} if fault.code else None
    match fault.reason:
        case "overloaded":
            return Overloaded(f"the vendor broke off: {fault.message}", metadata=metadata)
        case "rate_limited":
            return EndpointsThrottled(f"the vendor broke off: {fault.message}", metadata=metadata)
        case "bad_request":
            return _refused(fault, metadata or {})
        case "auth_invalid" | "quota_exhausted" | "model_access_denied":
            return UpstreamFailed("the vendor broke off the answer", metadata=metadata)
        case "timeout" | "network" | "upstream_error":
            return UpstreamFailed(f"the answer broke off: {fault.message}", metadata=metadata)


def _refused(fault: Fault, metadata: dict[str, Any]) -> GatewayError:
    if fault.code:
        metadata = {**metadata, "provider_code": fault.code}
    if fault.detail == "context_length":
        return ContextLengthExceeded(fault.message, metadata=metadata)
    if fault.detail == "content_policy":
        return ContentPolicyViolation(fault.message, metadata=metadata)
    return UpstreamRefused(fault.message, status=fault.status or 400, metadata=metadata)


def _retry_after(faults: list[Fault]) -> int:
    hints = [fault.retry_after_s for fault in faults if fault.retry_after_s is not None]
    return min(MAX_RETRY_AFTER_S, max(1, ceil(min(hints)))) if hints else 1
