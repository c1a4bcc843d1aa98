"""Sums by day: what was written and counted in any order is what the records give."""

import random
from typing import Any

from gwd.activity import day_sums
from gwd.activity import service as activity
from gwd.activity.row import GenerationRow, Status
from gwd.store.connection import Connection
from tests.support.money import ORGANIZATION, open_organization
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

DAY_US = 86_400_000_000
STATUSES: tuple[Status, ...] = ("succeeded", "incomplete", "failed", "cancelled", "refused")


def random_row(chance: random.Random, number: int) -> GenerationRow:
    status = chance.choice(STATUSES)
    is_served = status in ("succeeded", "incomplete", "cancelled")
    numbers: Any = {name: chance.randrange(1_000) for name in day_sums.COSTS} if is_served else {}
    tokens = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")
    used: Any = {f"tokens_{name}": chance.randrange(90) for name in tokens} if is_served else {}
    at_us = NOW_US + chance.randrange(4 * DAY_US)
    return GenerationRow(
        id=f"gen-{number}",
        organization_id=ORGANIZATION,
        workspace_id=chance.choice((None, "ws_1", "ws_2")),
        key_id=chance.choice(("key_1", "key_2")),
        family_id="key_1",
        dialect="messages",
        model=chance.choice((None, "demo/a", "demo/b")) if not is_served else "demo/a",
        vendor="demo" if is_served else None,
        provider=chance.choice(("one", "two")) if is_served else None,
        endpoint_id=chance.choice(("ep_1", "ep_2")) if is_served else None,
        status=status,
        error_code="rate_limit_exceeded" if status == "refused" else None,
        insured=chance.random() < 0.1,
        byok=is_served and chance.random() < 0.3,
        fallbacks=chance.randrange(3),
        latency_ms=chance.choice((None, 0, 40)),
        ttft_ms=chance.choice((None, 0, 7)),
        generation_ms=chance.choice((None, 0, 30)),
        occurrences=chance.randrange(1, 5),
        cost_total_nano=0,
        cache_discount_nano=chance.choice((None, -4, 9)),
        created_at=at_us,
        settled_at=at_us,
        **numbers,
        **used,
    )


def test_sums_are_those_of_the_records_whatever_was_written(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US)
    chance = random.Random(17)
    for number in range(2_000):
        row = random_row(chance, number)
        if row.status == "refused" and chance.random() < 0.5:
            activity.count_refusal(connection, row)
            activity.count_refusal(connection, row)
        else:
            activity.write(connection, row)
            activity.write(connection, row)  # recovery may run twice
    assert list(day_sums.check(connection, ORGANIZATION)) == []
    rows = connection.row("SELECT COUNT(*), SUM(refusals > 0), SUM(insured) FROM day_sum")
    assert rows is not None
    assert all(rows)


def test_a_refusal_that_repeats_is_counted_on_the_day_of_its_record(connection: Connection) -> None:
    """Ledger time may be ahead of the clock by a day: the record stays where it was written."""
    open_organization(connection, now_us=NOW_US)
    connection.execute("UPDATE account SET last_at = ?", (NOW_US + DAY_US,))
    row = random_row(random.Random(1), 1)
    refused = GenerationRow(
        id="gen-1",
        organization_id=ORGANIZATION,
        workspace_id="ws_1",
        key_id="key_1",
        family_id="key_1",
        dialect=row.dialect,
        status="refused",
        error_code="rate_limit_exceeded",
        occurrences=3,
        created_at=NOW_US,
        settled_at=NOW_US,
    )
    activity.count_refusal(connection, refused)
    activity.count_refusal(connection, refused)
    day = (NOW_US + DAY_US) // DAY_US
    assert connection.rows("SELECT day, requests, refusals FROM day_sum") == [(day, 0, 6)]
    assert list(day_sums.check(connection, ORGANIZATION)) == []
