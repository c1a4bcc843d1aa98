"""`gwctl privacy log` against a real node: on, read, erase, off, and what it asks before it destroys."""

from typing import Any

from gwctl.jsontext import loads
from tests.cli.test_live import Cli, cli, node
from tests.limits.price import spend
from tests.support.node import Gateway

__all__ = ["cli", "node"]


async def exact(cli: Cli, *words: str) -> Any:
    return loads((await cli(*words, "--json"))[0])


async def served(node: Gateway) -> str:
    reply = await spend(node, 1)
    assert reply.status_code == 200
    await node.at_rest()
    return str(reply.headers["x-gw-generation-id"])


async def test_what_is_stored_is_read_and_erased(cli: Cli, node: Gateway) -> None:
    await served(node)
    assert (await exact(cli, "privacy", "log", "show"))["stored"] == 0
    await cli(
        "privacy", "log", "on", "--days", "7", "--redact", "email,card", "--pattern", "MRN-##"
    )
    shown = await exact(cli, "privacy", "log", "show")
    assert shown["content_log"] == {
        "days": 7,
        "redact": ["card", "email"],
        "patterns": ["MRN-##"],
        "keys": None,
        "workspaces": None,
    }
    first, second, third = [await served(node) for _ in range(3)]
    assert (await exact(cli, "privacy", "log", "show"))["stored"] == 3
    read = await exact(cli, "privacy", "log", "read", first)
    assert read["id"] == first
    assert read["request"]["models"] == ["demo/chat"]
    text, _ = await cli("privacy", "log", "read", first)
    assert "demo/chat" in text
    _, err = await cli("privacy", "log", "erase", first, code=2)
    assert "confirmation" in err
    assert (await exact(cli, "privacy", "log", "erase", first, "--yes"))["erased"] == 1
    await cli("privacy", "log", "read", first, code=3)
    _, err = await cli("privacy", "log", "erase", second, "--all", code=2)
    assert "in one way" in err
    await cli("privacy", "log", "erase", "--all", "--dry-run", code=8)
    _, err = await cli("privacy", "log", "off")
    assert "2 requests stay stored" in err
    _, err = await cli("privacy", "log", "off", "--erase", "--yes")
    assert "erased what was stored of 2 requests" in err
    await served(node)
    shown = await exact(cli, "privacy", "log", "show")
    assert (shown["content_log"], shown["stored"]) == (None, 0)
    await cli("privacy", "log", "read", third, code=3)


async def test_only_the_keys_that_are_named_are_stored(cli: Cli, node: Gateway) -> None:
    await node.new_key(name="other")
    await cli("privacy", "log", "on", "--days", "1", "--key", "other")
    await served(node)
    assert (await exact(cli, "privacy", "log", "show"))["stored"] == 0
    _, err = await cli("privacy", "log", "on", "--days", "1", "--redact", "names", code=2)
    assert "names" in err
    _, err = await cli("privacy", "log", "on", "--days", "400", code=2)
    assert "1 to 365" in err
