"""When the balance is low, and by how much: pure arithmetic. The caller keeps the highest level it has reported.

The level is kept as the alert's mark: a low balance is reported once, an empty one once more. Only added credit
re-arms it, at 10 % above the threshold, so that a balance near the threshold does not alert again and again.
"""

from typing import Final, Literal

Level = Literal[0, 1, 2]
SEVERITY: Final[dict[Level, Literal["warning", "critical"]]] = {1: "warning", 2: "critical"}


def level(owned_nano: int, threshold_nano: int) -> Level:
    """0: enough; 1: below the threshold; 2: nothing left. A threshold of 0 asks for no warning before the end."""
    if owned_nano <= 0:
        return 2
    return 1 if owned_nano < threshold_nano else 0


def rearms(owned_nano: int, threshold_nano: int) -> bool:
    """Whether credit stands clearly above the threshold again."""
    return owned_nano > 0 and owned_nano * 10 >= threshold_nano * 11


def mark_name(organization_id: str) -> str:
    """The name under which the highest level reported so far is kept."""
    return f"low_balance:{organization_id}"
