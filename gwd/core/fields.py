"""Kinds of fields in the records that the API answers with: what one means on the wire is said once, here.

A record's field is one of these with its own description, `Annotated[Usd | None, Meta(description="…")]`. `x-kind` in
the schema names the kind, so that whoever shows a record knows money from counts and times without guessing by name.
Amounts and prices are `Raw`: text that `gwd.core.money` wrote, so that a JSON number loses nothing.
"""

from typing import Annotated, get_args, get_type_hints

from msgspec import Meta, Raw, Struct

Usd = Annotated[Raw, Meta(extra_json_schema={"type": "number", "x-kind": "usd"})]
"""An amount in USD, a JSON number without exponent and with at most nine decimals."""

UsdPerMillion = Annotated[
    Raw, Meta(extra_json_schema={"type": "number", "x-kind": "usd_per_million_tokens"})
]
"""A price in USD per million tokens, a JSON number without exponent."""

UsdPerToken = Annotated[
    str,
    Meta(pattern=r"^[0-9]+(\.[0-9]+)?$", extra_json_schema={"x-kind": "usd_per_token"}),
]
"""A price in USD per token, as a plain decimal string."""

UsdEach = Annotated[
    str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?$", extra_json_schema={"x-kind": "usd_each"})
]
"""A price in USD of one thing, such as a request or an image, as a plain decimal string."""

Factor = Annotated[
    str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?$", extra_json_schema={"x-kind": "factor"})
]
"""What a price is multiplied with, as a plain decimal string."""

Percent = Annotated[float, Meta(extra_json_schema={"x-kind": "percent"})]
"""Hundredths of a whole; 100 is all of it."""

WholePercent = Annotated[int, Meta(ge=1, le=100, extra_json_schema={"x-kind": "percent"})]
"""A percentage that is a whole number from 1 to 100, such as a threshold."""

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time", "x-kind": "moment"})]
"""A time in UTC, ISO 8601 with `Z`."""

UnixSeconds = Annotated[int, Meta(ge=0, extra_json_schema={"x-kind": "unix_seconds"})]
"""A time as whole seconds since 1970, UTC."""

Tokens = Annotated[int, Meta(ge=0, extra_json_schema={"x-kind": "tokens"})]
"""A number of tokens."""

Count = Annotated[int, Meta(ge=0, extra_json_schema={"x-kind": "count"})]
"""How many there are of something."""

Milliseconds = Annotated[float, Meta(ge=0, extra_json_schema={"x-kind": "milliseconds"})]
"""A duration in milliseconds."""

Id = Annotated[str, Meta(extra_json_schema={"x-kind": "id"})]
"""What names one record for ever; its prefix says of what kind the record is."""

Slug = Annotated[str, Meta(extra_json_schema={"x-kind": "slug"})]
"""A short name in lower case that can be changed."""

Secret = Annotated[str, Meta(extra_json_schema={"x-kind": "secret"})]
"""What opens something: shown once and kept nowhere."""


def marked(struct: type[Struct], mark: Meta) -> frozenset[str]:
    """The fields of a struct that carry a mark of the project's own, `Annotated[…, mark]`."""
    hints = get_type_hints(struct, include_extras=True)
    return frozenset(
        name for name, hint in hints.items() if any(said is mark for said in get_args(hint)[1:])
    )
