"""The queue of deliveries: what is due to whom, how attempts ended, what is too old to be told.

An addressee is a destination or the address of a person. Each is served on its own, one message at a time, oldest
first; a failure makes all that waits for it wait longer, so that a burst in a bad minute is not five failures. Five
failures in a row disable a destination. All of it is rows: what was due before the node died is due afterwards.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, Literal

import msgspec

from gwd.alerts import notices
from gwd.alerts.service import AlertRecord, raise_, records_of
from gwd.alerts.tables import DeliveryTable, DestinationTable
from gwd.core.clock import US_PER_S
from gwd.store import Connection

WAITS_S: Final = (5.0, 300.0, 1_800.0, 7_200.0)
"""After the first failure, the second …; after the fifth nothing is tried any more."""

MAX_ATTEMPTS: Final = len(WAITS_S) + 1
JITTER: Final = 0.1
KEPT_S: Final = 3 * 86_400
MAX_DIGEST: Final = 200
# What was tried before comes first: it holds up what follows. The index delivery_pending has this order.
_HEAD: Final = (
    "SELECT id FROM delivery WHERE addressee = ? AND status = 'pending' AND next_attempt_at IS NOT NULL"
    " AND type NOT IN (SELECT value FROM json_each(?)) ORDER BY attempt = 0, created_at, rowid LIMIT 1"
)
_DIGEST: Final = (
    "SELECT id FROM delivery WHERE addressee = ? AND status = 'pending' AND next_attempt_at IS NOT NULL"
    " AND type = ? AND organization_id = ? ORDER BY attempt = 0, created_at, rowid LIMIT ?"
)
EXPIRED_AT_ONCE: Final = 5_000
EXPIRED: Final = "nobody could be told within three days"

Kind = Literal["webhook", "email", "chat"]


class Addressee(msgspec.Struct, frozen=True, kw_only=True):
    """To whom a message goes. Without a destination it is a person's mail address."""

    organization_id: str
    destination_id: str | None
    kind: Kind
    address: str
    sealed_address: str | None = None
    sealed_secret: str | None = None
    sealed_old_secret: str | None = None
    old_secret_until_us: int | None = None
    chat_format: str | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent at once: one alert, or many of a kind to people. `attempt` counts the failed ones so far."""

    addressee: Addressee
    delivery_ids: tuple[str, ...]
    alerts: tuple[AlertRecord, ...]
    type: str
    attempt: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended. `error` None: it arrived. `is_final`: the receiver wants nothing more, now or later."""

    error: str | None
    response_status: int | None = None
    retry_after_s: float | None = None
    latency_ms: int = 0
    is_final: bool = False


def due(connection: Connection, *, now_us: int) -> list[str]:
    """The addressees for whom something waits that may be tried now; none that is paused or disabled."""
    rows = connection.rows(
        "SELECT a.addressee FROM (SELECT DISTINCT addressee, destination_id FROM delivery WHERE status = 'pending'"
        " AND next_attempt_at <= ?1) AS a LEFT JOIN destination AS d ON d.id = a.destination_id"
        " WHERE (a.destination_id IS NULL OR d.enabled) AND NOT EXISTS (SELECT 1 FROM delivery AS p"
        " WHERE p.addressee = a.addressee AND p.status = 'pending' AND (p.attempt = 0) = 0 AND p.next_attempt_at > ?1)",
        (now_us,),
    )
    return [row[0] for row in rows]


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """How much waits to be delivered, and for how long the longest has been due."""

    count: int
    oldest_s: float


def waiting(connection: Connection, *, now_us: int) -> Waiting:
    row = connection.row(
        "SELECT COUNT(*), MIN(next_attempt_at) FROM delivery WHERE status = 'pending'"
    )
    assert row is not None
    count, oldest_us = row
    late_us = 0 if oldest_us is None else max(0, now_us - oldest_us)
    return Waiting(count=count, oldest_s=late_us / US_PER_S)


def next_message(
    connection: Connection, addressee: str, *, held: Collection[str], now_us: int
) -> Message | None:
    """What an addressee is told next; nothing while it is paused or disabled.

    Of the types that are `held` it was told just now: they wait, to be told together.
    """
    paused = connection.row(
        "SELECT MAX(next_attempt_at) FROM delivery WHERE addressee = ? AND status = 'pending' AND (attempt = 0) = 0",
        (addressee,),
    )
    if paused is not None and paused[0] is not None and paused[0] > now_us:
        return None
    head_id = connection.row(_HEAD, (addressee, _json(sorted(held))))
    if head_id is None:
        return None
    head = connection.first(DeliveryTable.select().where(DeliveryTable.id == head_id[0]))
    to = _addressee(connection, head)
    if to is None:
        return None
    return _message(connection, to, [head] if to.kind == "webhook" else _digest(connection, head))


def single(connection: Connection, delivery_id: str) -> Message | None:
    """One delivery to a destination by itself, whatever else waits and whether or not it is enabled."""
    row = connection.first(DeliveryTable.select().where(DeliveryTable.id == delivery_id))
    if row is None:
        return None
    to = _addressee(connection, row, even_disabled=True)
    return None if to is None else _message(connection, to, [row])


def note(
    connection: Connection,
    message: Message,
    outcome: Outcome,
    *,
    jitter: float,
    app_url: str,
    now_us: int,
) -> None:
    """Write how an attempt ended; `jitter` is from -1 to 1. The fifth failure in a row disables a destination.

    What was closed meanwhile stays closed where the attempt failed.
    """
    ids = _json(message.delivery_ids)
    if outcome.error is None:
        connection.execute(
            "UPDATE delivery SET status = 'delivered', attempt = attempt + 1, response_status = ?, error = NULL,"
            " latency_ms = ?, next_attempt_at = NULL, finished_at = ?"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (outcome.response_status, outcome.latency_ms, now_us, ids),
        )
        _note_success(connection, message.addressee, outcome, now_us=now_us)
        return
    wait_s = None if outcome.is_final else wait_after(message.attempt + 1, outcome, jitter=jitter)
    next_us = None if wait_s is None else now_us + int(wait_s * US_PER_S)
    connection.execute(
        "UPDATE delivery SET status = ?, attempt = attempt + 1, response_status = ?, error = ?, latency_ms = ?,"
        " next_attempt_at = ?, finished_at = ? WHERE id IN (SELECT value FROM json_each(?)) AND status = 'pending'",
        (
            "failed" if next_us is None else "pending",
            outcome.response_status,
            outcome.error,
            outcome.latency_ms,
            next_us,
            now_us if next_us is None else None,
            ids,
        ),
    )
    _note_failure(connection, message.addressee, outcome, app_url=app_url, now_us=now_us)


def note_single(connection: Connection, delivery_id: str, outcome: Outcome, *, now_us: int) -> None:
    """Write how the only attempt of a test ended; it says nothing for or against the destination."""
    connection.execute(
        "UPDATE delivery SET status = ?, attempt = attempt + 1, response_status = ?, error = ?, latency_ms = ?,"
        " next_attempt_at = NULL, finished_at = ? WHERE id = ?",
        (
            "delivered" if outcome.error is None else "failed",
            outcome.response_status,
            outcome.error,
            outcome.latency_ms,
            now_us,
            delivery_id,
        ),
    )


def wait_after(failures: int, outcome: Outcome, *, jitter: float) -> float | None:
    """Seconds until the next attempt; None when there is none. A longer wait that the receiver asked for counts."""
    if failures > len(WAITS_S):
        return None
    wait_s = WAITS_S[failures - 1] * (1 + JITTER * jitter)
    return max(wait_s, outcome.retry_after_s or 0.0)


def expire(connection: Connection, *, now_us: int) -> int:
    """Close what could not be told within three days, a list at a time; gives back how many."""
    return connection.execute(
        "UPDATE delivery SET status = 'expired', error = COALESCE(error, ?), next_attempt_at = NULL, finished_at = ?"
        " WHERE id IN (SELECT id FROM delivery WHERE status = 'pending' AND +created_at < ? LIMIT ?)",
        (EXPIRED, now_us, now_us - KEPT_S * US_PER_S, EXPIRED_AT_ONCE),
    )


def close(connection: Connection, addressee: str, reason: str, *, now_us: int) -> None:
    """What waits for an addressee is not sent any more."""
    connection.execute(
        "UPDATE delivery SET status = 'failed', error = ?, next_attempt_at = NULL, finished_at = ?"
        " WHERE addressee = ? AND status = 'pending'",
        (reason, now_us, addressee),
    )


def close_all(connection: Connection, organization_id: str, reason: str, *, now_us: int) -> None:
    """What waits of an organization is not sent any more, to whomever it was going."""
    connection.execute(
        "UPDATE delivery SET status = 'failed', error = ?, next_attempt_at = NULL, finished_at = ?"
        " WHERE +organization_id = ? AND status = 'pending'",
        (reason, now_us, organization_id),
    )


def hold_back(connection: Connection, destination_id: str) -> None:
    """A disabled destination is not tried; what waits for it waits until it is enabled, three days at most."""
    connection.execute(
        "UPDATE delivery SET next_attempt_at = NULL WHERE addressee = ? AND status = 'pending'",
        (destination_id,),
    )


def go_on(connection: Connection, destination_id: str, *, now_us: int) -> None:
    """A destination was enabled: what waits for it is due, as if it had not been tried before."""
    connection.execute(
        "UPDATE delivery SET next_attempt_at = ?, attempt = 0 WHERE addressee = ? AND status = 'pending'",
        (now_us, destination_id),
    )


def _digest(connection: Connection, head: Any) -> list[Any]:
    """What waits of the head's kind for the same people, of one organization, in order."""
    found = connection.rows(_DIGEST, (head.addressee, head.type, head.organization_id, MAX_DIGEST))
    ids = [row[0] for row in found]
    rows = connection.run(DeliveryTable.select().where(DeliveryTable.id.in_(ids)))
    by_id = {row.id: row for row in rows}
    return [by_id[each] for each in ids]


def _message(connection: Connection, to: Addressee, rows: Sequence[Any]) -> Message:
    alerts = records_of(connection, [row.event_id for row in rows])
    return Message(
        addressee=to,
        delivery_ids=tuple(row.id for row in rows),
        alerts=tuple(alerts[row.event_id] for row in rows),
        type=rows[0].type,
        attempt=rows[0].attempt,
    )


def _addressee(
    connection: Connection, delivery: Any, *, even_disabled: bool = False
) -> Addressee | None:
    if delivery.destination_id is None:
        return Addressee(
            organization_id=delivery.organization_id,
            destination_id=None,
            kind="email",
            address=delivery.recipient,
        )
    row = connection.first(
        DestinationTable.select().where(DestinationTable.id == delivery.destination_id)
    )
    if row is None or not (row.enabled or even_disabled):
        return None
    return Addressee(
        organization_id=row.organization_id,
        destination_id=row.id,
        kind=row.type,
        address=row.address,
        sealed_address=row.sealed_address,
        sealed_secret=row.sealed_secret,
        sealed_old_secret=row.sealed_old_secret,
        old_secret_until_us=row.old_secret_until,
        chat_format=row.chat_format,
    )


def _note_success(connection: Connection, to: Addressee, outcome: Outcome, *, now_us: int) -> None:
    connection.execute(
        "UPDATE destination SET consecutive_failures = 0, last_delivery_at = ?, last_delivery_status = ?,"
        " last_delivery_error = NULL WHERE id = ?",
        (now_us, _shown(outcome), to.destination_id),
    )


def _note_failure(
    connection: Connection, to: Addressee, outcome: Outcome, *, app_url: str, now_us: int
) -> None:
    if to.destination_id is None:
        return
    connection.execute(
        "UPDATE destination SET consecutive_failures = consecutive_failures + 1, last_delivery_at = ?,"
        " last_delivery_status = ?, last_delivery_error = ? WHERE id = ?",
        (now_us, _shown(outcome), outcome.error, to.destination_id),
    )
    row = connection.row(
        "SELECT name, consecutive_failures FROM destination WHERE id = ? AND enabled = 1",
        (to.destination_id,),
    )
    if row is None:  # somebody disabled it during the attempt
        hold_back(connection, to.destination_id)
        return
    if row[1] < MAX_ATTEMPTS and not outcome.is_final:
        return
    reason = (
        "the receiver is gone (410)"
        if outcome.is_final
        else f"{row[1]} attempts in a row failed; the last one: {outcome.error}"
    )
    connection.execute(
        "UPDATE destination SET enabled = 0, disabled_at = ?, disabled_reason = ?, updated_at = ? WHERE id = ?",
        (now_us, reason, now_us, to.destination_id),
    )
    hold_back(connection, to.destination_id)
    alert = notices.destination_disabled(
        destination_id=to.destination_id,
        kind=to.kind,
        name=row[0],
        shown=to.address,
        failures=row[1],
        last_status=outcome.response_status,
        last_error=outcome.error,
        disabled_at_us=now_us,
        app_url=app_url,
    )
    raise_(connection, to.organization_id, alert, now_us=now_us)


def _shown(outcome: Outcome) -> str:
    if outcome.response_status is not None:
        return str(outcome.response_status)
    return "delivered" if outcome.error is None else "failed"


def _json(ids: Sequence[Any]) -> str:
    return msgspec.json.encode(ids).decode()
