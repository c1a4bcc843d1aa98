"""Kinds of fields in the bodies that the API takes: what may be sent is said once, here.

A body's field is one of these with its own description. Limits that the reader of bodies checks stand in `Meta`'s own
words; those that are checked with the field's meaning, because they hold for what is left after blanks or rounding, are
named for readers of the schema only.
"""

from decimal import Decimal
from typing import Annotated

from msgspec import Meta

UsdInput = Annotated[
    Decimal,
    Meta(
        extra_json_schema={
            "minimum": 0,
            "x-kind": "usd",
        }
    ),
]
"""An amount in USD with at most nine decimals: a number, or a text such as "12.50"."""

SignedUsdInput = Annotated[
    Decimal,
    Meta(extra_json_schema={"x-kind": "usd"}),
]
"""The same, and it may be below zero."""

NumberInput = Decimal
"""An exact number: a number, or a text of one."""

PriceInput = Annotated[str, Meta(extra_json_schema={"x-kind": "usd_per_token"})]
"""A price of one token in USD, as a decimal text so that nothing is rounded."""

EachPriceInput = Annotated[str, Meta(extra_json_schema={"x-kind": "usd_each"})]
"""A price of one thing in USD, such as a request or an image, as a decimal text."""

MomentInput = Annotated[str, Meta(extra_json_schema={"format": "date-time", "x-kind": "moment"})]
"""A time, ISO 8601 with its offset: 2026-11-27T22:00:00Z."""

PercentInput = Annotated[
    int, Meta(extra_json_schema={"minimum": 1, "maximum": 100, "x-kind": "percent"})
]
"""A whole percentage."""

NameInput = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 100})]
"""1 to 100 printable characters; blanks around them do not count."""

TextInput = Annotated[str, Meta(extra_json_schema={"maxLength": 256})]
"""At most 256 printable characters; blanks around them do not count."""

SlugInput = Annotated[
    str,
    Meta(extra_json_schema={"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 50}),
]
"""1 to 50 lower-case letters and digits, with single hyphens between."""
