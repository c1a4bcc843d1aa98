"""The price book that is shipped: what the main vendors' models cost, from when on, and when they end.

It is made by tools/price_book.py and read when it is first asked for.
"""

from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from gwd.catalog.price_body import PriceBody, Pricing, PricingTier
from gwd.core.clock import us_from_iso

BOOK: Final = Path(__file__).with_name("price_book.json")


class BookPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One price; the first of a model holds already, the others from `effective_at` on."""

    pricing: Pricing
    pricing_tiers: tuple[PricingTier, ...] = ()
    effective_at: str | None = None

    @property
    def body(self) -> PriceBody:
        return PriceBody(pricing=self.pricing, tiers=self.pricing_tiers)

    @property
    def effective_at_us(self) -> int:
        """0 for the price that holds already."""
        return 0 if self.effective_at is None else us_from_iso(self.effective_at)


class BookModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model. `source` says whether its price was checked by hand for the shipped catalog."""

    id: str
    name: str
    source: Literal["catalog", "packages"]
    prices: tuple[BookPrice, ...]
    capabilities: tuple[str, ...] = ()
    context_length: int | None = None
    max_completion_tokens: int | None = None
    deprecated_at: str | None = None
    retired_at: str | None = None
    successor: str | None = None


class PriceBook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it. `hosts` are the vendors' own, by the first part of a model's id."""

    read_at: str
    sources: tuple[str, ...]
    hosts: dict[str, tuple[str, ...]]
    models: tuple[BookModel, ...]

    def by_id(self) -> dict[str, BookModel]:
        return {model.id: model for model in self.models}


@cache
def shipped() -> PriceBook:
    """The book of this version."""
    return msgspec.json.decode(BOOK.read_bytes(), type=PriceBook)
