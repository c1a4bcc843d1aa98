"""How long a vendor asks to wait: in headers, in the error's own fields, in its sentence.

All answers are seconds from now, above zero; None where nothing sensible was said. Read only when a call failed.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final

from gwd.core.clock import US_PER_S, Clock

LONGEST_S: Final = 32 * 86_400.0
_EPOCH_S: Final = 1e9  # a number above is a moment, not a wait
_EPOCH_MS: Final = 1e12
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}

_UNIT: Final = r"milliseconds?|ms|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|[smhd]"
_PIECE: Final = re.compile(rf"(\d{{1,12}}(?:\.\d{{1,12}})?) ?({_UNIT})(?:\(s\))?(?![a-z])")
_ONE: Final = rf"\d{{1,12}}(?:\.\d{{1,12}})? ?(?:{_UNIT})(?:\(s\))?(?![a-z])"
# Of several pieces, such as "7m12.5s", "4h 59m" and "2 hours, 5 minutes".
_LENGTHS: Final = rf"{_ONE}(?:(?:,? and |, ?| )?{_ONE})*"
_CUE: Final = (
    r"\b(?:try(?:ing)? (?:it )?again|retry|retrying|retried|resend|wait(?:ing)?|available|regain access|back|until"
    r"|re-?sets?|resetting|renews?|refresh(?:es)?|refill(?:s|ed)?|expected|cool ?down"
    r"|limited for)\b"
)
_NEAR: Final = r"[^.\n\d]{0,40}?"
_WAIT: Final = re.compile(rf"{_CUE}{_NEAR}({_LENGTHS})")
_BARE_WAIT: Final = re.compile(
    r"retry[ _-]after(?:[ _-]s(?:econds)?)?\W{0,4}(\d{1,12}(?:\.\d{1,12})?)(?![\d:-])"
)
_MOMENT: Final = re.compile(
    rf"{_CUE}{_NEAR}(\d{{4}}-\d\d-\d\d)(?:(?:t| at |,? )(\d\d:\d\d(?::\d\d)?)(?:\.\d+)?"
    r"(?: ?(utc|gmt|z|[+-]\d\d:?\d\d))?)?"
)
_CHINESE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)\s*(毫秒|秒|分钟|小时|天)\s*(?:之?后|以后)")
_CHINESE_UNIT_S: Final = {"毫秒": 0.001, "秒": 1.0, "分钟": 60.0, "小时": 3_600.0, "天": 86_400.0}

# Names that servers give a wait in an error object, and what a plain number in them counts.
_FIELDS: Final = {
    "retrydelay": "s",
    "retry_delay": "s",
    "retry_after": "s",
    "retryafter": "s",
    "retry_after_s": "s",
    "retry_after_seconds": "s",
    "retryafterseconds": "s",
    "retry_after_ms": "ms",
    "retryafterms": "ms",
    "resets_in_seconds": "s",
    "reset_in_seconds": "s",
    "resets_in": "s",
    "reset_after": "s",
    "estimated_time": "s",
    "wait_seconds": "s",
    "resets_at": "s",
    "reset_at": "s",
    "resetsat": "s",
}


def in_headers(headers: Mapping[str, str], clock: Clock, *, of_limits: bool = True) -> float | None:
    """The wait of `retry-after-ms`, `retry-after` (seconds or a date), or else of the limits' own reset headers.

    Some vendors send the latter with every answer: they mean something (`of_limits`) where a limit was the reason.
    """
    for name, unit in (("retry-after-ms", "ms"), ("retry-after", "s")):
        reported = _value(headers.get(name), unit, clock)
        if reported is not None:
            return reported
    return _of_limits(headers, clock) if of_limits else None


def in_fields(error: Mapping[str, Any], clock: Clock) -> float | None:
    """The wait that an error object holds: RetryInfo among its details, a field of its own, headers it passes on."""
    details = error.get("details")
    places: list[object] = [*details] if isinstance(details, list) else [details]
    places += [error, error.get("metadata")]
    for place in places:
        if not isinstance(place, Mapping):
            continue
        for name, value in place.items():
            unit = _FIELDS.get(name.lower()) if isinstance(name, str) else None
            if unit is not None and (reported := _value(value, unit, clock)) is not None:
                return reported
        passed_on = place.get("headers")
        if isinstance(passed_on, Mapping):
            reported = in_headers({str(k).lower(): str(v) for k, v in passed_on.items()}, clock)
            if reported is not None:
                return reported
    return None


def in_text(said: str, clock: Clock) -> float | None:
    """The wait in a vendor's sentence, which is in lower case: a length of time or a moment behind a word for it."""
    lengths, moment = _WAIT.search(said), _MOMENT.search(said)
    if lengths is not None and (moment is None or lengths.start() <= moment.start()):
        return _sensible(_seconds_of(lengths[1]))
    if moment is not None:
        return _sensible(_moment_s(moment) - clock.now_us() / US_PER_S)
    if (bare := _BARE_WAIT.search(said)) is not None:
        return _sensible(float(bare[1]))
    if (chinese := _CHINESE.search(said)) is not None:
        return _sensible(float(chinese[1]) * _CHINESE_UNIT_S[chinese[2]])
    return None


def _of_limits(headers: Mapping[str, str], clock: Clock) -> float | None:
    """The end of the limit that is used up: of several the last; where none says what remains, the first."""
    used_up, unknown = [], []
    for name, text in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        reported = _value(text, "s", clock)
        if reported is None:
            continue
        remaining = headers.get(name.replace("reset", "remaining"))
        if remaining is None:
            unknown.append(reported)
        elif remaining.strip() in ("0", "0.0"):
            used_up.append(reported)
    return max(used_up) if used_up else min(unknown, default=None)


def _value(value: object, unit: str, clock: Clock) -> float | None:
    """A wait or a moment in any of the forms that vendors give one."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _number(float(value), unit, clock)
        if isinstance(value, Mapping):  # a google.protobuf.Duration spelled out
            return _number(float(value.get("seconds", 0)), "s", clock)
        if not isinstance(value, str):
            return None
        text = value.strip().lower()
        try:
            return _number(float(text), unit, clock)
        except ValueError:
            pass
        if re.fullmatch(_LENGTHS, text):
            return _sensible(_seconds_of(text))
        return _sensible(_date_s(value.strip()) - clock.now_us() / US_PER_S)
    except (ValueError, TypeError, OverflowError):
        return None


def _number(number: float, unit: str, clock: Clock) -> float | None:
    if not isfinite(number):
        return None
    if number >= _EPOCH_MS:
        return _sensible((number / 1_000) - clock.now_us() / US_PER_S)
    if number >= _EPOCH_S and unit == "s":
        # A moment of our time, or a wait of decades: nobody means the latter.
        wait_s = number - clock.now_us() / US_PER_S
        return _sensible(wait_s if wait_s < LONGEST_S else number)
    return _sensible(number * _UNIT_S[unit])


def _date_s(text: str) -> float:
    if text[:4].isdigit():
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return parsedate_to_datetime(text).timestamp()


def _moment_s(found: re.Match[str]) -> float:
    day, clock_time, zone = found[1], found[2] or "00:00", found[3] or ""
    offset = zone if zone[:1] in ("+", "-") else "+00:00"
    try:
        return datetime.fromisoformat(f"{day}T{clock_time}{offset}").timestamp()
    except ValueError:
        return 0.0


def _seconds_of(text: str) -> float:
    return sum(float(number) * _UNIT_S[_unit(word)] for number, word in _PIECE.findall(text))


def _unit(word: str) -> str:
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def _sensible(seconds: float) -> float | None:
    return min(seconds, LONGEST_S) if seconds > 0 and isfinite(seconds) else None
