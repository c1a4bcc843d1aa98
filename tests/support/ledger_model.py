"""A small ledger to compare the real one with: plain numbers in memory, written from the rules alone."""

from collections import defaultdict
from dataclasses import dataclass, field

DAY_US = 86_400_000_000
KINDS = ("promotional", "granted", "purchased")


@dataclass
class ModelLot:
    id: str
    kind: str
    remaining: int
    expires_at: int | None


@dataclass
class ModelHold:
    amount: int
    family: str
    boot: str
    named: tuple[str, ...] = ()
    """The counters of its tags and its user."""
    progress: int | None = None


@dataclass
class LedgerModel:
    """What one organization's books must say."""

    last_at: int
    free: int = 0
    held: int = 0
    spent: int = 0
    expired: int = 0
    added: int = 0
    debt: int = 0
    lots: list[ModelLot] = field(default_factory=list)
    holds: dict[str, ModelHold] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    purchases: dict[str, int] = field(default_factory=dict)
    spend: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))

    def at(self, now_us: int) -> int:
        """Ledger time."""
        return max(now_us, self.last_at)

    def add(self, lot_id: str, kind: str, amount: int, expires_at: int | None, now_us: int) -> None:
        self.last_at = self.at(now_us)
        paid = min(self.debt, amount)
        self.debt -= paid
        self.free += amount
        self.added += amount
        self.lots.append(ModelLot(lot_id, kind, amount - paid, expires_at))

    def due(self, now_us: int) -> int:
        """How much would expire now."""
        ripe = sum(
            lot.remaining
            for lot in self.lots
            if lot.expires_at is not None and lot.expires_at <= now_us
        )
        return max(0, min(self.free, ripe))

    def expire(self, now_us: int) -> None:
        at = self.at(now_us)
        for lot in self.ordered():
            if lot.expires_at is not None and lot.expires_at <= now_us:
                part = max(0, min(lot.remaining, self.free))
                lot.remaining -= part
                self.free -= part
                self.expired += part
                if part:
                    self.last_at = at

    def reserve(self, name: str, hold: ModelHold, now_us: int) -> bool:
        self.expire(now_us)
        if self.free < hold.amount:
            return False
        self.last_at = self.at(now_us)
        self.free -= hold.amount
        self.held += hold.amount
        self.holds[name] = hold
        return True

    def end(self, name: str, cost: int, scopes: tuple[str, ...], now_us: int) -> None:
        """Settle for `cost`, or release with 0."""
        self.last_at = self.at(now_us)
        hold = self.holds.pop(name)
        self.held -= hold.amount
        self.free += hold.amount - cost
        self.spent += cost
        self.ended[name] = cost
        left = cost
        for lot in self.ordered():
            part = min(lot.remaining, left)
            lot.remaining -= part
            left -= part
        self.debt += left
        for scope in (*scopes, hold.family, *hold.named):
            self.spend[scope, self.last_at // DAY_US] += cost

    def refundable(self) -> int:
        purchased = sum(lot.remaining for lot in self.lots if lot.kind == "purchased")
        return max(0, min(purchased, self.free))

    def refund(self, amount: int, now_us: int) -> None:
        self.last_at = self.at(now_us)
        self.free -= amount
        self.added -= amount
        for lot in self.ordered():
            if lot.kind == "purchased":
                part = min(lot.remaining, amount)
                lot.remaining -= part
                amount -= part

    def total(self, scope: str, first_day: int) -> int:
        return sum(
            cost for (name, day), cost in self.spend.items() if name == scope and day >= first_day
        )

    def ordered(self) -> list[ModelLot]:
        never = 1 << 62
        return sorted(
            self.lots,
            key=lambda lot: (
                KINDS.index(lot.kind),
                never if lot.expires_at is None else lot.expires_at,
                lot.id,
            ),
        )
