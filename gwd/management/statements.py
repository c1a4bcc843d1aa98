"""Month statements: what an organization had, what came and went, what its keys and models cost, what was left.

A statement is read in one snapshot, from the entries that are no request's, the spend of each day and the sums by day.
What these say of one another is asserted before it is shown. Months are those of ledger time, UTC.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Annotated, Any, Final, Literal, NamedTuple, NoReturn, TypeVar

import msgspec
from msgspec import Meta

from gwd import ledger, spend
from gwd.activity import day_sums
from gwd.activity.day_sums import Charged
from gwd.core.clock import US_PER_DAY, iso
from gwd.core.errors import InvalidValue, NotFound, StatementMismatch
from gwd.core.fields import Count, Id, Moment, Slug, Tokens, Usd
from gwd.core.money import usd_json, usd_text
from gwd.core.node_clock import SMALL_US
from gwd.core.periods import period_end_us
from gwd.keys import service as keys
from gwd.keys.key import Key
from gwd.ledger import EntryType, LastEntry, Movements
from gwd.orgs import organizations, workspaces
from gwd.spend import Around
from gwd.store import Connection

N = TypeVar("N")

_MONTH: Final = re.compile(r"[0-9]{4}-[0-9]{2}", re.ASCII)
_EPOCH: Final = date(1970, 1, 1).toordinal()

Requests = Annotated[Count, Meta(description="How many requests were sent to a vendor.")]
TokensPrompt = Annotated[
    Tokens, Meta(description="Prompt tokens, those read from and written to a cache included.")
]
CachedTokens = Annotated[
    Tokens, Meta(description="Prompt tokens that were read from the vendor's cache.")
]
TokensCompletion = Annotated[Tokens, Meta(description="Output tokens, reasoning included.")]
ChargedUsd = Annotated[Usd, Meta(description="What was charged for them.")]
WorkspaceId = Annotated[
    Id | None, Meta(description="The workspace of the requests; null for keys without one.")
]


class MovementRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the entries of one type did in the month."""

    type: Annotated[EntryType, Meta(description="What moved the credit.")]
    entries: Annotated[
        Count,
        Meta(description="How many entries; a refund or an adjustment has one for each lot."),
    ]
    amount: Annotated[
        Usd, Meta(description="How they changed the balance: above 0 what came, below 0 what went.")
    ]


class ChargesRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All requests that ended in the month."""

    requests: Requests
    tokens_prompt: TokensPrompt
    cached_tokens: CachedTokens
    tokens_completion: TokensCompletion
    charged: ChargedUsd


class WorkspaceChargesRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one workspace's keys."""

    workspace_id: WorkspaceId
    workspace_name: Annotated[
        str | None,
        Meta(description="What it is called now, or was called last; null without one."),
    ]
    requests: Requests
    tokens_prompt: TokensPrompt
    cached_tokens: CachedTokens
    tokens_completion: TokensCompletion
    charged: ChargedUsd


class KeyChargesRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one key and of its successors by rotation, in one workspace."""

    workspace_id: WorkspaceId
    family_id: Annotated[Id, Meta(description="The family: the id of its first key.")]
    key_name: Annotated[
        str | None,
        Meta(
            description="What the newest of these keys is called now, or was called when it was deleted."
        ),
    ]
    key_ids: Annotated[
        list[Id], Meta(description="The keys of the family that were used in the month.")
    ]
    requests: Requests
    tokens_prompt: TokensPrompt
    cached_tokens: CachedTokens
    tokens_completion: TokensCompletion
    charged: ChargedUsd


class ModelChargesRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The requests that one model served on the platform's keys; or, all together, those on own vendor keys."""

    model: Annotated[
        Slug | None,
        Meta(
            description="The model that served; null for own vendor keys, and where none was found."
        ),
    ]
    byok: Annotated[
        bool, Meta(description="Whether these are the fees for requests on own vendor keys.")
    ]
    requests: Requests
    tokens_prompt: TokensPrompt
    cached_tokens: CachedTokens
    tokens_completion: TokensCompletion
    charged: ChargedUsd


class LastEntryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Where the ledger stood when the month ended, or stands now."""

    number: Annotated[Count, Meta(description="The number of the entry, counted from 1.")]
    id: Annotated[Id, Meta(description="The id of the entry, led_….")]
    hash: Annotated[str, Meta(description="The hash of the chain up to it, in hexadecimal.")]
    created_at: Annotated[Moment, Meta(description="Its ledger time.")]


class StatementRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A month of an organization's credit: opening balance and movements, less charges, are the closing balance.

    The charges of workspaces, keys and models each add up to `charges`. All of it is exact to a billionth of a dollar.
    """

    month: Annotated[str, Meta(description="The month, as 2026-11.")]
    organization_id: Annotated[Id, Meta(description="Whose statement it is.")]
    organization_name: Annotated[str, Meta(description="What it is called now.")]
    start: Annotated[Moment, Meta(description="When the month began, by UTC.")]
    end: Annotated[Moment, Meta(description="When the next month begins.")]
    closed: Annotated[
        bool,
        Meta(
            description="Whether the month is over and no request from it is running; then its numbers stay."
        ),
    ]
    currency: Annotated[Literal["USD"], Meta(description="The currency of all amounts.")]
    opening_balance: Annotated[
        Usd, Meta(description="What was owned before the month, free and reserved together.")
    ]
    movements: Annotated[
        list[MovementRecord],
        Meta(
            description="All that moved credit and was no request, one of each type, in a steady order."
        ),
    ]
    charges: Annotated[ChargesRecord, Meta(description="What requests came to.")]
    closing_balance: Annotated[
        Usd,
        Meta(description="What was owned when the month ended, or is owned now; below 0 in debt."),
    ]
    workspaces: Annotated[
        list[WorkspaceChargesRecord], Meta(description="The charges by workspace, dearest first.")
    ]
    keys: Annotated[
        list[KeyChargesRecord],
        Meta(description="The charges by key, in the order of the workspaces, dearest first."),
    ]
    models: Annotated[
        list[ModelChargesRecord],
        Meta(description="The charges by model, dearest first; the fees for own keys come last."),
    ]
    last_entry: Annotated[
        LastEntryRecord | None,
        Meta(description="The last entry of the ledger up to here; null before the first."),
    ]
    read_at: Annotated[
        Moment,
        Meta(
            description="When it was read: of a closed month that alone differs from one reading to the next."
        ),
    ]


class _Sum(NamedTuple):
    """What requests came to."""

    requests: int
    tokens_prompt: int
    cached_tokens: int
    tokens_completion: int
    nano: int

    def fields(self) -> dict[str, Any]:
        """As every record of charges has them."""
        return {
            "requests": self.requests,
            "tokens_prompt": self.tokens_prompt,
            "cached_tokens": self.cached_tokens,
            "tokens_completion": self.tokens_completion,
            "charged": usd_json(self.nano),
        }


_NOTHING: Final = _Sum(0, 0, 0, 0, 0)


def statement(
    connection: Connection, organization_id: str, month: str, *, now_us: int, due_us: int
) -> StatementRecord:
    """An organization's statement of a month, `due_us` being the time that a clock in doubt has passed for certain.

    Raises InvalidValue for what is no month or has not begun, NotFound for one before the organization was made, and
    StatementMismatch where the ledger, spend and the sums by day do not say the same.
    """
    made_us = organizations.made_us(connection, organization_id)
    start_us, end_us = _bounds(
        month, ledger.ledger_time_us(connection, organization_id, now_us=now_us)
    )
    days = {"first_day": start_us // US_PER_DAY, "end_day": end_us // US_PER_DAY}
    moved = ledger.moved(connection, organization_id, from_us=start_us, to_us=end_us)
    spent = spend.charged_around(connection, organization_id, **days)
    charged = day_sums.charged(connection, organization_id, **days)
    opening_nano = sum(each.before_nano for each in moved) - spent.before_nano
    owned_nano = ledger.owned_nano(connection, organization_id)
    closing_nano = owned_nano - sum(each.after_nano for each in moved) + spent.after_nano
    is_empty = not (charged or opening_nano or any(each.entries for each in moved))
    if end_us <= made_us and is_empty:
        raise NotFound(
            f"There is no statement of {month}: the organization was made on {iso(made_us)[:10]};"
            f" the first is that of {iso(made_us)[:7]}."
        )
    by = _Charges(connection, organization_id, charged)
    _require_balance(month, opening_nano, moved, spent, closing_nano)
    for name, sums in (("workspaces", by.workspace), ("keys", by.key), ("models", by.model)):
        _require_charges(month, name, sums.values(), spent.nano)
    last = ledger.last_entry_before(connection, organization_id, end_us)
    return StatementRecord(
        month=month,
        organization_id=organization_id,
        organization_name=organizations.name_of(connection, organization_id) or organization_id,
        start=iso(start_us),
        end=iso(end_us),
        closed=end_us + SMALL_US <= due_us
        and not ledger.holds_from_before(connection, organization_id, end_us),
        currency="USD",
        opening_balance=usd_json(opening_nano),
        movements=[
            MovementRecord(type=each.type, entries=each.entries, amount=usd_json(each.nano))
            for each in moved
        ],
        charges=ChargesRecord(**_total(by.model.values()).fields()),
        closing_balance=usd_json(closing_nano),
        workspaces=by.of_workspaces(),
        keys=by.of_keys(),
        models=by.of_models(),
        last_entry=None if last is None else _last_entry(last),
        read_at=iso(now_us),
    )


def _bounds(month: str, ledger_us: int) -> tuple[int, int]:
    """When a month that has begun by ledger time begins and ends. Raises InvalidValue."""
    example = f"such as {iso(ledger_us)[:7]}"
    if not _MONTH.fullmatch(month):
        raise InvalidValue(f"the month must be written YYYY-MM, {example}", param="month")
    try:
        first = date.fromisoformat(f"{month}-01")
    except ValueError:
        raise InvalidValue(
            f"there is no month {month}; name one {example}", param="month"
        ) from None
    start_us = (first.toordinal() - _EPOCH) * US_PER_DAY
    if start_us > ledger_us:
        raise InvalidValue(
            f"{month} has not begun (UTC); the newest statement is that of {iso(ledger_us)[:7]}",
            param="month",
        )
    end_us = period_end_us("monthly", start_us)
    assert end_us is not None
    return start_us, end_us


class _Charges:
    """What requests came to in a month, summed by workspace, by key and by model."""

    def __init__(
        self, connection: Connection, organization_id: str, charged: Sequence[Charged]
    ) -> None:
        self._names = workspaces.names(connection, organization_id)
        self._keys = keys.by_ids(connection, sorted({each.key_id for each in charged}))
        self._used: dict[tuple[str, str], set[str]] = {}
        for each in charged:
            name = (each.workspace_id, self._family(each.key_id))
            self._used.setdefault(name, set()).add(each.key_id)
        self.workspace = _summed(charged, lambda each: each.workspace_id)
        self.key = _summed(charged, lambda each: (each.workspace_id, self._family(each.key_id)))
        self.model = _summed(
            charged, lambda each: (bool(each.byok), "" if each.byok else each.model)
        )

    def of_workspaces(self) -> list[WorkspaceChargesRecord]:
        return [
            WorkspaceChargesRecord(
                workspace_id=workspace_id or None,
                workspace_name=self._names.get(workspace_id),
                **total.fields(),
            )
            for workspace_id, total in sorted(self.workspace.items(), key=_dearest)
        ]

    def of_keys(self) -> list[KeyChargesRecord]:
        place = {
            name: n for n, (name, _) in enumerate(sorted(self.workspace.items(), key=_dearest))
        }
        in_order = sorted(
            self.key.items(), key=lambda item: (place[item[0][0]], -item[1].nano, item[0])
        )
        return [
            self._of_key(workspace_id, family_id, total)
            for (workspace_id, family_id), total in in_order
        ]

    def of_models(self) -> list[ModelChargesRecord]:
        in_order = sorted(self.model.items(), key=lambda item: (item[0][0], -item[1].nano, item[0]))
        return [
            ModelChargesRecord(model=model or None, byok=byok, **total.fields())
            for (byok, model), total in in_order
        ]

    def _of_key(self, workspace_id: str, family_id: str, total: _Sum) -> KeyChargesRecord:
        used = self._used[workspace_id, family_id]
        known = [self._keys[key_id] for key_id in used if key_id in self._keys]
        newest = max(known, key=_age, default=None)
        return KeyChargesRecord(
            workspace_id=workspace_id or None,
            family_id=family_id,
            key_name=None if newest is None else newest.name,
            key_ids=sorted(used),
            **total.fields(),
        )

    def _family(self, key_id: str) -> str:
        return self._keys[key_id].family_id if key_id in self._keys else key_id


def _summed(charged: Iterable[Charged], name: Callable[[Charged], N]) -> dict[N, _Sum]:
    sums: dict[N, list[_Sum]] = {}
    for each in charged:
        sums.setdefault(name(each), []).append(_Sum(*each[4:]))
    return {name: _total(parts) for name, parts in sums.items()}


def _total(parts: Iterable[_Sum]) -> _Sum:
    return _Sum(*map(sum, zip(_NOTHING, *parts, strict=True)))


def _dearest(item: tuple[str, _Sum]) -> tuple[int, str]:
    name, total = item
    return -total.nano, name


def _age(key: Key) -> tuple[int, str]:
    return key.created_at, key.id


def _last_entry(last: LastEntry) -> LastEntryRecord:
    return LastEntryRecord(
        number=last.seq, id=last.id, hash=last.hash.hex(), created_at=iso(last.created_at_us)
    )


def _require_balance(
    month: str, opening_nano: int, moved: Sequence[Movements], spent: Around, closing_nano: int
) -> None:
    """What was there, what came and what went are what the ledger has."""
    reached_nano = opening_nano + sum(each.nano for each in moved) - spent.nano
    if reached_nano != closing_nano:
        _mismatch(
            month,
            f"movements and charges lead to {usd_text(reached_nano)} USD,"
            f" the ledger's balance to {usd_text(closing_nano)} USD",
        )


def _require_charges(month: str, name: str, sums: Iterable[_Sum], spent_nano: int) -> None:
    """What was charged by day is what the ledger charged."""
    total_nano = _total(sums).nano
    if total_nano != spent_nano:
        _mismatch(
            month,
            f"its {name} were charged {usd_text(total_nano)} USD by their sums by day,"
            f" {usd_text(spent_nano)} USD by the ledger",
        )


def _mismatch(month: str, found: str) -> NoReturn:
    raise StatementMismatch(
        f"The statement of {month} does not add up and is not shown: {found}."
        " `gwctl ledger verify` lists the differences."
    )
