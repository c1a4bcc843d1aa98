"""Every hint that an error prints is tried in the situation that caused it, against a real node.

The commands are read out of the message itself; a situation fills in its names. Where the hint is the cure, the command
that failed must succeed behind it.
"""

import ast
import asyncio
import io
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from gwctl import errors
from gwctl.app import main
from gwd.__main__ import app
from gwd.demo.behaviour import Behaviour
from tests.cli.conftest import ROOT, Result, home
from tests.cli.test_help import COMMANDS
from tests.support.node import MODELS, Gateway
from tests.support.node import gateway as node

__all__ = ["home", "node"]

Gwctl = Callable[..., Awaitable[Result]]
_NAMED = re.compile(r"gwctl ((?:[^;,`()\n]|(?<=[a-z]),(?=[a-z]))+)")
# Codes whose hint names no command, or names one whose situation is another test's.
NOT_RUN = {
    "already_exists": "each in the table of what is taken",
    "conflict": "names no whole command: the record that is meant is in the command that failed",
    "draining": "the node is gone before a command could be run",
    "idempotency_conflict": "names no command",
    "internal_error": "names no command: the log is on the node",
    "organization_suspended": "names no command",
    "overloaded": "names no command",
    "price_not_accepted": "tests/cli/test_typed.py repeats the command with --accept",
    "storage_unavailable": "a full disk: tests/faults/test_disk_full.py; doctor reports it",
    "too_many_in_flight": "needs a request that stays open; the option is checked with all others",
}


def named_commands(text: str, known: Sequence[str] = ()) -> Iterator[list[str]]:
    """The command lines inside a hint: command, then options, placeholders and what belongs to them."""
    for match in _NAMED.finditer(text):
        words = match[1].split()
        length = next((len(n.split()) for n in _beginnings(words) if n in COMMANDS), 0)
        if not length:
            yield words[:2]
            continue
        line, rest = words[:length], words[length:]
        while rest:
            word = rest.pop(0)
            if word.startswith("-"):
                line.append(word)
                takes = _option(" ".join(words[:length]), word)
                if takes is not None and not takes.is_flag and rest:
                    line.append(rest.pop(0))
            elif word.isupper() or "=" in word or ":" in word or word in ("organization", *known):
                line.append(word)
            else:
                break
        yield line


def _option(name: str, word: str) -> Any | None:
    found = [p for p in COMMANDS[name].params if word.partition("=")[0] in p.opts]
    return found[0] if found else None


EVERYWHERE = {
    "--url",
    "--help",
    "--timeout",
    "--profile",
    "--debug",
    "--json",
    "--jsonl",
    "--jq",
    "--yes",
    "--NAME",
}


def test_every_hint_in_the_sources_names_commands_and_options_that_exist() -> None:
    wrong = []
    nouns = {name.split()[0] for name in COMMANDS}
    for path in sorted([*(ROOT / "gwctl").rglob("*.py"), *(ROOT / "gwd").rglob("*.py")]):
        for text in _texts(path):
            for line in named_commands(text):
                named = next((n for n in _beginnings(line) if n in COMMANDS), "")
                options = [w for w in line if w.startswith("--") and w not in EVERYWHERE]
                missing = [w for w in options if named and _option(named, w) is None]
                is_noun_with_verb = (
                    len(line) > 1
                    and line[0] in nouns
                    and line[1].islower()
                    and line != ["model", "price"]
                )
                if missing or (is_noun_with_verb and not named):
                    wrong.append((path.name, text[:80], line, missing))
    assert not wrong


def _beginnings(line: list[str]) -> list[str]:
    return [" ".join(line[:count]) for count in (3, 2, 1)]


def _texts(path: Path) -> Iterator[str]:
    """The texts of a file; what a formatted one fills in stands as a placeholder."""
    tree = ast.parse(path.read_text("utf-8"))
    inside = {
        part for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for part in ast.walk(n)
    } - {n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr)}
    for item in ast.walk(tree):
        if isinstance(item, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "NAME" for p in item.values]
            yield "".join(str(part) for part in parts)
        elif isinstance(item, ast.Constant) and item not in inside and "\n" not in str(item.value):
            yield str(item.value)


@pytest.fixture
def gwctl(
    node: Gateway, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Gwctl:
    """gwctl in this process, with the node's operator key."""
    monkeypatch.setenv("GWCTL_URL", node.base_url)

    async def call(
        *words: str, stdin: str = "", key: str | None = None, inference: str | None = None
    ) -> Result:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        for name, value in (("GWCTL_KEY", node.management_key if key is None else key),
                            ("GWCTL_INFERENCE_KEY", inference or node.key)):  # fmt: skip
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
        capsys.readouterr()
        code = await asyncio.to_thread(main, list(words))
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@dataclass
class Situation:
    """`line` fails with `code` after `cause`; then the commands of its hint are run with the names of `fills`.

    `cured`: the line must succeed behind them. `stdin` answers a command of the hint that asks for a secret.
    """

    code: str
    line: str
    cause: Callable[[Gateway, dict[str, str]], Awaitable[None]] | None = None
    fills: dict[str, str] = field(default_factory=dict)
    cured: bool = True
    stdin: str = ""
    key: str | None = None
    after: Callable[[Gateway], Awaitable[Any]] | None = None
    secret: bool = False
    fails: tuple[str, ...] = ()


CHAT = "chat demo/chat hi"


async def _own_key(node: Gateway, fills: dict[str, str], **fields: Any) -> None:
    made = await node.manage("POST", "/keys", {"name": f"k{len(fills)}-{id(fills)}", **fields})
    fills |= {"NAME": made["data"]["id"], "inference": made["key"]}


def own_key(**fields: Any) -> Callable[[Gateway, dict[str, str]], Awaitable[None]]:
    async def cause(node: Gateway, fills: dict[str, str]) -> None:
        await _own_key(node, fills, **fields)

    return cause


async def rpm(node: Gateway, fills: dict[str, str]) -> None:
    await _own_key(node, fills, rate_limit_per_minute=1)
    await chat(node, fills["inference"])


async def chat(node: Gateway, key: str | None = None) -> None:
    reply = await node.client.post(
        "/chat/completions",
        json={"model": "demo/chat", "messages": [{"role": "user", "content": "hi"}]},
        headers={"authorization": f"Bearer {key or node.key}"},
    )
    assert reply.status_code == 200, reply.text
    await node.at_rest()


def settings(**values: Any) -> Callable[[Gateway, dict[str, str]], Awaitable[None]]:
    async def cause(node: Gateway, fills: dict[str, str]) -> None:
        await node.manage("PATCH", "/organization/settings", values)

    return cause


async def any_provider(node: Gateway) -> None:
    await node.manage("PATCH", "/organization/settings", {"allowed_providers": None})


def behaves(status: int) -> Callable[[Gateway, dict[str, str]], Awaitable[None]]:
    async def cause(node: Gateway, fills: dict[str, str]) -> None:
        node.vendor.script.always(Behaviour(status=status))

    return cause


async def well_again(node: Gateway) -> None:
    node.vendor.script.clear()
    await node.manage("POST", "/operator/reload", {})


async def management_key(node: Gateway, fills: dict[str, str], **fields: Any) -> None:
    made = await node.manage(
        "POST", "/keys", {"name": f"m-{id(fills)}", "type": "management", "role": "admin", **fields}
    )
    fills |= {"NAME": made["data"]["id"], "management": made["key"]}


async def disabled(node: Gateway, fills: dict[str, str]) -> None:
    await management_key(node, fills)
    await node.manage("PATCH", f"/keys/{fills['NAME']}", {"disabled": True})


async def small_role(node: Gateway, fills: dict[str, str]) -> None:
    await management_key(node, fills, role="member")


async def inference_for_management(node: Gateway, fills: dict[str, str]) -> None:
    fills["management"] = node.key


async def budget(node: Gateway, fills: dict[str, str]) -> None:
    scope = {"scope": "organization", "interval": "monthly"}
    await node.manage("POST", "/budgets", {**scope, "limit": 0.000001})


async def retired(node: Gateway, fills: dict[str, str]) -> None:
    await node.add_model("demo/old", **MODELS["demo/chat"])
    await node.manage(
        "PATCH",
        "/catalog/models/demo/old",
        {
            "deprecated_at": "2020-01-01T00:00:00Z",
            "retired_at": "2020-01-02T00:00:00Z",
            "successor": "demo/chat",
        },
    )
    await node.manage("PATCH", "/organization/settings", {"forward_retired_models": False})


async def rotated(node: Gateway, fills: dict[str, str]) -> None:
    await _own_key(node, fills)
    await node.manage("POST", f"/keys/{fills['NAME']}/rotate", {})


async def keyless(node: Gateway, fills: dict[str, str]) -> None:
    rows = (await node.manage("GET", "/catalog/credentials?provider=openai-chat"))["data"]
    for row in rows:
        await node.manage(
            "PATCH", f"/catalog/credentials/{row['id']}", {"key_ref": "env:NO_SUCH_KEY_HERE"}
        )


async def in_quarantine(node: Gateway, fills: dict[str, str]) -> None:
    node.running.node.status.quarantine = "I1"


async def out_of_quarantine(node: Gateway) -> None:
    node.running.node.status.quarantine = None


SITUATIONS = (
    Situation("not_logged_in", "key list", key="", stdin="OPERATOR"),
    Situation("invalid_api_key", "key list", key="gwm_wrong", stdin="OPERATOR", cured=False),
    Situation("key_disabled", "key list", disabled, key="management"),
    Situation("wrong_key_type", "key list", inference_for_management, key="management", cured=False),
    Situation("insufficient_role", "audit list", small_role, key="management", cured=False),
    Situation("key_limit_exceeded", CHAT, own_key(limit=0), {"AMOUNT": "5"}),
    Situation("rate_limit_exceeded", CHAT, rpm, {"N": "50"}),
    Situation("model_not_allowed", CHAT, own_key(allowed_models=["demo/claude"]), {"SLUG": "demo/chat"}),
    Situation("model_not_found", "chat demo/none hi", cured=False),
    Situation("model_retired", "chat demo/old hi", retired),
    Situation("no_eligible_endpoints", CHAT, settings(allowed_providers=["anthropic-messages"]), {"MODEL": "demo/chat"},
              cured=False, after=any_provider),
    Situation("already_rotated", "key rotate NAME", rotated, cured=False),
    Situation("ledger_quarantined", CHAT, in_quarantine, cured=False, after=out_of_quarantine),
    Situation("upstream_unavailable", CHAT, behaves(503), {"SLUG": "openai-chat"}, cured=False,
              after=well_again, fails=("provider test",)),
    Situation("upstream_error", CHAT, behaves(500), {"SLUG": "openai-chat"}, cured=False, after=well_again,
              fails=("provider test",)),
    Situation("endpoints_throttled", CHAT, behaves(429), {"MODEL": "demo/chat"}, cured=False, after=well_again),
    Situation("conflict", "provider test openai-chat", keyless, stdin="sk-demo-0000"),
    Situation("no_available_endpoint", CHAT, keyless, {"PROVIDER": "openai-chat"}, stdin="sk-demo-0000",
              fails=("doctor",)),
    Situation("budget_exceeded", CHAT, budget, {"AMOUNT": "50"}),
    Situation("key_expired", "key list", None, key="expired", stdin="OPERATOR", cured=False),
    Situation("insufficient_credits", CHAT, None, {"AMOUNT": "5"}),
)  # fmt: skip


async def test_every_cure_is_tried_where_it_is_told(gwctl: Gwctl, node: Gateway) -> None:
    wrong: list[tuple[object, ...]] = []
    for situation in SITUATIONS:
        fills = dict(situation.fills)
        await _special(node, situation.code, fills)
        if situation.cause is not None:
            await situation.cause(node, fills)
        key = None if situation.key is None else fills.get(situation.key, situation.key)
        inference = fills.get("inference")
        line = [fills.get(word, word) for word in situation.line.split()]
        failed = await gwctl(*line, key=key, inference=inference)
        is_it = situation.code == "not_logged_in" or f"why: {situation.code}" in failed.err
        if failed.code == 0 or not is_it:
            wrong.append((situation.code, "is not what happened", failed))
            continue
        hint = failed.err.split("  do:", 1)[-1].partition("(request")[0]
        commands = list(named_commands(hint, line))
        if not commands:
            wrong.append((situation.code, "names no command", failed.err))
        for command in commands:
            words = [fills.get(word, word) for word in command]
            stdin = node.management_key if situation.stdin == "OPERATOR" else situation.stdin
            if words[0] == "login" or words[:2] == ["provider", "secret"]:
                words.append("--secret-stdin")
            own = key if words[0] in ("whoami", "login") and situation.key is not None else None
            done = await gwctl(*words, stdin=stdin, key=own)
            may_fail = " ".join(command).startswith(situation.fails) if situation.fails else False
            if done.code != 0 and not may_fail:
                wrong.append((situation.code, words, done))
        if situation.after is not None:
            await situation.after(node)
        if situation.cured:
            again = await gwctl(*line, key=key, inference=inference)
            if again.code != 0:
                wrong.append((situation.code, "is not cured", again))
    assert not wrong
    tried = {situation.code for situation in SITUATIONS} | NOT_RUN.keys()
    assert errors.REMEDIES.keys() - tried == {"missing_api_key"}  # gwctl says not_logged_in first


async def _special(node: Gateway, code: str, fills: dict[str, str]) -> None:
    if code == "key_expired":
        await management_key(node, fills)
        fills["expired"] = fills["management"]
        await node.store.write(
            lambda connection: connection.execute(
                "UPDATE api_key SET expires_at = 1 WHERE id = ?", (fills["NAME"],)
            )
        )
    if code == "insufficient_credits":
        left = (await node.manage("GET", "/credits"))["data"]["available"]
        await node.manage("POST", "/credits/refunds", {"amount": left, "note": "all of it"})


TAKEN = (
    ("workspace create web", "workspace update NAME"),
    ("model add demo/chat --context 5", "model update NAME"),
    ("member invite owner@acme.example", "member list"),
    ("org create Acme", "org list"),
)


async def test_what_is_taken_leads_to_what_changes_it(gwctl: Gwctl, node: Gateway) -> None:
    await node.manage("POST", "/workspaces", {"name": "web"})
    wrong = []
    for line, _ in TAKEN:
        failed = await gwctl(*line.split())
        if failed.code == 0:
            continue  # a second one of that name may be made
        for command in named_commands(failed.err.split("  do:", 1)[-1]):
            name = line.split()[2]
            words = [name if word.isupper() else word for word in command]
            if " ".join(words[:2]) in ("workspace update", "model update", "member revoke"):
                words = [*words[:2], name, "--help"]
            done = await gwctl(*words)
            if done.code != 0:
                wrong.append((line, words, done))
    assert not wrong


async def test_a_reference_that_the_daemon_cannot_read_is_told_when_it_is_given(
    gwctl: Gwctl, tmp_path: Path
) -> None:
    add = "provider add local --adapter openai_chat --base-url http://127.0.0.1:9/v1 --key-ref"
    done = await gwctl(*add.split(), "env:NO_SUCH_KEY_HERE")
    assert done.code == 0
    said = "the daemon cannot use this key: env:NO_SUCH_KEY_HERE is empty or not set; set it in the daemon's"
    assert done.err.count(said) == 1
    place = tmp_path / "key"
    done = await gwctl("provider", "secret", "local", "--key-ref", f"file:{place}")
    assert "cannot be read by the daemon: No such file" in done.err
    [hint] = named_commands(done.err)
    assert hint == ["server", "reload"]
    assert (await gwctl(*hint)).code == 1
    place.write_bytes(b"\xef\xbb\xbfsk-demo-0000\r\n")
    assert (await gwctl(*hint)).code == 0
    assert (
        "cannot use this key"
        not in (await gwctl("provider", "secret", "local", "--key-ref", f"file:{place}")).err
    )


async def test_a_hint_is_printed_once(gwctl: Gwctl, node: Gateway) -> None:
    done = await gwctl("workspace", "create", "web", "--lead", "a@b.example", "--dry-run")
    assert done.err.count("Nothing was done.") == 1


def test_hints_of_the_daemon_name_its_own_commands() -> None:
    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    wrong = [
        (path.name, name)
        for path in sorted((ROOT / "gwd").rglob("*.py"))
        for text in _texts(path)
        for name in re.findall(r"`gwd ([a-z-]+)", text)
        if name not in known
    ]
    assert known >= {"init", "serve", "check", "backup"}
    assert not wrong
