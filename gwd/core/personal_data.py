"""What a text holds of people and of secrets, found by its look and hidden: the rules by which texts are redacted.

Every rule takes time that grows with the text alone: none of its expressions can go back over what it has read, and
what somebody types as a pattern of their own is no expression (`pattern_error`). A long text is read in pieces, so that
none of it is one long call.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

from gwd.core.secret_patterns import hide_credentials, looks_like_a_credential

Rule = Literal["card", "email", "iban", "phone", "secret"]

RULES: Final[tuple[Rule, ...]] = ("card", "email", "iban", "phone", "secret")
SHORTEST_PATTERN: Final = 3
LONGEST_PATTERN: Final = 100
HIDDEN: Final = "[redacted]"
PIECE: Final = 16 * 1024
SEAM: Final = 256
"""What is read once more on both sides of where a text was cut: the longest that a rule finds with blanks in it."""

_DIGIT: Final = "#"
_REST: Final = "*"

_BREAKS: Final = ' \n\t,"'
_EMAIL: Final = re.compile(
    r"(?<![\w.%+'-])[\w.%+'-]{1,64}+@(?:[\w-]{1,63}+\.){1,8}+[A-Za-z]{2,24}", re.UNICODE
)
_CARD: Final = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])", re.ASCII)
_IBAN: Final = re.compile(r"(?<!\w)[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}(?!\w)", re.ASCII)
_PHONE: Final = re.compile(r"(?<![\w.+/-])(?:\+|\()?\d(?:[ ()./-]{0,2}\d){6,16}(?!\w)", re.ASCII)
_BLANKS: Final = re.compile("[ -]")
_NOT_DIGITS: Final = re.compile(r"\D+", re.ASCII)
_WORD: Final = re.compile(r"[^\s\"'`<>(){}\[\],;=:]{16,400}+")
_DATE: Final = re.compile(r"(?:19|20)\d\d[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.](?:19|20)\d\d")

# How many characters an IBAN of each country has (ISO 13616).
_IBAN_LENGTHS: Final = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FK FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK", 21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
        29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip

Hide = Callable[[str], str]


class Redactor:
    """Hides what some rules and patterns find. One for a set of them; it keeps nothing of the texts."""

    def __init__(self, rules: Sequence[Rule], patterns: Sequence[str] = ()) -> None:
        self._hides = tuple(_HIDES[rule] for rule in RULES if rule in rules)
        self._own = tuple(_expression(pattern) for pattern in patterns)

    def text(self, text: str) -> str:
        """The text with `[email]`, `[card]` … where they were found, and `[redacted]` for a pattern."""
        first, *pieces = map(self._piece, _pieces(text))
        read = [first]
        for piece in pieces:
            before = read.pop()
            seam = self._piece(before[-SEAM:] + piece[:SEAM])
            read += [before[:-SEAM], seam + piece[SEAM:]]
        return "".join(read)

    def _piece(self, text: str) -> str:
        for expression in self._own:
            text = expression.sub(HIDDEN, text)
        for hide in self._hides:
            text = hide(text)
        return text


def pattern_error(pattern: str) -> str | None:
    """What is wrong with a pattern of somebody's own; None where it serves.

    A pattern is the text itself, capitals or not; `#` stands for a digit, and `*` at its end for the rest of the word.
    """
    letters = pattern.removesuffix(_REST)
    if len(letters) < SHORTEST_PATTERN or len(pattern) > LONGEST_PATTERN:
        return f"must have {SHORTEST_PATTERN} to {LONGEST_PATTERN} characters, a `*` at its end not counted"
    if _REST in letters:
        return "may have `*` at its end only, for the rest of the word"
    if letters != letters.strip() or not letters.isprintable():
        return "must begin and end with printable characters other than blanks"
    return None


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces, cut between words where there are any."""
    start = 0
    while len(text) - start > PIECE:
        half = start + PIECE // 2
        end = max(text.rfind(each, half, start + PIECE) for each in _BREAKS) + 1
        end = end or start + PIECE
        yield text[start:end]
        start = end
    yield text[start:]


def _expression(pattern: str) -> re.Pattern[str]:
    letters = pattern.removesuffix(_REST)
    found = "".join(r"\d" if each == _DIGIT else re.escape(each) for each in letters)
    rest = r"\S*+" if pattern.endswith(_REST) else ""
    return re.compile(found + rest, re.IGNORECASE)


def _hide_emails(text: str) -> str:
    return _EMAIL.sub("[email]", text) if "@" in text else text


def _hide_cards(text: str) -> str:
    return _CARD.sub(_card, text)


def _card(found: re.Match[str]) -> str:
    return "[card]" if _is_luhn(_NOT_DIGITS.sub("", found[0])) else found[0]


def _is_luhn(digits: str) -> bool:
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0 and digits.strip("0") != ""


def _hide_ibans(text: str) -> str:
    return _IBAN.sub(_iban, text)


def _iban(found: re.Match[str]) -> str:
    """An IBAN is as long as those of its country, and its check holds; what follows stays."""
    plain = _BLANKS.sub("", found[0]).upper()
    length = _IBAN_LENGTHS.get(plain[:2], len(plain) + 1)
    if len(plain) < length or int(_as_number(plain[4:length] + plain[:4])) % 97 != 1:
        return found[0]
    rest, left = found[0], length
    while left:
        left -= rest[0] not in " -"
        rest = rest[1:]
    return "[iban]" + rest


def _as_number(plain: str) -> str:
    return "".join(str(int(each, 36)) for each in plain)


def _hide_phones(text: str) -> str:
    return _PHONE.sub(_phone, text)


def _phone(found: re.Match[str]) -> str:
    """A number as people write theirs: with its country, a leading zero, or in groups; no date and no plain number."""
    written = found[0]
    digits = _NOT_DIGITS.sub("", written)
    if not 7 <= len(digits) <= 15 or _DATE.match(written):
        return written
    is_international = written.startswith("+") or digits.startswith("00")
    in_groups = len(digits) >= 9 and re.search(r"\d[ ()/-]+\d", written) is not None
    has_area = len(digits) >= 9 and digits.startswith("0")
    return "[phone]" if is_international or in_groups or has_area else written


def _hide_secrets(text: str) -> str:
    """Credentials within a sentence, and words that are one as a whole."""
    return _WORD.sub(_word, hide_credentials(text))


def _word(found: re.Match[str]) -> str:
    return "[secret]" if looks_like_a_credential("", found[0]) else found[0]


_HIDES: Final[dict[Rule, Hide]] = {
    "card": _hide_cards,
    "email": _hide_emails,
    "iban": _hide_ibans,
    "phone": _hide_phones,
    "secret": _hide_secrets,
}
