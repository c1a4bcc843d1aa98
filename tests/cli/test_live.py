"""gwctl against a real node with the simulated vendor behind it: requests, receipts, activity, money."""

import asyncio
import json
import os
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gwctl.jsontext import loads
from tests.support import warm
from tests.support.node import Gateway
from tests.support.node import gateway as node

__all__ = ["node"]


@dataclass
class Cli:
    """gwctl as a program, with the node's operator key and an inference key."""

    environment: dict[str, str]

    async def __call__(self, *words: str, code: int = 0, stdin: str = "", **more: str) -> Any:
        done = await asyncio.to_thread(
            warm.run, "gwctl", list(words), {**self.environment, **more}, stdin=stdin
        )
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout, done.stderr

    async def json(self, *words: str) -> Any:
        return json.loads((await self(*words, "--json"))[0])


@pytest.fixture
def cli(node: Gateway, tmp_path: Path) -> Cli:
    kept = {n: v for n, v in os.environ.items() if not n.startswith("GWCTL_")}
    return Cli(
        {
            **kept,
            "GWCTL_URL": node.base_url,
            "GWCTL_KEY": node.management_key,
            "GWCTL_INFERENCE_KEY": node.key,
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "NO_COLOR": "1",
        }
    )


async def test_chat_streams_text_to_stdout_and_the_receipt_to_stderr(
    cli: Cli, node: Gateway
) -> None:
    out, err = await cli("chat", "demo/chat", "hello", "--receipt")
    assert out.strip()
    assert "demo/chat (Demo)" in err
    assert "attempt 1 of 1" in err
    whole = await cli.json("chat", "demo/chat", "hello", "--receipt")
    assert whole["choices"][0]["message"]["content"] + "\n" == out
    assert whole["gateway_metadata"]["cost"]["total"] > 0


async def test_a_chat_is_in_the_activity_the_ledger_and_the_usage(cli: Cli, node: Gateway) -> None:
    await cli("chat", "demo/chat", stdin="from a pipe")
    await node.at_rest()
    (row,) = await cli.json("activity", "list", "--model", "demo/chat")
    assert row["status"] == "succeeded"
    shown, _ = await cli("activity", "show", row["id"])
    assert f"total_cost\t{Decimal(str(row['total_cost']))}" in shown
    entries = await cli.json("ledger", "show", row["id"])
    assert {"reservation", "settlement"} <= {entry["type"] for entry in entries}
    await cli("ledger", "verify")
    text, _ = await cli("usage", "summary", "--by", "model", "--json")
    (used,) = loads(text)
    assert used["requests"] == 1
    assert used["cost"] == Decimal(str(row["total_cost"]))
    out, _ = await cli("usage", "export", "--csv")
    assert out.startswith("date,model,api_key,requests")
    out, _ = await cli("activity", "export", "--csv")
    assert row["id"] in out


async def test_embeddings_are_numbers(cli: Cli) -> None:
    out, _ = await cli("embed", "demo/embed", "a text")
    assert all(abs(float(line)) <= 1 for line in out.splitlines())
    assert len(out.splitlines()) > 1


async def test_refusals_of_inference_have_their_exit_codes(cli: Cli, node: Gateway) -> None:
    key, _ = await node.new_key(limit=0)
    _, err = await cli("chat", "demo/chat", "hi", code=5, GWCTL_INFERENCE_KEY=key)
    assert "key_limit_exceeded" in err
    await cli("chat", "demo/nothing", "hi", code=3)
    await cli("chat", "demo/chat", "hi", code=4, GWCTL_INFERENCE_KEY="gwi_wrong")
    await cli("key", "list", code=4, GWCTL_KEY=node.key)
    refused = await cli.json("activity", "list", "--status", "error")
    assert "key_limit_exceeded" in {row["error"]["code"] for row in refused}


async def test_without_an_inference_key_yes_makes_one_for_an_hour(cli: Cli) -> None:
    await cli("chat", "demo/chat", "hi", code=4, GWCTL_INFERENCE_KEY="")
    out, err = await cli("chat", "demo/chat", "hi", "--yes", GWCTL_INFERENCE_KEY="")
    assert out.strip()
    assert "for an hour" in err
    (made,) = await cli.json("key", "list", "--name", "gwctl-chat")
    assert made["limit"] == 1
    assert made["expires_at"]


async def test_route_explain_knows_the_live_endpoints(cli: Cli) -> None:
    out, err = await cli("route", "explain", "demo/chat", "--tools", "--max-tokens", "100")
    assert out.startswith("1\topenai-chat\t")
    assert "1 endpoint, 1 eligible" in err
    assert "hold for this request: $0.0" in err
    whole = await cli.json("route", "explain", "demo/embed")
    assert (whole["dialect"], whole["serves"]) == ("embeddings", "openai-embeddings")
    mine = await cli("route", "explain", "demo/chat", "--jq", ".serves", GWCTL_KEY="")
    assert mine[0] == "openai-chat\n"
    out, _ = await cli("route", "estimate", "demo/chat", "--max-tokens", "100")
    assert [line.split("\t")[:2] for line in out.splitlines()] == [
        ["first", "openai-chat"],
        ["dearest", "openai-chat"],
    ]
    _, err = await cli("route", "explain", "demo/chatt", code=3)
    assert "demo/chat" in err
