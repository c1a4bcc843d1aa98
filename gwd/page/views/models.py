"""Models: what can be asked for, at which price, and what goes away."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from gwd.core.errors import InvalidValue
from gwd.page import by_day
from gwd.page.answer import Done, Shown
from gwd.page.ask import Ask, Doing
from gwd.page.by_day import question, rows
from gwd.page.request import Field
from gwd.page.table import Act, Page
from gwd.page.words import DID

_MONTHS_BACK: Final = 2
_MONTHS: Final = 9
_NEW_DAYS: Final = 30
_LAST_DAYS: Final = 30
_MILLION: Final = 1_000_000
_PRICES: Final = ("prompt", "input_cache_read", "completion")
_MODEL: Final = "/catalog/models/<model:path>"
DID["deprecated"] = "The model is deprecated: it serves and warns until it is retired."
DID["undone"] = "The model is active again."


def models(ask: Ask) -> Shown:
    """Models whose life changes in these months, and the catalog with prices and what was spent."""
    found = ask.all("/catalog/models")
    begins, ends = _window(ask.today)
    used = {
        each["model"]: each for each in (ask.live("/catalog/lifecycle") or {"data": []})["data"]
    }
    health = _health(ask)
    values = {
        "models": [_shown(each, ask, health) for each in found],
        "changes": [
            _life(each, ask, used.get(each["id"])) for each in found if _is_in_view(each, begins, ends, ask.today)
        ],
        "prices": [each for each in used.values() if each["kind"] == "price_change"],
        "months": [month_after(begins, place) for place in range(_MONTHS)],
        "begins": begins,
        "ends": ends,
        "spent": _spent(ask),
    }  # fmt: skip
    return Shown(template="models.html", values=values)


def model(ask: Ask) -> Shown:
    """One model: prices with their history, endpoints, and the keys that used it."""
    found = ask(_MODEL, model=ask.path["model"])["data"]
    begins, ends = _window(ask.today)
    of_model = [{"field": "model", "operator": "eq", "value": found["id"]}]
    since = ask.today - timedelta(days=_LAST_DAYS - 1)
    used = rows(
        ask,
        question(since, ask.today, ["requests", "cost"], ["api_key"], filters=of_model, limit=100),
    )
    every = {"include_disabled": "true", "include_expired": "true"}
    health = _health(ask)
    values = {
        "model": _shown(found, ask, health),
        "life_row": _life(found, ask, None),
        "begins": begins,
        "ends": ends,
        "versions": [
            {"at": each["effective_at"], **_per_million(each["pricing"])} for each in reversed(found["prices"])
        ],
        "endpoints": [each | {"health": health.get(each["id"])} for each in found["endpoints"]],
        "used": used,
        "names": {each["id"]: each["name"] for each in ask.all("/keys", query=every)},
        "spend": by_day.spend_by(ask, since, ask.today, "api_key", rest="keys", filters=of_model),
        "can": ask.may("catalog.write"),
        "others": [each["id"] for each in ask.all("/catalog/models") if each["id"] != found["id"]],
    }  # fmt: skip
    return Shown(template="model.html", values=values, title=found["name"])


def month_after(begins: date, place: int) -> date:
    """The first day of the month that is `place` months after another first day."""
    month = begins.month - 1 + place
    return date(begins.year + month // 12, month % 12 + 1, 1)


def _window(today: date) -> tuple[date, date]:
    """Nine months: the last two, this one, and the next six."""
    month = today.year * 12 + today.month - 1 - _MONTHS_BACK
    begins = date(month // 12, month % 12 + 1, 1)
    return begins, month_after(begins, _MONTHS)


def _day(text: str | None) -> date | None:
    return None if text is None else datetime.fromisoformat(text).date()


def _is_in_view(record: Any, begins: date, ends: date, today: date) -> bool:
    """Whether it changes in these months, or is new."""
    dated = [_day(record[name]) for name in ("deprecated_at", "retired_at")]
    is_new = (released := _day(record["released_at"])) is not None and (
        today - timedelta(days=_NEW_DAYS) <= released <= ends
    )
    return is_new or any(day is not None and begins <= day < ends for day in dated)


def _life(record: Any, ask: Ask, coming: Any) -> dict[str, Any]:
    """When it is active, deprecated and retired, in days and in words."""
    deprecated, retired = _day(record["deprecated_at"]), _day(record["retired_at"])
    return {
        "id": record["id"],
        "successor": record["successor"],
        "since": _day(record["released_at"]),
        "deprecated": deprecated,
        "retired": retired,
        "state": _state(record, ask),
        "days_left": None if retired is None else (retired - ask.today).days,
        "coming": coming,
    }


def _state(record: Any, ask: Ask) -> str:
    now = f"{ask.now:%Y-%m-%dT%H:%M:%SZ}"
    if record["retired_at"] is not None and record["retired_at"] <= now:
        return "retired"
    if record["deprecated_at"] is not None and record["deprecated_at"] <= now:
        return "deprecated"
    return "active"


def _shown(record: Any, ask: Ask, health: Mapping[str, Any]) -> Any:
    """The record with prices per million, its state, and how many endpoints can serve."""
    enabled = [each for each in record["endpoints"] if not each["disabled"]]
    live = [each for each in enabled if health.get(each["id"], "healthy") == "healthy"]
    return record | {
        "per_million": _per_million(record["pricing"]),
        "state": _state(record, ask),
        "live": len(live),
        "all": len(record["endpoints"]),
    }


def _per_million(pricing: Any) -> dict[str, Decimal | None]:
    """Prices of the three classes that people compare, USD per million tokens."""
    priced = pricing or {}
    return {
        name: None if priced.get(name) is None else Decimal(priced[name]) * _MILLION for name in _PRICES
    }  # fmt: skip


def _health(ask: Ask) -> dict[str, str]:
    """How endpoints stand; only the operator is told."""
    status = ask.live("/operator/status")
    if status is None:
        return {}
    return {each["id"]: each["status"] for each in status["data"]["endpoints"]}


def _spent(ask: Ask) -> dict[str, Any]:
    """What each model was charged this month, as the caller may see it."""
    first = date.fromisoformat(f"{ask.month}-01")
    found = rows(ask, question(first, ask.today, ["cost"], ["model"]))
    return {row["model"]: row["cost"] for row in found}


async def deprecate(doing: Doing) -> Done:
    """Say when it goes and what follows it."""
    form, model_id = doing.form, doing.path["model"]
    retired = form.text("retired_at")
    if len(retired) != len("2026-11-30"):
        raise InvalidValue("Choose the day on which it is retired.", param="retired_at")
    body = {
        "deprecated_at": f"{doing.now:%Y-%m-%dT%H:%M:%SZ}",
        "retired_at": f"{retired}T00:00:00Z",
        "successor": form.or_none("successor"),
    }
    await doing.send("PATCH", _MODEL, body, model=model_id)
    return Done(path=f"/models/{model_id}", did="deprecated")


async def undo(doing: Doing) -> Done:
    model_id = doing.path["model"]
    body = {"deprecated_at": None, "retired_at": None, "successor": None}
    await doing.send("PATCH", _MODEL, body, model=model_id)
    return Done(path=f"/models/{model_id}", did="undone")


PAGES: Final = (
    Page(
        path="/models",
        title="Models",
        view=models,
        right="catalog.read",
        live=("/catalog/lifecycle", "/operator/status"),
        nav="Models",
        icon="models",
    ),
    Page(
        path="/models/<model:path>",
        title="Model",
        view=model,
        right="catalog.read",
        live=("/operator/status",),
        under="/models",
        noun="model",
    ),
)
ACTS: Final = (
    Act(
        path="/models/<model:path>/deprecate",
        do=deprecate,
        right="catalog.write",
        fields=(Field("retired_at", 40), Field("successor", 300)),
        form="/models/<model:path>",
    ),
    Act(
        path="/models/<model:path>/undo",
        do=undo,
        right="catalog.write",
        form="/models/<model:path>",
    ),
)
