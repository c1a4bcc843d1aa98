"""Builders for money tests: an organization with an account, credit, holds, and the record a settlement goes with."""

from collections import Counter
from decimal import Decimal
from typing import Any

import msgspec

from gwd import ledger, spend
from gwd.activity import analytics, day_sums
from gwd.activity.row import GenerationRow, Status
from gwd.core.clock import US_PER_DAY, iso
from gwd.core.spender import Spender
from gwd.store.connection import Connection

USD = 1_000_000_000
ORGANIZATION = "org_acme"
WORKSPACE = "ws_default"
KEY = "key_one"
BOOT = "boot_1"


def open_organization(
    connection: Connection, *, now_us: int, organization_id: str = ORGANIZATION
) -> None:
    """An organization with one workspace, one key and an empty account."""
    connection.execute(
        "INSERT INTO organization (id, name, slug, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
        (organization_id, organization_id, organization_id, now_us, now_us),
    )
    ledger.open_account(connection, organization_id, now_us=now_us)


def add(
    connection: Connection,
    amount_nano: int,
    *,
    now_us: int,
    kind: ledger.LotKind = "purchased",
    expires_at_us: int | None = None,
    reference: str | None = None,
    organization_id: str = ORGANIZATION,
) -> ledger.Entry:
    """A purchase for purchased credit, a grant for the other kinds."""
    credit = ledger.NewCredit(
        kind=kind,
        type="purchase" if kind == "purchased" else "grant",
        amount_nano=amount_nano,
        expires_at_us=expires_at_us,
        reference=reference,
    )
    return ledger.add_credit(connection, organization_id, credit, now_us=now_us)


def hold(
    connection: Connection,
    generation_id: str,
    amount_nano: int,
    *,
    now_us: int,
    family_id: str = KEY,
    key_id: str = KEY,
    boot_id: str = BOOT,
    organization_id: str = ORGANIZATION,
) -> int | None:
    """Reserve for a generation of the one key."""
    reservation = ledger.NewReservation(
        generation_id=generation_id,
        organization_id=organization_id,
        workspace_id=WORKSPACE,
        key_id=key_id,
        family_id=family_id,
        amount_nano=amount_nano,
        boot_id=boot_id,
        context=b"{}",
    )
    return ledger.reserve(connection, reservation, now_us=now_us)


def charge(
    connection: Connection, /, generation_id: str, cost_nano: int, *, now_us: int, **fields: Any
) -> ledger.Settlement:
    """Settle as the pipeline does: ledger, spend and the generation's record in one transaction.

    `fields` are others of the record than the smallest has.
    """
    opened = ledger.open_reservation(connection, generation_id)
    settlement = ledger.settle(connection, generation_id, cost_nano, now_us=now_us)
    if settlement.first:
        assert opened is not None
        tags = msgspec.json.decode(fields.get("tags") or "[]", type=tuple[str, ...])
        user = fields.get("user_tag")
        spender = Spender(opened.organization_id, WORKSPACE, opened.family_id, user, tags)
        spend.add(
            connection,
            spender.counters,
            charged_nano=cost_nano,
            byok_nano=fields["cost_completion_nano"] if fields.get("byok") else 0,
            at_us=settlement.at_us,
        )
        record(
            connection,
            opened,
            status="succeeded",
            cost_nano=cost_nano,
            at_us=settlement.at_us,
            **fields,
        )
    return settlement


def give_back(connection: Connection, generation_id: str, *, now_us: int) -> None:
    """Release as the pipeline does for a failed request, with its record."""
    opened = ledger.open_reservation(connection, generation_id)
    settlement = ledger.release(connection, generation_id, now_us=now_us)
    if settlement is not None and settlement.first:
        assert opened is not None
        record(connection, opened, status="failed", cost_nano=0, at_us=settlement.at_us)


def record(
    connection: Connection,
    opened: ledger.OpenReservation,
    *,
    status: Status,
    cost_nano: int,
    at_us: int,
    **fields: Any,
) -> None:
    """The smallest generation record that goes with a charge, with `fields` of it otherwise."""
    plain = GenerationRow(
        id=opened.generation_id,
        organization_id=opened.organization_id,
        workspace_id=opened.workspace_id,
        key_id=opened.key_id,
        family_id=opened.family_id,
        dialect="chat_completions",
        status=status,
        cost_completion_nano=cost_nano,
        cost_total_nano=cost_nano,
        created_at=opened.created_at_us,
        settled_at=at_us,
    )
    row = msgspec.structs.replace(plain, **fields)
    # By names, and without sums by day where there are none: a test may stand on an earlier schema.
    values = msgspec.structs.asdict(row)
    smallest = {name: value for name, value in values.items() if value}
    connection.execute(
        f"INSERT INTO generation ({', '.join(smallest)}) VALUES ({', '.join('?' * len(smallest))})",
        tuple(smallest.values()),
    )
    if connection.row("SELECT 1 FROM sqlite_master WHERE name = 'day_sum'"):
        day_sums.add(connection, row)


# --- what it all came to ------------------------------------------------------------------------

Sums = Counter[tuple[str, ...]]
"""(key, model, day, what is added up): how much of it, amounts in nano-USD."""

_YEAR_US = 366 * US_PER_DAY
_METRICS = ["cost", "requests", "tokens_total", "refusals"]
_RECORDS = """
    SELECT key_id, COALESCE(model, ''), settled_at, cost_total_nano, status <> 'refused',
        tokens_input + tokens_output, occurrences * (status = 'refused')
    FROM generation WHERE organization_id = ?"""
_CHARGES = "SELECT key_id, created_at, amount_nano FROM entry WHERE organization_id = ? AND type = 'charge'"


def differences_of_analytics(
    connection: Connection, *, from_us: int, organization_id: str = ORGANIZATION
) -> list[tuple[str, ...]]:
    """Where analytics, records and the ledger's charges since then do not say the same, to the nano-USD.

    Each by key, model and day, analytics by every one of them alone as well.
    """
    records, charged = Sums(), Sums()
    years = set()
    for key_id, model, at_us, *amounts in connection.rows(_RECORDS, (organization_id,)):
        years.add((at_us - from_us) // _YEAR_US)
        for metric, amount in zip(_METRICS, amounts, strict=True):
            records[key_id, model, iso(at_us)[:10], metric] += amount
    for key_id, at_us, amount_nano in connection.rows(_CHARGES, (organization_id,)):
        charged[key_id, iso(at_us)[:10]] += abs(amount_nano)
    wrong = []
    for parts in (("api_key", "model", "date__day"), ("api_key",), ("model",), ("date__day",)):
        shown = Sums()
        for year in sorted(years):
            start_us = from_us + year * _YEAR_US
            shown += _added_up(connection, organization_id, start_us, parts)
        wrong += _unlike(shown, _folded(records, parts))
    paid = Sums()
    for (key_id, _, day, metric), amount in records.items():
        if metric == "cost":
            paid[key_id, day] += amount
    return wrong + _unlike(paid, charged)


def _added_up(
    connection: Connection, organization_id: str, start_us: int, parts: tuple[str, ...]
) -> Sums:
    """What analytics says of a year."""
    asked = analytics.AnalyticsQuery(
        metrics=_METRICS,
        dimensions=[name for name in parts if name != "date__day"],
        granularity="day" if "date__day" in parts else None,
        limit=10_000,
    )
    ends = analytics.Ends(from_us=start_us, to_us=start_us + _YEAR_US, start="from", end="to")
    question = analytics.question(asked, ends, at_us=start_us)
    found = analytics.answer(connection, analytics.Scope(organization_id=organization_id), question)
    assert not found.truncated
    sums = Sums()
    for row in found.rows:
        place = [(row[name] or "")[: 10 if name == "date__day" else None] for name in parts]
        row["cost"] = int(Decimal(bytes(row["cost"]).decode()) * USD)
        for metric in _METRICS:
            sums[*place, metric] += row[metric]
    return sums


def _folded(sums: Sums, parts: tuple[str, ...]) -> Sums:
    folded = Sums()
    for (key_id, model, day, metric), amount in sums.items():
        named = {"api_key": key_id, "model": model, "date__day": day}
        folded[*(named[part] for part in parts), metric] += amount
    return folded


def _unlike(first: Sums, second: Sums) -> list[tuple[str, ...]]:
    return sorted(place for place in first.keys() | second.keys() if first[place] != second[place])
