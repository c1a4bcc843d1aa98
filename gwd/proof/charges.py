"""Every charge computed again from its stored usage, the price version it names and the factors it was billed at.

That covers what was insured, estimated, recovered after a crash or served on an owner's own key, since all of it is
recorded in one form. Beside it: the record is the one that the ledger vouches for.
"""

from collections import namedtuple
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from gwd.activity.row import SEALED, digest_of
from gwd.catalog import prices
from gwd.core.cost import Cost, Price
from gwd.core.errors import InvalidValue
from gwd.core.extras import ANY, AT_LIST_PRICE, ONE, Applied, Factor
from gwd.core.money import MoneyError, millionths_from_factor
from gwd.core.usage import Usage
from gwd.ledger.replay import Difference
from gwd.pricing.cost import cost
from gwd.store import Connection

CHUNK: Final = 1_000
PRICES_KEPT: Final = 512

_RECORDS: Final = f"""
    SELECT {", ".join(f"g.{name}" for name in SEALED)}, g.cache_discount_nano, e.type, e.seal, g.rowid
    FROM generation AS g LEFT JOIN reservation AS r ON r.generation_id = g.id
    LEFT JOIN entry AS e ON e.organization_id = r.organization_id AND e.seq = r.ended_seq
    WHERE g.organization_id = ? AND g.rowid > ? ORDER BY g.rowid LIMIT {CHUNK}"""  # noqa: S608
_Record: Final[Any] = namedtuple(  # type: ignore[misc]
    "_Record", (*SEALED, "cache_discount_nano", "end", "seal", "number")
)
"""The sealed columns of a record, what its cache saved, how its hold ended, and what that entry vouches for."""
_PARTS: Final = (
    ("prompt", "cost_prompt_nano"),
    ("cache_read", "cost_cache_read_nano"),
    ("cache_write", "cost_cache_write_nano"),
    ("completion", "cost_completion_nano"),
    ("reasoning", "cost_reasoning_nano"),
    ("request_fee", "cost_request_fee_nano"),
    ("web_search", "cost_web_search_nano"),
    ("platform_fee", "cost_platform_fee_nano"),
    ("total", "cost_total_nano"),
)


def check_charges(connection: Connection, organization_id: str) -> Iterator[Difference]:
    """What an organization was charged differently from what its records give (I10), record by record."""
    price_of = lru_cache(PRICES_KEPT)(lambda version: _price(connection, version))
    for row in _records(connection, organization_id):
        if row.seal is not None and row.seal != digest_of(row[: len(SEALED)]):
            yield _wrong(
                "I16", row, "does not have the record that its last entry in the ledger vouches for"
            )
        try:
            found = _charged(row, price_of)
        except _CannotComputeError as error:
            yield _wrong("I10", row, str(error))
            continue
        for name, column in _PARTS:
            nano, stored_nano = getattr(found, f"{name}_nano"), getattr(row, column)
            if nano != stored_nano:
                yield _wrong(
                    "I10", row, f"costs {nano} for {name} by its usage and price, not {stored_nano}"
                )
        saved_nano = row.cache_discount_nano  # records of earlier versions have none
        if saved_nano is not None and saved_nano != found.cache_discount_nano:
            yield _wrong(
                "I10", row, f"saved {found.cache_discount_nano} by the cache, not {saved_nano}"
            )
        if (row.insured, row.byok) != (found.insured, found.byok):
            yield _wrong("I10", row, "is insured, or on its owner's key, against its own record")


class _CannotComputeError(Exception):
    """The record does not say what its charge was made of."""


def _charged(row: Any, price_of: Any) -> Cost:
    """The cost by the record. What was released, refused or never began costs nothing at all."""
    if row.end != "settlement":
        return Cost()
    price = None if row.price is None else price_of(row.price)
    if price is None:
        raise _CannotComputeError(
            f"names the price {row.price}, which is not complete or not there"
        )
    if row.fee_bps and not row.byok:
        raise _CannotComputeError("has a fee for its owner's own key, on which it was not served")
    usage = Usage(
        input=row.tokens_input,
        cache_read=row.tokens_cache_read,
        cache_write_5m=row.tokens_cache_write_5m,
        cache_write_1h=row.tokens_cache_write_1h,
        output=row.tokens_output,
        reasoning=row.tokens_reasoning,
        images=row.images,
    )
    return cost(
        usage,
        price,
        byok_fee_bps=row.fee_bps if row.byok else None,
        insured=_is_insured(row, usage),
        applied=_applied(row, price),
    )


def _is_insured(row: Any, usage: Usage) -> bool:
    """An answer without output that did not end by itself is not charged."""
    return (
        row.dialect != "embeddings"
        and usage.output_total == 0
        and row.finish_reason in (None, "error")
    )


def _applied(row: Any, price: Price) -> Applied:
    if row.price_modifiers is None:
        return Applied(searches=row.web_searches)
    try:
        stored = msgspec.json.decode(row.price_modifiers, type=dict[str, dict[str, str]])
        factors = {
            name: Factor(value=said["value"], millionths=millionths_from_factor(said["factor"]))
            for name, said in stored.items()
        }
    except (msgspec.DecodeError, KeyError, MoneyError):
        raise _CannotComputeError("has factors of its price that cannot be read") from None
    for name, factor in factors.items():
        if not _is_offered(name, factor, price):
            raise _CannotComputeError(f"has a factor of {name} that is dearer than its price says")
    return Applied(factors=factors, searches=row.web_searches)


def _is_offered(name: str, factor: Factor, price: Price) -> bool:
    """Whether the price knows the factor. One may be lower than its price says: no more is billed than was sent on."""
    field, _, kind = name.partition(".")
    offered = price.modifiers.get(field, {})
    word = kind or factor.value
    known = offered.get(word)
    if known is None:
        known = ONE if word in AT_LIST_PRICE.get(field, ()) else offered.get(ANY, ONE)
    return factor.millionths <= known


def _price(connection: Connection, version: str) -> Price | None:
    found = prices.version(connection, version)
    try:
        return None if found is None else prices.price_of(found.id, found.body, is_embedding=True)
    except InvalidValue:
        return None


def _records(connection: Connection, organization_id: str) -> Iterator[Any]:
    last = 0
    while rows := connection.rows(_RECORDS, (organization_id, last)):
        yield from map(_Record._make, rows)
        last = rows[-1][-1]


def _wrong(invariant: str, row: Any, what: str) -> Difference:
    return Difference(
        invariant=invariant, organization_id=row.organization_id, message=f"{row.id} {what}"
    )
