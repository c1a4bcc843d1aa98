"""How values read on a terminal: cleaned text, money, times, counts, bars. Pure functions."""

import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_UP, ROUND_UP, Decimal, InvalidOperation

# C0 and C1 controls, DEL, line and paragraph separators, bidirectional overrides and zero-width
# characters: a name from the server must not move the cursor or hide part of a line.
_FORBIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
_ESCAPE_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x9b[0-?]*[ -/]*[@-~]"
)
_UNPRINTABLE = re.compile(f"[{_FORBIDDEN}\U000e0000-\U000e007f]")
_GATEWAY_KEY = re.compile(r"\b(gw[im]_[0-9A-Za-z]{4})[0-9A-Za-z]{8,}([0-9A-Za-z]{4})\b")

_PASSWORD = re.compile(r"(://[^\s/?#@:]*:)[^\s/?#]*@")

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def clean(text: str) -> str:
    """The text without terminal escapes, control, bidi and zero-width characters.

    Newlines and tabs stay.
    """
    return _UNPRINTABLE.sub("", _ESCAPE_SEQUENCE.sub("", text.replace("\r\n", "\n")))


def clean_line(text: str) -> str:
    """The same in one line, for table cells and messages."""
    return re.sub(r"[\n\t]+", " ", clean(text)).strip()


def mask(secret: str) -> str:
    """A key as it is shown after it was made: `gwi_6vR2…9Zq1`; others keep four characters."""
    masked = _GATEWAY_KEY.sub(r"\1…\2", secret)
    if masked != secret:
        return masked
    return f"…{secret[-4:]}" if len(secret) >= 12 else "…"


def mask_keys(text: str) -> str:
    """The text with every gateway key in it masked, and the password of every address."""
    return _PASSWORD.sub(r"\1…@", _GATEWAY_KEY.sub(r"\1…\2", text))


def decimal(value: object) -> Decimal | None:
    """The value as an exact number, or None when it is not one."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def plain(number: Decimal) -> str:
    """The number without an exponent and without loss; one that would fill a page keeps its exponent."""
    if abs(number.adjusted()) > 1_000:
        return str(number)
    text = format(number, "f")
    return text if text != "-0" else "0"


def money(value: object) -> str:
    """US dollars at four significant digits, never fewer than cents: $182.41, $0.000138."""
    number = decimal(value)
    if number is None:
        return "-"
    if number == 0:
        return "$0.00"
    places = max(2, 3 - number.adjusted())
    rounded = number.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    whole, _, fraction = f"{abs(rounded):,f}".partition(".")
    fraction = fraction.rstrip("0").ljust(2, "0")
    return f"{'-' if rounded < 0 else ''}${whole}.{fraction}"


def exact_money(value: object) -> str:
    """US dollars with every digit there is, never fewer than cents: $182.41, $9.999862."""
    number = decimal(value)
    if number is None:
        return "-"
    whole, _, fraction = f"{abs(number):,f}".partition(".")
    return f"{'-' if number < 0 else ''}${whole}.{fraction.rstrip('0').ljust(2, '0')}"


def per_million(value: object) -> str:
    """A price per token, shown per million tokens as price lists do, with every digit that was typed."""
    number = decimal(value)
    return "-" if number is None else exact_money(number * 1_000_000)


def count(value: object) -> str:
    """A whole number with separators; millions shortened (61.2 M)."""
    number = decimal(value)
    if number is None:
        return "-"
    if abs(number) >= 1_000_000:
        return f"{number / 1_000_000:.1f} M"
    return f"{number:,f}" if number == number.to_integral_value() else f"{number:,.1f}"


def counted(number: int, word: str) -> str:
    """`1 change`, `2 changes`, `2 entries`."""
    if number == 1:
        return f"1 {word}"
    many = f"{word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{word}s"
    return f"{number:,} {many}"


def share(number: Decimal, places: int = 0) -> str:
    """A percentage; 100 % and 0 % are said only when it is so."""
    step = Decimal(1).scaleb(-places)
    rounded = number.quantize(step, rounding=ROUND_HALF_UP)
    if rounded in (0, 100) and number != rounded:
        finer = step / 10 if places == 0 else step
        away = ROUND_UP if number > rounded or rounded == 0 else ROUND_DOWN
        rounded = number.quantize(finer, rounding=away)
    return f"{rounded:f} %"


def percent(value: object) -> str:
    number = decimal(value)
    return "-" if number is None else share(number)


def bar(value: object, width: int = 20) -> str:
    """A bar for a share in percent; full only when it is all; more than 100 fills it and says so."""
    number = decimal(value)
    if number is None:
        return "-"
    filled = min(width, max(0, int((number * width / 100).to_integral_value(ROUND_HALF_UP))))
    if number < 100:
        filled = min(filled, width - 1)
    return f"{'█' * filled}{'░' * (width - filled)} {share(number)}"


def sparkline(values: list[Decimal]) -> str:
    """One block per value, scaled to the largest."""
    top = max(values, default=Decimal(0))
    if top <= 0:
        return "▁" * len(values)
    return "".join("▁▂▃▄▅▆▇█"[int(value * 7 / top)] for value in values)


def parse_time(value: object) -> datetime | None:
    """An API time as a moment, or None when the value is not one."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def ago(value: object, now: datetime) -> str:
    """A time relative to now: `3 min ago`, `in 4 d`; the date itself when it is far away."""
    moment = parse_time(value)
    if moment is None:
        return "-" if value in (None, "") else clean_line(str(value))
    seconds = round((now - moment).total_seconds())
    if abs(seconds) < 5:
        return "now"
    if abs(seconds) > 60 * 86_400:
        return moment.astimezone(UTC).strftime("%Y-%m-%d")
    span = duration(abs(seconds), parts=1)
    return f"{span} ago" if seconds > 0 else f"in {span}"


def duration(seconds: float, *, parts: int = 2) -> str:
    """A length of time in its largest units: `3 d 4 h`."""
    rest = int(timedelta(seconds=seconds).total_seconds())
    words: list[str] = []
    for unit, size in _UNITS:
        if rest >= size or (unit == "s" and not words):
            words.append(f"{rest // size} {unit}")
            rest %= size
        elif words:
            break
        if len(words) == parts:
            break
    return " ".join(words)
