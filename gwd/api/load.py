"""How much is under way, and the refusals of new inference where the node has as much to do as it can.

What is under way is never touched; management, health and metrics do not come here.
"""

from typing import Final, Literal

from gwd.core.counters import Counters
from gwd.core.errors import Overloaded, TooManyInFlight
from gwd.core.vitals import Vitals
from gwd.settings import Limits

SMALL_BODY_BYTES: Final = 64 * 1024
"""A body of no more than this is never refused for the sum of all bodies."""
Cause = Literal["in_flight", "organization", "bodies", "connections", "loop_lag", "memory"]


class Place:
    """A request that is under way, with its body; `leave` ends it, once."""

    __slots__ = ("_load", "_organization_id", "_size")

    def __init__(self, load: "Load", organization_id: str, size: int) -> None:
        self._load = load
        self._organization_id = organization_id
        self._size = size

    def weigh(self, size: int) -> None:
        """Its body will take so many bytes once it is read. Raises Overloaded where that is too much beside others."""
        load = self._load
        load.require_room(size, load.body_bytes - self._size)
        load.body_bytes += size - self._size
        self._size = size

    def leave(self) -> None:
        """Its end is settled, or it never came to the line."""
        self._load.leave(self._organization_id, self._size)


class Load:
    """One for the node; used from the event loop only."""

    def __init__(self, limits: Limits, vitals: Vitals, counters: Counters) -> None:
        self._limits = limits
        self._vitals = vitals
        self._counters = counters
        self.in_flight = 0
        self.body_bytes = 0
        self._of_organization: dict[str, int] = {}

    def enter(self, organization_id: str, size: int, *, in_reserve: bool) -> Place:
        """A place for a request with a body of `size` bytes. Raises Overloaded and TooManyInFlight.

        `in_reserve` is a connection that was taken for management alone.
        """
        limits = self._limits
        self.require_ease(in_reserve=in_reserve)
        if limits.in_flight and self.in_flight >= limits.in_flight:
            raise self._overloaded(
                "in_flight", "the gateway has as many requests under way as it takes", 1
            )
        self.require_room(size, self.body_bytes)
        of_organization = self._of_organization.get(organization_id, 0)
        if limits.in_flight_per_organization and (
            of_organization >= limits.in_flight_per_organization
        ):
            self._counters.shed["organization"] += 1
            raise TooManyInFlight(
                f"this organization has {of_organization} requests open, as many as it may; wait for one to end",
                retry_after_s=1,
                metadata={"limit": limits.in_flight_per_organization},
            )
        self.in_flight += 1
        self.body_bytes += size
        self._of_organization[organization_id] = of_organization + 1
        return Place(self, organization_id, size)

    def leave(self, organization_id: str, size: int) -> None:
        """One that had a place has ended."""
        self.in_flight -= 1
        self.body_bytes -= size
        left = self._of_organization[organization_id] - 1
        if left:
            self._of_organization[organization_id] = left
        else:
            del self._of_organization[organization_id]

    def require_room(self, size: int, others: int) -> None:
        """Raises Overloaded where a body of `size` bytes is too much beside the others; alone none is too large."""
        most = self._limits.bodies_max_bytes
        if most and size > SMALL_BODY_BYTES and others and others + size > most:
            raise self._overloaded(
                "bodies", "the gateway has as many large requests under way as it takes", 1
            )

    def require_ease(self, *, in_reserve: bool) -> None:
        """Raises Overloaded while the event loop is too late, memory is short, or connections are.

        With nothing under way memory is no reason: there is nothing whose end would give any back.
        """
        if self._vitals.memory.is_high and self.in_flight:
            raise self._overloaded("memory", "the gateway is short of memory", 5)
        if self._vitals.lag.is_high:
            raise self._overloaded("loop_lag", "the gateway has more to do than it can", 2)
        if in_reserve:
            raise self._overloaded("connections", "too many connections are open", 1)

    def _overloaded(self, cause: Cause, what: str, retry_after_s: int) -> Overloaded:
        self._counters.shed[cause] += 1
        return Overloaded(
            f"{what}; try again in {retry_after_s} s",
            retry_after_s=retry_after_s,
            metadata={"cause": cause},
        )
