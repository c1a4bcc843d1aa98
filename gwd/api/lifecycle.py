"""GET /catalog/lifecycle: what is coming in the catalog, and which of one's own keys it will meet."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.activity.of_model import KeyUsage, ModelUsage, usage_of_model
from gwd.alerts.catalog_alerts import LOOK_BACK_US
from gwd.alerts.catalog_notices import amounts
from gwd.api.management import Answer, Call, listed
from gwd.catalog import events
from gwd.catalog.events import CatalogEvent
from gwd.catalog.snapshot import Catalog, Model
from gwd.core.clock import iso
from gwd.core.fields import Count, Id, Moment, Slug, Usd
from gwd.core.money import usd_json
from gwd.core.name_patterns import patterns_of
from gwd.keys import service as keys
from gwd.keys.key import Key
from gwd.orgs import rights, workspaces
from gwd.orgs.policy import permits
from gwd.orgs.settings import settings
from gwd.store import Connection

_KINDS: Final = {
    "deprecated": "deprecation",
    "retired": "retirement",
    "price_changed": "price_change",
}


class MetKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that used the model in the last thirty days."""

    id: Annotated[Id, Meta(description="The key.")]
    name: Annotated[str | None, Meta(description="What people call it.")]
    workspace_id: Annotated[Id | None, Meta(description="The workspace it lives in.")]
    requests: Annotated[Count, Meta(description="How many requests it made.")]
    spend: Annotated[Usd, Meta(description="What they cost.")]
    may_use_successor: Annotated[
        bool | None,
        Meta(
            description="Whether its allowed models have the successor; false fails with 403 after the"
            " retirement. Null without a successor."
        ),
    ]


class MetWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace whose keys used the model."""

    id: Annotated[Id | None, Meta(description="The workspace.")]
    name: Annotated[str | None, Meta(description="What people call it.")]
    requests: Annotated[Count, Meta(description="How many requests its keys made.")]
    spend: Annotated[Usd, Meta(description="What they cost.")]


class ComingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that will happen to a model, and whom of the organization it will meet."""

    at: Annotated[Moment, Meta(description="When it happens.")]
    kind: Annotated[
        Literal["deprecation", "retirement", "price_change"], Meta(description="What happens.")
    ]
    model: Annotated[Slug, Meta(description="The model.")]
    name: Annotated[str, Meta(description="What people call it.")]
    vendor: Annotated[str, Meta(description="Who makes it.")]
    successor: Annotated[
        Slug | None, Meta(description="The model that replaces it; null for none.")
    ]
    forwards_to: Annotated[
        Slug | None,
        Meta(
            description="Where requests to it go from its retirement on; null where they fail with 404 model_retired."
        ),
    ]
    endpoints: Annotated[
        list[str], Meta(description="Of a change of price, the endpoints; else empty.")
    ]
    old: Annotated[
        dict[str, Any] | None,
        Meta(description="The price before, USD per million tokens by class; else null."),
    ]
    new: Annotated[dict[str, Any] | None, Meta(description="The price from then on; else null.")]
    requests_last_30d: Annotated[
        Count, Meta(description="The organization's requests to it in the last thirty days.")
    ]
    spend_last_30d: Annotated[Usd, Meta(description="What they cost.")]
    keys: Annotated[list[MetKey], Meta(description="The keys that made them, the busiest first.")]
    workspaces: Annotated[
        list[MetWorkspace], Meta(description="Their workspaces, the busiest first.")
    ]


async def coming(call: Call) -> Answer:
    """What will happen in the catalog, soonest first, with the keys, workspaces and spend that it will meet.

    Usage is what the caller may see of the organization's activity.
    """
    catalog = await call.node.state.catalog()
    found = events.coming(catalog, now_us=call.now_us)
    records = await call.node.store.read(_records, call, catalog, found)
    return listed(records, len(records))


def _records(
    connection: Connection, call: Call, catalog: Catalog, found: list[CatalogEvent]
) -> list[ComingEvent]:
    usages = {
        event.model.id: _usage(connection, call, event.model.id)
        for event in {event.model.id: event for event in found}.values()
    }
    return [_record(connection, call, catalog, event, usages[event.model.id]) for event in found]


def _record(
    connection: Connection, call: Call, catalog: Catalog, event: CatalogEvent, usage: ModelUsage
) -> ComingEvent:
    model, change = event.model, event.price
    forwarding = settings(connection, call.organization_id).settings.forward_retired_models
    successor = catalog.successor(model, model.life.retired_at_us or event.at_us)
    known = keys.by_ids(connection, [key.key_id for key in usage.keys])
    return ComingEvent(
        at=iso(event.at_us),
        kind=_KINDS[event.kind],  # type: ignore[arg-type]
        model=model.id,
        name=model.name,
        vendor=model.vendor,
        successor=model.life.successor,
        forwards_to=successor.id if successor is not None and forwarding else None,
        endpoints=[] if change is None else list(change.tags),
        old=None if change is None else amounts(change.old),
        new=None if change is None else amounts(change.new),
        requests_last_30d=usage.requests,
        spend_last_30d=usd_json(usage.charged_nano),
        keys=[_key(each, known.get(each.key_id), successor, catalog, call) for each in usage.keys],
        workspaces=_workspaces(connection, call, usage),
    )


def _usage(connection: Connection, call: Call, model: str) -> ModelUsage:
    """As much of it as the caller may see."""
    caller = call.caller
    usage = usage_of_model(
        connection, call.organization_id, model, since_us=call.now_us - LOOK_BACK_US
    )
    reach = rights.allowed(caller, "activity.read")
    if reach == "none":
        return ModelUsage(keys=())
    own = None
    if reach == "own":
        own = keys.ids_of_user(connection, call.organization_id, caller.user_id or "")
    return ModelUsage(
        keys=tuple(
            key
            for key in usage.keys
            if (caller.workspace_id is None or key.workspace_id == caller.workspace_id)
            and (own is None or key.key_id in own)
        )
    )


def _key(
    usage: KeyUsage, key: Key | None, successor: Model | None, catalog: Catalog, call: Call
) -> MetKey:
    may_use = None
    if successor is not None and key is not None:
        names = catalog.names_of(successor, call.now_us)
        models = None if key.allowed_models is None else patterns_of(key.allowed_models)
        may_use = permits(models, successor.id, names)
    return MetKey(
        id=usage.key_id,
        name=None if key is None else key.name,
        workspace_id=usage.workspace_id,
        requests=usage.requests,
        spend=usd_json(usage.charged_nano),
        may_use_successor=may_use,
    )


def _workspaces(connection: Connection, call: Call, usage: ModelUsage) -> list[MetWorkspace]:
    sums: dict[str | None, tuple[int, int]] = {}
    for key in usage.keys:
        requests, nano = sums.get(key.workspace_id, (0, 0))
        sums[key.workspace_id] = requests + key.requests, nano + key.charged_nano
    return [
        MetWorkspace(
            id=name,
            name=None if name is None else workspaces.name_of(connection, name),
            requests=requests,
            spend=usd_json(nano),
        )
        for name, (requests, nano) in sorted(sums.items(), key=lambda item: -item[1][0])
    ]
