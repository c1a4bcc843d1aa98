"""Which alert thresholds spending has reached: pure arithmetic, the same for key limits and budgets.

Percentages are compared in integers: spent × 100 ≥ limit × percent.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from gwd.core.periods import Window, first_day

DEFAULT_THRESHOLDS: Final = (50, 80, 90, 100)

_WARNING_FROM: Final = 80
_FULL: Final = 100


class Crossing(msgspec.Struct, frozen=True, kw_only=True):
    """Thresholds newly reached: one alert for the highest.

    `mark` names the limit and its period; an alert is due only if `threshold_percent` exceeds the value kept under
    that name, which makes each threshold alert once per period, after a rotation too.
    """

    mark: str
    threshold_percent: int
    thresholds_crossed: tuple[int, ...]


def reached(spent_nano: int, limit_nano: int, thresholds: Sequence[int]) -> tuple[int, ...]:
    """The thresholds that spending has reached, ascending; none of a limit of 0, which has no percentages."""
    if limit_nano <= 0:
        return ()
    return tuple(
        percent for percent in sorted(thresholds) if spent_nano * 100 >= limit_nano * percent
    )


def crossing(
    before_nano: int,
    after_nano: int,
    limit_nano: int,
    thresholds: Sequence[int],
    *,
    subject: str,
    window: Window,
    at_us: int,
) -> Crossing | None:
    """What going up from `before_nano` to `after_nano` crossed of a subject's limit, or None."""
    if not crosses(before_nano, after_nano, limit_nano, thresholds):
        return None
    known = reached(before_nano, limit_nano, thresholds)
    over = reached(after_nano, limit_nano, thresholds)
    return Crossing(
        mark=mark_name(subject, window, at_us),
        threshold_percent=over[-1],
        thresholds_crossed=over[len(known) :],
    )


def crosses(before_nano: int, after_nano: int, limit_nano: int, thresholds: Sequence[int]) -> bool:
    """Whether a threshold lies between the two, the second included."""
    before, after = before_nano * 100, after_nano * 100
    for percent in thresholds:  # a plain loop: every charge runs it for the key and each budget
        if before < limit_nano * percent <= after:
            return limit_nano > 0
    return False


def mark_name(subject: str, window: Window, at_us: int) -> str:
    """The name under which the highest alerted threshold of one limit and period is kept."""
    return f"{subject}:{window}:{first_day(window, at_us)}"


def severity(threshold_percent: int, *, refuses: bool) -> Literal["info", "warning", "critical"]:
    """The severity: below 80 info, below 100 warning, from 100 critical where the limit refuses requests."""
    if threshold_percent < _WARNING_FROM:
        return "info"
    if threshold_percent >= _FULL and refuses:
        return "critical"
    return "warning"
