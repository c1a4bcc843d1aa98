"""What is kept of health over a restart, and its two tables: written once in a while, read at the start.

Times are the wall clock's microseconds here, the monotonic clock's seconds in memory. What concerns an endpoint or a
credential that is gone is dropped, and so is what hung on one that was edited after the rest began.
"""

import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from gwd.core.errors import FaultReason
from gwd.store import Connection, maintains_cache

log = logging.getLogger(__name__)

_LOAD_RESTS: Final = (
    "SELECT r.endpoint_id, r.credential_id, r.reason, r.status, r.code, r.message, r.began_at, r.until_at,"
    " r.is_closed, r.throttles, r.asked, c.key_ref IS NOT NULL"
    " FROM rest AS r LEFT JOIN credential AS c ON c.id = r.credential_id"
    " LEFT JOIN provider AS k ON k.auth = 'none' AND r.credential_id = 'keyless:' || k.slug"
    " LEFT JOIN endpoint AS e ON e.id = r.endpoint_id LEFT JOIN provider AS p ON p.slug = e.provider"
    " WHERE COALESCE(c.id, k.slug) IS NOT NULL AND (r.endpoint_id = '' OR e.id IS NOT NULL)"
    " AND (r.reason IN ('rate_limited', 'overloaded')"
    " OR MAX(COALESCE(c.updated_at, k.updated_at), COALESCE(e.updated_at, 0), COALESCE(p.updated_at, 0)) <= r.began_at)"
)
_LOAD_ENDPOINTS: Final = (
    "SELECT body FROM endpoint_health WHERE endpoint_id IN (SELECT id FROM endpoint)"
)
_KEEP_REST: Final = (
    "INSERT INTO rest (endpoint_id, credential_id, reason, status, code, message, began_at, until_at, is_closed,"
    " throttles, asked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_KEEP_ENDPOINT: Final = (
    "INSERT INTO endpoint_health (endpoint_id, body) VALUES (?, ?)"
    " ON CONFLICT (endpoint_id) DO UPDATE SET body = excluded.body"
)
_PRUNE: Final = (
    "DELETE FROM endpoint_health WHERE endpoint_id NOT IN (SELECT id FROM endpoint)",
    "DELETE FROM rest WHERE credential_id NOT IN (SELECT id FROM credential"
    " UNION ALL SELECT 'keyless:' || slug FROM provider WHERE auth = 'none')"
    " OR (endpoint_id <> '' AND endpoint_id NOT IN (SELECT id FROM endpoint))",
)


class KeptRest(msgspec.Struct, frozen=True, kw_only=True):
    """A rest. `endpoint_id` is empty for a credential's own, `until_us` None where only an edit ends it.

    `is_referenced` tells of a key that is read from outside: it may be another by now, and nobody edited anything.
    """

    endpoint_id: str
    credential_id: str
    reason: FaultReason
    status: int | None
    code: str | None
    message: str
    began_us: int
    until_us: int | None
    is_closed: bool
    throttles: int
    asked: tuple[int, ...]
    is_referenced: bool = False


class KeptFault(msgspec.Struct, frozen=True, array_like=True):
    """A call that failed: when, with which credential, why, and what the vendor said."""

    at_us: int
    credential_id: str
    reason: FaultReason
    status: int | None
    message: str


class KeptEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of one endpoint: (when, whether it went well), (when, seconds, tokens a second), failures."""

    id: str
    network_faults: int
    attempts: tuple[tuple[int, bool], ...]
    speeds: tuple[tuple[int, float, float | None], ...]
    failures: tuple[KeptFault, ...]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is written or was read. `rests` are all there are; None where they have not changed since the last time."""

    rests: Sequence[KeptRest] | None
    endpoints: Sequence[KeptEndpoint]


_encode: Final = msgspec.json.Encoder().encode
_asked: Final = msgspec.json.Decoder(tuple[int, ...])
_endpoint: Final = msgspec.json.Decoder(KeptEndpoint)


@maintains_cache
def keep(connection: Connection, kept: Kept) -> None:
    """Write what has changed. Nothing that a cache must see."""
    if kept.rests is not None:
        connection.execute("DELETE FROM rest")
        connection.execute_many(_KEEP_REST, [_row(rest) for rest in kept.rests])
    rows = [(each.id, _encode(each).decode()) for each in kept.endpoints]
    connection.execute_many(_KEEP_ENDPOINT, rows)
    for statement in _PRUNE:
        connection.execute(statement)


def load(connection: Connection) -> Kept:
    """What was kept of the endpoints and credentials that are still there; what cannot be read is left out."""
    rests = [_rest(row) for row in connection.rows(_LOAD_RESTS)]
    endpoints = [_endpoint_of(body) for (body,) in connection.rows(_LOAD_ENDPOINTS)]
    return Kept(
        rests=[rest for rest in rests if rest is not None],
        endpoints=[endpoint for endpoint in endpoints if endpoint is not None],
    )


def _row(rest: KeptRest) -> tuple[int | str | None, ...]:
    return (
        rest.endpoint_id,
        rest.credential_id,
        rest.reason,
        rest.status,
        rest.code,
        rest.message,
        rest.began_us,
        rest.until_us,
        int(rest.is_closed),
        rest.throttles,
        _encode(rest.asked).decode(),
    )


def _rest(row: tuple[object, ...]) -> KeptRest | None:
    *values, is_closed, throttles, asked, is_referenced = row
    try:
        named = dict(zip(KeptRest.__struct_fields__, values, strict=False))
        return msgspec.convert(
            {
                **named,
                "is_closed": bool(is_closed),
                "throttles": throttles,
                "asked": _asked.decode(str(asked)),
                "is_referenced": bool(is_referenced),
            },
            KeptRest,
        )
    except msgspec.MsgspecError as error:
        log.warning("a rest that was kept cannot be read and is forgotten: %s", error)
        return None


def _endpoint_of(body: str) -> KeptEndpoint | None:
    try:
        return _endpoint.decode(body)
    except msgspec.MsgspecError as error:
        log.warning("an endpoint's kept health cannot be read and is forgotten: %s", error)
        return None
