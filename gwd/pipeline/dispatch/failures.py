"""What the client is told when attempts failed, before and inside an answer."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from gwd.core.errors import (
    ContentPolicyViolation,
    ContextLengthExceeded,
    EndpointsThrottled,
    Fault,
    FaultReason,
    GatewayError,
    InternalError,
    NoAvailableEndpoint,
    Overloaded,
    Unavailable,
    UpstreamFailed,
    UpstreamRefused,
)
from gwd.pipeline.dispatch.outcome import FailedAttempt
from gwd.pipeline.plan.retry_after import with_retry_after

_UNREACHABLE: Final = frozenset(("network", "timeout", "overloaded", "rate_limited"))
_OURS: Final = frozenset(("redirect", "certificate", "other_format"))
"""Details whose message the gateway has written itself."""

_OUR_ACCOUNT: Final = frozenset(("auth_invalid", "quota_exhausted", "model_access_denied"))


def final_error(
    failures: Sequence[FailedAttempt],
    *,
    closed_for: Collection[FaultReason],
    opens_s: float | None,
    allows_fallbacks: bool,
    now_s: float,
) -> GatewayError:
    """The error when no attempt gave output; `metadata.previous_errors` lists them all.

    `closed_for` is why targets have closed since the plan was made, `opens_s` when the first opens that was left out.
    A client that allowed no fallbacks asked for the vendor's own answer, so it is told of a 529 as such.
    """
    if not failures:
        return _all_closed(closed_for, _wait_s(failures, opens_s, now_s))
    metadata: dict[str, Any] = {"previous_errors": [_previous(failure) for failure in failures]}
    last = failures[-1].fault
    misled = _misled(failures)
    wait_s = _wait_s(failures, opens_s, now_s)
    refused = [f.fault for f in failures if f.fault.reason == "bad_request"]
    reasons = {failure.fault.reason for failure in failures} - {"bad_request"}
    if last.reason == "bad_request" or (refused and reasons <= _OUR_ACCOUNT):
        return _refused(refused[-1], metadata)
    if reasons == {"rate_limited"}:
        return with_retry_after(
            wait_s or 1,
            EndpointsThrottled(
                "every endpoint of this model is throttled; wait and try again", metadata=metadata
            ),
        )
    if not allows_fallbacks and last.status == 529:
        error = Overloaded("the vendor is overloaded; try again", metadata=metadata)
        error.status = 529
        return with_retry_after(wait_s, error)
    if reasons <= _UNREACHABLE:
        return with_retry_after(
            wait_s,
            Unavailable(
                f"no endpoint of this model could be reached or is free; {misled or 'try again'}",
                metadata=metadata,
            ),
        )
    if reasons <= _OUR_ACCOUNT:
        return UpstreamFailed(_access_denied(failures), metadata=metadata)
    return UpstreamFailed(
        f"the vendors of this model failed to answer; {misled or 'try again or name another model'}",
        metadata=metadata,
    )


def _previous(failure: FailedAttempt) -> dict[str, Any]:
    """An attempt as a client is told of it; in words only where they are ours and name what has to be corrected."""
    told: dict[str, Any] = {
        "provider": failure.planned.target.tag,
        "code": failure.fault.reason,
        "status": failure.fault.status,
    }
    if failure.planned.target.credential.byok:
        told["byok"] = True
    return told | {"message": failure.fault.message} if failure.fault.detail in _OURS else told


def _access_denied(failures: Sequence[FailedAttempt]) -> str:
    """Whose keys the vendors refused, and who can help."""
    if all(failure.planned.target.credential.byok for failure in failures):
        providers = dict.fromkeys(failure.planned.target.provider for failure in failures)
        names = ", ".join(f"`{name}`" for name in providers)
        return (
            f"your organization's own key for {names} was refused by its vendor ({failures[-1].fault.reason});"
            " change the key, or no longer require it"
        )
    return (
        "the gateway's access to this model's vendors does not work; its operator has to look at it"
    )


def _all_closed(closed_for: Collection[FaultReason], wait_s: float | None) -> GatewayError:
    """The error when no call was made: other requests' calls have closed every target meanwhile."""
    if not closed_for:
        return InternalError("the request could not be sent to any endpoint")
    if set(closed_for) == {"rate_limited"}:
        return with_retry_after(
            wait_s,
            EndpointsThrottled("every endpoint of this model is throttled; wait and try again"),
        )
    return with_retry_after(
        wait_s,
        NoAvailableEndpoint("every endpoint of this model rests after failures; try again later"),
    )


def _misled(failures: Sequence[FailedAttempt]) -> str:
    """What has to be corrected before trying again can help: an address, the trust in it, a format."""
    return "; ".join(
        dict.fromkeys(
            f"{failure.planned.target.tag}: {failure.fault.message}"
            for failure in failures
            if failure.fault.detail in _OURS
        )
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


def _wait_s(failures: Sequence[FailedAttempt], opens_s: float | None, now_s: float) -> float | None:
    """The soonest of the times that vendors named, or that we keep for those that named none."""
    times = [opens_s, *(failure.opens_s for failure in failures)]
    known = [at_s for at_s in times if at_s is not None]
    return max(0.0, min(known) - now_s) if known else None
