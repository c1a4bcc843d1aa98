"""/keys: provisioning of inference and management keys."""

from typing import Any

from gwd.alerts import crossings
from gwd.api.management import Answer, Call, deleted, one, walked
from gwd.keys import admission, endings, record, service
from gwd.keys.fields import CreateKey, KeyFilter, PatchKey
from gwd.keys.rotation import RotateKey
from gwd.keys.service import Key
from gwd.management import keys
from gwd.orgs.settings import default_rate_limit, settings
from gwd.store import Connection


def create(connection: Connection, call: Call) -> Answer:
    """The plaintext is shown here, once; a replay of this request has `key: null`.

    So has the answer of a key that `if_absent` found, with status 200 and `existed`.
    """
    body: CreateKey = call.body
    present = keys.find_present(connection, body, change=call.change)
    if present is not None:
        shown = key_record(connection, call, present)
        return Answer(body={"key": None, "data": shown, "existed": True})
    issued = keys.create(connection, body, change=call.change, issuing=call.node.issuing)
    shown = key_record(connection, call, issued.key)
    return Answer(
        status=201,
        body={"key": issued.plaintext, "data": shown},
        replay={"key": None, "data": shown},
    )


def rotate(connection: Connection, call: Call) -> Answer:
    """A successor with its plaintext, once; `previous` is the old key and when it ends."""
    body: RotateKey = call.body
    both = keys.rotate(
        connection, call.path["key"], body, change=call.change, issuing=call.node.issuing
    )
    shown = {
        "data": key_record(connection, call, both.issued.key),
        "previous": key_record(connection, call, both.previous),
    }
    return Answer(
        status=201,
        body={"key": both.issued.plaintext, **shown},
        replay={"key": None, **shown},
    )


def list_(connection: Connection, call: Call) -> Answer:
    asked = call.walk(default=100)
    found, total = service.list_keys(
        connection,
        call.organization_id,
        KeyFilter(
            include_disabled=call.flag("include_disabled"),
            include_expired=call.flag("include_expired"),
            workspace_id=call.query.get("workspace_id"),
            name=call.query.get("name"),
        ),
        actor=call.caller,
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
        now_us=call.now_us,
    )
    return walked(
        asked, found, total, lambda key: key_record(connection, call, key), lambda key: key.id
    )


def get(connection: Connection, call: Call) -> Answer:
    key = service.get(connection, call.organization_id, call.path["key"], actor=call.caller)
    return one(key_record(connection, call, key))


def patch(connection: Connection, call: Call) -> Answer:
    body: PatchKey = call.body
    known = service.get(connection, call.organization_id, call.path["key"], actor=call.caller)
    before = admission.state(connection, known.id)
    key = keys.patch(
        connection,
        call.path["key"],
        body,
        change=call.change,
        rate_limit_ceiling=call.node.issuing.rate_limit_ceiling,
    )
    if before is not None:
        crossings.raise_changed_key(
            connection, before, app_url=call.node.app_url, now_us=call.now_us
        )
    return one(key_record(connection, call, key))


def delete(connection: Connection, call: Call) -> Answer:
    """Names the keys of its rotation that live on."""
    gone = keys.delete(connection, call.path["key"], change=call.change)
    lives_on = [
        {**endings.named(key), "is": what}
        for what, key in (("predecessor", gone.predecessor), ("successor", gone.successor))
        if key is not None
    ]
    return deleted(None, gone.key.id, keys_left=lives_on)


def key_record(connection: Connection, call: Call, key: Key) -> dict[str, Any]:
    """The record of api.md 8.2."""
    ceiling = call.node.issuing.rate_limit_ceiling
    organization = settings(connection, key.organization_id).settings
    return record.record(
        key,
        record.usage(connection, key, now_us=call.now_us),
        default_rate_limit_per_minute=default_rate_limit(organization, ceiling),
        now_us=call.now_us,
    )
