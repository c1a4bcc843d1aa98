"""Times as people type them: `7d`, `yesterday`, `2026-11-01`, or a full time with an offset."""

import re
from datetime import UTC, datetime, timedelta

from gwctl.errors import CommandError, usage

_SPAN = re.compile(r"([0-9]+) *(s|sec|m|min|h|d|w)")
_DAYS = {"today": 0, "yesterday": -1, "tomorrow": 1}
_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def utc_now() -> datetime:
    return datetime.now(UTC)


def span(text: str) -> timedelta:
    """A length of time such as `30m`, `24h`, `7d` or `2w`."""
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None:
        raise usage(f"{text!r} is not a length of time", do="write 30m, 24h, 7d or 2w")
    try:
        return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
    except (OverflowError, ValueError):
        raise _too_far(text) from None


def _too_far(text: str) -> CommandError:
    shown = text if len(text) < 40 else f"{text[:40]}…"
    return usage(f"{shown!r} is too far away", do="write a time between the years 1 and 9999 (UTC)")


def past(text: str, now: datetime | None = None) -> str:
    """A moment in the past for a filter: `7d` means seven days ago."""
    return _moment(text, now or utc_now(), -1)


def end_of(text: str, now: datetime | None = None) -> str:
    """The end of a range: a day is meant whole, so that its end is the midnight after it."""
    moment = past(text, now)
    if not names_a_day(text):
        return moment
    try:
        return iso(datetime.fromisoformat(moment) + timedelta(days=1))
    except OverflowError:
        raise _too_far(text) from None


def names_a_day(text: str) -> bool:
    """Whether it is a date, or today, yesterday or tomorrow, without a time."""
    word = text.strip().lower()
    return word in _DAYS or bool(
        re.fullmatch(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}|[0-9]{4}-?W.*", word, re.I)
    )


def future(text: str, now: datetime | None = None) -> str:
    """A moment to come, for an expiry: `7d` means in seven days."""
    return _moment(text, now or utc_now(), 1)


def iso(moment: datetime) -> str:
    """The API's form: UTC with a Z, to the second."""
    try:
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        raise _too_far(moment.isoformat()) from None


def _moment(text: str, now: datetime, direction: int) -> str:
    word = text.strip()
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if word.lower() == "now":
        return iso(now)
    if word.lower() in _DAYS:
        return iso(midnight + timedelta(days=_DAYS[word.lower()]))
    if _SPAN.fullmatch(word.lower()):
        try:
            return iso(now + direction * span(word))
        except OverflowError:
            raise _too_far(text) from None
    try:
        moment = datetime.fromisoformat(word)
    except ValueError:
        raise usage(
            f"{text!r} is not a time",
            do="write 7d, yesterday, 2026-11-01 or 2026-11-01T09:00:00Z",
        ) from None
    if moment.tzinfo is None:
        if len(word) > 10:
            raise usage(f"{text!r} has no offset", do=f"write {word}Z for UTC")
        moment = moment.replace(tzinfo=UTC)
    return iso(moment)
