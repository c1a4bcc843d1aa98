"""Option values as people type them, turned into what the API takes."""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import typer

from gwctl import jsontext, numbers, time_input
from gwctl.errors import usage

CLEAR = object()
"""Stands for null in a PATCH: `none` on the command line clears a field."""

_LARGEST = 18  # powers of ten between one dollar and anything that is meant
_FINEST = 6  # digits after the point of a price per million tokens: a picodollar a token
_LIKE_A_NUMBER = re.compile(r"[+$]?\d[\d.,_' \u00a0\u2019]*", re.UNICODE)

RESETS = ("daily", "weekly", "monthly")
SORTS = ("price", "throughput", "latency")
DATA_POLICIES = ("allow", "deny")
INTERVALS = ("lifetime", "monthly", "weekly", "daily")


def opt(name: str, metavar: str, text: str, *more: str) -> Any:
    """An option that takes a value."""
    return typer.Option(name, *more, metavar=metavar, help=text, show_default=False)


def flag(name: str, text: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=text, show_default=False)


ACCEPT = flag("--accept", "A price above $0.001 a token, or changed more than tenfold, is meant.")


def arg(metavar: str, text: str) -> Any:
    return typer.Argument(metavar=metavar, help=text, show_default=False)


def given(options: Mapping[str, str | None]) -> list[str]:
    """The options that have a value, as words of a command line."""
    return [word for name, value in options.items() if value is not None for word in (name, value)]


def body(values: Mapping[str, Any]) -> dict[str, Any]:
    """A request body: what was not given is left out, CLEAR becomes null."""
    return {
        name: None if value is CLEAR else value
        for name, value in values.items()
        if value is not None
    }


def whole(name: str, metavar: str, text: str, *, least: int = 0, most: int | None = None) -> Any:
    """An option that takes a whole number, `120` or `1,200`."""

    def read(value: str | int) -> int:
        number = value if isinstance(value, int) else _whole(name, value, "120")
        if number < least or (most is not None and number > most):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            raise usage(f"{name} {value} is out of range", do=f"give a number, {bounds}")
        return number

    return typer.Option(name, parser=_named(read), metavar=metavar, help=text, show_default=False)


def _named(read: Callable[[str | int], int]) -> Callable[[str | int], int]:
    read.__name__ = "number"  # how help calls a value that has no metavar
    return read


def number(name: str, text: str | None, example: str, what: str = "a number") -> Decimal | None:
    """A number in the one grammar; what is not in it is refused with how we would have read it."""
    if text is None:
        return None
    found = numbers.read(text)
    if found is None or found < 0 or abs(found.adjusted()) > _LARGEST:
        do = numbers.hint(text) if found is None else ""
        if "whole" in what and "." in (numbers.meant(text) or ""):
            do = ""
        raise usage(f"{name} {text[:60]!r} is not {what}", do=do or f"for example {name} {example}")
    return found


def _whole(name: str, text: str, example: str) -> int:
    found = number(name, text, example, "a whole number")
    assert found is not None
    if "." in text or found != found.to_integral_value():
        # Many write 1.200 for twelve hundred.
        grouped = text.replace(".", "")
        do = f"did you mean {grouped}?" if re.fullmatch(r"[1-9]\d{0,2}(\.\d{3})+", text) else ""
        raise usage(
            f"{name} {text[:60]!r} is not a whole number", do=do or f"for example {name} {example}"
        )
    return int(found)


def amount(name: str, text: str | None) -> Any:
    """US dollars: `50`, `$50.00`, `1,250`; `none` clears."""
    if text is None:
        return None
    if text.lower() == "none":
        return CLEAR
    return number(name, text.strip().removeprefix("$"), "50", "an amount in US dollars")


def dollars(name: str, text: str) -> Decimal:
    """An amount that has to be there."""
    found = amount(name, text)
    if found is CLEAR:
        raise usage(
            f"{name} {text!r} is not an amount in US dollars", do="write a number such as 50"
        )
    assert isinstance(found, Decimal)
    return found


def price(name: str, text: str | None) -> str | None:
    """US dollars per million tokens, as the decimal string per token that the API takes."""
    found = _price(name, text)
    if found is None:
        return None
    if found != found.quantize(Decimal(1).scaleb(-_FINEST)):
        raise usage(
            f"{name} {text!r} is finer than a price can be",
            do=f"at most {_FINEST} digits after the point; it is the price of a million tokens",
        )
    return format(found.scaleb(-6), "f")


def price_each(name: str, text: str | None) -> str | None:
    """US dollars for each request or image, as the API takes it."""
    found = _price(name, text)
    return None if found is None else format(found, "f")


def _price(name: str, text: str | None) -> Decimal | None:
    found = amount(name, text)
    if found is CLEAR:
        raise usage(f"{name} cannot be cleared", do="give a price; 0 makes it free")
    assert found is None or isinstance(found, Decimal)
    return found


def one_of(name: str, value: str | None, allowed: Sequence[str], *, clear: bool = False) -> Any:
    if value is None:
        return None
    if clear and value.lower() == "none":
        return CLEAR
    if value.lower() not in allowed:
        raise usage(f"{name} {value!r} is not known", do=f"one of: {', '.join(allowed)}")
    return value.lower()


def expiry(text: str | None) -> Any:
    if text is None:
        return None
    return CLEAR if text.lower() == "none" else time_input.future(text)


def past_or_none(text: str | None) -> Any:
    if text is None:
        return None
    return CLEAR if text.lower() == "none" else time_input.past(text)


def names(values: Sequence[str] | None) -> Any:
    """A repeatable option; a single `none` clears the list."""
    if not values:
        return None
    if [value.lower() for value in values] == ["none"]:
        return CLEAR
    return [part for value in values for part in value.split(",") if part]


def listed(values: Sequence[str] | None) -> list[str] | None:
    """A repeatable option whose list may be empty: a single `none` makes it so."""
    found = names(values)
    return [] if found is CLEAR else found


def models(values: Sequence[str] | None) -> Any:
    """Models, aliases or patterns with *; what can be none of them is refused."""
    found = names(values)
    for model in found if isinstance(found, list) else []:
        if not model.isprintable() or any(c.isspace() for c in model):
            raise usage(f"--model {model!r} is no model", do="for example --model 'openai/*'")
    if found == []:
        raise usage("--model names no model", do="for example --model 'openai/*'")
    return found


def text_or_none(text: str | None) -> Any:
    """A text as it is; `none` clears."""
    return CLEAR if text is not None and text.lower() == "none" else text


def merged(
    there: Mapping[str, Any] | None, words: Sequence[str] | None, *, texts: bool = False
) -> dict[str, Any] | None:
    """What is there with the `name=value` words in it; a value of none takes a name away.

    `texts` says that every value is a text, also one that looks like a number.
    """
    if not words:
        return None
    new = assignments(words)
    if texts:
        pairs = (word.partition("=")[::2] for word in words)
        new = {name: None if value == "none" else value for name, value in pairs}
    given = {**(there or {}), **new}
    return {name: value for name, value in given.items() if value is not None}


def of_each(slugs: Sequence[str], option: str, words: Sequence[str] | None) -> dict[str, str]:
    """What a repeatable option says of each of several: `SLUG=VALUE`, or of the only one the value alone."""
    if len(set(slugs)) != len(slugs):
        raise usage(
            "a name is given twice", do=f"name each of {', '.join(dict.fromkeys(slugs))} once"
        )
    found: dict[str, str] = {}
    for word in words or ():
        slug, equals, value = word.partition("=")
        if len(slugs) == 1 and (not equals or slug not in slugs):
            slug, value = slugs[0], word
        if slug not in slugs or not value:
            raise usage(
                f"{option} {word!r} is of none of {', '.join(slugs)}",
                do=f"write {option} {slugs[0]}=VALUE",
            )
        if slug in found:
            raise usage(f"{option} is given twice for {slug}", do="give it once")
        found[slug] = value
    return found


def integer(name: str, text: str | None) -> Any:
    """A whole number, `120` or `1,200`; `none` clears."""
    if text is None:
        return None
    return CLEAR if text.lower() == "none" else _whole(name, text, "120")


def assignments(words: Sequence[str]) -> dict[str, Any]:
    """`name=value` words; values are JSON where they parse as JSON, text otherwise."""
    result: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise usage(
                f"{word!r} is not a setting", do="write NAME=VALUE, for example retention_days=30"
            )
        result[name] = _setting(name, value)
    return result


def _setting(name: str, text: str) -> Any:
    if _LIKE_A_NUMBER.fullmatch(text):
        bare = text.removeprefix("$")
        found, reading = numbers.read(bare), numbers.meant(bare)
        if found is not None:
            return int(found) if found == found.to_integral_value() else found
        if reading is not None and not re.fullmatch(r"\d+(\.\d+){2,}", text, re.ASCII):
            raise usage(f"{name}={text} is not a number", do=f"did you mean {name}={reading}?")
    try:
        return jsontext.loads(text)
    except ValueError:
        return None if text == "none" else text


def thresholds(option: str, words: str | None) -> Any:
    """Percentages such as `50,80,100`; `none` goes back to the default."""
    if words is None:
        return None
    if words.strip().lower() == "none":
        return CLEAR
    texts = [word.strip().removesuffix("%").strip() for word in words.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,3}", word) and 1 <= int(word) <= 100 for word in texts):
        raise usage(
            f"{option} {words!r} are not percentages",
            do=f"whole numbers from 1 to 100, for example {option} 50,80,100",
        )
    return [int(word) for word in texts]
