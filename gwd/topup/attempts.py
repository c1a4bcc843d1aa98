"""Attempts to top up: begun when credit runs low, claimed by one caller, ended once."""

from typing import Final

import msgspec

from gwd import ledger
from gwd.core.clock import iso
from gwd.core.ids import mint
from gwd.core.money import usd_text
from gwd.core.periods import period_end_us, period_start_us
from gwd.orgs.settings import is_deleted
from gwd.store import Connection, cached
from gwd.topup.decision import COOLDOWN_US, has_room, next_try_us

LEASE_US: Final = 180_000_000  # longer than all that one run claims may take
MAX_CLAIMED: Final = 10

_SETTINGS: Final = (
    "SELECT threshold_nano, amount_nano, monthly_cap_nano FROM auto_topup WHERE organization_id = ?1 AND enabled = 1"
    " AND NOT (COALESCE(last_attempt_status, '') = 'failed' AND last_attempt_at > ?2 AND last_attempt_at >= updated_at)"
    " AND NOT EXISTS (SELECT 1 FROM topup_attempt WHERE organization_id = ?1 AND state = 'pending')"
)
_ENABLED: Final = "SELECT 1 FROM auto_topup WHERE organization_id = ? AND enabled = 1"
_TAKEN: Final = (
    "SELECT COALESCE(SUM(amount_nano), 0) FROM topup_attempt WHERE organization_id = ? AND created_at >= ?"
    " AND state IN ('pending', 'succeeded')"
)
_BEGIN: Final = (
    "INSERT INTO topup_attempt (id, organization_id, amount_nano, state, next_attempt_at, created_at)"
    " VALUES (?, ?, ?, 'pending', ?, ?) ON CONFLICT DO NOTHING"
)
_DUE: Final = (
    "SELECT t.id, t.organization_id, t.amount_nano, t.attempt, t.created_at, s.hook_url, s.sealed_secret"
    " FROM topup_attempt AS t LEFT JOIN auto_topup AS s ON s.organization_id = t.organization_id AND s.enabled = 1"
    " WHERE t.state = 'pending' AND t.next_attempt_at <= ? ORDER BY t.next_attempt_at LIMIT ?"
)
_CLAIM: Final = (
    "UPDATE topup_attempt SET attempt = attempt + 1, next_attempt_at = ?"
    " WHERE id = ? AND state = 'pending' AND attempt = ?"
)
_PENDING: Final = "SELECT organization_id, amount_nano, attempt FROM topup_attempt WHERE id = ? AND state = 'pending'"
_CLOSE: Final = "UPDATE topup_attempt SET state = ?, error = ?, closed_at = ? WHERE id = ? AND state = 'pending'"
_LATER: Final = (
    "UPDATE topup_attempt SET next_attempt_at = ?, error = ? WHERE id = ? AND state = 'pending'"
)
_REMEMBER: Final = (
    "UPDATE auto_topup SET last_attempt_at = ?, last_attempt_status = ?, last_attempt_error = ?"
    " WHERE organization_id = ?"
)


class ClaimedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A try that this caller alone may make now; `tries` counts it."""

    id: str
    organization_id: str
    amount_nano: int
    tries: int
    created_at_us: int
    hook_url: str
    sealed_secret: str


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A try that brought nothing; without `next_attempt_at_us` it was the last."""

    id: str
    organization_id: str
    amount_nano: int
    tries: int
    reason: str
    next_attempt_at_us: int | None


class CappedTopUp(msgspec.Struct, frozen=True, kw_only=True):
    """A top-up that is wanted and that the month's cap leaves no room for, until the month ends."""

    organization_id: str
    amount_nano: int
    threshold_nano: int
    monthly_cap_nano: int
    taken_nano: int
    month_us: int
    ends_us: int

    @property
    def reason(self) -> str:
        """What stops it, and what helps."""
        return (
            f"monthly_cap of {usd_text(self.monthly_cap_nano)} USD: {usd_text(self.taken_nano)} USD were bought this"
            f" month, and {usd_text(self.amount_nano)} USD more would exceed it; raise monthly_cap, or wait until"
            f" {iso(self.ends_us)}"
        )

    @property
    def mark(self) -> str:
        """What lets it be told once for a month, a cap and an amount."""
        return f"topup_cap:{self.organization_id}:{self.monthly_cap_nano}:{self.amount_nano}:{self.month_us}"


def due(
    connection: Connection, organization_id: str, owned_nano: int, *, now_us: int
) -> int | CappedTopUp | None:
    """What should be bought now, in nano-USD, or what stops it; changes nothing.

    An organization without automatic top-up costs the writer one look into its memory.
    """
    if not _is_enabled(connection, organization_id):
        return None
    row = connection.row(_SETTINGS, (organization_id, now_us - COOLDOWN_US))
    if row is None:
        return None
    threshold_nano, amount_nano, monthly_cap_nano = row
    if owned_nano >= threshold_nano:
        return None
    month_us = period_start_us("monthly", now_us)
    taken = connection.row(_TAKEN, (organization_id, month_us))
    assert taken is not None
    if has_room(amount_nano=amount_nano, monthly_cap_nano=monthly_cap_nano, taken_nano=taken[0]):
        return int(amount_nano)
    ends_us = period_end_us("monthly", now_us)
    assert ends_us is not None
    return CappedTopUp(
        organization_id=organization_id,
        amount_nano=amount_nano,
        threshold_nano=threshold_nano,
        monthly_cap_nano=monthly_cap_nano,
        taken_nano=taken[0],
        month_us=month_us,
        ends_us=ends_us,
    )


def begin(
    connection: Connection, organization_id: str, amount_nano: int, *, now_us: int
) -> str | None:
    """A new attempt, and its id; None while another one is under way."""
    attempt_id = mint("top_")
    begun = connection.execute(_BEGIN, (attempt_id, organization_id, amount_nano, now_us, now_us))
    return attempt_id if begun else None


def consider(
    connection: Connection, organization_id: str, owned_nano: int, *, now_us: int
) -> str | None:
    """Begin an attempt if credit is under the threshold and nothing speaks against it; gives back its id."""
    amount_nano = due(connection, organization_id, owned_nano, now_us=now_us)
    if not isinstance(amount_nano, int):
        return None
    return begin(connection, organization_id, amount_nano, now_us=now_us)


def note_capped(connection: Connection, capped: CappedTopUp, *, now_us: int) -> None:
    """Remember as the last attempt that the month's cap left no room for one."""
    connection.execute(_REMEMBER, (now_us, "stopped", capped.reason, capped.organization_id))


@cached("topup enabled")
def _is_enabled(connection: Connection, organization_id: str) -> bool:
    return connection.row(_ENABLED, (organization_id,)) is not None


def forget_the_future(connection: Connection, *, now_us: int) -> None:
    """After a clock that was ahead: attempts that wait for a time in the future are due now."""
    connection.execute(
        "UPDATE topup_attempt SET next_attempt_at = ?1 WHERE state = 'pending' AND created_at > ?1",
        (now_us,),
    )
    connection.execute(
        "UPDATE auto_topup SET last_attempt_at = ?1 WHERE last_attempt_at > ?1", (now_us,)
    )


def claim_due(connection: Connection, *, now_us: int) -> list[ClaimedAttempt]:
    """Take what is due, so that nobody else tries it meanwhile; a claim that is never ended comes back after the lease.

    An attempt whose organization switched top-up off or was deleted meanwhile is closed.
    """
    claimed = []
    for row in connection.rows(_DUE, (now_us, MAX_CLAIMED)):
        attempt_id, organization_id, amount_nano, tries, created_at_us, hook_url, secret = row
        if is_deleted(connection, organization_id):
            reason = "the organization was deleted"
            _close(connection, attempt_id, organization_id, "failed", reason, now_us)
            continue
        if hook_url is None or secret is None:
            _close(connection, attempt_id, organization_id, "failed", "switched off", now_us)
            continue
        if connection.execute(_CLAIM, (now_us + LEASE_US, attempt_id, tries)) == 1:
            claimed.append(
                ClaimedAttempt(
                    id=attempt_id,
                    organization_id=organization_id,
                    amount_nano=amount_nano,
                    tries=tries + 1,
                    created_at_us=created_at_us,
                    hook_url=hook_url,
                    sealed_secret=secret,
                )
            )
    return claimed


def succeed(connection: Connection, attempt_id: str, *, now_us: int) -> ledger.Entry | None:
    """The hook took the payment: close the attempt and add the credit. None if it had ended before."""
    row = connection.row(_PENDING, (attempt_id,))
    if row is None:
        return None
    organization_id, amount_nano, _ = row
    _close(connection, attempt_id, organization_id, "succeeded", None, now_us)
    credit = ledger.NewCredit(
        kind="purchased",
        type="purchase",
        amount_nano=amount_nano,
        reference=attempt_id,
        note="automatic top-up",
    )
    return ledger.add_credit(connection, organization_id, credit, now_us=now_us)


def fail(
    connection: Connection, attempt_id: str, reason: str, *, final: bool, now_us: int
) -> FailedAttempt | None:
    """A try brought nothing: plan the next, or close the attempt when it was `final` or the last."""
    row = connection.row(_PENDING, (attempt_id,))
    if row is None:
        return None
    organization_id, amount_nano, tries = row
    next_attempt_at_us = None if final else next_try_us(tries, now_us=now_us)
    if next_attempt_at_us is None:
        _close(connection, attempt_id, organization_id, "failed", reason, now_us)
    else:
        connection.execute(_LATER, (next_attempt_at_us, reason, attempt_id))
        connection.execute(_REMEMBER, (now_us, "retrying", reason, organization_id))
    return FailedAttempt(
        id=attempt_id,
        organization_id=organization_id,
        amount_nano=amount_nano,
        tries=tries,
        reason=reason,
        next_attempt_at_us=next_attempt_at_us,
    )


def _close(
    connection: Connection,
    attempt_id: str,
    organization_id: str,
    state: str,
    error: str | None,
    now_us: int,
) -> None:
    connection.execute(_CLOSE, (state, error, now_us, attempt_id))
    connection.execute(_REMEMBER, (now_us, state, error, organization_id))
