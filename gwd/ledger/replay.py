"""One organization's entries played again from the first, in memory: what the caches must say, and what was wrong.

It trusts nothing but the entries and the birth of each lot (kind, amount, expiry); everything else follows.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd.core.fields import Id
from gwd.ledger.book import BOTH_WAYS, ROUTES, Account
from gwd.ledger.burn import Lot, in_order
from gwd.ledger.chain import START, link
from gwd.store.connection import Connection, Row

_ENTRIES: Final = (
    "SELECT organization_id, seq, id, type, from_account, to_account, amount_nano, bucket, lot_id, generation_id,"
    " key_id, workspace_id, reference, note, actor, balance_after_nano, created_at, hash, seal"
    " FROM entry WHERE organization_id = ? AND seq > ? ORDER BY seq LIMIT 5000"
)
_LOTS: Final = (
    "SELECT id, kind, amount_nano, expires_at, created_at FROM lot WHERE organization_id = ?"
)
_NAMED_LOTS: Final = (
    "SELECT l.key, CAST(l.value AS TEXT) FROM audit AS a, json_each(a.details, '$.expires_at_us') AS l"
    " WHERE a.organization_id = ? AND a.action = 'ledger.bind_lots'"
)
"""The lots of entries that were written before entries vouched for their expiry."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that does not add up: the invariant it breaks, where, and how."""

    invariant: Annotated[
        str,
        Meta(
            description="The rule that is broken, I1 to I18 as docs/invariants.md lists them; `audit`, `schema` or "
            "`head` where the audit trail, the tables or a signed head are not what they were."
        ),
    ]
    organization_id: Annotated[
        Id | None,
        Meta(description="Whose books they are; null for what belongs to the whole node."),
    ]
    message: Annotated[str, Meta(description="What was found, and what it should be.")]


class Replay:
    """Play with `run`, then read balances, lots, debt, open holds, and what was booked under a reference."""

    def __init__(self, connection: Connection, organization_id: str) -> None:
        self.organization_id = organization_id
        self.balances: dict[Account, int] = dict.fromkeys(
            ("funding", "pool", "held", "spent", "expired"), 0
        )
        self.debt_nano = 0
        self.remaining: dict[str, int] = {}
        self.debt_paid: dict[str, int] = {}
        self.open: dict[str, int] = {}
        self.expired: dict[str, int] = {}
        self.references: dict[tuple[str, str], tuple[int, int]] = {}
        self.charges = 0
        self.seq = 0
        self.hash = START
        self.at_us = 0
        self.differences: list[Difference] = []
        self._lots = {row[0]: row for row in connection.rows(_LOTS, (organization_id,))}
        self._named: dict[str, str] = dict(connection.rows(_NAMED_LOTS, (organization_id,)))
        self._connection = connection
        self._group: str | None = None
        self._overrun_before_nano = 0
        self._overrun_nano = 0
        self._is_repair = False
        self._settled: str | None = None
        self._settled_nano = 0
        self._charged_nano = 0
        self._with_credit: dict[str, int] = {}

    def run(self) -> None:
        """Play all entries."""
        while rows := self._connection.rows(_ENTRIES, (self.organization_id, self.seq)):
            for row in rows:
                self._step(row)

    def _step(self, row: Row) -> None:
        (_, seq, _, kind, origin, target, amount_nano, bucket, lot_id, generation_id, *rest) = row
        (_, _, reference, note, actor, balance_after_nano, created_at, stored_hash, seal) = rest
        if seq != self.seq + 1:
            self._wrong("I16", f"entry {seq} follows entry {self.seq}")
        self.hash = link(self.hash, row[:17], seal)
        if self.hash != stored_hash:
            self._wrong("I16", f"entry {seq} does not have the hash of its content")
            self.hash = stored_hash
        self._check_time(seq, kind, created_at, sets_back=bool(note and actor) and amount_nano == 0)
        self.seq, self.at_us = seq, created_at
        back = kind in BOTH_WAYS and origin == "pool"
        if ROUTES.get(kind) != ((target, origin) if back else (origin, target)):
            self._wrong("I1", f"entry {seq} of type {kind} moves from {origin} to {target}")
            return
        if generation_id is None or generation_id != self._group:
            self._begin_group(generation_id)
        self.balances[origin] -= amount_nano
        self.balances[target] += amount_nano
        match kind:
            case "purchase" | "grant":
                self._add(seq, lot_id, bucket, amount_nano, seal)
            case "charge":
                self._charge(seq, lot_id, bucket, amount_nano, generation_id)
            case "adjustment" if not back:
                self._add(seq, lot_id, bucket, amount_nano, seal)
            case "refund" | "expiry" | "adjustment":
                self._take(seq, kind, lot_id, bucket, amount_nano)
            case "restoration":
                self._restore(seq, lot_id, bucket, amount_nano)
            case _ if kind != "clock":
                self._hold(seq, kind, generation_id, amount_nano)
        self._refer(seq, kind, reference)
        if self.balances["pool"] != balance_after_nano:
            self._wrong(
                "I2",
                f"entry {seq} says {balance_after_nano} were free, not {self.balances['pool']}",
            )

    def _begin_group(self, generation_id: str | None) -> None:
        # Only what charges exceeded their holds by, since credit was last free, may stand below zero (I7).
        if self.balances["pool"] >= 0:
            self._overrun_before_nano = 0
        else:
            self._overrun_before_nano += self._overrun_nano
        self._overrun_nano = 0
        self._settled = None
        self._group = generation_id

    def _refer(self, seq: int, kind: str, reference: str | None) -> None:
        if reference is None:
            return
        first, _ = self.references.get((kind, reference), (seq, seq))
        self.references[kind, reference] = (first, seq)
        if kind in ("purchase", "grant") and first != seq:
            self._wrong("I15", f"entry {seq} books the {kind} {reference} again")

    def _add(
        self, seq: int, lot_id: str | None, bucket: str | None, amount_nano: int, seal: str | None
    ) -> None:
        lot = self._lots.get(lot_id)
        if lot is None or lot_id is None:
            self._wrong("I4", f"entry {seq} adds a lot that does not exist")
            return
        if lot[1] != bucket or lot[2] != amount_nano or lot_id in self.remaining:
            self._wrong("I4", f"lot {lot_id} is not what entry {seq} added")
        vouched = self._named.get(lot_id) if seal is None else seal
        if vouched != (None if lot[3] is None else str(lot[3])):
            self._wrong("I4", f"lot {lot_id} does not expire when entry {seq} says")
        if lot[4] != self.at_us:
            self._wrong("I12", f"lot {lot_id} is not of the time of entry {seq}")
        paid_nano = min(self.debt_nano, amount_nano)
        self.debt_nano -= paid_nano
        self.debt_paid[lot_id] = paid_nano
        self._leave(lot_id, amount_nano - paid_nano)

    def _check_time(self, seq: int, kind: str, created_at: int, *, sets_back: bool) -> None:
        # Time goes back only where an entry that moves nothing says who set it back, and why.
        if kind != "clock":
            self._is_repair = self._is_repair and kind == "restoration"
            if created_at < self.at_us:
                self._wrong("I12", f"entry {seq} is older than the one before it")
            return
        self._is_repair = True
        if not sets_back:
            self._wrong("I12", f"entry {seq} sets the time back without saying who and why")
        if created_at >= self.at_us:
            self._wrong("I12", f"entry {seq} sets back a time that was not ahead")

    def _restore(self, seq: int, lot_id: str | None, bucket: str | None, amount_nano: int) -> None:
        if lot_id is None or lot_id not in self.remaining or self._lots[lot_id][1] != bucket:
            self._wrong("I4", f"entry {seq} restores a lot that it does not describe")
            return
        expires_at = self._lots[lot_id][3]
        if not self._is_repair or expires_at is None or expires_at <= self.at_us:
            self._wrong("I4", f"restoration {seq} gives back what had not expired too early")
        self.expired[lot_id] = self.expired.get(lot_id, 0) - amount_nano
        if self.expired[lot_id] < 0:
            self._wrong("I4", f"restoration {seq} gives back more than had expired of {lot_id}")
        paid_nano = min(self.debt_nano, amount_nano)
        self.debt_nano -= paid_nano
        self.debt_paid[lot_id] += paid_nano
        self._leave(lot_id, self.remaining[lot_id] + amount_nano - paid_nano)

    def _charge(
        self,
        seq: int,
        lot_id: str | None,
        bucket: str | None,
        amount_nano: int,
        generation_id: str | None,
    ) -> None:
        if generation_id is None:
            self._wrong("I17", f"charge {seq} names no generation")
            return
        if self._settled != generation_id:
            self._wrong("I5", f"charge {seq} of {generation_id} comes without its settlement")
        self.charges += 1
        self._charged_nano += amount_nano
        self._overrun_nano = max(0, self._charged_nano - self._settled_nano)
        if lot_id is None:
            if self._with_credit:
                self._wrong("I4", f"charge {seq} makes debt while there is credit")
            self.debt_nano += amount_nano
        else:
            payer = next((lot.id for lot in in_order(self._lots_with_credit())), None)
            if payer != lot_id:
                self._wrong("I8", f"charge {seq} takes from {lot_id} although {payer} comes first")
            self._take(seq, "charge", lot_id, bucket, amount_nano)
        floor_nano = -(self._overrun_before_nano + self._overrun_nano)
        if self.balances["pool"] < min(0, floor_nano):
            self._wrong(
                "I7", f"after entry {seq} {self.balances['pool']} were free, under {floor_nano}"
            )

    def _take(
        self, seq: int, kind: str, lot_id: str | None, bucket: str | None, amount_nano: int
    ) -> None:
        if lot_id is None or lot_id not in self.remaining or self._lots[lot_id][1] != bucket:
            self._wrong("I4", f"entry {seq} takes from a lot that it does not describe")
            return
        self._leave(lot_id, self.remaining[lot_id] - amount_nano)
        if self.remaining[lot_id] < 0:
            self._wrong("I4", f"entry {seq} takes more than lot {lot_id} holds")
        if kind == "charge":
            return
        if kind == "refund" and bucket != "purchased":
            self._wrong("I9", f"refund {seq} takes {bucket} credit")
        if self.balances["pool"] < 0:
            self._wrong(
                "I9" if kind == "refund" else "I7", f"{kind} {seq} takes credit that is held"
            )
        if kind != "expiry":
            return
        self.expired[lot_id] = self.expired.get(lot_id, 0) + amount_nano
        expires_at = self._lots[lot_id][3]
        if expires_at is None or expires_at > self.at_us:
            self._wrong("I4", f"expiry {seq} takes from lot {lot_id} before its time")

    def _hold(self, seq: int, kind: str, generation_id: str | None, amount_nano: int) -> None:
        if generation_id is None:
            self._wrong("I17", f"{kind} {seq} names no generation")
            return
        if kind == "reservation":
            if generation_id in self.open:
                self._wrong("I5", f"{generation_id} is reserved twice")
            if self.balances["pool"] < 0:
                self._wrong("I6", f"reservation {seq} took more than was free")
            self.open[generation_id] = amount_nano
            return
        if self.open.pop(generation_id, None) != amount_nano:
            self._wrong("I5", f"{kind} {seq} does not give back the hold of {generation_id}")
        if kind == "settlement":
            self._settled, self._settled_nano, self._charged_nano = generation_id, amount_nano, 0

    def _leave(self, lot_id: str, nano: int) -> None:
        self.remaining[lot_id] = nano
        if nano > 0:
            self._with_credit[lot_id] = nano
        else:
            self._with_credit.pop(lot_id, None)

    def _lots_with_credit(self) -> list[Lot]:
        return [
            Lot(lot_id, self._lots[lot_id][1], nano, self._lots[lot_id][3])
            for lot_id, nano in self._with_credit.items()
        ]

    def _wrong(self, invariant: str, message: str) -> None:
        self.differences.append(
            Difference(invariant=invariant, organization_id=self.organization_id, message=message)
        )
