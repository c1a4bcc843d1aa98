"""How many tokens a text is, without a vocabulary: runs of one kind of character, each kind at its own rate.

The rates were fitted by least squares against the o200k_base vocabulary on technical and everyday prose, source code,
JSON and random data; those of Chinese, Japanese and Russian were then raised a little towards everyday prose. On the
corpus of tests/unit/pricing/corpus, which was not in the fit, the error against o200k_base is (asserted there):

  english -4 %   chinese -5 %   japanese -9 %   russian -6 %   code +5 %   json -3 %   digits -4 %   base64 0 %

Known to be worse: traditional Chinese about -13 %, Ukrainian about -17 %, scripts without a rate of their own (by
UTF-8 bytes) up to 20 %. Other vendors' vocabularies differ from o200k_base by up to a third: an estimate stands in for
a missing count and is never a limit. Vocabularies that merge less (older ones) give more tokens, so an estimate errs
in the customer's favour.

Every pattern is one character class repeated, so the time is linear in the text whatever it holds.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

WHOLE_LIMIT: Final = 262_144
"""Texts up to this many characters are read whole; of longer ones, evenly spaced slices stand for the rest."""
SLICE: Final = 4_096
SLICES: Final = 48

MANY_TEXTS: Final = 2_000
LONG_TEXTS: Final = 2 * 1024 * 1024
_NO_KIND: Final = "\x00"

# Rates in hundredths of a token.
_WORD: Final = 95
_WORD_LETTER_OVER_6: Final = 7
_WORD_LETTER_OVER_10: Final = 37
_CAPITALS: Final = 65
_CAPITAL_OVER_3: Final = 40
_THREE_DIGITS: Final = 100
_SPACE_BEFORE_DIGITS: Final = 110
_LINE_END: Final = 40
_INDENT: Final = 66
_PUNCTUATION: Final = 92
_PUNCTUATION_OVER_2: Final = 8
_ACCENTED_WORD_LETTER: Final = 20
_ACCENT: Final = 80
_HAN: Final = 65
_HAN_RUN: Final = 45
_HAN_IN_JAPANESE: Final = 76
_KANA: Final = 69
_HANGUL: Final = 62
_HANGUL_RUN: Final = 20
_CYRILLIC_WORD: Final = 132
_CYRILLIC_LETTER_OVER_5: Final = 17
_WIDE_PUNCTUATION: Final = 130
_OTHER_BYTE: Final = 13
_RANDOM: Final = 68
_HEX: Final = 62

_MAYBE_RANDOM = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_SEGMENT = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_HEX_ONLY = re.compile(r"[0-9a-f-]+|[0-9A-F-]+")
_LATIN_LETTERS = "A-Za-z\u00c0-\u024f\u1e00-\u1eff"
_LATIN = re.compile(f"[{_LATIN_LETTERS}]+")
_LOWER = re.compile(r"[A-Z]?[a-z]+")
_UPPER = re.compile(r"[A-Z]+(?![a-z])")
_DIGITS = re.compile(r"[0-9]+")
_SPACE_DIGIT = re.compile(r" (?=[0-9])")
_SPACES = re.compile(r"[ \t\r\n]+")
_PUNCT = re.compile(r"[!-/:-@\[-`{-~]+")
_HANS = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")
_KANAS = re.compile(r"[\u3040-\u30ff\uff66-\uff9f]+")
_HANGULS = re.compile(r"[\uac00-\ud7af\u1100-\u11ff]+")
_CYRILLIC = re.compile(r"[\u0400-\u052f]+")
_WIDE = re.compile(r"[\u2010-\u205e\u3000-\u303f\uff00-\uff65]+")
_OTHER = re.compile(
    r"[^\x00-\u024f\u0400-\u052f\u1100-\u11ff\u1e00-\u1eff\u2010-\u205e\u3000-\u30ff"
    r"\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff9f]+"
)


def estimate_text(text: str) -> int:
    """About how many tokens `text` is; 0 only for the empty text."""
    if not text:
        return 0
    length = len(text)
    if length <= WHOLE_LIMIT:
        return max(1, (_hundredths(text) + 50) // 100)
    step = (length - SLICE) // (SLICES - 1)
    sampled = sum(_hundredths(text[start : start + SLICE]) for start in _starts(step))
    return sampled * length // (SLICES * SLICE * 100)


def estimate_texts(texts: Sequence[str]) -> int:
    """About how many tokens texts are together.

    Very many are read as one: looking for every kind of character in each would take most of the time. So are very
    long ones, of which slices stand for the rest. What joins them is of no kind, and costs nothing.
    """
    length = sum(map(len, texts))
    if len(texts) <= MANY_TEXTS and length <= LONG_TEXTS:
        return sum(map(estimate_text, texts))
    joined = _NO_KIND.join(texts)
    if len(joined) > WHOLE_LIMIT:
        joined_at = range(0, len(joined), WHOLE_LIMIT) if length <= LONG_TEXTS else ()
        pieces = [joined[start : start + WHOLE_LIMIT] for start in joined_at] or [joined]
        return sum(map(estimate_text, pieces))
    return estimate_text(joined)


def _starts(step: int) -> range:
    return range(0, step * SLICES, step)


def _hundredths(text: str) -> int:
    text, random_part = _without_random(text)
    if text.isascii():
        return random_part + _ascii(text)
    text, accented_part = _without_accented(text)
    return random_part + accented_part + _ascii(text) + _wide_scripts(text)


def _without_random(text: str) -> tuple[str, int]:
    """The text without runs of random characters (base64, hashes, ids), and what those cost.

    Letters and digits change often in random runs and seldom in names: a run with a change at least every third
    character is taken for random. Numbers are not.
    """
    total = 0

    def take(match: re.Match[str]) -> str:
        nonlocal total
        run = match[0]
        head = run[:SLICE]
        if head.isdigit() or len(_SEGMENT.findall(head)) * 3 <= len(head):
            return run
        total += len(run) * (_HEX if _HEX_ONLY.fullmatch(run) else _RANDOM)
        return " "

    return _MAYBE_RANDOM.sub(take, text), total


def _without_accented(text: str) -> tuple[str, int]:
    """The text without Latin words that hold an accented letter, and what those cost."""
    total = 0

    def take(match: re.Match[str]) -> str:
        nonlocal total
        word = match[0]
        if word.isascii():
            return word
        accents = len(word.encode()) - len(word)
        total += len(word) * _ACCENTED_WORD_LETTER + accents * _ACCENT
        return "\x00"

    return _LATIN.sub(take, text), total


def _ascii(text: str) -> int:
    words, capitals, signs = _lengths(_LOWER, text), _lengths(_UPPER, text), _lengths(_PUNCT, text)
    total = (
        words.total() * _WORD
        + _over(words, 6) * _WORD_LETTER_OVER_6
        + _over(words, 10) * _WORD_LETTER_OVER_10
        + capitals.total() * _CAPITALS
        + _over(capitals, 3) * _CAPITAL_OVER_3
        + signs.total() * _PUNCTUATION
        + _over(signs, 2) * _PUNCTUATION_OVER_2
    )
    for length, count in _lengths(_DIGITS, text).items():
        total += (length + 2) // 3 * count * _THREE_DIGITS
    total += len(_SPACE_DIGIT.findall(text)) * _SPACE_BEFORE_DIGITS
    for run, count in Counter(_SPACES.findall(text)).items():
        before, line_end, indent = run.replace("\r", "\n").rpartition("\n")
        if line_end:
            total += count * (_LINE_END + len(before) // 64 * _LINE_END)
        if len(indent) > 1:
            total += count * (_INDENT + len(indent) // 64 * _INDENT)
    return total


def _wide_scripts(text: str) -> int:
    hans, kanas = _lengths(_HANS, text), _lengths(_KANAS, text)
    hanguls, cyrillic = _lengths(_HANGULS, text), _lengths(_CYRILLIC, text)
    han, kana = _over(hans, 0), _over(kanas, 0)
    if kana * 8 > han:
        total = han * _HAN_IN_JAPANESE + kana * _KANA
    else:
        total = han * _HAN + hans.total() * _HAN_RUN + kana * _KANA
    total += _over(hanguls, 0) * _HANGUL + hanguls.total() * _HANGUL_RUN
    total += cyrillic.total() * _CYRILLIC_WORD + _over(cyrillic, 5) * _CYRILLIC_LETTER_OVER_5
    total += _over(_lengths(_WIDE, text), 0) * _WIDE_PUNCTUATION
    other = "".join(_OTHER.findall(text))
    return total + len(other.encode("utf-8", "surrogatepass")) * _OTHER_BYTE


def _lengths(pattern: re.Pattern[str], text: str) -> Counter[int]:
    """How many runs there are of each length."""
    return Counter(map(len, pattern.findall(text)))


def _over(lengths: Counter[int], limit: int) -> int:
    """How many characters lie beyond the first `limit` of their run."""
    return sum((length - limit) * count for length, count in lengths.items() if length > limit)
