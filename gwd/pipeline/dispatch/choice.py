"""Which target of a plan is tried next: in the plan's order, and those where another call is on trial after all others.

When nothing else is left, the trial is waited for: it may be over in a moment, and then the endpoint serves. Who has
waited for PATIENCE_S goes all the same, where the rest ends soonest. So what rests gets one call at a time, and nobody
is refused for the sake of that.
"""

import asyncio
from collections.abc import Iterable
from math import isinf
from typing import Final

from gwd.core.clock import Clock
from gwd.core.errors import FaultReason
from gwd.health.health import Health, Visit
from gwd.health.rests import Rest
from gwd.pipeline.dispatch.failover_rules import FailoverRules
from gwd.pipeline.plan.routing import Planned

PATIENCE_S: Final = 5.0
"""How long a request waits in all for the trials of others."""
LOOK_S: Final = 0.5
"""How often it looks by itself meanwhile."""


class Choice:
    """The targets of one dispatch. `closed_for` and `opens_s` tell of those that have closed since the plan was made.

    `opens_s` begins with what the plan knew: when the first of the targets opens that it left out.
    """

    __slots__ = (
        "_aside",
        "_health",
        "_left",
        "_now_s",
        "_patience_ends_s",
        "_rules",
        "closed_for",
        "opens_s",
    )

    def __init__(
        self,
        targets: Iterable[Planned],
        rules: FailoverRules,
        health: Health,
        clock: Clock,
        opens_s: float | None,
    ) -> None:
        self.closed_for: set[FaultReason] = set()
        self.opens_s = opens_s
        self._left = iter(targets)
        self._rules = rules
        self._health = health
        self._now_s = clock.monotonic_s
        self._aside: list[Planned] = []
        self._patience_ends_s: float | None = None

    def next(self, now_s: float) -> tuple[Planned, Visit] | None:
        """The next target that need not be waited for, and the leave to call it, which the caller ends."""
        for planned in self._left:
            if self._rules.rule_out(planned):
                continue
            visit = self._visit(planned, now_s, waits=True)
            if visit is not None:
                return planned, visit
        return None

    async def next_aside(self, limit_s: float) -> tuple[Planned, Visit] | None:
        """The same of those that were put aside; None when none is left.

        It waits no longer than `limit_s` seconds.
        """
        loop_s = asyncio.get_running_loop().time
        if self._patience_ends_s is None:
            self._patience_ends_s = loop_s() + PATIENCE_S
        patience_ends_s = min(self._patience_ends_s, loop_s() + limit_s)
        while aside := self._take_aside():
            patience_s = patience_ends_s - loop_s()
            for number, planned in enumerate(aside):
                visit = self._visit(planned, self._now_s(), waits=patience_s > 0)
                if visit is not None:
                    self._aside += aside[number + 1 :]
                    return planned, visit
            if self._aside:
                targets = [planned.target for planned in self._aside]
                await self._health.wait_for_trials(targets, min(patience_s, LOOK_S))
        return None

    def _take_aside(self) -> list[Planned]:
        """Those put aside that may still serve, the soonest end of a rest first."""
        aside, self._aside = self._aside, []
        now_s = self._now_s()

        def ends_s(planned: Planned) -> float:
            target = planned.target
            rest = self._health.rest(target.endpoint_id, target.credential.id, now_s)
            return now_s if rest is None else rest.until_s

        return sorted((each for each in aside if not self._rules.rule_out(each)), key=ends_s)

    def _visit(self, planned: Planned, now_s: float, *, waits: bool) -> Visit | None:
        """The leave to call it, if there is one; what is on trial is put aside, what has closed is passed over."""
        visit = self._health.visit(planned.target, now_s, waits=waits)
        if type(visit) is Visit:
            return visit
        if visit is None:
            self._aside.append(planned)
        elif isinstance(visit, Rest):
            self.closed_for.add(visit.reason)
            if not isinf(visit.until_s):
                known_s = self.opens_s
                self.opens_s = visit.until_s if known_s is None else min(known_s, visit.until_s)
        return None
