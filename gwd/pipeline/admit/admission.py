"""The admission transaction: revisions, key, limits, budgets, the plan's own refusal, the hold.

It runs on the writer and decides once. A refusal is recorded in the same transaction.
"""

from typing import Any, Final

import msgspec

from gwd import budgets
from gwd.activity import service as activity
from gwd.alerts import threshold_alerts
from gwd.catalog import snapshot
from gwd.core import links
from gwd.core.errors import GatewayError, InsufficientCredits, TooManyInFlight
from gwd.core.money import usd_json, usd_text
from gwd.keys import admission as keys
from gwd.keys.admission import KeyState
from gwd.ledger import credit
from gwd.ledger import service as ledger
from gwd.ledger.service import NewReservation
from gwd.orgs import settings as orgs
from gwd.pipeline.admit.identity import GenerationIdentity, refused_row
from gwd.pipeline.plan.routing import Plan, Planned, Refusal
from gwd.pricing import hold as holds
from gwd.pricing.hold import Demand
from gwd.store import Connection, maintains_cache


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What recovery needs of a generation besides its progress; kept until the reservation ends."""

    identity: GenerationIdentity = msgspec.field(name="ticket")  # its name in the database


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """What is held, durably once it is admitted. `targets` are those the hold covers."""

    targets: tuple[Planned, ...]
    hold_nano: int


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing was held; the refusal is on record."""

    error: GatewayError


class Stale(msgspec.Struct, frozen=True):
    """The plan was computed from an older catalog or older settings: plan again."""


_encoder: Final = msgspec.json.Encoder()


@maintains_cache
def admit(
    connection: Connection,
    planned: Plan | Refusal,
    identity: GenerationIdentity,
    *,
    boot_id: str,
    in_flight_cap: int,
    app_url: str,
    now_us: int,
    due_us: int,
) -> Admitted | Refused | Stale:
    """Decide on one generation. `in_flight_cap` is the node's default cap per key, 0 for none.

    Credit expires by `due_us`, the rest goes by `now_us`.
    """
    if (
        snapshot.revision(connection) != planned.catalog_revision
        or orgs.revision(connection, identity.organization_id) != planned.organization_revision
    ):
        return Stale()
    try:
        key = keys.require_live_key(connection, identity.key_id, now_us=now_us)
        if isinstance(planned, Refusal) and planned.stage == "model":
            raise planned.error
        # Ledger time: a clock that was set back must not open a closed window again.
        ledger_us = credit.ledger_time_us(connection, identity.organization_id, now_us=now_us)
        keys.require_below_limit(connection, key, now_us=ledger_us)
        check_in_flight(connection, key, in_flight_cap)
        would_refuse = budgets.check_hard(connection, identity.spender, now_us=now_us)
        if isinstance(planned, Refusal):
            raise planned.error
        within = within_strict_limit(connection, planned, key, ledger_us)
        admitted = _hold(
            connection, within, identity, boot_id, app_url, now_us=now_us, due_us=due_us
        )
        if would_refuse:
            budgets.count_would_refuse(
                connection, would_refuse, identity.generation_id, at_us=ledger_us
            )
        return admitted
    except GatewayError as error:
        activity.write(connection, refused_row(identity, error, now_us))
        if isinstance(error, InsufficientCredits):
            # No charge will come that could begin a top-up: credit that expired or was refunded is bought here.
            threshold_alerts.consider_topup(
                connection, identity.organization_id, app_url=app_url, now_us=now_us, due_us=due_us
            )
        return Refused(error=error)


def check_in_flight(connection: Connection, key: KeyState, default_cap: int) -> None:
    """Refuse where as many requests of the key run as may."""
    cap = default_cap if key.in_flight_cap is None else key.in_flight_cap
    if cap and ledger.open_count(connection, key.family_id) >= cap:
        raise TooManyInFlight(
            f"this key has {cap} requests running, as many as it may; wait for one to end",
            retry_after_s=1,
        )


def within_strict_limit(connection: Connection, plan: Plan, key: KeyState, ledger_us: int) -> Plan:
    """The plan without targets whose hold a strict key's limit has no room for.

    Where the limit includes own keys, a target on one holds what the limit will count: the list price beside the fee.
    """
    room_nano = keys.strict_room_nano(connection, key, now_us=ledger_us)
    if room_nano is None:
        return plan
    planned = plan.targets
    if key.include_byok_in_limit:
        planned = tuple(_with_list_price(p) for p in planned)
    targets = tuple(p for p in planned if p.hold_nano <= room_nano)
    if not targets:
        cheapest_nano = min(p.hold_nano for p in planned)
        raise keys.strict_limit_exceeded(
            connection, key, needed_nano=cheapest_nano, now_us=ledger_us
        )
    return msgspec.structs.replace(plan, targets=targets)


def _with_list_price(planned: Planned) -> Planned:
    if not planned.target.credential.byok:
        return planned
    return msgspec.structs.replace(planned, hold_nano=planned.hold_nano + planned.list_price_nano)


def _hold(
    connection: Connection,
    plan: Plan,
    identity: GenerationIdentity,
    boot_id: str,
    app_url: str,
    *,
    now_us: int,
    due_us: int,
) -> Admitted:
    """Hold for the dearest target that the balance can pay for; dearer ones are left out."""
    free_nano = credit.free_nano(connection, identity.organization_id, now_us=now_us, due_us=due_us)
    payable = require_payable(plan, free_nano, app_url)
    held = ledger.reserve(
        connection,
        NewReservation(
            generation_id=identity.generation_id,
            organization_id=identity.organization_id,
            workspace_id=identity.workspace_id,
            key_id=identity.key_id,
            family_id=identity.family_id,
            amount_nano=payable.hold_nano,
            boot_id=boot_id,
            context=_encoder.encode(Context(identity=identity)),
        ),
        now_us=now_us,
        due_us=due_us,
    )
    assert held is not None, "what was free a statement ago was not"
    return payable


def require_payable(plan: Plan, free_nano: int, app_url: str) -> Admitted:
    """The targets that free credit covers, and the hold for the dearest of them. Raises InsufficientCredits."""
    targets = tuple(p for p in plan.targets if p.hold_nano <= free_nano)
    if not targets:
        raise _insufficient(plan, free_nano, app_url)
    return Admitted(targets=targets, hold_nano=max(p.hold_nano for p in targets))


def _insufficient(plan: Plan, free_nano: int, app_url: str) -> InsufficientCredits:
    cheapest = min(plan.targets, key=lambda p: p.hold_nano)
    available = max(0, free_nano)
    metadata: dict[str, Any] = {
        "required": usd_json(cheapest.hold_nano),
        "available": usd_json(available),
        "affordable_completion_tokens": _affordable(cheapest, plan.demand, available),
        "top_up_url": links.credits(app_url),
    }
    return InsufficientCredits(
        f"the balance of {usd_text(free_nano)} USD does not cover this request, which may cost up to"
        f" {usd_text(cheapest.hold_nano)} USD; add credits or lower max_tokens",
        metadata=metadata,
    )


def _affordable(planned: Planned, demand: Demand, available_nano: int) -> int:
    """How many completion tokens the balance would pay for at the cheapest target; 0 if not even the prompt."""
    target = planned.target
    if not demand.generates:
        return 0
    low, high = 0, target.max_completion_tokens
    while low < high:
        tokens = (low + high + 1) // 2
        capped = msgspec.structs.replace(demand, output_cap=tokens)
        if holds.hold(capped, target).amount_nano <= available_nano:
            low = tokens
        else:
            high = tokens - 1
    return low
