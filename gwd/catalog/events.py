"""What happens in the catalog by the clock: models deprecated and retired, prices changed, aliases moved.

Pure functions of the catalog. An event has a name of its own, so that it is told once however often it is looked for.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, Literal

import msgspec

from gwd.catalog.snapshot import Catalog, Model
from gwd.core.clock import US_PER_DAY
from gwd.core.cost import Price

Kind = Literal[
    "deprecated", "retiring", "retired", "price_announced", "price_changed", "alias_moved"
]
NOTICE_DAYS: Final = (30, 7, 1)
"""So long before it is retired a model's users are told, once each."""


class PriceChange(msgspec.Struct, frozen=True, kw_only=True):
    """One price instead of another, at the endpoints of these tags."""

    old: Price
    new: Price
    tags: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def rises(self) -> bool:
        """Whether any class of tokens becomes dearer."""
        return any(getattr(self.new, name) > getattr(self.old, name) for name in CLASSES)


class CatalogEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a model at a moment. `level` counts the notices of one retirement; of others it is 1."""

    kind: Kind
    model: Model
    at_us: int
    level: int = 1
    price: PriceChange | None = None
    alias: str | None = None
    before: Model | None = None

    @property
    def name(self) -> str:
        """What it is told once by; the notices of a retirement share one, of rising level."""
        parts = [f"catalog:{self.kind}", self.model.id, str(self.at_us)]
        if self.price is not None:
            parts.append(
                ",".join(self.price.versions)
            )  # one of a model's is that of many endpoints
        return ":".join(parts)


CLASSES: Final = (
    "prompt_pico",
    "completion_pico",
    "cache_read_pico",
    "cache_write_5m_pico",
    "cache_write_1h_pico",
    "reasoning_pico",
    "request_nano",
    "image_nano",
)
"""The fields of a price that are amounts."""


def due(catalog: Catalog, *, since_us: int, now_us: int) -> list[CatalogEvent]:
    """What has happened since, and what is announced; notices of a retirement are those whose time has come."""
    found: list[CatalogEvent] = []
    for model in catalog.models.values():
        found += _of_life(model, since_us=since_us, now_us=now_us)
        found += price_changes(model, since_us=since_us, now_us=now_us)
    return found


def coming(catalog: Catalog, *, now_us: int) -> list[CatalogEvent]:
    """What is still to come, soonest first."""
    found: list[CatalogEvent] = []
    for model in catalog.models.values():
        life = model.life
        if life.deprecated_at_us is not None and life.deprecated_at_us > now_us:
            found.append(CatalogEvent(kind="deprecated", model=model, at_us=life.deprecated_at_us))
        if life.retired_at_us is not None and life.retired_at_us > now_us:
            found.append(CatalogEvent(kind="retired", model=model, at_us=life.retired_at_us))
        found += [
            msgspec.structs.replace(event, kind="price_changed")
            for event in price_changes(model, since_us=now_us, now_us=now_us)
        ]
    return sorted(found, key=lambda event: (event.at_us, event.model.id))


def price_changes(model: Model, *, since_us: int, now_us: int) -> Iterator[CatalogEvent]:
    """Prices that take the place of another, in force since or announced; a first price changes nothing."""
    grouped: dict[tuple[int, bytes], list[tuple[str, Price, Price]]] = {}
    for endpoint in model.endpoints:
        dated = [(at_us, price) for at_us, price in endpoint.dated_prices if price is not None]
        for (_, old), (at_us, new) in pairwise(dated):
            if at_us > since_us and _amounts(old) != _amounts(new):
                same = msgspec.msgpack.encode((_amounts(old), _amounts(new)))
                grouped.setdefault((at_us, same), []).append((endpoint.tag, old, new))
    for (at_us, _), places in grouped.items():
        _, old, new = places[0]
        yield CatalogEvent(
            kind="price_announced" if at_us > now_us else "price_changed",
            model=model,
            at_us=at_us,
            price=PriceChange(
                old=old,
                new=new,
                tags=tuple(sorted(tag for tag, _, _ in places)),
                versions=tuple(sorted({price.version for _, _, price in places})),
            ),
        )


def alias_targets(catalog: Catalog, now_us: int) -> dict[str, str]:
    """Where each alias leads now, those of families included."""
    names = [*catalog.aliases, *catalog.families]
    found = {name: catalog.resolve(name, now_us) for name in names}
    return {name: model.id for name, model in found.items() if model is not None}


def moved(
    catalog: Catalog, before: Mapping[str, str], after: Mapping[str, str], *, now_us: int
) -> list[CatalogEvent]:
    """Aliases that led to another model before."""
    return [
        CatalogEvent(
            kind="alias_moved",
            model=catalog.models[target],
            at_us=now_us,
            alias=name,
            before=catalog.models[before[name]],
        )
        for name, target in after.items()
        if before.get(name, target) != target and before[name] in catalog.models
    ]


def _of_life(model: Model, *, since_us: int, now_us: int) -> Iterator[CatalogEvent]:
    life = model.life
    deprecated_us, retired_us = life.deprecated_at_us, life.retired_at_us
    if retired_us is not None and since_us < retired_us <= now_us:
        yield CatalogEvent(kind="retired", model=model, at_us=retired_us)
        return
    if retired_us is not None and retired_us <= now_us:
        return
    if deprecated_us is not None and since_us < deprecated_us <= now_us:
        yield CatalogEvent(kind="deprecated", model=model, at_us=deprecated_us)
    if retired_us is None:
        return
    left_us = retired_us - now_us
    level = sum(left_us <= days * US_PER_DAY for days in NOTICE_DAYS)
    if level:
        yield CatalogEvent(kind="retiring", model=model, at_us=retired_us, level=level)


def _amounts(price: Price) -> Price:
    """The price without its version: two versions of the same amounts are the same price."""
    return msgspec.structs.replace(price, version="")
