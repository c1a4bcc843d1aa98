"""What an error says in its structure: google.rpc details, and codes that mean one thing wherever they stand."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gwd.vendors.fault_words import Finding

# ErrorInfo.reason, in lower case.
_REASONS: Final[dict[str, Finding]] = {
    "api_key_invalid": ("auth_invalid", None),
    "api_key_expired": ("auth_invalid", None),
    "consumer_suspended": ("auth_invalid", None),
    "billing_disabled": ("quota_exhausted", None),
    "rate_limit_exceeded": ("rate_limited", None),
}
# Codes and types of an account without money or allowance.
_EMPTY: Final = frozenset(
    (
        "insufficient_quota",
        "insufficient_user_quota",
        "insufficient_credits",
        "insufficient_balance",
        "insufficient_funds",
        "exceeded_current_quota_error",
        "billing_not_active",
        "billing_hard_limit_reached",
        "billing_error",
        "usage_limit_reached",
        "usage_not_included",
        "quota_exceeded",
        "quotaexceeded",
        "arrearage",
        "accountoverdueerror",
        "1113",
    )
)
_SHORT: Final = ("perminute", "persecond", "per_minute", "per_second", "per minute", "per second")
_LONG: Final = ("perday", "permonth", "perweek", "per_day", "per_month", "per day", "per month")


def reason_by_structure(
    status: int | None, codes: str, fields: Mapping[str, Any]
) -> Finding | None:
    """What details and codes say; None where they leave it to what follows. `codes` are in lower case."""
    details = [each for each in _list(fields.get("details")) if isinstance(each, Mapping)]
    for detail in details:
        found = _REASONS.get(str(detail.get("reason", "")).lower())
        if found is not None and (found[0] != "rate_limited" or status != 400):
            return found
    quotas = [name.lower() for name in _quotas(details)]
    if any(word in name for name in quotas for word in _LONG):
        return "quota_exhausted", None
    if any(word in name for name in quotas for word in _SHORT):
        return "rate_limited", None
    if status in (None, 402, 403, 429) and not _EMPTY.isdisjoint(codes.split()):
        return "quota_exhausted", None
    return None


def _quotas(details: list[Mapping[str, Any]]) -> Iterator[str]:
    """The names of the quotas a QuotaFailure lists."""
    for detail in details:
        for violation in _list(detail.get("violations")):
            if isinstance(violation, Mapping):
                yield " ".join(
                    str(violation.get(name, ""))
                    for name in ("quotaId", "quotaMetric", "subject", "description")
                )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
