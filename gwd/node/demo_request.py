"""`gwd demo --once`: one streamed request as a client sends it, then its receipt and the ledger it left."""

from decimal import Decimal
from typing import Any, Final

import httpx
import msgspec
from rich.console import Console
from rich.table import Table

from gwd import ledger, proof
from gwd.core.money import usd_text
from gwd.node.demo_vendor import CHAT_MODEL
from gwd.store import Connection
from gwd.wiring import RunningNode

PROMPT: Final = "Say in two sentences what a double-entry ledger is good for."
TIMEOUT_S: Final = 60.0

# Amounts are read as decimals: what is shown is what was charged.
_DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)


async def send(console: Console, running: RunningNode, key: str, organization_id: str) -> int:
    """Print the text as it comes, the receipt and the ledger; 0 if the answer came whole and the books add up."""
    base_url = running.settings.server.base_url
    console.print(f"POST {base_url}/chat/completions   {CHAT_MODEL}", soft_wrap=True)
    console.print(f"> {PROMPT}\n", markup=False)
    last = await _stream(console, base_url, key)
    if last is None:
        return 1
    console.print(_receipt(last["usage"], last["gateway_metadata"]))
    entries, verified = await running.store.read(_books, organization_id)
    console.print(_ledger(entries))
    console.print(
        f"{verified.checked} entries recomputed: "
        + ("the ledger adds up" if verified.ok else "the ledger does not add up")
    )
    return 0 if verified.ok else 1


async def _stream(console: Console, base_url: str, key: str) -> dict[str, Any] | None:
    """The last chunk, which carries usage, cost and receipt; None when an error came instead."""
    body = {
        "model": CHAT_MODEL,
        "messages": [{"role": "user", "content": PROMPT}],
        "stream": True,
        "usage": {"include": True},
    }
    headers = {"authorization": f"Bearer {key}", "x-gw-metadata": "enabled"}
    last: dict[str, Any] | None = None
    async with (
        httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client,
        client.stream("POST", f"{base_url}/chat/completions", json=body, headers=headers) as answer,
    ):
        if answer.status_code != httpx.codes.OK:
            console.print((await answer.aread()).decode(), markup=False)
            return None
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = _DECODER.decode(line.removeprefix("data: "))
            if "error" in chunk:
                console.print(chunk["error"]["message"], markup=False)
                return None
            for choice in chunk.get("choices", ()):
                console.print(choice["delta"].get("content") or "", end="", markup=False)
            if chunk.get("usage"):
                last = chunk
    console.print("\n")
    return last


def _receipt(usage: dict[str, Any], receipt: dict[str, Any]) -> Table:
    cost, timing, routing = receipt["cost"], receipt["timing_ms"], receipt["routing"]
    table = Table(title="Receipt", title_justify="left", show_header=False)
    for name, value in (
        ("generation", receipt["generation_id"]),
        ("model", receipt["model"]),
        ("attempt", f"{routing['attempt']} of {routing['eligible_endpoints']} endpoints"),
        ("tokens", f"{usage['prompt_tokens']} in, {usage['completion_tokens']} out"),
        ("first token", f"{timing['ttft']} ms"),
        ("total", f"{timing['total']} ms"),
        ("prompt", _usd(cost["prompt"])),
        ("completion", _usd(cost["completion"])),
        ("charged", _usd(cost["total"])),
    ):
        table.add_row(name, value)
    return table


def _ledger(entries: list[ledger.Entry]) -> Table:
    table = Table(title="Ledger", title_justify="left")
    for name in ("entry", "amount", "free after", "generation"):
        table.add_column(name, justify="right" if name in ("amount", "free after") else "left")
    for entry in entries:
        table.add_row(
            entry.type,
            usd_text(entry.signed_nano),
            usd_text(entry.balance_after_nano),
            entry.generation_id or "",
        )
    return table


def _books(
    connection: Connection, organization_id: str
) -> tuple[list[ledger.Entry], ledger.Verification]:
    """Oldest first, as they came about."""
    found = ledger.list_entries(
        connection, organization_id, ledger.LedgerFilter(), limit=50, offset=0
    )
    return found.rows[::-1], proof.verify(connection)


def _usd(amount: Decimal | int) -> str:
    return f"{Decimal(amount):f} USD"
