"""Numbers, times and texts of others as people read them: pure functions from values to text.

Amounts are Decimal or whole numbers, never floats, and are rounded half up once, where they are shown.
"""

import unicodedata
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any, Final

from markupsafe import Markup, escape

Amount = Decimal | int

MOST: Final = 200
"""Characters of a text that is shown; what is longer is cut."""
NONE: Final = "–"
MINUS: Final = "−"

_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HIDDEN: Final = _BIDI | frozenset("\u200b\u2060\ufeff\u2028\u2029")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CENT: Final = Decimal("0.01")
_HALF_CENT: Final = Decimal("0.005")


class Whole(str):
    """A text that is shown in full, such as what somebody typed into a field."""

    __slots__ = ()


def shown(value: Any) -> Any:
    """What a template puts out: texts without control and direction characters, cut; nothing as a dash."""
    if value is None:
        return NONE
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    text = clean(value)
    if isinstance(value, Whole) or len(text) <= MOST:
        return text
    return f"{text[: MOST - 1]}…"


def clean(text: str) -> str:
    """Without what is no character to be seen: controls, marks of direction, halves of characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        " " if each in "\n\r\t" else each
        for each in text
        if each in "\n\r\t"
        or (each not in _HIDDEN and unicodedata.category(each) not in ("Cc", "Cs"))
    )


def whole(value: Any) -> Any:
    """A text that is not cut."""
    return Whole(value) if isinstance(value, str) else value


def usd(amount: Amount | None) -> str:
    """Cents: `$1,234.56`; less than half a cent is `<$0.01`."""
    if amount is None:
        return NONE
    value = Decimal(amount)
    if value and abs(value) < _HALF_CENT:
        return "<$0.01" if value > 0 else f"{MINUS}<$0.01"
    return _signed(value, value.copy_abs().quantize(_CENT, ROUND_HALF_UP))


def usd_short(amount: Amount | None) -> str:
    """As `usd`, without cents where there are none: limits, axes."""
    if amount is None:
        return NONE
    value = Decimal(amount)
    if value == value.to_integral_value():
        return _signed(value, value.copy_abs().quantize(Decimal(1)))
    return usd(value)


def usd_fine(amount: Amount | None) -> str:
    """Six places, as for one request; nothing is `$0`."""
    if amount is None:
        return NONE
    value = Decimal(amount)
    if not value:
        return "$0"
    return _signed(value, value.copy_abs().quantize(Decimal("0.000001"), ROUND_HALF_UP))


def nine(amount: Amount | None) -> str:
    """Nine places without a sign of currency; nothing is `0`."""
    if amount is None:
        return NONE
    value = Decimal(amount)
    if not value:
        return "0"
    return f"{MINUS if value < 0 else ''}{abs(value):,.9f}"


def exact(amount: Amount | None) -> Markup | str:
    """Cents, then the seven places after them small: all nine, so that columns align."""
    if amount is None:
        return NONE
    value = Decimal(amount)
    text = f"{abs(value):,.9f}"
    sign = MINUS if value < 0 else ""
    return Markup('{}${}<small class="tail">{}</small>').format(sign, text[:-7], text[-7:])


def price(per_million: Amount | None) -> str:
    """USD per million tokens: trailing zeros cut to two places."""
    if per_million is None:
        return NONE
    text = f"{Decimal(per_million):f}"
    head, _, tail = text.partition(".")
    return f"{head}.{tail.rstrip('0').ljust(2, '0')}"


def count(number: int | None) -> str:
    """Whole, with commas."""
    return NONE if number is None else f"{number:,}"


def short_count(number: int | None) -> str:
    """As figures and axes have it: `12.4 M`."""
    if number is None:
        return NONE
    for least, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= least * (10 if unit == "k" else 1):
            tenths = number * 10 // least
            return f"{tenths // 10}{'' if tenths % 10 == 0 else f'.{tenths % 10}'} {unit}"
    return f"{number:,}"


def percent(part: Amount, total: Amount) -> str:
    """A share: whole, one place under 10."""
    if not total:
        return "0 %"
    value = Decimal(part) * 100 / Decimal(total)
    places = Decimal(1) if abs(value) >= 10 or not value else Decimal("0.1")
    return f"{value.quantize(places, ROUND_HALF_UP):f} %"


def used(part: Amount, limit: Amount) -> int:
    """How much of a limit is used, rounded down: 100 means reached."""
    if not limit:
        return 100
    return int((Decimal(part) * 100 / Decimal(limit)).to_integral_value(ROUND_DOWN))


def duration(milliseconds: Amount | None) -> str:
    """`402 ms`, `4.1 s`, `2 min 5 s`."""
    if milliseconds is None:
        return NONE
    value = Decimal(milliseconds)
    if value < 1000:
        return f"{value.quantize(Decimal(1), ROUND_HALF_UP)} ms"
    seconds = value / 1000
    if seconds < 60:
        return f"{seconds.quantize(Decimal('0.1'), ROUND_HALF_UP)} s"
    rounded = int(seconds.quantize(Decimal(1), ROUND_HALF_UP))
    return f"{rounded // 60} min {rounded % 60} s"


def moment(text: str | datetime) -> datetime:
    """A time of the API's records."""
    if isinstance(text, datetime):
        return text
    return datetime.fromisoformat(text).astimezone(UTC)


def of_us(at_us: int) -> datetime:
    """A moment that is counted in microseconds."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)


def long_time(at: str | datetime | None) -> Markup | str:
    """In text: `28 Nov 2026, 16:05 UTC`."""
    if at is None:
        return NONE
    when = moment(at)
    return _time(when, f"{when.day} {_short(when)} {when.year}, {when:%H:%M} UTC")


def short_time(at: str | datetime | None) -> Markup | str:
    """In tables: `28 Nov, 16:05`."""
    if at is None:
        return NONE
    when = moment(at)
    return _time(when, f"{when.day} {_short(when)}, {when:%H:%M}")


def clock(at: str | datetime | None) -> Markup | str:
    """Under the row of a day: `16:05:09`."""
    if at is None:
        return NONE
    when = moment(at)
    return _time(when, f"{when:%H:%M:%S}")


def last(at: str | datetime | None, today: date) -> Markup | str:
    """When something was last there: the time today, the day before that."""
    if at is None:
        return NONE
    when = moment(at)
    if when.date() == today:
        return clock(when)
    return _time(when, day_text(when.date()) + (f" {when.year}" if when.year != today.year else ""))


def plain_time(at: str | datetime) -> str:
    """Inside a sentence, `29 Nov, 05:00`."""
    when = moment(at)
    return f"{when.day} {_short(when)}, {when:%H:%M}"


def day_text(day: date) -> str:
    """`8 Nov`."""
    return f"{day.day} {_short(day)}"


def weekday_text(day: date) -> str:
    """`Sun 8 Nov`."""
    return f"{_DAYS[day.weekday()][:3]} {day_text(day)}"


def long_day(day: date) -> str:
    """`Sunday 8 November`."""
    return f"{_DAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]}"


def full_day(day: date) -> str:
    """`8 November 2026`."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def month_name(month: str | date) -> str:
    """`November` of 2026-11."""
    number = int(month[5:7]) if isinstance(month, str) else month.month
    return _MONTHS[number - 1]


def month_text(month: str) -> str:
    """`November 2026` of 2026-11."""
    return f"{month_name(month)} {month[:4]}"


def span(first: date, last_day: date) -> str:
    """`1 to 28 November 2026`, as far as the two differ."""
    if first == last_day:
        return full_day(first)
    if first.year != last_day.year:
        return f"{full_day(first)} to {full_day(last_day)}"
    if first.month != last_day.month:
        return f"{first.day} {_MONTHS[first.month - 1]} to {full_day(last_day)}"
    return f"{first.day} to {full_day(last_day)}"


def plural(number: int, noun: str, many: str | None = None) -> str:
    """`1 key`, `3 keys`."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def _short(day: date) -> str:
    return _MONTHS[day.month - 1][:3]


def _signed(value: Decimal, rounded: Decimal) -> str:
    return f"{MINUS if value < 0 and rounded else ''}${rounded:,}"


def _time(when: datetime, text: str) -> Markup:
    return Markup('<time datetime="{}">{}</time>').format(
        when.strftime("%Y-%m-%dT%H:%M:%SZ"), escape(text)
    )
