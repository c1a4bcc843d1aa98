"""GET /auth/key (and /key): what the calling key is, may and has used."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gwd import budgets
from gwd.api.keys import key_record
from gwd.api.management import Answer, Call, one
from gwd.budgets import KeyBudgetRecord
from gwd.core.caller import Caller
from gwd.core.fields import Count
from gwd.core.spender import Spender
from gwd.keys import admission, service
from gwd.keys.policy import KeyPolicy
from gwd.keys.record import KeyRecord
from gwd.store import Connection


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """How often the key may call."""

    requests: Annotated[Count, Meta(description="How many requests in one interval.")]
    interval: Annotated[Literal["60s"], Meta(description="How long an interval is.")] = "60s"
    note: Annotated[str, Meta(description="The same in words.")] = (
        "at most this many requests in any 60 seconds"
    )


class FreeRequests(msgspec.Struct, frozen=True, kw_only=True):
    """There are no free models here: always 0."""

    limit: Annotated[Count, Meta(description="Always 0.")] = 0
    used: Annotated[Count, Meta(description="Always 0.")] = 0
    remaining: Annotated[Count, Meta(description="Always 0.")] = 0


class OwnKeyRecord(KeyRecord, frozen=True, kw_only=True):
    """The calling key, with the budgets that its requests count against."""

    rate_limit: Annotated[RateLimit, Meta(description="How often it may call.")]
    is_management_key: Annotated[bool, Meta(description="Whether it is a management key.")]
    is_provisioning_key: Annotated[
        bool, Meta(description="The same, under the name that other clients know.")
    ]
    is_free_tier: Annotated[
        Literal[False], Meta(description="Always false: every request is paid for.")
    ] = False
    allowed_data_regions: Annotated[
        tuple[str, ...], Meta(description="Always empty: keys are not bound to regions.")
    ] = ()
    free_model_daily_requests: Annotated[
        FreeRequests, Meta(description="Always 0: there are no free models.")
    ] = FreeRequests()
    budgets: Annotated[
        list[KeyBudgetRecord],
        Meta(
            description="The budgets its requests count against, in the order in which they would refuse."
        ),
    ]
    effective_budget: Annotated[
        KeyBudgetRecord | None,
        Meta(description="The first of `budgets`; null if there is none."),
    ]


def show(connection: Connection, call: Call) -> Answer:
    """The key that asks, and what it may do and spend."""
    caller: Caller = call.caller
    key = service.own(connection, caller.organization_id, caller.key_id)
    record = key_record(connection, call, key)
    is_management = caller.kind == "management"
    applying = []
    if not is_management:
        policy = admission.policy(connection, caller.key_id) or KeyPolicy()
        spender = Spender(
            organization_id=caller.organization_id,
            workspace_id=caller.workspace_id,
            family_id=caller.family_id,
            tags=policy.tags,
        )
        standing = budgets.applicable(connection, spender, now_us=call.now_us)
        applying = [budgets.key_record(status) for status in standing]
    same: dict[str, Any] = msgspec.structs.asdict(record)
    return one(
        OwnKeyRecord(
            **same,
            rate_limit=RateLimit(requests=caller.rate_limit_per_minute),
            is_management_key=is_management,
            is_provisioning_key=is_management,
            budgets=applying,
            effective_budget=applying[0] if applying else None,
        )
    )
