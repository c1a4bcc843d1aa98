"""Option values as people type them, turned into what the API takes."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import typer

from gwctl import jsontext, when
from gwctl.errors import usage
from gwctl.text import decimal

CLEAR = object()
"""Stands for null in a PATCH: `none` on the command line clears a field."""

_LARGEST = 18  # powers of ten between one dollar and anything that is meant

RESETS = ("daily", "weekly", "monthly")
INTERVALS = ("lifetime", "monthly", "weekly", "daily")


def opt(name: str, metavar: str, text: str, *more: str) -> Any:
    """An option that takes a value."""
    return typer.Option(name, *more, metavar=metavar, help=text, show_default=False)


def flag(name: str, text: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=text, show_default=False)


def arg(metavar: str, text: str) -> Any:
    return typer.Argument(metavar=metavar, help=text, show_default=False)


def body(values: Mapping[str, Any]) -> dict[str, Any]:
    """A request body: what was not given is left out, CLEAR becomes null."""
    return {
        name: None if value is CLEAR else value
        for name, value in values.items()
        if value is not None
    }


def amount(name: str, text: str | None) -> Any:
    """US dollars: `50`, `$50.00`, `1,250`; `none` clears."""
    if text is None:
        return None
    if text.lower() == "none":
        return CLEAR
    number = decimal(text.strip().removeprefix("$").replace(",", ""))
    if number is None or number < 0 or abs(number.adjusted()) > _LARGEST:
        raise usage(f"{name} {text!r} is not an amount in US dollars", do=f"for example {name} 50")
    return number


def dollars(name: str, text: str) -> Decimal:
    """An amount that has to be there."""
    number = amount(name, text)
    if number is CLEAR:
        raise usage(
            f"{name} {text!r} is not an amount in US dollars", do="write a number such as 50"
        )
    assert isinstance(number, Decimal)
    return number


def price(name: str, text: str | None) -> str | None:
    """US dollars per million tokens, as the decimal string per token that the API takes."""
    number = amount(name, text)
    if number is None:
        return None
    if number is CLEAR:
        raise usage(f"{name} cannot be cleared", do="give a price; 0 makes it free")
    per_token: Decimal = number.scaleb(-6)
    return format(per_token, "f")


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
    return CLEAR if text.lower() == "none" else when.future(text)


def names(values: Sequence[str] | None) -> Any:
    """A repeatable option; a single `none` clears the list."""
    if not values:
        return None
    if [value.lower() for value in values] == ["none"]:
        return CLEAR
    return [part for value in values for part in value.split(",") if part]


def models(values: Sequence[str] | None) -> Any:
    """Models, aliases or vendor/*; what can be none of them is refused."""
    found = names(values)
    for model in found if isinstance(found, list) else []:
        if not model.isprintable() or any(c.isspace() for c in model):
            raise usage(f"--model {model!r} is no model", do="for example --model 'openai/*'")
    if found == []:
        raise usage("--model names no model", do="for example --model 'openai/*'")
    return found


def integer(name: str, text: str | None) -> Any:
    if text is None:
        return None
    if text.lower() == "none":
        return CLEAR
    if not text.isascii() or not text.isdigit():
        raise usage(f"{name} {text!r} is not a whole number", do=f"for example {name} 120")
    return int(text)


def assignments(words: Sequence[str]) -> dict[str, Any]:
    """`name=value` words; values are JSON where they parse as JSON, text otherwise."""
    result: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise usage(
                f"{word!r} is not a setting", do="write NAME=VALUE, for example retention_days=30"
            )
        try:
            result[name] = jsontext.loads(value)
        except ValueError:
            result[name] = None if value == "none" else value
    return result


def thresholds(option: str, words: str | None) -> Any:
    """Percentages such as `50,80,100`; `none` goes back to the default."""
    if words is None:
        return None
    if words.strip().lower() == "none":
        return CLEAR
    texts = [word.strip().removesuffix("%").strip() for word in words.split(",")]
    if not all(word.isascii() and word.isdigit() and 1 <= int(word[:4]) <= 100 for word in texts):
        raise usage(
            f"{option} {words!r} are not percentages",
            do=f"whole numbers from 1 to 100, for example {option} 50,80,100",
        )
    return [int(word) for word in texts]
