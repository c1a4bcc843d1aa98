"""Query parameters: a route says each one's name, kind and meaning once, and requests are read by that.

`read` gives a handler the values: a text, a truth, a whole number, or a time in microseconds. What was not sent is
absent, unless its parameter has a default.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import InvalidRequest, InvalidValue, UnknownParameter

MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 50
MAX_WHOLE: Final = 999_999_999


class Kind(Protocol):
    """What the values of a parameter are."""

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        ...

    def read(self, name: str, text: str) -> Any:
        """The value that a text stands for. Raises the InvalidValue that names the parameter."""
        ...


class Text(msgspec.Struct, frozen=True):
    """Any text."""

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def read(self, name: str, text: str) -> str:
        return text


class Flag(msgspec.Struct, frozen=True):
    """`true` or `false`, or 1 or 0."""

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def read(self, name: str, text: str) -> bool:
        word = text.lower()
        if word not in ("true", "false", "1", "0"):
            raise InvalidValue(f"`{name}` must be true or false", param=name)
        return word in ("true", "1")


class Words(msgspec.Struct, frozen=True):
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}

    def read(self, name: str, text: str) -> str:
        if text not in self.words:
            raise InvalidValue(f"`{name}` must be one of {', '.join(self.words)}", param=name)
        return text


class Moment(msgspec.Struct, frozen=True):
    """A time with its offset; in a query a + may have become a blank."""

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}

    def read(self, name: str, text: str) -> int:
        try:
            return us_from_iso(text.replace(" ", "+"))
        except TimeError as error:
            raise InvalidValue(f"`{name}` {error}", param=name) from None


class Whole(msgspec.Struct, frozen=True):
    """A whole number within bounds."""

    least: int = 0
    most: int = MAX_WHOLE

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def read(self, name: str, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_WHOLE))):
            raise InvalidValue(f"`{name}` must be a whole number", param=name)
        number = int(text)
        if not self.least <= number <= self.most:
            raise InvalidValue(f"`{name}` must be from {self.least} to {self.most}", param=name)
        return number


class Query(msgspec.Struct, frozen=True):
    """One parameter. `about` is a sentence for people; `required` says that the handler refuses to do without it."""

    name: str
    kind: Kind
    about: str
    default: Any = None
    required: bool = False


def limit(default: int) -> Query:
    """How much of a list is asked for."""
    return Query("limit", Whole(1, MAX_LIMIT), "How many records a page holds.", default)


OFFSET: Final = Query("offset", Whole(), "How many records to leave out at the head of the list.")
PAGING: Final = (limit(DEFAULT_LIMIT), OFFSET)
PLACES: Final = (
    Query("after", Text(), "`next` of an earlier answer: what is older than it."),
    Query("before", Text(), "`previous` of an earlier answer: what was added since."),
)
BETWEEN: Final = (
    Query("from", Moment(), "What is not older than this time."),
    Query("to", Moment(), "What is older than this time."),
)


def read(pairs: Iterable[tuple[str, str]], known: Sequence[Query]) -> dict[str, Any]:
    """The values of a query: no parameter that the route does not take, and none twice."""
    kinds = {parameter.name: parameter.kind for parameter in known}
    texts: dict[str, str] = {}
    for name, text in pairs:
        if name not in kinds:
            taken = f"this endpoint takes {', '.join(kinds)}" if kinds else "it takes none"
            raise UnknownParameter(f"unknown query parameter `{name}`; {taken}", param=name)
        if name in texts:
            raise InvalidRequest(f"query parameter `{name}` is given twice", param=name)
        texts[name] = text
    values = {each.name: each.default for each in known if each.default is not None}
    # In the route's order, so that of several mistakes the same one is named first.
    return values | {
        name: kind.read(name, texts[name]) for name, kind in kinds.items() if name in texts
    }
