"""/credits and /ledger: the balance, what moved it, adding and refunding credit, checking the books."""

from decimal import Decimal
from typing import Literal

import msgspec

from gwd import ledger
from gwd.api.management import Answer, Call, listed, one
from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import Forbidden, InvalidValue
from gwd.core.money import MoneyError, nano_from_usd
from gwd.ledger import LedgerFilter, NewCredit
from gwd.orgs import rights
from gwd.pipeline import crossings
from gwd.store import Connection

MAX_NOTE = 500


class GrantInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """POST /credits/grants (operator): credit of any kind, for the key's organization unless another is named."""

    kind: Literal["promotional", "granted", "purchased"]
    amount: Decimal
    expires_at: str | None = None
    note: str | None = None
    reference: str | None = None
    organization_id: str | None = None


class PurchaseInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """POST /credits/purchases: a payment that was taken elsewhere; its reference makes it count once."""

    amount: Decimal
    reference: str | None = None
    note: str | None = None
    organization_id: str | None = None


class RefundInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    amount: Decimal
    note: str
    organization_id: str | None = None


class VerifyInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """POST /ledger/verify: one organization, or for the operator `all`."""

    organization_id: str | None = None
    all: bool = False


def balance(connection: Connection, call: Call) -> Answer:
    return one(
        ledger.balance_record(ledger.balance(connection, call.organization_id, now_us=call.now_us))
    )


def list_entries(connection: Connection, call: Call) -> Answer:
    limit, offset = call.page()
    entries, total = ledger.list_entries(
        connection,
        call.organization_id,
        LedgerFilter(
            from_us=call.moment("from"),
            to_us=call.moment("to"),
            type=call.query.get("type"),
            generation_id=call.query.get("generation_id"),
            workspace_id=call.caller.workspace_id,
        ),
        limit=limit,
        offset=offset,
    )
    return listed([ledger.entry_record(entry) for entry in entries], total)


def grant(connection: Connection, call: Call) -> Answer:
    body: GrantInput = call.body
    credit = NewCredit(
        kind=body.kind,
        type="purchase" if body.kind == "purchased" else "grant",
        amount_nano=_amount(body.amount),
        expires_at_us=_moment(body.expires_at),
        reference=_text(body.reference, "reference"),
        note=_text(body.note, "note"),
        actor=call.caller.key_id,
    )
    return _add(connection, call, _organization(call, body.organization_id), credit)


def purchase(connection: Connection, call: Call) -> Answer:
    body: PurchaseInput = call.body
    require_self_service(call)
    credit = NewCredit(
        kind="purchased",
        type="purchase",
        amount_nano=_amount(body.amount),
        reference=_text(body.reference, "reference"),
        note=_text(body.note, "note"),
        actor=call.caller.key_id,
    )
    return _add(connection, call, _organization(call, body.organization_id), credit)


def refund(connection: Connection, call: Call) -> Answer:
    body: RefundInput = call.body
    require_self_service(call)
    organization_id = _organization(call, body.organization_id)
    entries = ledger.refund(
        connection,
        organization_id,
        amount_nano=_amount(body.amount),
        note=_text(body.note, "note"),
        actor=call.caller.key_id,
        now_us=call.now_us,
    )
    return Answer(
        status=201,
        body={"data": ledger.refund_record(entries)},
        subject=("credit", entries[-1].id),
        details={"amount_nano": -sum(entry.signed_nano for entry in entries)},
        organization_id=organization_id,
    )


def verify(connection: Connection, call: Call) -> Answer:
    """Recompute the books of the organization (the operator may name another, or ask for all)."""
    body: VerifyInput = call.body
    everything = body.all and call.caller.role == "operator"
    if body.all and not everything:
        raise Forbidden(
            "only the operator verifies all organizations; leave `all` out", param="all"
        )
    organization_id = None if everything else _organization(call, body.organization_id)
    found = ledger.verify(connection, organization_id)
    return one(found)


def require_self_service(call: Call) -> None:
    """Whoever books purchases on a node with `[credits] self_service = false` is its operator."""
    if not call.node.settings.credits.self_service:
        rights.require(call.caller, "credits.grant")


def _add(connection: Connection, call: Call, organization_id: str, credit: NewCredit) -> Answer:
    entry = ledger.add_credit(connection, organization_id, credit, now_us=call.now_us)
    crossings.rearm_low_balance(connection, organization_id, now_us=call.now_us)
    return Answer(
        status=201,
        body={"data": ledger.entry_record(entry)},
        subject=("credit", entry.id),
        details={
            "kind": credit.kind,
            "amount_nano": credit.amount_nano,
            "reference": credit.reference,
        },
        organization_id=organization_id,
    )


def _organization(call: Call, named: str | None) -> str:
    if named is None or named == call.organization_id:
        return call.organization_id
    rights.require(call.caller, "organizations.manage")
    return named


def _amount(amount: Decimal) -> int:
    try:
        nano = nano_from_usd(amount)
    except MoneyError as error:
        raise InvalidValue(f"`amount` {error}", param="amount") from None
    if nano == 0:
        raise InvalidValue("`amount` must be more than 0 USD", param="amount")
    return nano


def _moment(text: str | None) -> int | None:
    try:
        return None if text is None else us_from_iso(text)
    except TimeError as error:
        raise InvalidValue(f"`expires_at` {error}", param="expires_at") from None


def _text(text: str | None, field: str) -> str | None:
    if text is not None and not (0 < len(text) <= MAX_NOTE and text.isprintable()):
        raise InvalidValue(f"`{field}` must be 1 to {MAX_NOTE} printable characters", param=field)
    return text
