"""What a message says in words, the same in every channel for people."""

import re
from collections.abc import Sequence
from typing import Final

from gwd.alerts.service import SEVERITIES, AlertRecord

LISTED: Final = 20
"""So many alerts of a digest are told one by one."""

_MOMENT: Final = re.compile(
    r"\b([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}):[0-9]{2}(?:\.[0-9]+)?Z"
)


def title(alerts: Sequence[AlertRecord]) -> str:
    """One line: the alert's own, or how many there are and the first of them."""
    if len(alerts) == 1:
        return for_people(alerts[0].title)
    return f"{heading(alerts)}: {for_people(alerts[0].title)} …"


def heading(alerts: Sequence[AlertRecord]) -> str:
    """What stands above the alerts: the one's title, or how many are listed."""
    if len(alerts) == 1:
        return for_people(alerts[0].title)
    return f"{len(alerts)} alerts of one kind"


def unlisted(alerts: Sequence[AlertRecord]) -> str:
    """What stands below a list that had to end; empty where all are listed."""
    left = len(alerts) - LISTED
    return f"and {left} more" if left > 0 else ""


def severity(alerts: Sequence[AlertRecord]) -> str:
    """The highest of them."""
    return max((alert.severity for alert in alerts), key=SEVERITIES.index)


def for_people(text: str) -> str:
    """One line, with times as people write them: `2026-12-08 21:06 UTC`."""
    return _MOMENT.sub(r"\1 \2 UTC", one_line(text))


def one_line(text: str) -> str:
    """Without line breaks and control characters, which names and vendors' words may hold."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
