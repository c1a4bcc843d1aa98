"""Where a model stands in its life, and what stands for an alias: pure functions of the catalog and the clock."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

State = Literal["active", "deprecated", "retired"]
MAX_SUCCESSORS: Final = 5


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """The dates of one model, microseconds UTC."""

    deprecated_at_us: int | None = None
    retired_at_us: int | None = None
    successor: str | None = None

    def state(self, now_us: int) -> State:
        """Derived from the clock at every look: a missed timer must not keep a model alive."""
        if self.retired_at_us is not None and now_us >= self.retired_at_us:
            return "retired"
        if self.deprecated_at_us is not None and now_us >= self.deprecated_at_us:
            return "deprecated"
        return "active"


def successor_of(model: str, lives: Mapping[str, Lifecycle], now_us: int) -> str | None:
    """The first successor in the chain that is not retired itself; None if there is none within five steps."""
    name: str | None = model
    for _ in range(MAX_SUCCESSORS):
        life = lives.get(name) if name else None
        name = life.successor if life else None
        if name is None or name not in lives:
            return None
        if lives[name].state(now_us) != "retired":
            return name
    return None


class FamilyMember(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    released_at_us: int
    life: Lifecycle


def newest(members: Iterable[FamilyMember], now_us: int) -> str | None:
    """The newest active member of a family; deprecated ones count only where no active one is left."""
    living = [m for m in members if m.life.state(now_us) != "retired"]
    active = [m for m in living if m.life.state(now_us) == "active"]
    best = max(active or living, key=lambda m: (m.released_at_us, m.model), default=None)
    return best.model if best else None
