"""What admission would say of a plan: every refusal, not only the first, and what would be held. Reads only.

It asks the functions that `admission.admit` asks, each by itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from gwd import budgets
from gwd.budgets import BudgetStatus
from gwd.catalog import snapshot
from gwd.core.errors import GatewayError
from gwd.core.spender import Spender
from gwd.keys import admission as keys
from gwd.ledger import credit
from gwd.orgs import settings as orgs
from gwd.pipeline.admit.admission import (
    Admitted,
    Stale,
    check_in_flight,
    require_payable,
    within_strict_limit,
)
from gwd.pipeline.plan.routing import Plan, Refusal
from gwd.store import Connection


class Payer(msgspec.Struct, frozen=True, kw_only=True):
    """Whose limits are asked. Without a key those of a key are left aside; `family_id` is empty then.

    `user` and `tags` are those that the request would have on record.
    """

    organization_id: str
    workspace_id: str | None
    key_id: str | None = None
    family_id: str = ""
    user: str | None = None
    tags: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`refusals` in the order in which they would be met. `admitted` is what would be held; None where nothing is.

    `free_nano` is what a hold may take of the balance, `budgets` are those that count.
    """

    refusals: tuple[GatewayError, ...]
    admitted: Admitted | None
    free_nano: int
    budgets: tuple[BudgetStatus, ...]


def judge(
    connection: Connection,
    planned: Plan | Refusal,
    payer: Payer,
    *,
    in_flight_cap: int,
    app_url: str,
    now_us: int,
    due_us: int,
) -> Verdict | Stale:
    """The verdict on a plan. `in_flight_cap` is the node's default cap per key, 0 for none."""
    organization_id = payer.organization_id
    if (
        snapshot.revision(connection) != planned.catalog_revision
        or orgs.revision(connection, organization_id) != planned.organization_revision
    ):
        return Stale()
    refusals: list[GatewayError] = []
    key = None if payer.key_id is None else keys.state(connection, payer.key_id)
    ledger_us = credit.ledger_time_us(connection, organization_id, now_us=now_us)
    if payer.key_id is not None:
        with _noted(refusals):
            keys.require_live_key(connection, payer.key_id, now_us=now_us)
    if isinstance(planned, Refusal) and planned.stage == "model":
        refusals.append(planned.error)
    if key is not None:
        with _noted(refusals):
            keys.require_below_limit(connection, key, now_us=ledger_us)
        with _noted(refusals):
            check_in_flight(connection, key, in_flight_cap)
    spender = Spender(
        organization_id=organization_id,
        workspace_id=payer.workspace_id,
        family_id=payer.family_id,
        user=payer.user,
        tags=payer.tags,
    )
    refusals += budgets.hard_refusals(connection, spender, now_us=now_us)
    if isinstance(planned, Refusal) and planned.stage == "endpoints":
        refusals.append(planned.error)
    free_nano = credit.free_nano(connection, organization_id, now_us=now_us, due_us=due_us)
    admitted: Admitted | None = None
    if isinstance(planned, Plan):
        within: Plan | None = planned
        if key is not None:
            within = None
            with _noted(refusals):
                within = within_strict_limit(connection, planned, key, ledger_us)
        with _noted(refusals):
            payable = require_payable(within or planned, free_nano, app_url)
            admitted = None if within is None else payable
    return Verdict(
        refusals=tuple(refusals),
        admitted=admitted,
        free_nano=free_nano,
        budgets=tuple(budgets.applicable(connection, spender, now_us=now_us)),
    )


@contextmanager
def _noted(refusals: list[GatewayError]) -> Iterator[None]:
    """Put a refusal on the list, and go on."""
    try:
        yield
    except GatewayError as refusal:
        refusals.append(refusal)
