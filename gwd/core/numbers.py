"""The one grammar of numbers in texts (prices, amounts): `50`, `12.50`, `1,250.50`, `2.5e-7`.

A comma stands before exactly three digits or not at all, a point before the fraction, digits are those of ASCII. The
command line reads what people type by the same rules, in a module of its own; a test holds the two together.
"""

import re
import unicodedata
from decimal import Decimal

_NUMBER = re.compile(
    r"-?(?:[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.[0-9]+)?"
    r"|-?\.[0-9]+"
    r"|-?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]{1,3}"
)
_PLAIN = re.compile(r"[0-9]*\.?[0-9]+")
_SEPARATORS = {"\u066b": ".", "\u066c": ",", "\u2019": "'", "\uff0c": ",", "\uff0e": "."}
_UNITS = re.compile(r"^[$€£+ ]+|(?: *(?:%|\$|€|£|usd|eur))+$", re.IGNORECASE)
_LONGEST = 200
_MOST_DIGITS = 28  # what decimal arithmetic carries without rounding


def read(text: str) -> Decimal | None:
    """The number that was written, or None when it is not in the grammar."""
    text = text.strip(" ")
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        return None
    digits = re.sub("[^0-9]", "", re.split("[eE]", text)[0]).strip("0")
    return Decimal(text.replace(",", "")) if len(digits) <= _MOST_DIGITS else None


def meant(text: str) -> str | None:
    """How we would have read a text that is not in the grammar, as it has to be written; None if we cannot tell."""
    text = "".join(map(_ascii, text[:_LONGEST])).strip()
    bare = re.sub(r"(?<=[0-9])[_' ](?=[0-9])", "", _UNITS.sub("", text))
    last = max(bare.rfind(","), bare.rfind("."))
    if read(bare) is not None:
        return bare
    if last < 0:
        return None
    both = "," in bare and "." in bare
    whole, fraction = re.sub("[,.]", "", bare[:last]), bare[last + 1 :]
    # The same separator again and again groups digits by three; any other last one begins the fraction.
    groups = not both and bare.count(bare[last]) > 1 and len(fraction) == 3
    guess = whole + fraction if groups else f"{whole}.{fraction}"
    return guess if _PLAIN.fullmatch(guess) else None


def hint(text: str) -> str:
    """`did you mean 12.50?`, or nothing."""
    reading = meant(text)
    return f"did you mean {reading}?" if reading is not None and reading != text else ""


def _ascii(character: str) -> str:
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    return " " if character.isspace() else _SEPARATORS.get(character, character)
