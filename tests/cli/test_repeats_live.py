"""gwctl against a real node: what is repeated counts once, two jobs make one key, and removing says what lives on."""

import asyncio
import sys
from typing import Any

from gwctl.jsontext import loads
from tests.cli.conftest import ROOT
from tests.cli.test_live import Cli, cli, node
from tests.support.node import Gateway

__all__ = ["cli", "node"]


async def test_a_booking_that_is_repeated_says_when_it_was_booked(cli: Cli, node: Gateway) -> None:
    for words in (
        ("grant", "25", "--reference", "welcome-4711"),
        ("purchase", "5", "--idempotency-key", "inv-2041"),
        ("refund", "1", "--note", "unused", "--reference", "r-1", "--yes"),
        ("adjust", "2", "--take", "--reason", "booked twice", "--reference", "a-1"),
    ):
        first, _ = await cli("credit", *words)
        assert "booked" not in first
        again, _ = await cli("credit", *words)
        assert again.startswith("already booked on 2")
        same, err = await cli("credit", *words, "-q")
        assert same.strip().startswith("led_")
        assert "already booked on 2" in err
    assert (await cli.json("credit", "balance"))["balance"] == 10 + 25 + 5 - 1 - 2
    await cli("credit", "grant", "26", "--reference", "welcome-4711", code=1)


async def test_of_two_jobs_that_create_a_key_at_once_one_makes_it(cli: Cli, node: Gateway) -> None:
    outs = await asyncio.gather(
        *(cli("key", "create", "ci", "--if-absent", "-q") for _ in range(4))
    )
    secrets = [out for out, _ in outs if out]
    assert len(secrets) == 1
    assert sum("key ci exists" in err for _, err in outs) == 3
    assert len(await cli.json("key", "list", "--name", "ci")) == 1
    teams = await asyncio.gather(
        *(
            cli("workspace", "create", "web", "--if-absent", "--key-limit", "5", "-q")
            for _ in range(3)
        )
    )
    assert sum(out.startswith("gwi_") for out, _ in teams) == 1
    assert len(await cli.json("key", "list", "--name", "web")) == 1


async def test_the_operator_books_and_sets_for_another_organization(
    cli: Cli, node: Gateway
) -> None:
    key, _ = await cli("org", "create", "Globex", "-q")
    there = {"GWCTL_KEY": key.strip()}
    await cli("credit", "purchase", "7", "--org", "globex")
    await cli("org", "settings", "--org", "globex", "byok_fee_percent=2.5")
    assert (await _json(cli, "credit", "balance", **there))["balance"] == 7
    assert (await _json(cli, "org", "settings", **there))["byok_fee_percent"] == 2.5
    assert (await cli.json("org", "settings"))["byok_fee_percent"] == 5
    _, err = await cli("org", "settings", "--org", "nowhere", code=3)
    assert "nowhere" in err


async def test_removing_says_what_ends_and_what_lives_on(cli: Cli, node: Gateway) -> None:
    async def join(name: str) -> None:
        link, _ = await cli("member", "invite", f"{name}@acme.example", "-q")
        own, _ = await cli("member", "accept", "--secret-stdin", "-q", stdin=link)
        await cli("key", "create", f"{name}-app", "-q", GWCTL_KEY=own.strip())

    await join("ada")
    await join("bob")
    _, err = await cli("member", "remove", "ada@acme.example", "--yes")
    assert "key ada-app (key_" in err
    assert ") disabled with it" in err
    _, err = await cli("member", "remove", "bob@acme.example", "--keep-keys", "--yes")
    assert ") still works" in err
    await cli("key", "create", "old", "-q")
    await cli("key", "rotate", "old", "-q")
    _, err = await cli("key", "delete", "old", "--yes")
    assert "key old (key_" in err
    assert ") still works until 20" in err
    (left,) = await cli.json("key", "list", "--name", "old")
    assert left["rotated_to"] is None


async def test_a_tail_prints_what_ends_from_now_on(cli: Cli, node: Gateway) -> None:
    await node.chat()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gwctl", "activity", "tail", "--interval", "1", "--json", "id"),
        cwd=ROOT,
        env=cli.environment,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    seen: list[bytes] = []
    reading = asyncio.create_task(process.stdout.readline())
    sent = []
    while not reading.done():
        reply = await node.chat()
        sent.append(reply.headers["x-gw-generation-id"])
        await asyncio.wait([reading], timeout=0.2)
    seen.append(await reading)
    while len(seen) < 3:
        sent.append((await node.chat()).headers["x-gw-generation-id"])
        seen.append(await asyncio.wait_for(process.stdout.readline(), 20))
    process.terminate()
    await process.wait()
    ids = [line.split(b'"')[3].decode() for line in seen]
    first = sent.index(ids[0])
    assert ids == sent[first : first + 3]


async def _json(cli: Cli, *words: str, **more: Any) -> Any:
    return loads((await cli(*words, "--json", **more))[0])
