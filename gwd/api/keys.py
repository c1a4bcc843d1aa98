"""/keys: provisioning of inference and management keys."""

from typing import Any

from gwd.api.management import Answer, Call, deleted, listed, one
from gwd.keys import record, service
from gwd.keys.service import CreateKey, Key, KeyFilter, PatchKey
from gwd.orgs.settings import default_rate_limit, settings
from gwd.store import Connection


def create(connection: Connection, call: Call) -> Answer:
    """The plaintext is shown here, once; a replay of this request has `key: null`."""
    body: CreateKey = call.body
    issued = service.create(
        connection,
        call.organization_id,
        body,
        actor=call.caller,
        issuing=call.node.issuing,
        now_us=call.now_us,
    )
    shown = key_record(connection, call, issued.key)
    return Answer(
        status=201,
        body={"key": issued.plaintext, "data": shown},
        replay={"key": None, "data": shown},
        subject=("api_key", issued.key.id),
        details={"name": issued.key.name, "type": issued.key.kind},
    )


def list_(connection: Connection, call: Call) -> Answer:
    call.allow("include_disabled", "include_expired", "workspace_id", "name")
    limit, offset = call.page(default=100)
    keys, total = service.list_keys(
        connection,
        call.organization_id,
        KeyFilter(
            include_disabled=call.flag("include_disabled"),
            include_expired=call.flag("include_expired"),
            workspace_id=call.query.get("workspace_id"),
            name=call.query.get("name"),
        ),
        actor=call.caller,
        limit=limit,
        offset=offset,
        now_us=call.now_us,
    )
    return listed([key_record(connection, call, key) for key in keys], total)


def get(connection: Connection, call: Call) -> Answer:
    key = service.get(connection, call.organization_id, call.path["key"], actor=call.caller)
    return one(key_record(connection, call, key))


def patch(connection: Connection, call: Call) -> Answer:
    body: PatchKey = call.body
    key = service.patch(
        connection,
        call.organization_id,
        call.path["key"],
        body,
        actor=call.caller,
        rate_limit_ceiling=call.node.issuing.rate_limit_ceiling,
        now_us=call.now_us,
    )
    return Answer(
        body={"data": key_record(connection, call, key)},
        subject=("api_key", key.id),
        details={"name": key.name},
    )


def delete(connection: Connection, call: Call) -> Answer:
    key = service.delete(
        connection, call.organization_id, call.path["key"], actor=call.caller, now_us=call.now_us
    )
    return deleted("api_key", key.id)


def key_record(connection: Connection, call: Call, key: Key) -> dict[str, Any]:
    ceiling = call.node.issuing.rate_limit_ceiling
    organization = settings(connection, key.organization_id).settings
    return record.record(
        key,
        record.usage(connection, key, now_us=call.now_us),
        default_rate_limit_per_minute=default_rate_limit(organization, ceiling),
        now_us=call.now_us,
    )
