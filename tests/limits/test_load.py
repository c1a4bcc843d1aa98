"""Two hundred clients at once: no overdraft, bounded overshoot, books that are exact.

LOAD_REQUESTS scales it: 5,000 here, 20,000 for the figures of a release.
"""

import asyncio
import os
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gwd.demo import Behaviour
from tests.limits.conftest import Opened
from tests.limits.storm import Storm, storm
from tests.support.node import Gateway

REQUESTS = int(os.environ.get("LOAD_REQUESTS", "5000"))
WORKERS = 200
FAST = {"GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "1000000"}
ANSWER = Behaviour(text="word " * 50, prompt_tokens=5, completion_tokens=50)
COST = Decimal("0.00041")  # 5 × 2 and 50 × 8 micro-dollars
HOLD = Decimal("0.0012")  # at most: 60 tokens out, and the bound of a one-word prompt


async def test_a_balance_for_half_of_the_load_serves_half_of_it_and_is_never_overdrawn(
    opened: Opened, tmp_path: Path
) -> None:
    """The ledger equals the balance, the free balance never falls below nothing, no lock reaches a client."""
    credit = COST * REQUESTS / 2
    async with opened(credit=str(credit), **FAST) as gateway:
        gateway.vendor.script.always(ANSWER)
        found = await storm(gateway, workers=WORKERS, requests=REQUESTS, key=gateway.key)
        _tell("half", found)
        assert set(found.outcomes) == {"200", "402 insufficient_credits"}
        assert found.looks > 3
        # What running requests held in vain is there for those that come after them.
        found.outcomes += await until_refused(gateway, gateway.key, 3)
        left = await gateway.balance()
        assert credit - left == COST * found.served
        assert 0 <= left < HOLD
        assert await gateway.store.read(_least_free) >= 0
        usage = (await gateway.manage("GET", f"/keys/{gateway.key_id}"))["data"]["usage"]
        assert Decimal(str(usage)) == COST * found.served
        verified = (await gateway.manage("POST", "/ledger/verify", {"all": True}))["data"]
        assert (verified["ok"], verified["differences"]) == (True, [])
        assert verified["checked"] == found.served * 3 + 1
        statuses = await gateway.store.read(_statuses)
        assert statuses == {
            "succeeded": found.served,
            "refused": found.outcomes.total() - found.served,
        }
    await _check_says_ok(tmp_path)


async def test_a_key_s_limit_is_overshot_by_no_more_than_what_ran_when_it_was_reached(
    opened: Opened, tmp_path: Path
) -> None:
    """By default at most (in flight − 1) × the dearest request; a strict key not at all."""
    limit = COST * 100
    async with opened(**FAST) as gateway:
        gateway.vendor.script.always(ANSWER)
        for strict, cap in ((False, None), (False, 20), (True, None)):
            key, key_id = await gateway.new_key(
                limit=float(limit), strict=strict, in_flight_cap=cap
            )
            found = await storm(gateway, workers=WORKERS, requests=WORKERS * 3, key=key)
            if strict:
                found.outcomes += await until_refused(gateway, key, 3)
            spent = COST * found.served
            _tell(f"strict {strict}, cap {cap}", found)
            usage = (await gateway.manage("GET", f"/keys/{key_id}"))["data"]["usage"]
            assert Decimal(str(usage)) == spent
            in_flight = cap or WORKERS
            if strict:
                assert limit - HOLD < spent <= limit
            elif cap is None:
                assert limit <= spent <= limit + (in_flight - 1) * COST
            else:
                assert spent <= limit + (in_flight - 1) * COST
            refused = {code for code in found.outcomes if code != "200"}
            assert refused <= {"402 key_limit_exceeded", "429 too_many_in_flight"}
    await _check_says_ok(tmp_path)


@pytest.mark.parametrize("scopes", [("organization", "workspace", "key"), ("tag", "user")])
async def test_streams_and_budgets_under_load_leave_exact_counters(
    opened: Opened, tmp_path: Path, scopes: tuple[str, ...]
) -> None:
    """Hard budgets of all scopes, streamed answers: spend of each is the sum of the charges (I12)."""
    async with opened(**FAST) as gateway:
        gateway.vendor.script.always(ANSWER)
        limit = COST * 120
        key = (await gateway.manage("GET", f"/keys/{gateway.key_id}"))["data"]
        names = {
            "organization": key["organization_id"],
            "workspace": key["workspace_id"],
            "key": key["id"],
            "tag": "storm",
            "user": "ann",
        }
        for scope in scopes:
            body = {"scope": scope, "scope_id": names[scope], "interval": "daily"}
            await gateway.manage("POST", "/budgets", {**body, "limit": float(limit)})
        found = await storm(
            gateway,
            workers=50,
            requests=max(300, REQUESTS // 4),
            key=gateway.key,
            stream=True,
            sender={"x-gw-tags": "storm,load", "x-gw-user-id": "ann"},
        )
        _tell("streams", found)
        assert set(found.outcomes) == {"200", "402 budget_exceeded"}
        spent = COST * found.served
        assert limit <= spent <= limit + 49 * COST
        budgets = (await gateway.manage("GET", "/budgets"))["data"]
        assert [Decimal(str(one["spend"])) for one in budgets] == [spent] * len(scopes)
    await _check_says_ok(tmp_path)


async def until_refused(gateway: Gateway, key: str, limit: int) -> Counter[str]:
    """One client goes on until it is refused `limit` times."""
    outcomes: Counter[str] = Counter()
    while outcomes.total() - outcomes["200"] < limit:
        found = await storm(gateway, workers=1, requests=1, key=key)
        outcomes += found.outcomes
    return outcomes


def _least_free(connection: Any) -> int:
    return int(connection.row("SELECT MIN(balance_after_nano) FROM entry")[0])


def _statuses(connection: Any) -> dict[str, int]:
    return dict(connection.rows("SELECT status, SUM(occurrences) FROM generation GROUP BY status"))


async def _check_says_ok(directory: Path) -> None:
    """`gwd check` on the stopped node recomputes everything."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gwd", "check", "--config", str(directory / "node" / "gwd.toml")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()


def _tell(name: str, found: Storm) -> None:
    print(
        f"{name}: {found.rate:.0f}/s, {found.seconds:.1f} s, {dict(found.outcomes)}, {found.looks} looks"
    )
