"""The example of docs/money.md is played on a real node: the same hold, charge and lines of the ledger."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from gwd.demo import Behaviour
from tests.support.node import Gateway

PAGE = Path(__file__).parents[2] / "docs" / "money.md"
PRICES = {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"}
USAGE = {
    "prompt_tokens": 1_020,
    "completion_tokens": 420,
    "total_tokens": 1_440,
    "prompt_tokens_details": {"cached_tokens": 800},
}


def rows(title: str) -> list[list[str]]:
    """The cells of the table below a heading of the page."""
    part = PAGE.read_text("utf-8").split(f"\n### {title}\n", 1)[1].split("\n#", 1)[0]
    lines = re.findall(r"^\| (.*) \|$", part, re.MULTILINE)
    return [[cell.strip() for cell in line.split(" | ")] for line in lines[1:]]


async def test_the_example_is_what_the_node_does(gateway: Gateway) -> None:
    await gateway.manage(
        "POST",
        "/credits/grants",
        {"amount": "0.005", "kind": "promotional", "reference": "welcome"},
    )
    await gateway.add_model("acme/large", adapter="openai_chat", pricing=PRICES)
    await gateway.add_endpoint("acme/large", "openai-chat", "gpt-demo")
    gateway.vendor.script.next(Behaviour(usage_object=USAGE), Behaviour(status=400))
    body: dict[str, Any] = {"model": "acme/large", "max_tokens": 1_000}
    reply = await gateway.chat("a" * 4_000, **body, headers={"x-gw-metadata": "enabled"})
    assert reply.status_code == 200, reply.text
    failed = await gateway.chat("a" * 4_000, **body)
    assert failed.status_code == 400, failed.text
    await gateway.at_rest()
    entries = (await gateway.manage("GET", "/credits/ledger?limit=50"))["data"]

    assert f"**${hold(entries)} is held.**" in PAGE.read_text("utf-8")
    assert rows("What is charged") == charged(reply.json()["gateway_metadata"]["cost"])
    assert rows("What the ledger says") == [line(entry) for entry in reversed(entries)]


def hold(entries: list[dict[str, Any]]) -> str:
    """What the first request held."""
    return next(text(-entry["amount"]) for entry in entries if entry["type"] == "reservation")


def charged(cost: dict[str, Any]) -> list[list[str]]:
    """The receipt, class by class, as the page has it."""
    details = USAGE["prompt_tokens_details"]
    assert isinstance(details, dict)
    cached = details["cached_tokens"]
    return [
        [
            "input, not cached",
            f"{USAGE['prompt_tokens'] - cached:,}",
            "$3.00",
            f"${text(cost['prompt'])}",
        ],
        ["input, read from the cache", f"{cached:,}", "$0.30", f"${text(cost['cache_read'])}"],
        ["output", f"{USAGE['completion_tokens']:,}", "$15.00", f"${text(cost['completion'])}"],
        ["**together**", "", "", f"**${text(cost['total'])}**"],
    ]


def line(entry: dict[str, Any]) -> list[str]:
    """One entry as the page has it."""
    return [
        entry["type"],
        entry["bucket"] or "",
        text(entry["amount"]),
        text(entry["balance_after"]),
    ]


def text(amount: float) -> str:
    return format(Decimal(repr(amount)).normalize(), "f")
