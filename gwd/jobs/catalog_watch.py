"""Twice a minute: what has happened in the catalog is told to whom it concerns, and which models cannot be served."""

from typing import Any, Final

import msgspec

from gwd.alerts import catalog_alerts
from gwd.alerts.catalog_alerts import Standing
from gwd.catalog import events
from gwd.catalog.snapshot import Catalog, Model
from gwd.core.clock import US_PER_DAY, US_PER_S
from gwd.core.node_clock import NodeClock
from gwd.health.record import EndpointHealthRecord
from gwd.pipeline.plan.state import PlanningState
from gwd.store import Connection, Store

CATALOG_WATCH_S: Final = 30.0
OUT_FOR_US: Final = 120 * US_PER_S
TOLD_LATE_US: Final = 3 * US_PER_DAY
_BEGAN: Final = "catalog_watch"
_ALIASES: Final = "alias_targets"
_SERVES: Final = ("healthy", "outage")


class CatalogWatch:
    """One for the node. A model's standing is remembered here, what was told in the database."""

    def __init__(
        self, store: Store, state: PlanningState, clock: NodeClock, *, app_url: str
    ) -> None:
        self._store = store
        self._state = state
        self._clock = clock
        self._app_url = app_url
        self._standing: dict[str, Standing] = {}
        self._settled: set[str] = set()

    async def run(self) -> None:
        """Nothing is told by a clock that is in doubt."""
        now_us = self._clock.due_us()
        catalog = await self._state.catalog()
        await self._tell_events(catalog, now_us)
        await self._tell_aliases(catalog, now_us)
        await self._tell_availability(catalog, now_us)

    async def _tell_events(self, catalog: Catalog, now_us: int) -> None:
        """What is older than three days, or than the first look at all, is not told."""
        began_us = await self._store.write(_began, now_us=now_us)
        since_us = max(began_us, now_us - TOLD_LATE_US)
        found = events.due(catalog, since_us=since_us, now_us=now_us)
        told = await self._store.read(catalog_alerts.is_told, found)
        for event in found:
            if event.name not in told:
                heard_by = await self._store.read(
                    catalog_alerts.audience, event.model.id, now_us=now_us
                )
                await self._store.write(
                    catalog_alerts.tell,
                    event,
                    heard_by,
                    catalog,
                    app_url=self._app_url,
                    now_us=now_us,
                )

    async def _tell_aliases(self, catalog: Catalog, now_us: int) -> None:
        after = events.alias_targets(catalog, now_us)
        before = await self._store.read(_known_aliases)
        if before == after:
            return
        for event in events.moved(catalog, before or {}, after, now_us=now_us):
            assert event.before is not None
            heard_by = await self._store.read(
                catalog_alerts.audience, event.before.id, now_us=now_us
            )
            await self._store.write(
                catalog_alerts.tell,
                event,
                heard_by,
                catalog,
                app_url=self._app_url,
                now_us=now_us,
            )
        await self._store.write(_keep, _ALIASES, msgspec.json.encode(after))

    async def _tell_availability(self, catalog: Catalog, now_us: int) -> None:
        records: dict[str, list[EndpointHealthRecord]] = {}
        for record in await self._state.endpoint_records(now_us):
            records.setdefault(record.model, []).append(record)
        self._standing = {name: s for name, s in self._standing.items() if name in catalog.models}
        for model in catalog.models.values():
            if model.endpoints and model.life.state(now_us) != "retired":
                await self._look(model, records.get(model.id, []), now_us)

    async def _look(self, model: Model, records: list[EndpointHealthRecord], now_us: int) -> None:
        eligible = sum(record.status in _SERVES or _is_tried(record) for record in records)
        before = self._standing.get(model.id)
        can_serve = eligible > 0
        if before is None or before.can_serve != can_serve:
            self._settled.discard(model.id)
        elif model.id in self._settled:
            return
        since_us = before.since_us if before and before.can_serve == can_serve else now_us
        standing = Standing(
            can_serve=can_serve,
            eligible=eligible,
            since_us=since_us,
            reason="" if can_serve else _reason(records),
            last_errors=() if can_serve else _last_errors(records),
        )
        self._standing[model.id] = standing
        if now_us - since_us < OUT_FOR_US:
            return
        self._settled.add(model.id)
        heard_by = await self._store.read(catalog_alerts.audience, model.id, now_us=now_us)
        await self._store.write(
            catalog_alerts.tell_availability,
            model,
            standing,
            heard_by,
            app_url=self._app_url,
            now_us=now_us,
        )


def _is_tried(record: EndpointHealthRecord) -> bool:
    """A rest only orders: where one of them is tried all the same, the model is served."""
    return record.status == "cooling_down" and any(rest.tried for rest in record.rests)


def _reason(records: list[EndpointHealthRecord]) -> str:
    """Why nothing serves, each reason once."""
    return "; ".join(
        dict.fromkeys(f"{record.tag}: {record.reason or record.status}" for record in records)
    )


def _last_errors(records: list[EndpointHealthRecord]) -> tuple[dict[str, Any], ...]:
    counts: dict[tuple[str, str], int] = {}
    for record in records:
        for rest in record.rests:
            name = record.provider, rest.reason
            counts[name] = counts.get(name, 0) + 1
    return tuple(
        {"vendor": vendor, "reason": reason, "count": count}
        for (vendor, reason), count in counts.items()
    )


def _began(connection: Connection, *, now_us: int) -> int:
    """When this node looked at its catalog for the first time."""
    kept = connection.row("SELECT value FROM node_fact WHERE name = ?", (_BEGAN,))
    if kept is not None:
        return int(bytes(kept[0]))
    _keep(connection, _BEGAN, str(now_us).encode())
    return now_us


def _known_aliases(connection: Connection) -> dict[str, str] | None:
    row = connection.row("SELECT value FROM node_fact WHERE name = ?", (_ALIASES,))
    return None if row is None else msgspec.json.decode(bytes(row[0]), type=dict[str, str])


def _keep(connection: Connection, name: str, value: bytes) -> None:
    connection.execute(
        "INSERT INTO node_fact (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )
