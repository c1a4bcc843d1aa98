"""Charts of costs in plain text: a line of columns, or a bar for each day; of ASCII where a terminal knows no more."""

from collections.abc import Sequence
from decimal import Decimal

from gwctl import text

_COLUMNS = ("▁▂▃▄▅▆▇█", "_.:-=+*#")
_EIGHTHS = "▏▎▍▌▋▊▉"
GAP = 2
_NARROWEST = 10


def sparkline(values: Sequence[Decimal], most: int, *, ascii_only: bool) -> str:
    """One column a day, scaled to the largest; where the days are more than `most`, neighbours share a column."""
    together = -(-len(values) // most) if values else 1
    sums = [
        sum(values[start : start + together], Decimal(0))
        for start in range(0, len(values), together)
    ]
    levels = _COLUMNS[ascii_only]
    top = max(sums, default=Decimal(0))
    return "".join(levels[int(one * 7 / top) if top > 0 and one > 0 else 0] for one in sums)


def bars(rows: Sequence[tuple[str, Decimal]], width: int, *, ascii_only: bool) -> str:
    """A line for each day: its name, its amount in USD and a bar; the longest fills the width."""
    amounts = [text.money(amount) for _, amount in rows]
    name_width = max((len(name) for name, _ in rows), default=0)
    amount_width = max(map(len, amounts), default=0)
    room = max(_NARROWEST, width - name_width - amount_width - 2 * GAP)
    top = max((amount for _, amount in rows), default=Decimal(0))
    lines = []
    for (name, amount), shown in zip(rows, amounts, strict=True):
        bar = _bar(amount * room / top, ascii_only=ascii_only) if top > 0 and amount > 0 else ""
        lines.append(f"{name:<{name_width}}  {shown:>{amount_width}}  {bar}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def _bar(length: Decimal, *, ascii_only: bool) -> str:
    """A bar of so many cells; what is not nothing is never drawn as nothing."""
    if ascii_only:
        return "#" * max(1, int(length))
    whole, eighths = int(length), int(length % 1 * 8)
    return "█" * whole + (_EIGHTHS[eighths - 1] if eighths else "") or _EIGHTHS[0]
