"""GET /auth/key (and /key): what the calling key is, may and has used."""

from typing import Any

from gwd import budgets
from gwd.api.keys import key_record
from gwd.api.management import Answer, Call, one
from gwd.core.caller import Caller
from gwd.keys import service
from gwd.store import Connection


def show(connection: Connection, call: Call) -> Answer:
    caller: Caller = call.caller
    key = service.own(connection, caller.organization_id, caller.key_id)
    record: dict[str, Any] = key_record(connection, call, key)
    is_management = caller.kind == "management"
    applying = []
    if not is_management:
        standing = budgets.applicable(
            connection,
            caller.organization_id,
            caller.workspace_id,
            caller.family_id,
            now_us=call.now_us,
        )
        applying = [budgets.key_record(status) for status in standing]
    return one(
        {
            **record,
            "rate_limit": {
                "requests": caller.rate_limit_per_minute,
                "interval": "60s",
                "note": "at most this many requests in any 60 seconds",
            },
            "is_management_key": is_management,
            "is_provisioning_key": is_management,
            "is_free_tier": False,
            "allowed_data_regions": [],
            "free_model_daily_requests": {"limit": 0, "used": 0, "remaining": 0},
            "budgets": applying,
            "effective_budget": applying[0] if applying else None,
        }
    )
