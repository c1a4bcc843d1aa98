"""What a node with a million requests behind it takes for each thing, beside one with a thousand: one run, one table.

    python -m tests.bench.million                    nodes in /tmp/million, made where they are not there yet
    python -m tests.bench.million --count 200000

Figures are processor time of all who take part, asked and asking, the median of a few: others may run on the machine.
It ends with 1 when a row is over its limit.
"""

import argparse
import asyncio
import resource
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from gwd.core.clock import US_PER_DAY, US_PER_S, iso
from gwd.jobs import retention
from gwd.store import Connection
from tests.bench.million_node import (
    BEGINS,
    CHAT,
    REQUESTS_A_KEY,
    Facts,
    History,
    clock_after,
    made,
    serve,
)
from tests.support.node import Gateway, Nodes
from tests.vendor import StrictVendor

FEW: Final = 1_000
BEGINS_US: Final = int(BEGINS.timestamp()) * US_PER_S
TIMES: Final = 5
PLACE: Final = Path("/tmp/million")
PAGE_MS: Final = 100.0
FIRST_PAGE_MS: Final = 30.0
REPORT_MS: Final = 300.0
STATEMENT_MS: Final = 1_000.0
VERIFY_MS: Final = 30_000.0
KEYS_MS: Final = 20_000.0
BYTES: Final = 1_740.0
"""On disk for a settled request: 1.7 KB."""
A_DAY: Final[dict[str, Any]] = {"from": ":day", "to": ":next_day"}
A_MONTH: Final[dict[str, Any]] = {"from": ":first_day", "to": ":last_day"}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is measured: milliseconds, or bytes. At most so much, or so many times the small node's."""

    name: str
    ask: Callable[["Measured"], Awaitable[float]]
    most: float | None = None
    most_times: float | None = None


class Measured:
    """A node that serves, and what it takes.

    `places` are values of the filters of its lists, and where to go on in them; `start_ms` is what its start took.
    """

    def __init__(
        self,
        node: Gateway,
        facts: Facts,
        history: History,
        *,
        places: dict[str, str],
        start_ms: float,
    ) -> None:
        self.node = node
        self.facts = facts
        self.history = history
        self.places = places
        self.start_ms = start_ms

    async def cpu_ms(self, doing: Callable[[], Awaitable[object]], times: int = TIMES) -> float:
        """The processor time of something, this process and its children together."""
        taken = []
        for _ in range(times):
            began_s = _cpu_s()
            await doing()
            taken.append((_cpu_s() - began_s) * 1_000)
        return statistics.median(taken)

    async def get_ms(self, path: str, **query: str | int) -> float:
        """The processor time of one GET."""

        async def ask() -> None:
            reply = await self.node.operator.get(path, params=query)
            assert reply.status_code == 200, (path, query, reply.text)

        return await self.cpu_ms(ask)

    async def post_ms(self, path: str, body: Any) -> float:
        """The processor time of one POST that changes nothing."""
        return await self.cpu_ms(lambda: self.node.manage("POST", path, body))


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@asynccontextmanager
async def opened(folder: Path, count: int) -> AsyncIterator[Measured]:
    """The node of so many requests, running."""
    facts = await made(folder, count)
    starts = [await _start_ms(folder) for _ in range(TIMES)]
    async with Nodes(folder).running(clock_after(folder)) as running:
        node = Gateway(running, StrictVendor(), facts.management_key)
        await node.store.write(_proved_tonight)
        try:
            yield Measured(
                node,
                facts,
                await History.of(node, facts),
                places=await node.store.read(_places, facts),
                start_ms=min(starts),
            )
        finally:
            await node.close()


async def _start_ms(folder: Path) -> float:
    node = Nodes(folder).running(clock_after(folder))
    began_s = _cpu_s()
    async with node:
        return (_cpu_s() - began_s) * 1_000


def _proved_tonight(connection: Connection) -> None:
    """The nightly proof begins a minute after the start of a node that missed it: not beside what is measured."""
    connection.execute("DELETE FROM node_fact WHERE name = 'ledger_verified_night'")


def _places(connection: Connection, facts: Facts) -> dict[str, str]:
    """What lists of this node may be asked for."""
    old, middle = (_id_at(connection, "generation", facts.count // part) for part in (10, 2))
    found = connection.row(
        "SELECT session_id, settled_at, (SELECT MAX(last_seq) / 10 FROM account) FROM generation WHERE id = ?",
        (middle,),
    )
    assert found is not None
    session, at_us, seq = found
    return {
        "old": old,
        "middle": middle,
        "session": session,
        "day": iso(at_us),
        "next_day": iso(at_us + US_PER_DAY),
        "entry": f"entry-{seq}",
        "key": _id_at(connection, "api_key", facts.count // (2 * REQUESTS_A_KEY)),
        "busy_key": facts.keys[0].key_id,
        "quiet_key": facts.keys[-1].key_id,
        "workspace": facts.keys[0].workspace_id,
        "first_day": iso(BEGINS_US + 5 * US_PER_DAY),
        "last_day": iso(BEGINS_US + 36 * US_PER_DAY),
    }


def _id_at(connection: Connection, table: str, place: int) -> str:
    [(found,)] = connection.rows(
        f"SELECT id FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?",
        (place,),
    )
    return str(found)


# --- the rows


async def _served(node: Measured) -> float:
    """One request, admitted and settled, in microseconds."""
    await node.node.store.write(node.history.pay)
    some = 400
    taken = []
    for _ in range(2 * TIMES):
        requests = node.history.requests(some, 10_000)
        began_s = _cpu_s()
        for first in range(0, some, 8):
            await node.node.store.write(serve, requests[first : first + 8])
        taken.append((_cpu_s() - began_s) * 1_000 / some)
    return statistics.median(taken)


async def _started(node: Measured) -> float:
    return node.start_ms


async def _forgotten(node: Measured) -> float:
    running = node.node.running
    clean_before: dict[str, int] = {}
    await retention.forget(running.store, running.node.clock, clean_before)
    return await node.cpu_ms(
        lambda: retention.forget(running.store, running.node.clock, clean_before)
    )


async def _forgotten_first(node: Measured) -> float:
    running = node.node.running
    return await node.cpu_ms(lambda: retention.forget(running.store, running.node.clock, {}))


async def _verified(node: Measured) -> float:
    async def verify() -> None:
        found = await node.node.running.node.prover.verify()
        assert found.ok, found.differences

    return await node.cpu_ms(verify, 1)


async def _bytes(node: Measured) -> float:
    """On disk, for each request that was settled."""

    def size(connection: Connection) -> float:
        [pages] = connection.row("PRAGMA page_count") or (0,)
        [settled] = connection.row("SELECT COUNT(*) FROM reservation") or (0,)
        return float(pages * 4_096 / settled)

    return float(await node.node.store.read(size))


def _list(name: str, path: str, /, *, most: float = PAGE_MS, **query: Any) -> Row:
    """A page of a list. Values that begin with ':' are the node's own places."""

    async def ask(node: Measured) -> float:
        given = {
            key: node.places[str(value)[1:]] if str(value).startswith(":") else value
            for key, value in query.items()
        }
        return await node.get_ms(path, **given)

    return Row(name=name, ask=ask, most=most)


def _question(name: str, *, most: float = REPORT_MS, days: int = 30, **asked: Any) -> Row:
    async def ask(node: Measured) -> float:
        to_us = node.node.running.node.clock.now_us()
        between = {"from": iso(to_us - days * US_PER_DAY), "to": iso(to_us)}
        body = {"metrics": ["requests", "cost", "tokens_total"], "range": between, **asked}
        return await node.post_ms("/analytics/query", body)

    return Row(name=name, ask=ask, most=most)


async def _far(node: Measured) -> float:
    return await node.get_ms("/generations", offset=node.facts.count * 9 // 10)


def rows() -> list[Row]:
    """Everything that is measured."""
    generations, entries = "/generations", "/credits/ledger"
    filters: dict[str, dict[str, Any]] = {
        "of the busiest key": {"key_id": ":busy_key"},
        "of a quiet key": {"key_id": ":quiet_key"},
        "of a key that asked nothing": {"key_id": ":key"},
        "of a model": {"model": CHAT[0]},
        "of no model": {"model": "demo/none"},
        "succeeded": {"status": "succeeded"},
        "failed": {"status": "failed"},
        "refused": {"status": "refused"},
        "in progress": {"status": "in_progress"},
        "of a user": {"user": "user-1"},
        "of nobody": {"user": "nobody"},
        "of a session": {"session_id": ":session"},
        "of no session": {"session_id": "none"},
        "of an app": {"app": "editor"},
        "of no app": {"app": "none"},
        "of a workspace": {"workspace_id": ":workspace"},
        "of no workspace": {"workspace_id": "ws_none"},
        "with an error": {"error_code": "model_not_found"},
        "with no such error": {"error_code": "none"},
        "of a model and a user": {"model": CHAT[0], "user": "user-1"},
        "of a model and a session": {"model": CHAT[0], "session_id": ":session"},
        "succeeded, of a workspace": {"status": "succeeded", "workspace_id": ":workspace"},
    }
    return [
        Row(name="admitted and settled, each", ask=_served, most_times=1.2),
        Row(name="start", ask=_started, most_times=1.1),
        Row(name="bytes for a settled request", ask=_bytes, most=BYTES),
        Row(name="retention, nothing left", ask=_forgotten, most=FIRST_PAGE_MS),
        Row(name="retention, first round", ask=_forgotten_first, most=FIRST_PAGE_MS),
        _list("generations", generations, most=FIRST_PAGE_MS),
        _list("generations, next page far back", generations, most=FIRST_PAGE_MS, after=":old"),
        _list("generations, before", generations, most=FIRST_PAGE_MS, before=":old"),
        Row(name="generations, offset 9 of 10", ask=_far, most=PAGE_MS),
        *(_list(f"generations {name}", generations, **query) for name, query in filters.items()),
        *(
            _list(f"generations {name}, far back", generations, after=":old", **query)
            for name, query in filters.items()
        ),
        _list("generations of a day", generations, **A_DAY),
        _list(
            "generations of an app on a day",
            generations,
            app="editor",
            **A_DAY,
        ),
        _list("ledger", entries, most=FIRST_PAGE_MS),
        _list("ledger, next page far back", entries, most=FIRST_PAGE_MS, after=":entry"),
        *(
            _list(f"ledger, {name}", entries, type=name)
            for name in (
                "charge",
                "reservation",
                "settlement",
                "release",
                "purchase",
                "grant",
                "refund",
                "clock",
            )
        ),
        *(
            _list(f"ledger, {name}, far back", entries, type=name, after=":entry")
            for name in ("charge", "release", "purchase", "refund")
        ),
        _list("ledger of a generation", entries, generation_id=":middle"),
        _list("ledger of a day", entries, **A_DAY),
        _list("releases of a day", entries, type="release", **A_DAY),
        _list("keys", "/keys", most=FIRST_PAGE_MS),
        _list("keys, next page far back", "/keys", most=FIRST_PAGE_MS, after=":key"),
        _list("keys, disabled too", "/keys", include_disabled="true", include_expired="true"),
        _list("keys by name", "/keys", name="key 7"),
        _list("keys of a workspace", "/keys", workspace_id=":workspace"),
        _list("audit", "/audit"),
        _list("activity of 30 days", "/activity", most=REPORT_MS),
        _list("activity of a workspace", "/activity", most=REPORT_MS, workspace_id=":workspace"),
        _list(
            "vendor usage",
            "/vendor-usage",
            most=REPORT_MS,
            **A_MONTH,
        ),
        _list("credits", "/credits"),
        _list("budgets", "/budgets"),
        _list("statement", "/statements/2026-09", most=STATEMENT_MS),
        _list("statement of the running month", "/statements/2026-10", most=STATEMENT_MS),
        _question("30 days by model", dimensions=["model"]),
        _question("30 days by day and model", dimensions=["model"], granularity="day"),
        _question("30 days by key", dimensions=["api_key"]),
        _question(
            "30 days by key, model and provider", dimensions=["api_key", "model", "provider"]
        ),
        _question("7 days by user", days=7, dimensions=["user"], most=STATEMENT_MS),
        _question("7 days by hour", days=7, granularity="hour", most=STATEMENT_MS),
        _question("a day's p99", days=1, metrics=["p99_latency"], dimensions=["model"]),
        Row(name="ledger verify, in its own process", ask=_verified, most=VERIFY_MS),
    ]


# --- the run


async def measured(folder: Path, count: int, wanted: list[Row]) -> list[float]:
    """What each row comes to at a node of so many requests."""
    figures = []
    async with opened(folder, count) as node:
        for row in wanted:
            figures.append(await row.ask(node))
            print(f"{count:>12,}  {figures[-1]:12.2f}  {row.name}", file=sys.stderr, flush=True)
    return figures


def is_over(row: Row, few: float, many: float) -> bool:
    """Whether the large node takes more than it may."""
    too_long = row.most is not None and many > row.most
    return too_long or (row.most_times is not None and many > row.most_times * few)


def table(wanted: list[Row], few: list[float], many: list[float], count: int) -> str:
    """The figures in Markdown, rows over their limit in bold."""
    lines = [
        f"| processor time in ms | {FEW:,} requests | {count:,} | times | at most |",
        "|---|---|---|---|---|",
    ]
    for row, small, large in zip(wanted, few, many, strict=True):
        limit = f"{row.most:,.0f}" if row.most is not None else f"{row.most_times} times"
        shown = f"**{large:,.2f}**" if is_over(row, small, large) else f"{large:,.2f}"
        lines.append(f"| {row.name} | {small:,.2f} | {shown} | {large / small:.1f} | {limit} |")
    return "\n".join(lines)


def main() -> int:
    """Make what is missing, measure both, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="rows whose names hold this")
    options = parser.parse_args()
    wanted = [row for row in rows() if options.only in row.name]
    few, many = [
        asyncio.run(measured(PLACE / str(count), count, wanted)) for count in (FEW, options.count)
    ]
    print(table(wanted, few, many, options.count))
    over = [
        row.name for row, *figures in zip(wanted, few, many, strict=True) if is_over(row, *figures)
    ]
    print(f"\nover their limits: {', '.join(over) or 'none'}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
