"""What a message says in words, the same in every channel for people."""

from collections.abc import Sequence
from typing import Final

from gwd.alerts.service import SEVERITIES, AlertRecord

LISTED: Final = 20
"""So many alerts of a digest are told one by one."""


def title(alerts: Sequence[AlertRecord]) -> str:
    """One line: the alert's own, or how many there are."""
    if len(alerts) == 1:
        return one_line(alerts[0].title)
    return f"{len(alerts)} alerts of one kind: {one_line(alerts[0].title)} …"


def unlisted(alerts: Sequence[AlertRecord]) -> str:
    """What stands below a list that had to end; empty where all are listed."""
    left = len(alerts) - LISTED
    return f"and {left} more" if left > 0 else ""


def severity(alerts: Sequence[AlertRecord]) -> str:
    """The highest of them."""
    return max((alert.severity for alert in alerts), key=SEVERITIES.index)


def one_line(text: str) -> str:
    """Without line breaks and control characters, which names and vendors' words may hold."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
