"""gwctl reconcile against a real node: exports as the simulated vendor would write them, and what is wrong in them."""

import csv
import io
import json
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gwd.demo import Behaviour
from tests.cli.test_live import Cli, cli, node
from tests.support.node import Gateway

__all__ = ["cli", "node"]

Line = dict[str, str]

# What the vendor counted: input with all of the cache's, read from it, output.
COUNTED = ((301, 100, 20), (77, 0, 9), (1_000, 0, 3))
PRICES = {"input": "0.000002", "cached input": "0.0000005", "output": "0.000008"}


class Bill:
    """A vendor's usage and cost of one day; a test changes the lines before it is read."""

    def __init__(self, day: str, folder: Path, cli: Cli) -> None:
        self.day, self._folder, self._cli = day, folder, cli
        self.usage = [
            self.used(input_tokens=f"{whole}.0", input_cached_tokens=cached, output_tokens=output)
            for whole, cached, output in COUNTED
        ]
        counts = (
            sum(whole - cached for whole, cached, _ in COUNTED),
            sum(cached for _, cached, _ in COUNTED),
            sum(output for _, _, output in COUNTED),
        )
        self.costs = [
            self.billed(f"gpt-demo-2026-08-06, {item}", count * Decimal(PRICES[item]))
            for item, count in zip(PRICES, counts, strict=True)
        ]

    def used(self, **fields: Any) -> Line:
        line = {
            "start_time_iso": f"{self.day}T00:00:00Z",
            "api_key_id": "key_gateway",
            "model": "gpt-demo-2026-08-06",
            "num_model_requests": "1",
            "input_cached_tokens": "0",
            "output_tokens": "0",
        }
        return {**line, **{name: str(value) for name, value in fields.items()}}

    def billed(self, item: str, cost: Decimal | str) -> Line:
        return {
            "start_time_iso": f"{self.day}T00:00:00Z",
            "amount_value": f"{cost:f}" if isinstance(cost, Decimal) else cost,
            "amount_currency": "usd",
            "line_item": item,
            "api_key_id": "key_gateway",
        }

    async def rows(self, *words: str, code: int = 0) -> Any:
        """The rows of the report."""
        named = [*self.files(), "--vendor", "openai", "--provider", "openai-chat"]
        out, _ = await self._cli("reconcile", *named, *words, "--json", code=code)
        return json.loads(out, parse_float=Decimal)["rows"]

    async def printed(self, *words: str, code: int = 0) -> tuple[str, str]:
        named = [*self.files(), "--vendor", "openai", "--provider", "openai-chat"]
        out, err = await self._cli("reconcile", *named, *words, code=code)
        return out, err

    def files(self) -> list[str]:
        words = []
        for name, lines in (("usage", self.usage), ("cost", self.costs)):
            if lines:
                path = self._folder / f"{name}.csv"
                path.write_text(written(lines), "utf-8-sig")
                words += ["--csv", str(path)]
        return words


def written(lines: list[Line]) -> str:
    table = io.StringIO()
    writer = csv.DictWriter(table, list(lines[0]), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(lines)
    return table.getvalue()


@pytest_asyncio.fixture
async def bill(cli: Cli, node: Gateway, tmp_path: Path) -> Bill:
    """After three requests."""
    day = ""
    for whole, cached, output in COUNTED:
        node.vendor.script.next(
            Behaviour(
                text="fine", prompt_tokens=whole, cached_tokens=cached, completion_tokens=output
            )
        )
        reply = await node.chat(max_tokens=2_000)
        assert reply.status_code == 200, reply.text
        day = str((await node.generation(reply))["settled_at"])[:10]
    await node.at_rest()
    return Bill(day, tmp_path, cli)


async def test_what_the_vendor_counted_is_what_the_gateway_counted(bill: Bill) -> None:
    (row,) = await bill.rows()
    assert (row["day"], row["model"], row["cause"]) == (bill.day, "gpt-demo", "none")
    assert row["vendor"] == {name: row["ours"][name] for name in row["vendor"]}
    assert row["vendor"]["requests"] == 3
    assert row["vendor"]["tokens_cache_read"] == 100
    assert row["vendor"]["cost"] == Decimal("0.002862")
    assert set(row["difference"].values()) == {0}
    out, err = await bill.printed()
    assert out.rstrip("\n").split("\t")[:2] == [bill.day, "gpt-demo"]
    assert "equal: 1 row" in err
    assert await bill.rows("--only-differences") == []


def more_used(bill: Bill) -> None:
    bill.usage.append(bill.used(input_tokens=50, output_tokens=5))


def less_used(bill: Bill) -> None:
    bill.usage.pop()


def one_more_one_less(bill: Bill) -> None:
    bill.usage[0]["input_tokens"] = "302"
    bill.usage[0]["output_tokens"] = "19"


def other_class(bill: Bill) -> None:
    bill.usage[0]["input_cached_tokens"] = "0"


def other_price(bill: Bill) -> None:
    bill.costs[2]["amount_value"] = "0.0003"


def rounded(bill: Bill) -> None:
    bill.costs = [
        {**line, "amount_value": str(round(Decimal(line["amount_value"]), 5))}
        for line in bill.costs
    ]


def only_costs(bill: Bill) -> None:
    bill.usage = []
    bill.costs[2]["amount_value"] = "0.0003"


def next_day(bill: Bill) -> None:
    bill.costs = []
    later = (date.fromisoformat(bill.day) + timedelta(days=1)).isoformat()
    bill.usage[2]["start_time_iso"] = f"{later}T00:00:00Z"


def never_used(bill: Bill) -> None:
    bill.costs = []
    bill.usage.append(bill.used(model="gpt-other", input_tokens=50, output_tokens=5))


def searched(bill: Bill) -> None:
    bill.costs.append(bill.billed("web search tool calls", "0.03"))


@pytest.mark.parametrize(
    ("change", "causes", "note"),
    [
        (more_used, {"gpt-demo": "missing_here"}, ""),
        (less_used, {"gpt-demo": "missing_there"}, ""),
        (one_more_one_less, {"gpt-demo": "both_missing"}, ""),
        (other_class, {"gpt-demo": "classes"}, "as many tokens"),
        (other_price, {"gpt-demo": "price"}, "equal tokens; theirs is 101.54 % of ours"),
        (rounded, {"gpt-demo": "rounding"}, ""),
        (only_costs, {"gpt-demo": "unexplained"}, "give the usage export as well"),
        (next_day, {"gpt-demo": "days"}, ""),
        (
            never_used,
            {"gpt-demo": "none", "gpt-other": "missing_here"},
            "nothing was sent to it from here",
        ),
        (searched, {"gpt-demo": "none", "(vendor-run tools)": "vendor_tools"}, ""),
    ],
)
async def test_each_difference_has_its_cause(
    bill: Bill, change: Callable[[Bill], None], causes: dict[str, str], note: str
) -> None:
    change(bill)
    code = 0 if set(causes.values()) <= {"none", "rounding", "days"} else 1
    rows = await bill.rows(code=code)
    assert {row["model"]: row["cause"] for row in rows} == causes
    assert note in "; ".join(note for row in rows for note in row["notes"])
    assert len(await bill.rows("--only-differences", code=code)) == code


async def test_other_keys_traffic_is_told_apart_where_ours_is_named(bill: Bill) -> None:
    bill.costs = []
    bill.usage.append(bill.used(input_tokens=50, output_tokens=5, api_key_id="key_else"))
    _, err = await bill.printed(code=1)
    assert "the export names key_gateway, key_else: --key-name" in err
    rows = await bill.rows("--key-name", "key_gateway")
    assert [row["cause"] for row in rows] == ["none", "other_keys"]
    bill.usage = [
        {name: each[name] for name in each if name != "api_key_id"} for each in bill.usage
    ]
    _, err = await bill.printed("--key-name", "key_gateway", code=2)
    assert "names no keys" in err


async def test_what_was_charged_to_nobody_and_the_vendor_did_not_count(
    bill: Bill, node: Gateway
) -> None:
    node.vendor.script.next(Behaviour(text="", finish="", prompt_tokens=50, completion_tokens=0))
    await node.chat(max_tokens=20)
    await node.at_rest()
    (row,) = await bill.rows(code=1)
    assert (row["cause"], row["ours"]["insured"]) == ("missing_there", 1)
    assert row["notes"] == ["1 of ours had no output and were charged to nobody"]
    bill.usage.append(bill.used(input_tokens=50))
    bill.costs.append(bill.billed("gpt-demo-2026-08-06, input", "0.0001"))
    assert [row["cause"] for row in await bill.rows()] == ["none"]


async def test_a_model_that_has_another_name_there(bill: Bill) -> None:
    bill.costs = []
    bill.usage = [{**line, "model": "their-model"} for line in bill.usage]
    causes = {row["model"]: row["cause"] for row in await bill.rows(code=1)}
    assert causes == {"gpt-demo": "missing_there", "their-model": "missing_here"}
    assert [row["cause"] for row in await bill.rows("--model", "their-model=gpt-demo")] == ["none"]


async def test_days_that_are_asked_for(bill: Bill) -> None:
    eve = (date.fromisoformat(bill.day) - timedelta(days=1)).isoformat()
    _, err = await bill.printed("--to", eve, code=2)
    assert "no line of usage in these days" in err
    (row,) = await bill.rows("--from", eve, "--to", bill.day)
    assert row["cause"] == "none"


async def test_the_node_s_traffic_is_the_operator_s_to_ask_for(
    bill: Bill, cli: Cli, node: Gateway
) -> None:
    key, _ = await cli("org", "create", "Globex", "-q")
    words = [*bill.files(), "--vendor", "openai", "--provider", "openai-chat"]
    _, err = await cli("reconcile", *words, code=4, GWCTL_KEY=key.strip())
    assert "--byok" in err
    out, _ = await cli("reconcile", *words, "--byok", "--json", code=1, GWCTL_KEY=key.strip())
    (row,) = json.loads(out)["rows"]
    assert (row["cause"], row["ours"]["requests"]) == ("missing_here", 0)


async def test_the_vendor_s_providers_are_known_by_their_address(bill: Bill, cli: Cli) -> None:
    _, err = await cli("reconcile", *bill.files(), "--vendor", "openai", code=2)
    assert "no provider of this gateway is at openai.com" in err
    assert "--provider: " in err
