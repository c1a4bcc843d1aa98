"""When the balance is low: pure arithmetic with one bit of memory per organization, kept by the caller."""

from typing import Literal

LowBalance = Literal["raise", "rearm", "keep"]


def judge(owned_nano: int, threshold_nano: int, *, raised: bool) -> LowBalance:
    """Raise once when the balance falls below the threshold; re-arm when it stands 10 % above it again.

    The distance keeps a balance that hovers around the threshold from ringing at every request.
    """
    if not raised:
        return "raise" if owned_nano < threshold_nano else "keep"
    return "rearm" if owned_nano * 10 >= threshold_nano * 11 and owned_nano > 0 else "keep"


def severity(owned_nano: int) -> Literal["warning", "critical"]:
    """Critical once nothing is left."""
    return "critical" if owned_nano <= 0 else "warning"
