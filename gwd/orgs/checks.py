"""Checks of what people type: names, slugs, addresses, lists of names. Each refusal names the field and the remedy."""

import re
from typing import Final

from gwd.core.errors import InvalidValue

NAME_LENGTH: Final = 100
TEXT_LENGTH: Final = 256
SLUG_LENGTH: Final = 50
EMAIL_LENGTH: Final = 254
LIST_LENGTH: Final = 500  # said of the fields of bodies, which are checked where they are read

_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_NOT_SLUG: Final = re.compile(r"[^a-z0-9]+", re.ASCII)
# What separates addresses in a header is in none, nor what begins an encoded word: one address is one recipient.
_EMAIL: Final = re.compile(r"[^@\s()<>\[\]:;,\\\"]+@[^@\s()<>\[\]:;,\\\"]+", re.ASCII)


def name(text: str, *, param: str = "name", longest: int = NAME_LENGTH) -> str:
    """A name without outer blanks, of printable characters only."""
    cleaned = text.strip()
    if not 1 <= len(cleaned) <= longest:
        raise InvalidValue(f"{param} must have 1 to {longest} characters.", param=param)
    if not cleaned.isprintable():
        raise InvalidValue(
            f"{param} must not contain line breaks or control characters.", param=param
        )
    return cleaned


def optional_text(text: str | None, *, param: str, longest: int = TEXT_LENGTH) -> str | None:
    """Like a name, but null and blank both clear it."""
    if text is None or not text.strip():
        return None
    return name(text, param=param, longest=longest)


def slug(text: str, *, param: str = "slug") -> str:
    """Lower-case segments joined by single hyphens."""
    if len(text) > SLUG_LENGTH or _SLUG.fullmatch(text) is None:
        raise InvalidValue(
            f"{param} must be 1 to {SLUG_LENGTH} lower-case letters and digits, with single hyphens between,"
            " for example web-team.",
            param=param,
        )
    return text


def slug_from(text: str) -> str:
    """The slug a name suggests; empty if the name has no letter or digit for one."""
    return _NOT_SLUG.sub("-", text.lower()).strip("-")[:SLUG_LENGTH].strip("-")


def email(text: str, *, param: str = "email") -> str:
    """An address in lower case: two spellings of one address are one person."""
    cleaned = text.strip().lower()
    if len(cleaned) > EMAIL_LENGTH or _EMAIL.fullmatch(cleaned) is None or "=?" in cleaned:
        raise InvalidValue(f"{param} must be an address such as ada@example.com.", param=param)
    if not cleaned.isprintable():
        raise InvalidValue(f"{param} must not contain control characters.", param=param)
    return cleaned


def names(items: list[str], *, param: str) -> list[str]:
    """A list of names in the order given, each once."""
    return list(
        dict.fromkeys(
            name(item, param=f"{param}[{index}]", longest=TEXT_LENGTH)
            for index, item in enumerate(items)
        )
    )


def allow_list(items: list[str] | None, *, param: str) -> list[str] | None:
    """A list that permits only what it names; null permits everything, and an empty one is a slip."""
    if items is None:
        return None
    if not items:
        raise InvalidValue(
            f"{param} must name at least one entry; use null to allow everything.", param=param
        )
    return names(items, param=param)
