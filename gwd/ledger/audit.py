"""The proof that the ledger adds up: everything is recomputed from the entries and compared with what is cached.

Read-only, in the caller's snapshot. It also looks at what must agree with the ledger elsewhere: spend counters and the
costs of generations. `gwd.proof` adds what the ledger alone cannot know, and is what operators and the night run.
"""

from collections import defaultdict
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd.core.fields import Count
from gwd.ledger import holds
from gwd.ledger.account import StoredAccount
from gwd.ledger.replay import Difference, Replay
from gwd.store.connection import Connection, Row

MAX_DIFFERENCES: Final = 200

_ACCOUNT: Final = (
    "SELECT funding_nano, pool_nano, held_nano, spent_nano, expired_nano, debt_nano, last_seq, last_hash, last_at,"
    " next_expiry_at FROM account WHERE organization_id = ?"
)
_LOTS: Final = (
    "SELECT id, remaining_nano, debt_paid_nano, expires_at FROM lot WHERE organization_id = ?"
)
_CHARGES_BY_DAY: Final = """
    SELECT e.workspace_id, r.family_id, e.created_at / 86400000000, SUM(e.amount_nano)
    FROM entry AS e JOIN reservation AS r USING (generation_id)
    WHERE e.organization_id = ? AND e.type = 'charge' GROUP BY 1, 2, 3"""
_LIST_PRICE: Final = (
    "cost_prompt_nano + cost_cache_read_nano + cost_cache_write_nano + cost_completion_nano"
    " + cost_reasoning_nano + cost_request_fee_nano + cost_web_search_nano"
)
_BYOK_BY_DAY: Final = f"""
    SELECT workspace_id, family_id, settled_at / 86400000000, SUM({_LIST_PRICE})
    FROM generation WHERE organization_id = ? AND byok = 1 GROUP BY 1, 2, 3"""  # noqa: S608
_SCOPES: Final = """
    SELECT id FROM workspace WHERE organization_id = ?1
    UNION SELECT family_id FROM api_key WHERE organization_id = ?1"""
_SPEND: Final = "SELECT day, charged_nano, byok_nano FROM spend WHERE scope_id = ?"
_NAMED_BY_DAY: Final = f"""
    SELECT counter, day, SUM(charged_nano), SUM(byok_nano) FROM (
        SELECT organization_id || ':user:' || user_tag AS counter, settled_at / 86400000000 AS day,
            cost_total_nano AS charged_nano, byok * ({_LIST_PRICE}) AS byok_nano
        FROM generation WHERE organization_id = ?1 AND user_tag IS NOT NULL
        UNION ALL
        SELECT organization_id || ':tag:' || tag.value, settled_at / 86400000000, cost_total_nano,
            byok * ({_LIST_PRICE})
        FROM generation, json_each(generation.tags) AS tag WHERE organization_id = ?1 AND tags IS NOT NULL
    ) GROUP BY 1, 2"""  # noqa: S608
_NAMED_SPEND: Final = (
    "SELECT scope_id, day, charged_nano, byok_nano FROM spend"
    " WHERE scope_id > ?1 || ':' AND scope_id < ?1 || ';'"
)
_FORGOTTEN: Final = "SELECT before_day FROM senders_forgotten WHERE organization_id = ?"
_STRAY_SPEND: Final = """
    SELECT DISTINCT scope_id FROM spend WHERE scope_id NOT IN (SELECT organization_id FROM account)
        AND substr(scope_id, 1, instr(scope_id, ':') - 1) NOT IN (SELECT organization_id FROM account)
        AND scope_id NOT IN (SELECT id FROM workspace) AND scope_id NOT IN (SELECT family_id FROM api_key)
        AND scope_id NOT IN (SELECT family_id FROM reservation)
        AND scope_id NOT IN (SELECT workspace_id FROM reservation WHERE workspace_id IS NOT NULL)"""
_STRAY_LOTS: Final = """
    SELECT organization_id, id FROM lot WHERE organization_id NOT IN (SELECT organization_id FROM account)"""
_REFERENCES: Final = (
    "SELECT type, reference, seq, last_seq FROM credit_reference WHERE organization_id = ?"
)

_CACHES: Final = """
    SELECT a.organization_id, a.funding_nano + a.pool_nano + a.held_nano + a.spent_nano + a.expired_nano,
        a.held_nano - COALESCE(r.held, 0), a.pool_nano + a.held_nano + a.debt_nano - COALESCE(l.credit, 0),
        MIN(a.debt_nano, COALESCE(l.credit, 0)),
        a.last_seq - COALESCE((SELECT MAX(seq) FROM entry WHERE organization_id = a.organization_id), 0)
    FROM account AS a
    LEFT JOIN (SELECT organization_id, SUM(amount_nano) AS held FROM reservation WHERE state = 'open' GROUP BY 1)
        AS r USING (organization_id)
    LEFT JOIN (SELECT organization_id, SUM(remaining_nano) AS credit FROM lot WHERE remaining_nano > 0 GROUP BY 1)
        AS l USING (organization_id)"""
_CACHE_RULES: Final = (
    ("I1", "the accounts do not sum to 0"),
    ("I3", "held is not the sum of the open holds"),
    ("I4", "free and held are not the lots less debt"),
    ("I4", "there is debt while a lot holds credit"),
    ("I16", "the account does not name its last entry"),
)


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What recomputing the books found."""

    ok: Annotated[bool, Meta(description="Whether there is not one difference.")]
    checked: Annotated[Count, Meta(description="How many entries were recomputed.")]
    differences: Annotated[
        tuple[Difference, ...], Meta(description="What does not add up; the first 200.")
    ]


def verify(
    connection: Connection, organization_id: str | None = None, *, boot_id: str | None = None
) -> Verification:
    """Recompute one organization's books, or all. With `boot_id` no open hold of an earlier run is allowed (I18)."""
    names = organizations(connection) if organization_id is None else [organization_id]
    parts = [books(connection, name, boot_id=boot_id) for name in names]
    differences = [each for part in parts for each in part.differences]
    differences += strays(connection, organization_id)
    return Verification(
        ok=not differences,
        checked=sum(part.checked for part in parts),
        differences=tuple(differences[:MAX_DIFFERENCES]),
    )


def books(
    connection: Connection, organization_id: str, *, boot_id: str | None = None
) -> Verification:
    """One organization's books, without what `strays` finds."""
    found = _Books(connection, organization_id)
    found.check(boot_id)
    return Verification(
        ok=not found.replay.differences,
        checked=found.replay.seq,
        differences=tuple(found.replay.differences[:MAX_DIFFERENCES]),
    )


def strays(connection: Connection, organization_id: str | None = None) -> list[Difference]:
    """What belongs to no entry or to nobody, in one pass over all books or those of one organization."""
    found = [
        ("I3", owner, f"{name} holds credit that its entry does not reserve")
        for owner, name in holds.stray_holds(connection, organization_id)
    ]
    if organization_id is None:
        found += [
            ("I4", owner, f"the lot {lot_id} belongs to nobody")
            for owner, lot_id in connection.rows(_STRAY_LOTS)
        ]
        found += [
            ("I12", None, f"spend of {scope_id} belongs to nobody")
            for (scope_id,) in connection.rows(_STRAY_SPEND)
        ]
    return [
        Difference(invariant=invariant, organization_id=owner, message=message)
        for invariant, owner, message in found
    ]


def organizations(connection: Connection) -> list[str]:
    """Everybody who has an account, deleted ones too."""
    return [row[0] for row in connection.rows("SELECT organization_id FROM account ORDER BY 1")]


def look_over(connection: Connection) -> list[Difference]:
    """What can be seen of all books without recomputing them: caches that contradict each other. For every start."""
    return [
        Difference(
            invariant=invariant,
            organization_id=row[0],
            message=f"{message} in the books of {row[0]}",
        )
        for row in connection.rows(_CACHES)
        for off, (invariant, message) in zip(row[1:], _CACHE_RULES, strict=True)
        if off
    ]


class _Books:
    """The comparison of one organization's replayed entries with its caches."""

    def __init__(self, connection: Connection, organization_id: str) -> None:
        self._connection = connection
        self._organization_id = organization_id
        self.replay = Replay(connection, organization_id)

    def check(self, boot_id: str | None) -> None:
        self.replay.run()
        self._check_account()
        self._check_lots()
        if self.replay.balances["held"] != sum(self.replay.open.values()):
            self._wrong("I3", "held is not the sum of the open holds")
        holds.check_holds(self._connection, self.replay, self._wrong, boot_id=boot_id)
        holds.check_records(self._connection, self.replay, self._wrong)
        self._check_references()
        self._check_spend()
        self._check_named_spend()

    def _check_account(self) -> None:
        row = self._connection.row(_ACCOUNT, (self._organization_id,))
        if row is None:
            self._wrong("I2", "the organization has no account")
            return
        replay, account = self.replay, StoredAccount._make(row)
        for (name, nano), cached in zip(replay.balances.items(), account.balances, strict=True):
            if nano != cached:
                self._wrong("I2", f"{name} is cached as {cached}, its entries give {nano}")
        if (total := sum(account.balances)) != 0:
            self._wrong("I1", f"the accounts sum to {total}, not to 0")
        debt_nano = account.debt_nano
        if debt_nano != replay.debt_nano:
            self._wrong("I4", f"debt is cached as {debt_nano}, the entries give {replay.debt_nano}")
        if (account.last_seq, account.last_hash) != (replay.seq, replay.hash):
            self._wrong(
                "I16",
                f"the account names entry {account.last_seq} as its last, the entries end at {replay.seq}",
            )
        if replay.seq and account.last_at_us != replay.at_us:
            self._wrong("I12", "the account's last ledger time is not that of its last entry")
        self._check_next_expiry(account.next_expiry_at_us)

    def _check_next_expiry(self, cached_us: int | None) -> None:
        row = self._connection.row(
            "SELECT MIN(expires_at) FROM lot WHERE organization_id = ? AND remaining_nano > 0",
            (self._organization_id,),
        )
        earliest_us = None if row is None else row[0]
        if earliest_us is not None and (cached_us is None or cached_us > earliest_us):
            self._wrong("I2", "credit would expire later than its lot says")

    def _check_lots(self) -> None:
        replay = self.replay
        remaining_sum = 0
        for lot_id, remaining_nano, debt_paid_nano, _ in self._rows(_LOTS):
            remaining_sum += remaining_nano
            if replay.remaining.get(lot_id) != remaining_nano:
                self._wrong(
                    "I4",
                    f"lot {lot_id} is cached with {remaining_nano}, its entries leave {replay.remaining.get(lot_id)}",
                )
            if replay.debt_paid.get(lot_id) != debt_paid_nano:
                self._wrong("I4", f"lot {lot_id} paid another debt than it says")
        owned_nano = replay.balances["pool"] + replay.balances["held"]
        if owned_nano != remaining_sum - replay.debt_nano:
            self._wrong(
                "I4",
                f"free and held are {owned_nano}, lots less debt {remaining_sum - replay.debt_nano}",
            )
        if replay.debt_nano > 0 and remaining_sum > 0:
            self._wrong("I4", "there is debt while a lot holds credit")

    def _check_references(self) -> None:
        booked = dict(self.replay.references)
        for kind, reference, *seqs in self._rows(_REFERENCES):
            if booked.pop((kind, reference), None) != tuple(seqs):
                self._wrong("I15", f"the {kind} {reference} was booked by other entries")
        for kind, reference in booked:
            self._wrong("I15", f"the {kind} {reference} could be booked again")

    def _check_spend(self) -> None:
        expected: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
        for column, sql in enumerate((_CHARGES_BY_DAY, _BYOK_BY_DAY)):
            for workspace_id, family_id, day, nano in self._rows(sql):
                for scope_id in (self._organization_id, workspace_id, family_id):
                    if scope_id is not None:
                        expected[scope_id, day][column] += nano
                        expected[scope_id, 0][column] += nano
        scopes = {scope_id for scope_id, _ in expected} | {row[0] for row in self._rows(_SCOPES)}
        for scope_id in sorted(scopes | {self._organization_id}):
            for day, charged_nano, byok_nano in self._connection.rows(_SPEND, (scope_id,)):
                if expected.pop((scope_id, day), [0, 0]) != [charged_nano, byok_nano]:
                    self._wrong(
                        "I12", f"spend of {scope_id} on day {day} is not the sum of its charges"
                    )
        for (scope_id, day), nanos in expected.items():
            if any(nanos):
                self._wrong("I12", f"spend of {scope_id} on day {day} is missing")

    def _check_named_spend(self) -> None:
        """The counters of tags and users: exactly what the records say, as far as those have forgotten nothing.

        Of days that may have been forgotten a counter is gone, or has no less than the records; a lifetime has no less
        than the days that are known whole.
        """
        row = self._connection.row(_FORGOTTEN, (self._organization_id,))
        known_from = 0 if row is None else row[0]
        counted = {
            (counter, day): [charged_nano, byok_nano]
            for counter, day, charged_nano, byok_nano in self._rows(_NAMED_SPEND)
        }
        expected: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
        for counter, day, *nanos in self._rows(_NAMED_BY_DAY):
            for place in (day, 0) if day >= known_from else (day,):
                for column, nano in enumerate(nanos):
                    expected[counter, place][column] += nano
        for counter, day in counted.keys() | expected.keys():
            there, wanted = counted.get((counter, day)), expected[counter, day]
            if day >= known_from:
                right = (there or [0, 0]) == wanted
            elif there is None:
                right = day > 0 or not any(wanted)
            else:
                right = there[0] >= wanted[0] and there[1] >= wanted[1]
            if not right:
                self._wrong(
                    "I12", f"spend of {counter} on day {day} is not the sum of its requests"
                )

    def _rows(self, sql: str) -> list[Row]:
        return self._connection.rows(sql, (self._organization_id,))

    def _wrong(self, invariant: str, message: str) -> None:
        self.replay.differences.append(
            Difference(invariant=invariant, organization_id=self._organization_id, message=message)
        )
