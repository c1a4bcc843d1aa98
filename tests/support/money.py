"""Builders for money tests: an organization with an account, credit, holds, and the record a settlement goes with."""

import msgspec

from gwd import ledger, spend
from gwd.activity import day_sums
from gwd.activity.row import GenerationRow, Status
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
    connection: Connection, generation_id: str, cost_nano: int, *, now_us: int
) -> ledger.Settlement:
    """Settle as the pipeline does: ledger, spend and the generation's record in one transaction."""
    opened = ledger.open_reservation(connection, generation_id)
    settlement = ledger.settle(connection, generation_id, cost_nano, now_us=now_us)
    if settlement.first:
        assert opened is not None
        spend.add(
            connection,
            (opened.organization_id, WORKSPACE, opened.family_id),
            charged_nano=cost_nano,
            byok_nano=0,
            at_us=settlement.at_us,
        )
        record(connection, opened, status="succeeded", cost_nano=cost_nano, at_us=settlement.at_us)
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
) -> None:
    """The smallest generation record that goes with a charge."""
    row = GenerationRow(
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
    # By names, and without sums by day where there are none: a test may stand on an earlier schema.
    values = msgspec.structs.asdict(row)
    smallest = {name: value for name, value in values.items() if value}
    connection.execute(
        f"INSERT INTO generation ({', '.join(smallest)}) VALUES ({', '.join('?' * len(smallest))})",
        tuple(smallest.values()),
    )
    if connection.row("SELECT 1 FROM sqlite_master WHERE name = 'day_sum'"):
        day_sums.add(connection, row)
