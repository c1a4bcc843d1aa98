"""What the fields of the API mean: money, prices, times, what may be null and what can be changed.

`schema.json` beside this file is made from the API's written shape (`make docs`). It is read when first needed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Kind = Literal[
    "text", "id", "money", "price", "each", "time", "count", "percent", "bar", "ms", "state", "spark", "note",
]  # fmt: skip
"""How a value reads on a terminal."""

_KINDS: Mapping[str, Kind] = {
    "usd": "money",
    "usd_per_token": "price",
    "usd_each": "each",
    "moment": "time",
    "percent": "percent",
    "tokens": "count",
    "count": "count",
    "milliseconds": "ms",
    "id": "id",
}
_WHOLE = ("integer", "count", "tokens", "milliseconds", "unix_seconds")
_PRICES = ("usd_per_token", "usd_each")


@dataclass(frozen=True)
class Field:
    """A field as the file has it: `usd?` may be null, `[percent]` is a list, `@Pricing` a record."""

    word: str

    @property
    def may_be_null(self) -> bool:
        return self.word.endswith("?")

    @property
    def bare(self) -> str:
        return self.word.removesuffix("?")

    @property
    def kind(self) -> Kind:
        return _KINDS.get(self.bare, "text")

    @property
    def record(self) -> str:
        """The record it holds, or a list of them; empty where it is none."""
        inner = self.bare.strip("[]")
        return inner[1:] if inner.startswith("@") else ""

    @property
    def item(self) -> "Field":
        """What a list holds."""
        return Field(self.bare[1:-1]) if self.bare.startswith("[") else self

    @property
    def is_whole(self) -> bool:
        return self.bare in _WHOLE

    @property
    def is_number(self) -> bool:
        return self.is_whole or self.bare in ("number", "usd", "percent")

    @property
    def is_price_list(self) -> bool:
        """Whether it is a record of prices, such as `pricing`."""
        return self.bare.startswith("@") and any(
            each.bare in _PRICES for each in fields(self.record).values()
        )

    @property
    def holds_prices(self) -> bool:
        """Whether it is a price, or holds some."""
        return self.bare in _PRICES or any(
            each.holds_prices for each in fields(self.record).values()
        )


_NOTHING = Field("text")


@cache
def _file() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(
        Path(__file__).with_name("schema.json").read_text(encoding="utf-8")
    )
    return read


@cache
def fields(record: str) -> Mapping[str, Field]:
    """The fields of a record or body; none of what is not known."""
    return {name: Field(word) for name, word in _file()["records"].get(record, {}).items()}


def field(record: str, path: str) -> Field:
    """The field at a dotted path; plain text where the API says nothing of it."""
    name, _, rest = path.partition(".")
    found = fields(record).get(name, _NOTHING)
    return field(found.record, rest) if rest else found


def answered(method: str, path: str) -> str:
    """The record that a request is answered with; empty where the API has no such route."""
    return _route(method, path)[1]


def taken(method: str, path: str) -> str:
    """The body that a request takes."""
    return _route(method, path)[0]


def routes() -> Iterator[str]:
    """Every route, as `PATCH /keys/{}`."""
    yield from _file()["routes"]


@cache
def _route(method: str, path: str) -> tuple[str, str]:
    known: dict[str, list[str]] = _file()["routes"]
    # A model's name has a slash in it; the route that says most of the path is meant.
    for name in sorted(known, key=lambda one: -len(one.replace("{}", ""))):
        pattern = re.escape(name).replace(r"\{\}", ".+")
        if re.fullmatch(pattern, f"{method} {path}"):
            body, record = known[name]
            return body, record
    return "", ""
