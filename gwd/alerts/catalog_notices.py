"""The catalog's alerts, worded: pure functions from models, prices and dates to what people read."""

from collections.abc import Sequence
from typing import Any, Final

from gwd.alerts.service import NewAlert
from gwd.catalog.events import CLASSES, CatalogEvent, PriceChange
from gwd.catalog.snapshot import Model
from gwd.core import links
from gwd.core.clock import US_PER_DAY, iso, iso_or_none
from gwd.core.cost import Price
from gwd.core.money import per_million_json, usd_json

_SHOWN: Final = {
    "prompt_pico": "prompt",
    "completion_pico": "completion",
    "cache_read_pico": "cache_read",
    "cache_write_5m_pico": "cache_write",
    "cache_write_1h_pico": "cache_write_1h",
    "reasoning_pico": "reasoning",
    "request_nano": "request",
    "image_nano": "image",
}


def lifecycle(
    event: CatalogEvent,
    *,
    successor: Model | None,
    forwarding: bool,
    requests: int,
    keys: Sequence[dict[str, Any]],
    app_url: str,
    now_us: int,
) -> NewAlert:
    """A model is deprecated, will soon be retired, or is retired."""
    model, life = event.model, event.model.life
    title, what = _stage(event, now_us)
    return NewAlert(
        category="model_deprecation",
        type=f"model.{event.kind}",
        severity="critical" if event.kind == "retired" else "warning",
        title=title,
        message=f"{what} {_after(successor, forwarding=forwarding, is_over=event.kind == 'retired')}"
        f" You made {requests:,} requests to it in the last 30 days.",
        url=links.model(app_url, model.id),
        data={
            "model": model.id,
            "name": model.name,
            "vendor": model.vendor,
            "deprecated_at": iso_or_none(life.deprecated_at_us),
            "retired_at": iso_or_none(life.retired_at_us),
            "successor": life.successor,
            "forwards_to": None if successor is None or not forwarding else successor.id,
            "forwarding_enabled": forwarding,
            "requests_last_30d": requests,
            "keys": list(keys),
        },
    )


def price_changed(event: CatalogEvent, *, requests: int, app_url: str) -> NewAlert:
    """A price will change, or has changed."""
    change, model = event.price, event.model
    assert change is not None
    is_announced = event.kind == "price_announced"
    moment = iso(event.at_us)
    return NewAlert(
        category="price_change",
        type="model.price_changed",
        severity="warning" if change.rises else "info",
        title=f"The price of {model.name} {'changes' if is_announced else 'has changed'}",
        message=f"{'From' if is_announced else 'Since'} {moment} {model.id} at {', '.join(change.tags)} costs"
        f" {_told(change)}. You made {requests:,} requests to it in the last 30 days.",
        url=links.model(app_url, model.id),
        data={
            "model": model.id,
            "vendor": model.vendor,
            "endpoints": list(change.tags),
            "effective_at": moment,
            "in_force": not is_announced,
            "old": amounts(change.old),
            "new": amounts(change.new),
            "change_percent": _percents(change),
            "requests_last_30d": requests,
        },
    )


def alias_moved(event: CatalogEvent, *, requests: int, app_url: str) -> NewAlert:
    """A name leads to another model from now on."""
    before, after = event.before, event.model
    assert before is not None
    return NewAlert(
        category="price_change",
        type="model.alias_moved",
        severity="info",
        title=f"{event.alias} is {after.name} now",
        message=f"The name {event.alias} led to {before.id} and leads to {after.id} since {iso(event.at_us)},"
        f" at its price. You made {requests:,} requests to {before.id} in the last 30 days.",
        url=links.model(app_url, after.id),
        data={
            "alias": event.alias,
            "model": after.id,
            "previous_model": before.id,
            "vendor": after.vendor,
            "effective_at": iso(event.at_us),
            "requests_last_30d": requests,
        },
    )


def availability(
    model: Model,
    *,
    is_back: bool,
    eligible: int,
    since_us: int,
    reason: str,
    last_errors: Sequence[dict[str, Any]],
    app_url: str,
) -> NewAlert:
    """No endpoint could serve a model for two minutes, or one can again for as long."""
    return NewAlert(
        category="model_availability",
        type="model.available" if is_back else "model.unavailable",
        severity="info" if is_back else "warning",
        title=f"{model.name} is {'available again' if is_back else 'unavailable'}",
        message=f"{model.id} can be served again since {iso(since_us)}."
        if is_back
        else f"No endpoint can serve {model.id} since {iso(since_us)}: {reason}.",
        url=links.model(app_url, model.id),
        data={
            "model": model.id,
            "eligible_endpoints": eligible,
            "since": iso(since_us),
            "reason": reason,
            "last_errors": list(last_errors),
        },
    )


def amounts(price: Price) -> dict[str, Any]:
    """A price in USD: per million tokens, per request and per image."""
    return {
        shown: usd_json(value) if name.endswith("_nano") else per_million_json(value)
        for name, shown in _SHOWN.items()
        for value in [getattr(price, name)]
    }


def _stage(event: CatalogEvent, now_us: int) -> tuple[str, str]:
    name, life = event.model.name, event.model.life
    if event.kind == "deprecated":
        ends = "" if life.retired_at_us is None else f" It is retired on {iso(life.retired_at_us)}."
        return f"{name} is deprecated", f"{event.model.id} is deprecated and still serves.{ends}"
    if event.kind == "retired":
        return f"{name} is retired", f"{event.model.id} is retired since {iso(event.at_us)}."
    days = -(-(event.at_us - now_us) // US_PER_DAY)
    left = f"{days} day{'' if days == 1 else 's'}"
    return f"{name} is retired in {left}", f"{event.model.id} is retired on {iso(event.at_us)}."


def _after(successor: Model | None, *, forwarding: bool, is_over: bool) -> str:
    if successor is None or not forwarding:
        return f"Requests to it {'fail' if is_over else 'will fail'} with 404 model_retired."
    return f"Requests to it {'go' if is_over else 'will go'} to {successor.id}, at its price."


def _told(change: PriceChange) -> str:
    """The classes that differ, in words."""
    return (
        ", ".join(
            f"{shown} {_text(change.new, name)} instead of {_text(change.old, name)}"
            for name, shown in _SHOWN.items()
            if getattr(change.new, name) != getattr(change.old, name)
        )
        or "the same for most requests, with other tiers or factors"
    )


def _text(price: Price, name: str) -> str:
    value = getattr(price, name)
    if name.endswith("_nano"):
        return f"{bytes(usd_json(value)).decode()} USD"
    return f"{bytes(per_million_json(value)).decode()} USD per million tokens"


def _percents(change: PriceChange) -> dict[str, float | None]:
    """By how much each class changes, in percent; null where it cost nothing before."""
    return {
        _SHOWN[name]: None if not old else round((new - old) * 100 / old, 2)
        for name in CLASSES
        for old, new in [(getattr(change.old, name), getattr(change.new, name))]
        if old != new
    }
