"""/operator: the node at a glance, and reading again what it reads from outside."""

from typing import Final

import msgspec

from gwd import __version__, ledger, spend
from gwd.activity import service as activity
from gwd.alerts import queue
from gwd.api import clock
from gwd.api.management import Answer, Call, one
from gwd.api.node import Node
from gwd.api.operator_record import (
    BackupsRecord,
    CredentialProblem,
    HoldsRecord,
    PaceRecord,
    ReloadRecord,
    StatusRecord,
    TrafficRecord,
    VitalsRecord,
)
from gwd.backups import Standing
from gwd.core.clock import US_PER_S, iso
from gwd.core.errors import NotFound
from gwd.core.money import usd_json
from gwd.store import Connection

HOUR_US: Final = 3_600 * US_PER_S


class _Glance(msgspec.Struct, frozen=True, kw_only=True):
    """What the database says: the node's traffic, and the money of the caller's organization."""

    traffic: activity.Traffic
    credit: ledger.Balance
    spent_today_nano: int
    held_nano: int
    held_requests: int
    open_holds: int
    deliveries_pending: int


async def status(call: Call) -> Answer:
    """How the node is doing.

    Traffic and endpoints are the whole node's; money is the caller's organization's.
    """
    node = call.node
    glance = await node.store.read(_glance, call)
    traffic = glance.traffic
    error_rate = round(traffic.errors / traffic.requests, 6) if traffic.requests else None
    endpoints = await node.state.endpoint_records(call.now_us)
    return one(
        StatusRecord(
            version=__version__,
            base_url=node.base_url,
            started_at=iso(node.status.started_us),
            uptime_s=max(0, call.now_us - node.status.started_us) // US_PER_S,
            draining=node.status.draining,
            quarantine=node.status.quarantine,
            clock=await clock.record(node),
            backups=_backups(node.backups, call.now_us),
            requests=TrafficRecord(
                last_hour=traffic.requests,
                errors=traffic.errors,
                error_rate=error_rate,
                refusals=traffic.refusals,
                p50_ttft_ms=traffic.p50_ttft_ms,
                in_flight=len(node.line.live),
                streams=sum(each.identity.stream for each in node.line.live.values()),
            ),
            last_minute=_pace(node),
            vitals=VitalsRecord(
                loop_lag_ms=round(max(node.vitals.last_lags_s, default=0.0) * 1_000, 1),
                writer_queue=node.store.queued,
                open_holds=glance.open_holds,
                connections=node.counters.connections,
                disk_free_bytes=node.vitals.disk_free_bytes,
                deliveries_pending=glance.deliveries_pending,
            ),
            credits=ledger.balance_record(glance.credit),
            spent_today=usd_json(glance.spent_today_nano),
            holds=HoldsRecord(
                amount=usd_json(glance.held_nano),
                requests=glance.held_requests,
            ),
            endpoints=endpoints,
            endpoints_healthy=sum(each.status == "healthy" for each in endpoints),
            endpoints_cooling=sum(each.status == "cooling_down" for each in endpoints),
        )
    )


async def endpoint_health(call: Call) -> Answer:
    """How an endpoint stands: its rests with each credential, its last errors, what was measured of it."""
    record = await call.node.state.endpoint_record(call.path["endpoint"], call.now_us)
    if record is None:
        raise NotFound("no such endpoint")
    return one(record)


async def reload(call: Call) -> Answer:
    """Look again at the catalog, at vendor keys and at what they are read from.

    What SIGHUP does; the certificate is read again, too.
    """
    state = call.node.state
    await state.reload()
    certificate_problem = call.node.status.take_certificate()
    keys = [key for keys in state.vendor_keys.values() for key in keys]
    problems = [
        CredentialProblem(credential_id=key.id, provider=key.provider, message=key.problem)
        for key in keys
        if key.problem is not None
    ]
    record = ReloadRecord(
        reloaded_at=iso(call.now_us),
        credentials=sum(key.record_id is not None for key in keys),
        problems=problems,
        certificate_problem=certificate_problem,
    )
    details = {"problems": len(problems) + (certificate_problem is not None)}
    return one(record, subject=("node", None), details=details)


def _backups(standing: Standing | None, now_us: int) -> BackupsRecord | None:
    if standing is None:
        return None
    newest = standing.newest
    return BackupsRecord(
        directory=standing.directory,
        newest_at=None if newest is None else iso(newest.made_us),
        newest_bytes=0 if newest is None else newest.size_bytes,
        count=standing.count,
        overdue=standing.is_overdue(now_us),
        failure=standing.failure or None,
    )


def _pace(node: Node) -> PaceRecord:
    pace = node.counters.last_minute.pace(node.clock.monotonic_s())
    return PaceRecord(
        requests=pace.requests,
        errors=pace.errors,
        refusals=pace.refusals,
        tokens_prompt=pace.tokens_prompt,
        tokens_completion=pace.tokens_completion,
        charged=usd_json(pace.charged_nano),
    )


def _glance(connection: Connection, call: Call) -> _Glance:
    organization_id, now_us = call.organization_id, call.now_us
    at_us = ledger.ledger_time_us(connection, organization_id, now_us=now_us)
    held_nano, held_requests = ledger.held_in_organization(connection, organization_id)
    return _Glance(
        traffic=activity.traffic(connection, now_us - HOUR_US),
        credit=ledger.balance(connection, organization_id, now_us=now_us, due_us=call.due_us),
        spent_today_nano=spend.total_nano(
            connection, organization_id, "daily", at_us=at_us, include_byok=False
        ),
        held_nano=held_nano,
        held_requests=held_requests,
        open_holds=ledger.open_holds(connection).count,
        deliveries_pending=queue.waiting(connection, now_us=now_us).count,
    )
