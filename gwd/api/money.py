"""/credits and /ledger: the balance, what moved it, adding and refunding credit, checking the books."""

from decimal import Decimal
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd import ledger, proof
from gwd.alerts import threshold_alerts
from gwd.api.management import Answer, Call, one, walked
from gwd.api.query import Flag, Query, Text, Words
from gwd.core.clock import TimeError, iso, us_from_iso
from gwd.core.errors import Forbidden, InvalidValue
from gwd.core.fields import Moment
from gwd.core.inputs import MomentInput, SignedUsdInput, UsdInput
from gwd.core.money import MoneyError, nano_from_usd
from gwd.ledger import Entry, EntryRecord, EntryType, LedgerFilter, LotKind, NewCredit
from gwd.orgs import organizations, rights
from gwd.store import Connection

MAX_NOTE = 500
SHORT_HISTORY: Final = 5_000
"""Entries that are recomputed before a process of its own would have begun."""
FILTERS = (
    Query("type", Words(get_args(EntryType)), "Only entries of this type."),
    Query("generation_id", Text(), "Only entries of this request: its gen-… id."),
)
WHOSE = Query("organization_id", Text(), "Another organization than the key's; for operators.")
WHOSE_BOOKS = (
    WHOSE,
    Query("all", Flag(), "The books of all organizations; for operators.", default=False),
)


_TEXT: Final = {"minLength": 1, "maxLength": MAX_NOTE}
Reference = Annotated[
    str,
    Meta(
        description="Your own name of this booking: it counts once, however often it is sent.",
        extra_json_schema=_TEXT,
    ),
]
Note = Annotated[str, Meta(description="What the books shall say of it.", extra_json_schema=_TEXT)]
Whose = Annotated[
    str, Meta(description="Another organization than the key's; for operators. Null is the key's.")
]


class GrantInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credit of any kind that the operator gives."""

    kind: Annotated[
        LotKind,
        Meta(
            description="What kind of credit: promotional pays before granted, granted before purchased."
        ),
    ]
    amount: Annotated[UsdInput, Meta(description="How much; more than 0.")]
    expires_at: Annotated[
        MomentInput | None, Meta(description="When what is left of it is lost. Null is never.")
    ] = None
    note: Note | None = None
    reference: Reference | None = None
    organization_id: Whose | None = None


class PurchaseInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A payment that was taken elsewhere, as credit."""

    amount: Annotated[UsdInput, Meta(description="How much was paid; more than 0.")]
    reference: Reference | None = None
    note: Note | None = None
    organization_id: Whose | None = None


class RefundInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Purchased credit that was paid back."""

    amount: Annotated[
        UsdInput, Meta(description="How much; more than 0, and free purchased credit.")
    ]
    note: Note
    reference: Reference | None = None
    organization_id: Whose | None = None


class AdjustmentInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A booking that was wrong is put right by one more, never edited."""

    amount: Annotated[
        SignedUsdInput, Meta(description="How much is given, or below zero taken back; never 0.")
    ]
    reason: Annotated[
        str,
        Meta(
            description="Why; it stands in the books and the audit trail.", extra_json_schema=_TEXT
        ),
    ]
    kind: Annotated[
        LotKind | None,
        Meta(
            description="Which kind of credit. Null gives granted credit, and takes in the order in which credit pays."
        ),
    ] = None
    reference: Reference | None = None
    organization_id: Whose | None = None


class VerifyInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which books to recompute."""

    organization_id: Whose | None = None
    all: Annotated[bool, Meta(description="All organizations; for operators.")] = False
    head: Annotated[
        dict[str, Any] | None,
        Meta(
            description="`data` of an earlier answer of GET /ledger/head: the books must still lead through it."
        ),
    ] = None


class Booked(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of a booking; of a booking that is repeated, with when it was made: nothing is booked twice."""

    data: EntryRecord
    already_booked_at: Annotated[
        Moment | UnsetType,
        Meta(description="When it was booked; only for a repetition, which moves nothing."),
    ] = UNSET
    message: Annotated[
        str | UnsetType, Meta(description="The same in words; only for a repetition.")
    ] = UNSET


def balance(connection: Connection, call: Call) -> Answer:
    """The organization's credit."""
    return one(
        ledger.balance_record(
            ledger.balance(connection, call.organization_id, now_us=call.now_us, due_us=call.due_us)
        )
    )


def list_entries(connection: Connection, call: Call) -> Answer:
    """What moved the organization's credit, newest first."""
    asked = call.walk()
    found = ledger.list_entries(
        connection,
        call.organization_id,
        LedgerFilter(
            from_us=call.query.get("from"),
            to_us=call.query.get("to"),
            type=call.query.get("type"),
            generation_id=call.query.get("generation_id"),
            workspace_id=call.caller.workspace_id,
        ),
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
    )
    return walked(
        asked, found.rows, found.total, ledger.entry_record, ledger.place, reached=found.reached
    )


def grant(connection: Connection, call: Call) -> Answer:
    """Give credit of any kind."""
    body: GrantInput = call.body
    credit = NewCredit(
        kind=body.kind,
        type="purchase" if body.kind == "purchased" else "grant",
        amount_nano=_amount(body.amount),
        expires_at_us=_moment(body.expires_at),
        reference=_reference(body.reference),
        note=_text(body.note, "note"),
        actor=call.caller.key_id,
    )
    return _add(connection, call, named_organization(call, body.organization_id), credit)


def purchase(connection: Connection, call: Call) -> Answer:
    """Book a payment as credit."""
    body: PurchaseInput = call.body
    require_self_service(call)
    credit = NewCredit(
        kind="purchased",
        type="purchase",
        amount_nano=_amount(body.amount),
        reference=_reference(body.reference),
        note=_text(body.note, "note"),
        actor=call.caller.key_id,
    )
    return _add(connection, call, named_organization(call, body.organization_id), credit)


def refund(connection: Connection, call: Call) -> Answer:
    """Book that purchased credit was paid back."""
    body: RefundInput = call.body
    require_self_service(call)
    organization_id = named_organization(call, body.organization_id)
    reference = _reference(body.reference)
    first = ledger.booked(connection, organization_id, "refund", reference)
    entries = ledger.refund(
        connection,
        organization_id,
        amount_nano=_amount(body.amount),
        reference=reference,
        note=_text(body.note, "note"),
        actor=call.caller.key_id,
        now_us=call.now_us,
        due_us=call.due_us,
    )
    details = {"reference": reference} if reference is not None else {}
    return _booked(organization_id, entries, details, again=bool(first))


def adjust(connection: Connection, call: Call) -> Answer:
    """Put a wrong booking right by one more.

    It gives or takes credit with a reason; what is taken has to be free, neither spent nor reserved.
    """
    body: AdjustmentInput = call.body
    organization_id = named_organization(call, body.organization_id)
    reference = _reference(body.reference)
    reason = _text(body.reason.strip(), "reason")
    assert reason is not None
    first = ledger.booked(connection, organization_id, "adjustment", reference)
    if body.amount < 0:
        entries = ledger.adjust_down(
            connection,
            organization_id,
            amount_nano=_amount(-body.amount),
            kind=body.kind,
            reference=reference,
            note=reason,
            actor=call.caller.key_id,
            now_us=call.now_us,
            due_us=call.due_us,
        )
    else:
        credit = NewCredit(
            kind=body.kind or "granted",
            type="adjustment",
            amount_nano=_amount(body.amount),
            reference=reference,
            note=reason,
            actor=call.caller.key_id,
        )
        entries = (ledger.add_credit(connection, organization_id, credit, now_us=call.now_us),)
        threshold_alerts.rearm_low_balance(connection, organization_id, now_us=call.now_us)
    details = {"reason": reason, "kind": body.kind, "reference": reference}
    return _booked(organization_id, entries, details, again=bool(first))


async def verify(call: Call) -> Answer:
    """Recompute the books.

    Those of the organization; the operator may name another, or ask for all. A long history is recomputed by a process
    of its own, one at a time, while the gateway serves.
    """
    body: VerifyInput = call.body
    organization_id = _books(call, body.organization_id, everything=body.all)
    try:
        head = None if body.head is None else proof.read(body.head, call.node.vault)
    except proof.NotOurHeadError as error:
        raise InvalidValue(f"`head`: {error}", param="head") from None
    if await call.node.store.read(ledger.count_entries, organization_id) > SHORT_HISTORY:
        return one(await call.node.prover.verify(organization_id, head=head))
    return one(await call.node.store.read(proof.verify, organization_id, head=head))


def head(connection: Connection, call: Call) -> Answer:
    """Where the books end now, signed.

    To be kept elsewhere and given to POST /ledger/verify later.
    """
    everything = call.query["all"]
    organization_id = _books(call, call.query.get("organization_id"), everything=everything)
    return one(proof.take(connection, call.node.vault, organization_id, now_us=call.now_us))


def require_self_service(call: Call) -> None:
    """Whoever books purchases on a node with `[credits] self_service = false` is its operator."""
    if not call.node.settings.credits.self_service:
        rights.require(call.caller, "credits.grant")


def named_organization(call: Call, named: str | None) -> str:
    """The key's own organization, or another one that the operator names."""
    if named is None or named == call.organization_id:
        return call.organization_id
    rights.require(call.caller, "organizations.manage")
    return named


def _add(connection: Connection, call: Call, organization_id: str, credit: NewCredit) -> Answer:
    organizations.get(connection, organization_id)  # nobody could spend what a deleted one is given
    first = ledger.booked(connection, organization_id, credit.type, credit.reference)
    entry = ledger.add_credit(connection, organization_id, credit, now_us=call.now_us)
    threshold_alerts.rearm_low_balance(connection, organization_id, now_us=call.now_us)
    details = {"kind": credit.kind, "reference": credit.reference}
    return _booked(organization_id, (entry,), details, again=bool(first))


def _booked(
    organization_id: str, entries: tuple[Entry, ...], details: dict[str, Any], *, again: bool
) -> Answer:
    """The entry, with its line in the audit trail; a repetition says when it was booked and moves nothing.

    That is one with a reference that is known, or with the Idempotency-Key of the first request.
    """
    record = ledger.booking_record(entries)
    booked_at = iso(entries[0].created_at)
    repeated = Booked(
        data=record,
        already_booked_at=booked_at,
        message=f"already booked on {booked_at}; nothing was booked now",
    )
    if again:
        return Answer(body=repeated, replayed=True)
    moved_nano = sum(entry.signed_nano for entry in entries)
    amount_nano = moved_nano if entries[0].type == "adjustment" else abs(moved_nano)
    return Answer(
        status=201,
        body=Booked(data=record),
        replay=repeated,
        subject=("credit", entries[-1].id),
        details={**details, "amount_nano": amount_nano},
        organization_id=organization_id,
    )


def _books(call: Call, named: str | None, *, everything: bool) -> str | None:
    """Whose books are meant: None for all, which are the operator's to ask for."""
    if everything and call.caller.role != "operator":
        raise Forbidden(
            "all organizations are the operator's to ask for; leave `all` out", param="all"
        )
    return None if everything else named_organization(call, named)


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


def _reference(text: str | None) -> str | None:
    """Blanks around it do not make it another one."""
    return _text(None if text is None else text.strip(), "reference")


def _text(text: str | None, field: str) -> str | None:
    if text is not None and not (0 < len(text) <= MAX_NOTE and text.isprintable()):
        raise InvalidValue(f"`{field}` must be 1 to {MAX_NOTE} printable characters", param=field)
    return text
