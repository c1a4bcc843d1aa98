"""Exports while requests are served: no row twice, none missing, and what they add up to is what the ledger charged.

EXPORT_SECONDS says for how long; `make export` takes three minutes.
"""

import asyncio
import os
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from gwctl.jsontext import loads
from gwd.store import Connection
from tests.cli.test_live import Cli
from tests.support.node import Gateway, open_gateway

SECONDS = float(os.environ.get("EXPORT_SECONDS", "3"))
RATE = 200
ANY_RATE = {"GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "1000000"}
WORKERS = 20


async def test_exports_under_load_are_a_clean_cut_through_the_books(tmp_path: Path) -> None:
    """Each export is exactly what had ended when it began, in the order in which it ended."""
    async with open_gateway(tmp_path, credit="100000", environment=ANY_RATE) as node:
        ended: list[str] = []
        until = time.monotonic() + SECONDS
        load = asyncio.gather(*(_work(node, until, ended) for _ in range(WORKERS)))
        cli = _cli(node, tmp_path)
        exports: list[tuple[set[str], list[Any], list[Any]]] = []
        while not load.done():
            known = set(ended)
            rows = await _lines(cli, "activity", "export", "--jsonl")
            entries = await _lines(cli, "ledger", "list", "--all", "--jsonl")
            exports.append((known, rows, entries))
        await load
        await node.at_rest()
        order = await node.store.read(_in_order)
        charged = await node.store.read(_charged)
        for known, rows, entries in exports:
            ids = [row["id"] for row in rows]
            assert ids == order[: len(ids)][::-1], (
                "a row is there twice, is missing, or came between"
            )
            assert known <= set(ids)
            total = sum((row["total_cost"] for row in rows), Decimal(0))
            assert total == sum((charged[name] for name in ids), Decimal(0))
            assert len({entry["id"] for entry in entries}) == len(entries)
            assert sum(entry["amount"] for entry in entries) == entries[0]["balance_after"]
        rows = await _lines(cli, "activity", "export", "--jsonl")
        assert len(rows) == len(order) == len(ended)
        assert sum(row["total_cost"] for row in rows) == sum(charged.values())
        assert len(exports) >= 1


async def _work(node: Gateway, until: float, ended: list[str]) -> None:
    while time.monotonic() < until:
        began = time.monotonic()
        reply = await node.chat(max_tokens=20)
        assert reply.status_code == 200, reply.text
        ended.append(reply.headers["x-gw-generation-id"])
        await asyncio.sleep(max(0.0, began + WORKERS / RATE - time.monotonic()))


async def _lines(cli: Cli, *words: str) -> list[Any]:
    return [loads(line) for line in (await cli(*words))[0].splitlines()]


def _in_order(connection: Connection) -> list[str]:
    return [row[0] for row in connection.rows("SELECT id FROM generation ORDER BY rowid")]


def _charged(connection: Connection) -> dict[str, Decimal]:
    found = connection.rows(
        "SELECT generation_id, SUM(amount_nano) FROM entry WHERE type = 'charge' GROUP BY 1"
    )
    return {name: Decimal(nano).scaleb(-9) for name, nano in found}


def _cli(node: Gateway, folder: Path) -> Cli:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("GWCTL_")}
    own = {
        "GWCTL_URL": node.base_url,
        "GWCTL_KEY": node.management_key,
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    return Cli(kept | own)
