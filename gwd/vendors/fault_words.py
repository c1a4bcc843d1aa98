"""What the words of a failed answer say, against its status: whose fault it was and of what kind.

Vendors disagree with their own status codes: an empty account is a 400, a 403 or a 429, a full context a 400 or a
500, an unknown model a 400. The words, what they mean and who says so stand in `fault_words.toml` beside this file,
with how it is read; here they are looked for. The rules look at the vendor's own words only, never at what it quotes:
that may be the caller's text. The one for refused signatures does, as it sends nothing anywhere else.
"""

import re
import tomllib
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Literal

import msgspec

from gwd.core.errors import FaultDetail, FaultReason

Finding = tuple[FaultReason, FaultDetail | None]
Look = Literal["code", "text", "both", "whole", "quoted"]
Status = int | Literal["5xx", "none"]

TABLE: Final = Path(__file__).with_suffix(".toml")

# "Limit 30000, Requested 45000": no waiting makes room for this one, and others have as much as before.
_LIMIT_AND_ASKED: Final = re.compile(
    r"\blimit:? (\d[\d,]*)\b.{0,60}?\brequested:? (\d[\d,]*)", re.DOTALL
)
_QUOTED: Final = re.compile(r"""(?<!\w)(["'`]).*?\1(?!\w)|“.*?”""", re.DOTALL)
_INNER_MESSAGE: Final = re.compile(r'"error"\s*:\s*\{[^{}]*?"message"\s*:\s*"((?:[^"\\]|\\.)*)"')


class Words(msgspec.Struct, frozen=True, dict=True, forbid_unknown_fields=True):
    """A row of the table: a phrase or a pattern, who says it and where that was seen."""

    vendor: str
    source: str
    phrase: str | None = None
    pattern: str | None = None
    at_start: bool = False
    status: tuple[Status, ...] | None = None
    look: Look | None = None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        assert self.pattern is not None
        return re.compile(self.pattern)

    def stand_in(self, text: str) -> bool:
        if self.phrase is not None:
            return self.phrase in text
        found = self._expression.match if self.at_start else self._expression.search
        return found(text) is not None


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words of one meaning: under which statuses they count, and where in an answer they are looked for."""

    name: str
    reason: FaultReason
    status: tuple[Status, ...]
    look: Look
    rows: tuple[Words, ...]
    detail: FaultDetail | None = None
    detail_in_text: FaultDetail | None = None
    ours: bool = False
    of_a_minute: Literal["throttle", "throttle_without_money"] | None = None

    def finding(self, reported: "_Reported") -> Finding | None:
        """What an answer says by this rule."""
        if self.detail_in_text is None:
            return (self.reason, self.detail) if self._stands(reported, None) else None
        if self._stands(reported, "code"):
            return self.reason, self.detail
        return (self.reason, self.detail_in_text) if self._stands(reported, "text") else None

    def _stands(self, reported: "_Reported", look: Look | None) -> bool:
        return any(
            words.stand_in(reported.text(look or words.look or self.look, ours=self.ours))
            for words in self.rows
            if _is_one_of(reported.status, words.status or self.status)
        )


class Helpers(msgspec.Struct, frozen=True, dict=True, forbid_unknown_fields=True):
    """Words that turn a verdict round."""

    money: tuple[str, ...]
    of_a_minute: str
    of_a_field: str

    @cached_property
    def minute(self) -> re.Pattern[str]:
        return re.compile(self.of_a_minute)

    @cached_property
    def field(self) -> re.Pattern[str]:
        return re.compile(self.of_a_field)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    rules: tuple[Rule, ...]
    helpers: Helpers
    sources: dict[str, str]


@cache
def table() -> Table:
    """The table, read when the first answer fails: a node that starts needs none of it."""
    return msgspec.convert(tomllib.loads(TABLE.read_text("utf-8")), Table)


@cache
def _throttle_codes() -> tuple[str, ...]:
    """The codes of errors that are limits."""
    rules = (r for r in table().rules if (r.reason, r.look) == ("rate_limited", "code"))
    return tuple(w.phrase for r in rules for w in r.rows if w.phrase and w.look is None)


class _Reported:
    """An answer in lower case: its sentence without what it quotes, and what of that may be about us."""

    def __init__(self, status: int | None, codes: str, message: str, said: str, ours: str) -> None:
        self.status = status
        self._ours: dict[Look, str] = {"text": ours, "both": f"{codes} {ours}"}
        self._texts: dict[Look, str] = {
            "code": codes,
            "text": said,
            "both": f"{codes} {said}",
            "whole": f"{codes} {message}".replace("`", ""),
            "quoted": message,
        }

    def text(self, look: Look, *, ours: bool) -> str:
        """Where words of this kind are looked for."""
        return self._ours[look] if ours and look in self._ours else self._texts[look]


def own_words(message: str) -> str:
    """The message without what it quotes; of an error that passes on another one, the inner message."""
    inner = _INNER_MESSAGE.search(message)
    return _QUOTED.sub("…", inner[1] if inner else message)


def is_throttled_code(codes: str) -> bool:
    """Whether the error's code or type says that it is a limit; in lower case."""
    return any(code in codes for code in _throttle_codes())


def is_too_large_for_a_minute(said: str) -> bool:
    """Whether one request asked for more than a whole minute allows."""
    found = _LIMIT_AND_ASKED.search(said)
    return found is not None and _count(found[2]) > _count(found[1])


def _count(digits: str) -> int:
    return int(digits.replace(",", "")[:18] or "0")


def reason_by_words(status: int | None, codes: str, message: str, kind: str) -> Finding | None:
    """What code, type and message say of themselves; None leaves it to the status.

    `status` is None for an error inside an answer of status 200, `codes` are the error's code and type.
    """
    codes, message = codes.lower(), message.lower()
    said = own_words(message)
    words = table()
    # A complaint about a field names it: the client chose that name, so only the code tells of anything else.
    of_a_field = status in (None, 400, 422) and words.helpers.field.search(said)
    reported = _Reported(status, codes, message, said, "" if of_a_field else said)
    for rule in words.rules:
        found = rule.finding(reported)
        if found is not None:
            return _throttle_or(found, rule, reported, words.helpers)
    if status is None and kind == "invalid_request_error":
        return "bad_request", None
    return None


def _throttle_or(found: Finding, rule: Rule, reported: _Reported, helpers: Helpers) -> Finding:
    """The finding, or a throttle where a limit of a minute stands beside a quota."""
    if rule.of_a_minute is None or reported.status != 429:
        return found
    if not helpers.minute.search(reported.text("text", ours=True)):
        return found
    wording = reported.text("both", ours=True)
    if rule.of_a_minute != "throttle" and any(word in wording for word in helpers.money):
        return found
    return "rate_limited", None


def _is_one_of(status: int | None, statuses: tuple[Status, ...]) -> bool:
    if status is None:
        return "none" in statuses
    return status in statuses or (status >= 500 and "5xx" in statuses)
