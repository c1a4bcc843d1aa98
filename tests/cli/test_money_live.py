"""gwctl's money commands against a real node: they show and move the same numbers as the API and the ledger."""

from decimal import Decimal
from typing import Any

from gwctl.jsontext import loads
from tests.cli.test_live import Cli, cli, node
from tests.limits.price import bearer, spend
from tests.support.node import Gateway

__all__ = ["cli", "node"]


async def exact(cli: Cli, *words: str) -> Any:
    """What a command prints as JSON, its numbers as they were written."""
    return loads((await cli(*words, "--json"))[0])


async def credit(node: Gateway) -> Any:
    return loads((await node.operator.get("/credits")).text)["data"]


async def test_the_balance_is_the_api_s_and_every_command_moves_it(cli: Cli, node: Gateway) -> None:
    assert (await spend(node, 3)).status_code == 200
    shown = await exact(cli, "credit", "balance")
    assert shown == await credit(node)
    assert (shown["balance"], shown["total_usage"]) == (Decimal("9.97"), Decimal("0.03"))
    text, _ = await cli("credit", "balance")
    assert "balance\t9.97" in text
    await cli("credit", "grant", "1.5", "--kind", "promotional", "--note", "welcome")
    await cli("credit", "purchase", "2.25", "--reference", "INV-1")
    await cli("credit", "purchase", "2.25", "--reference", "INV-1")
    await cli("credit", "refund", "0.2", "--note", "unused", "--yes")
    _, err = await cli("credit", "refund", "50", "--note", "too much", "--yes", code=1)
    assert "12.02 USD" in err
    shown = await exact(cli, "credit", "balance")
    assert shown == await credit(node)
    assert shown["balance"] == Decimal("9.97") + Decimal("1.5") + Decimal("2.25") - Decimal("0.2")
    assert (shown["promotional"], shown["purchased"]) == (Decimal("1.5"), Decimal("12.02"))


async def test_the_ledger_s_lines_add_up_to_the_balance(cli: Cli, node: Gateway) -> None:
    for number in (1, 2):
        assert (await spend(node, number)).status_code == 200
    lines = await exact(cli, "ledger", "list", "--all")
    assert sum(line["amount"] for line in lines) == (await credit(node))["balance"]
    assert lines[0]["balance_after"] == (await credit(node))["available"]
    (newest, _) = await exact(cli, "activity", "list")
    own = await exact(cli, "ledger", "show", newest["id"])
    charged = -sum(line["amount"] for line in own if line["type"] == "charge")
    assert charged == newest["total_cost"] == Decimal("0.02")
    verified = await exact(cli, "ledger", "verify")
    assert (verified["ok"], verified["checked"]) == (True, len(lines))


async def test_a_budget_that_is_set_refuses_and_shows_why(cli: Cli, node: Gateway) -> None:
    await cli("budget", "set", "organization", "--monthly", "0.05", "--daily", "0.02")
    assert (await spend(node, 2)).status_code == 200
    _, err = await cli("chat", "demo/chat", "hi", code=5)
    assert "budget_exceeded" in err
    shown = await exact(cli, "budget", "list")
    reported = loads((await node.operator.get("/budgets")).text)["data"]
    for one, other in zip(shown, reported, strict=True):
        assert {**one, "forecast": None} == {**other, "forecast": None}
    by_interval = {one["interval"]: one for one in shown}
    assert by_interval["daily"]["spend"] == by_interval["daily"]["limit"] == Decimal("0.02")
    assert by_interval["monthly"]["remaining"] == Decimal("0.03")
    projected = await exact(cli, "budget", "forecast", "organization")
    assert {one["id"] for one in projected} == {one["id"] for one in shown}
    assert all(one["forecast"]["projected_spend"] >= one["spend"] for one in projected)
    await cli("budget", "set", "organization", "--daily", "0.04")
    await cli("chat", "demo/chat", "hi")
    await cli("budget", "set", "organization", "--daily", "0.06", code=1)


async def test_usage_by_key_is_what_each_key_and_the_balance_say(cli: Cli, node: Gateway) -> None:
    other, other_id = await node.new_key(name="other", limit=1)
    for key, number in ((node.key, 1), (other, 2), (other, 4)):
        assert (await spend(node, number, **bearer(key))).status_code == 200
    used = await exact(cli, "usage", "summary", "--by", "key")
    costs = sorted(row["cost"] for row in used)
    assert costs == [Decimal("0.01"), Decimal("0.06")]
    assert sum(costs) == (await credit(node))["total_usage"]
    key = await exact(cli, "key", "show", other_id)
    assert (key["usage"], key["limit_remaining"]) == (Decimal("0.06"), Decimal("0.94"))
    assert {row["requests"] for row in used} == {1, 2}


async def test_a_key_at_its_limit_ends_a_chat_with_the_exit_code_for_money(
    cli: Cli, node: Gateway
) -> None:
    made, _ = await cli("key", "create", "tiny", "--limit", "0.01", "--reset", "daily", "-q")
    own = made.strip()
    assert (await spend(node, 1, **bearer(own))).status_code == 200
    _, err = await cli("chat", "demo/chat", "hi", code=5, GWCTL_INFERENCE_KEY=own)
    assert "key_limit_exceeded" in err
    assert "0.01" in err
