"""Automatic top-up by the clock: claim what is due, call the payment hook, add the credit or plan the next try."""

import logging
from typing import Final

import msgspec

from gwd import topup
from gwd.alerts import threshold_alerts
from gwd.audit import service as audit
from gwd.core.clock import US_PER_S, Clock, iso
from gwd.core.money import usd_json
from gwd.credentials.vault import CannotOpenError, Vault
from gwd.management.topup import binding
from gwd.orgs.settings import is_deleted
from gwd.outbound import OutboundClient, OutboundReply
from gwd.outbound.signature import headers
from gwd.store import Connection, Store

EVENT: Final = "topup.requested"
RETRIED_STATUS: Final = frozenset((408, 409, 425, 429))

log = logging.getLogger(__name__)


class TopUpJob:
    """One for the node. The alert about a failure is written in the transaction that notes it."""

    def __init__(
        self, store: Store, client: OutboundClient, vault: Vault, clock: Clock, *, app_url: str
    ) -> None:
        self._store = store
        self._client = client
        self._vault = vault
        self._clock = clock
        self._app_url = app_url

    async def run(self) -> None:
        """Try everything that is due, one after the other; one that breaks comes back when its claim has run out."""
        claimed = await self._store.write(topup.claim_due, now_us=self._clock.now_us())
        for attempt in claimed:
            try:
                await self._try(attempt)
            except Exception:
                log.exception("the top-up %s broke", attempt.id)

    async def _try(self, attempt: topup.ClaimedAttempt) -> None:
        try:
            secret = self._vault.open(
                attempt.sealed_secret, binding(attempt.organization_id, attempt.hook_url)
            )
        except CannotOpenError:
            reason = "the hook's secret does not open with this node's key ring; set hook_url again"
            await self._fail(attempt, reason, final=True)
            return
        body = _body(attempt)
        now_s = self._clock.now_us() // US_PER_S
        sent = headers(EVENT, attempt.id, secret, now_s, body) | {"idempotency-key": attempt.id}
        answer = await self._client.post(attempt.hook_url, body=body, headers=sent)
        if answer.succeeded:
            await self._store.write(_succeed, attempt, now_us=self._clock.now_us())
        else:
            await self._fail(attempt, _reason(answer), final=_is_final(answer))

    async def _fail(self, attempt: topup.ClaimedAttempt, reason: str, *, final: bool) -> None:
        await self._store.write(
            _note_failure,
            attempt.id,
            reason,
            self._app_url,
            final=final,
            now_us=self._clock.now_us(),
        )


def _succeed(connection: Connection, attempt: topup.ClaimedAttempt, *, now_us: int) -> None:
    organization_id = attempt.organization_id
    entry = topup.succeed(connection, attempt.id, now_us=now_us)
    if entry is None:
        return
    if not is_deleted(connection, organization_id):
        threshold_alerts.rearm_low_balance(connection, organization_id, now_us=now_us)
        return
    # Deleted while its hook was called: the payment was taken, so the operator has to give it back.
    log.error("a top-up was paid for %s, which was deleted: %s", organization_id, attempt.id)
    audit.record(
        connection,
        None,
        "credit.topup_after_deletion",
        "credit",
        entry.id,
        {"amount_nano": entry.amount_nano, "reference": attempt.id},
        organization_id=organization_id,
        now_us=now_us,
    )


def _note_failure(
    connection: Connection,
    attempt_id: str,
    reason: str,
    app_url: str,
    *,
    final: bool,
    now_us: int,
) -> None:
    failed = topup.fail(connection, attempt_id, reason, final=final, now_us=now_us)
    if failed is not None and not is_deleted(connection, failed.organization_id):
        threshold_alerts.report_failed_topup(connection, failed, app_url=app_url, now_us=now_us)


def _body(attempt: topup.ClaimedAttempt) -> bytes:
    return msgspec.json.encode(
        {
            "id": attempt.id,
            "type": EVENT,
            "organization_id": attempt.organization_id,
            "amount": usd_json(attempt.amount_nano),
            "currency": "USD",
            "attempt": attempt.tries,
            "created_at": iso(attempt.created_at_us),
        }
    )


def _reason(answer: OutboundReply) -> str:
    if answer.error is not None:
        return answer.error
    return f"the hook answered {answer.status}" if answer.status else "the hook did not answer"


def _is_final(answer: OutboundReply) -> bool:
    """Whether the hook refused for good (402, 403 …); anything else is tried again."""
    if answer.status is None:
        return False
    return 400 <= answer.status < 500 and answer.status not in RETRIED_STATUS
