"""Who is told what happens in the catalog: organizations that used the model in the last thirty days.

What they used is read ahead on a reader, since it may be much; what is told is written in one transaction with the mark
that it was.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gwd.activity.of_model import ModelUsage, usage_of_model
from gwd.alerts import catalog_notices
from gwd.alerts.marks import Mark, clear, mark_once
from gwd.alerts.service import NewAlert, raise_
from gwd.catalog.events import CatalogEvent
from gwd.catalog.snapshot import Catalog, Model
from gwd.core.clock import US_PER_DAY
from gwd.keys import service as keys
from gwd.orgs import organizations
from gwd.orgs.settings import settings
from gwd.store import Connection

LOOK_BACK_US: Final = 30 * US_PER_DAY
MAX_KEYS: Final = 20

Audience = Mapping[str, ModelUsage]
"""By organization, what it did with a model; those that did not use it are there as well."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a model can be served, since when, and why not."""

    can_serve: bool
    eligible: int
    since_us: int
    reason: str = ""
    last_errors: tuple[dict[str, Any], ...] = ()


def audience(connection: Connection, model: str, *, now_us: int) -> Audience:
    """Every organization of the node, with what it did with the model in the last thirty days."""
    since_us = now_us - LOOK_BACK_US
    return {
        organization_id: usage_of_model(connection, organization_id, model, since_us=since_us)
        for organization_id in organizations.ids(connection)
    }


def tell(
    connection: Connection,
    event: CatalogEvent,
    heard_by: Audience,
    catalog: Catalog,
    *,
    app_url: str,
    now_us: int,
) -> bool:
    """Raise an event's alert for all whom it concerns, once; whether it was new."""
    if not mark_once(connection, Mark(name=event.name, value=event.level), now_us=now_us):
        return False
    for organization_id, usage in heard_by.items():
        alert = _alert(connection, event, organization_id, usage, catalog, app_url, now_us)
        if alert is not None:
            raise_(connection, organization_id, alert, now_us=now_us)
    return True


def is_told(connection: Connection, events: Iterable[CatalogEvent]) -> set[str]:
    """The names of events that were told at their level."""
    told = set()
    for event in events:
        row = connection.row("SELECT value FROM alert_mark WHERE name = ?", (event.name,))
        if row is not None and row[0] >= event.level:
            told.add(event.name)
    return told


def tell_availability(
    connection: Connection,
    model: Model,
    standing: Standing,
    heard_by: Audience,
    *,
    app_url: str,
    now_us: int,
) -> None:
    """Raise that a model cannot be served, or again can after that was told; the operator always hears of it."""
    mark = Mark(name=f"catalog:unavailable:{model.id}")
    if standing.can_serve:
        if not clear(connection, mark.name):
            return
    elif not mark_once(connection, mark, now_us=now_us):
        return
    operator = organizations.operator_id(connection)
    for organization_id, usage in heard_by.items():
        if usage.requests or organization_id == operator:
            alert = catalog_notices.availability(
                model,
                is_back=standing.can_serve,
                eligible=standing.eligible,
                since_us=standing.since_us,
                reason=standing.reason,
                last_errors=standing.last_errors,
                app_url=app_url,
            )
            raise_(connection, organization_id, alert, now_us=now_us)


def _alert(
    connection: Connection,
    event: CatalogEvent,
    organization_id: str,
    usage: ModelUsage,
    catalog: Catalog,
    app_url: str,
    now_us: int,
) -> NewAlert | None:
    wanted = settings(connection, organization_id).settings
    if event.kind in ("deprecated", "retiring", "retired"):
        if not usage.requests and wanted.deprecation_alerts == "used":
            return None
        return catalog_notices.lifecycle(
            event,
            successor=catalog.successor(event.model, event.model.life.retired_at_us or now_us),
            forwarding=wanted.forward_retired_models,
            requests=usage.requests,
            keys=_keys(connection, usage),
            app_url=app_url,
            now_us=now_us,
        )
    if not usage.requests:
        return None
    if event.kind == "alias_moved":
        return catalog_notices.alias_moved(event, requests=usage.requests, app_url=app_url)
    return catalog_notices.price_changed(event, requests=usage.requests, app_url=app_url)


def _keys(connection: Connection, usage: ModelUsage) -> list[dict[str, Any]]:
    busiest = usage.keys[:MAX_KEYS]
    known = keys.by_ids(connection, [key.key_id for key in busiest])
    return [
        {
            "id": key.key_id,
            "name": known[key.key_id].name if key.key_id in known else None,
            "requests": key.requests,
        }
        for key in busiest
    ]
