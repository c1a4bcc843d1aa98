"""Whether to top up, and how long to wait between tries: pure arithmetic."""

from typing import Final

RETRY_GAPS_US: Final = (60_000_000, 300_000_000, 1_800_000_000)
COOLDOWN_US: Final = 3_600_000_000


def has_room(*, amount_nano: int, monthly_cap_nano: int | None, taken_nano: int) -> bool:
    """Whether the month's cap leaves room for the whole amount; nothing is bought in part."""
    return monthly_cap_nano is None or taken_nano + amount_nano <= monthly_cap_nano


def next_try_us(tries: int, *, now_us: int) -> int | None:
    """When the try after the failed one numbered `tries` (from 1) is due; None when it was the last."""
    if tries > len(RETRY_GAPS_US):
        return None
    return now_us + RETRY_GAPS_US[tries - 1]
