"""Failover rules: what one endpoint's refusal says about the targets that are still to be tried."""

from typing import Final

import msgspec

from gwd.core.errors import Fault
from gwd.core.request import Request
from gwd.pipeline.plan.routing import Planned
from gwd.vendors.base import Adapter

SECOND_TRY: Final = frozenset(("invalid_signature", "reasoning_refused", "reasoning_missing"))
"""The details of a refusal that are worth one more call to the same endpoint."""


def for_second_try(request: Request, fault: Fault, adapter: Adapter) -> Request:
    """The request without what the vendor refused, or with what it misses."""
    match fault.detail:
        case "reasoning_refused":
            return msgspec.structs.replace(request, replay_reasoning=False)
        case "reasoning_missing":
            return msgspec.structs.replace(request, replay_reasoning=True)
        case _:
            return adapter.without_signatures(request)


class FailoverRules:
    """What refused attempts teach about the targets still to come."""

    def __init__(self) -> None:
        self._refused_rank: int | None = None
        self._too_short: Planned | None = None

    def rule_out(self, planned: Planned) -> bool:
        """Whether the target would refuse for the same reason."""
        if planned.rank == self._refused_rank:
            return True
        if self._too_short is None:
            return False
        room = self._too_short.target.context_length
        # Another model counts tokens in its own way: it may take as much as the one that refused.
        if planned.rank == self._too_short.rank:
            return planned.target.context_length <= room
        return planned.target.context_length < room

    def is_final(self, planned: Planned, fault: Fault) -> bool:
        """Whether no other target can do better."""
        if fault.reason != "bad_request":
            return False
        match fault.detail:
            case "context_length":
                self._too_short = planned
            case "content_policy":
                self._refused_rank = planned.rank
            case "elsewhere":
                return False  # another server may have what this one lacks
            case _:
                return True
        return False
