"""What the API shows of an organization's money: the balance, and the lines of the ledger."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gwd.core.clock import iso
from gwd.core.fields import Id, Moment, Usd
from gwd.core.money import usd_json
from gwd.ledger.book import Entry, EntryType
from gwd.ledger.burn import LotKind
from gwd.ledger.reports import Balance


class BalanceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An organization's credit. What is due to expire has expired in these figures."""

    total_credits: Annotated[
        Usd, Meta(description="All credit that was ever added, refunds and adjustments deducted.")
    ]
    total_usage: Annotated[Usd, Meta(description="All that was ever charged.")]
    balance: Annotated[
        Usd,
        Meta(description="What is owned, free and reserved together; negative in debt."),
    ]
    reserved: Annotated[Usd, Meta(description="What requests that are running hold now.")]
    available: Annotated[
        Usd, Meta(description="What new requests may still hold: the balance without the reserved.")
    ]
    promotional: Annotated[Usd, Meta(description="Promotional credit left; it pays first.")]
    granted: Annotated[Usd, Meta(description="Granted credit left; it pays after promotional.")]
    purchased: Annotated[Usd, Meta(description="Purchased credit left; it pays last.")]
    currency: Annotated[Literal["USD"], Meta(description="The currency of all amounts.")]


class EntryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the ledger. Lines are never changed; what was wrong is put right by one more."""

    id: Annotated[Id, Meta(description="The id of the entry, led_….")]
    type: Annotated[
        EntryType,
        Meta(
            description="What moved the money; a reservation and what ends it (release or settlement) add up to 0."
        ),
    ]
    bucket: Annotated[
        LotKind | None,
        Meta(
            description="The kind of credit that was moved; null where there is none, and for a booking of several."
        ),
    ]
    amount: Annotated[
        Usd, Meta(description="How the free balance changed: above 0 what came, below 0 what went.")
    ]
    balance_after: Annotated[Usd, Meta(description="What was free (not reserved) afterwards.")]
    generation_id: Annotated[
        Id | None, Meta(description="The request that moved it; null for credit that was booked.")
    ]
    key_id: Annotated[
        Id | None,
        Meta(description="The key that the request was made with; null without a request."),
    ]
    workspace_id: Annotated[
        Id | None, Meta(description="The workspace of the request; null without a request.")
    ]
    reference: Annotated[
        str | None,
        Meta(description="The caller's own name of the booking, which makes it count once."),
    ]
    note: Annotated[
        str | None, Meta(description="What was said about it when it was booked, such as a reason.")
    ]
    created_at: Annotated[Moment, Meta(description="Ledger time of the entry.")]


def balance_record(credit: Balance) -> BalanceRecord:
    return BalanceRecord(
        total_credits=usd_json(credit.total_credits_nano),
        total_usage=usd_json(credit.total_usage_nano),
        balance=usd_json(credit.owned_nano),
        reserved=usd_json(credit.reserved_nano),
        available=usd_json(credit.available_nano),
        promotional=usd_json(credit.promotional_nano),
        granted=usd_json(credit.granted_nano),
        purchased=usd_json(credit.purchased_nano),
        currency="USD",
    )


def entry_record(entry: Entry) -> EntryRecord:
    return EntryRecord(
        id=entry.id,
        type=entry.type,
        bucket=entry.bucket,
        amount=usd_json(entry.signed_nano),
        balance_after=usd_json(entry.balance_after_nano),
        generation_id=entry.generation_id,
        key_id=entry.key_id,
        workspace_id=entry.workspace_id,
        reference=entry.reference,
        note=entry.note,
        created_at=iso(entry.created_at),
    )


def booking_record(entries: tuple[Entry, ...]) -> EntryRecord:
    """One booking as one line, whatever number of lots it came from: the last entry with the whole amount."""
    last = entry_record(entries[-1])
    return msgspec.structs.replace(
        last,
        amount=usd_json(sum(entry.signed_nano for entry in entries)),
        bucket=last.bucket if len({entry.bucket for entry in entries}) == 1 else None,
    )
