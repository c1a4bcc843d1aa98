"""Statements added up again: every month of an organization from its entries and records alone, one by one."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from gwd.ledger import CREDIT_TYPES
from gwd.management.statements import StatementRecord, statement
from gwd.store import Connection

US = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OWNED = ("pool", "held")
COUNTS = ("requests", "tokens_prompt", "cached_tokens", "tokens_completion")

Groups = dict[Any, Counter[str]]


def read(
    connection: Connection, organization_id: str, month: str, *, now_us: int
) -> dict[str, Any]:
    """A statement as a client has it, its amounts in nano-USD."""
    record = statement(connection, organization_id, month, now_us=now_us, due_us=now_us)
    return in_nano(record)


def in_nano(record: StatementRecord) -> dict[str, Any]:
    """What is encoded for a client, its amounts as whole nano-USD."""
    whole: dict[str, Any] = json.loads(msgspec.json.encode(record), parse_float=Decimal)
    lists = (whole["movements"], whole["workspaces"], whole["keys"], whole["models"])
    for part in (whole, whole["charges"], *(row for rows in lists for row in rows)):
        for name in ("opening_balance", "closing_balance", "amount", "charged"):
            if name in part:
                nano = Decimal(part[name]) * 1_000_000_000
                assert nano == int(nano)
                part[name] = int(nano)
    return whole


def months(connection: Connection, organization_id: str) -> list[str]:
    """Those in which there are entries or records, in order."""
    rows = connection.rows(
        "SELECT strftime('%Y-%m', created_at / 1000000, 'unixepoch') FROM entry WHERE organization_id = ?1"
        " UNION SELECT strftime('%Y-%m', settled_at / 1000000, 'unixepoch') FROM generation"
        " WHERE organization_id = ?1 ORDER BY 1",
        (organization_id,),
    )
    return [str(row[0]) for row in rows]


def check_statements(connection: Connection, organization_id: str, *, now_us: int) -> list[str]:
    """Each month's statement is what its entries and records come to; the months that were looked at."""
    latest = connection.rows(
        "SELECT MAX(created_at) FROM entry UNION SELECT MAX(settled_at) FROM generation"
    )
    now_us = max(now_us, *(at_us or 0 for (at_us,) in latest))  # a clock may have been set back
    looked_at = months(connection, organization_id)
    carried = 0
    for month in looked_at:
        found = read(connection, organization_id, month, now_us=now_us)
        _check_month(connection, organization_id, month, found)
        assert found["opening_balance"] == carried, f"{month} goes on from the month before it"
        carried = found["closing_balance"]
        moved = sum(each["amount"] for each in found["movements"])
        assert found["opening_balance"] + moved - found["charges"]["charged"] == carried
        for name in ("workspaces", "keys", "models"):
            for field in (*COUNTS, "charged"):
                total = sum(row[field] for row in found[name])
                assert total == found["charges"][field], (month, name, field)
    row = connection.row(
        "SELECT pool_nano + held_nano FROM account WHERE organization_id = ?", (organization_id,)
    )
    assert row is not None
    assert carried == row[0], "the last month ends with what is owned now"
    return looked_at


def _check_month(
    connection: Connection, organization_id: str, month: str, found: dict[str, Any]
) -> None:
    start = datetime.fromisoformat(f"{month}-01T00:00:00+00:00")
    start_us = (start - EPOCH) // US
    end_us = ((start + timedelta(days=31)).replace(day=1) - EPOCH) // US
    balances = {"opening_balance": 0, "closing_balance": 0}
    moved: dict[str, dict[str, Any]] = {
        name: {"type": name, "entries": 0, "amount": 0} for name in CREDIT_TYPES
    }
    workspaces: Groups = {}
    keys: Groups = {}
    models: Groups = {}
    last = None
    for seq, kind, origin, target, nano, key_id, workspace_id, at_us in connection.rows(
        "SELECT seq, type, from_account, to_account, amount_nano, key_id, workspace_id, created_at"
        " FROM entry WHERE organization_id = ? ORDER BY seq",
        (organization_id,),
    ):
        change = nano * ((target in OWNED) - (origin in OWNED))
        if at_us < end_us:
            balances["closing_balance"] += change
            last = seq
        if at_us < start_us:
            balances["opening_balance"] += change
        elif at_us < end_us and kind in moved:
            moved[kind]["entries"] += 1
            moved[kind]["amount"] += change
        elif at_us < end_us and kind == "charge":
            for groups, name in (
                (workspaces, workspace_id),
                (keys, (workspace_id, _family(connection, key_id))),
            ):
                groups.setdefault(name, Counter())["charged"] += nano
        else:
            assert change == 0 or at_us >= end_us, f"{kind} is on no line of a statement"
    for key_id, workspace_id, model, byok, cost_nano, *counts in connection.rows(
        "SELECT key_id, workspace_id, model, byok, cost_total_nano, 1,"
        " tokens_input + tokens_cache_read + tokens_cache_write_5m + tokens_cache_write_1h, tokens_cache_read,"
        " tokens_output + tokens_reasoning FROM generation"
        " WHERE organization_id = ? AND settled_at >= ? AND settled_at < ? AND status <> 'refused'",
        (organization_id, start_us, end_us),
    ):
        for groups, name in (
            (workspaces, workspace_id),
            (keys, (workspace_id, _family(connection, key_id))),
            (models, (bool(byok), None if byok else model)),
        ):
            groups.setdefault(name, Counter()).update(dict(zip(COUNTS, counts, strict=True)))
        models[bool(byok), None if byok else model]["charged"] += cost_nano
    expected = {**balances, "movements": list(moved.values())}
    assert {name: found[name] for name in expected} == expected, month
    assert _groups(found["workspaces"], "workspace_id") == _plain(workspaces)
    assert _groups(found["keys"], "workspace_id", "family_id") == _plain(keys)
    assert _groups(found["models"], "byok", "model") == _plain(models)
    assert (found["last_entry"] or {}).get("number") == last


def _family(connection: Connection, key_id: str) -> str:
    row = connection.row("SELECT family_id FROM api_key WHERE id = ?", (key_id,))
    return key_id if row is None else str(row[0])


def _groups(rows: list[dict[str, Any]], *names: str) -> Any:
    found = {
        tuple(row[name] for name in names): {field: row[field] for field in (*COUNTS, "charged")}
        for row in rows
    }
    assert len(found) == len(rows), "a line stands twice"
    return {name[0] if len(names) == 1 else name: each for name, each in found.items()}


def _plain(groups: Groups) -> Any:
    return {
        name: {field: counts[field] for field in (*COUNTS, "charged")}
        for name, counts in groups.items()
    }
