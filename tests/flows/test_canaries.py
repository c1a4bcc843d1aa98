"""No secret of a node stands in anything that leaves it: answers, debug log, metrics, export, database, backup.

Each secret is planted with a word of its own, used, and then looked for everywhere, encoded too; what was deleted is
looked for as well. Nor does anything keep what was asked and answered.
"""

import asyncio
import base64
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest

from gwd import settings
from gwd.demo import Behaviour
from gwd.node import backup
from gwd.node.log import JsonLine
from tests.cli.conftest import ROOT
from tests.support.node import Gateway, open_gateway

KEYS = ("sk-canary-platform-4f1e", "sk-canary-changed-8a2b", "sk-canary-deleted-9c3d")
REFERENCED = "sk-canary-in-the-environment-5d6e"
HOOK = "https://hooks.example/services/canary-hook-7e8f"
ASKED = "canary-question-1a2b"
ANSWERED = "canary-answer-3c4d"


async def test_no_secret_leaves_the_node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "gwd")
    outputs: dict[str, bytes] = {}
    async with _recorded(tmp_path, outputs) as gateway:
        secrets = await _plant(gateway)
        await _use(gateway)
        await _look_around(gateway)
        outputs["export"] = await _exported(gateway)
        await gateway.at_rest()
        read = gateway.running.settings
        made = backup.backup(read, tmp_path / "copy.db")
        assert made.wrong == ""
        outputs["backup"] = made.path.read_bytes()
        outputs["log of writes"] = read.database.with_name(read.database.name + "-wal").read_bytes()
    outputs["database"] = read.database.read_bytes()
    outputs["log"] = caplog.text.encode()
    outputs["log in JSON"] = "\n".join(map(JsonLine().format, caplog.records)).encode()
    assert b'"logger":"gwd.requests"' in outputs["log in JSON"]
    secrets += _ring(read)
    found = [
        f"{secret[:24]}… in {place}"
        for place, content in outputs.items()
        for secret in secrets
        if any(form in content for form in _forms(secret))
    ]
    assert not found, "\n".join(found)
    assert len(outputs) > 30
    # The search itself can see: what is no secret is there.
    assert b"gpt-demo" in outputs["database"]
    assert b"gpt-demo" in outputs["backup"]
    assert b"env:CANARY_KEY" in outputs["export"]


@asynccontextmanager
async def _recorded(directory: Path, outputs: dict[str, bytes]) -> AsyncIterator[Gateway]:
    """A gateway whose answers are kept, but those that show a new secret once."""
    environment = {"CANARY_KEY": REFERENCED, "GWD_LOGGING_REQUESTS": "true"}
    async with open_gateway(directory, environment=environment) as gateway:

        async def keep(reply: httpx.Response) -> None:
            content = await reply.aread()
            if ANSWERED.encode() in content or gateway.key in reply.request.url.path:
                return  # the client's own answer, and its own words said back to it
            if b'"key":"gw' not in content and b'"secret":"' not in content:
                name = f"{len(outputs)} {reply.request.method} {reply.request.url.path}"
                outputs[name] = content + msgspec.json.encode(list(reply.headers.multi_items()))

        for client in (gateway.operator, gateway.client):
            client.event_hooks["response"].append(keep)
        yield gateway


async def _plant(gateway: Gateway) -> list[str]:
    """Secrets of every kind that a node is told; those that the node itself made come back."""
    manage = gateway.manage
    provider = {"name": "canary", "adapter": "openai_chat", "base_url": gateway.vendor.openai_url}
    await manage("POST", "/catalog/providers", {"slug": "canary", **provider})
    first, deleted = KEYS[0], KEYS[2]
    made = await manage("POST", "/catalog/credentials", {"provider": "canary", "key": first})
    path = f"/catalog/credentials/{made['data']['id']}"
    await manage("PATCH", path, {"key": KEYS[1]})
    gone = await manage("POST", "/catalog/credentials", {"provider": "canary", "key": deleted})
    referenced = {"provider": "canary", "key_ref": "env:CANARY_KEY"}
    await manage("POST", "/catalog/credentials", referenced)
    await gateway.add_model("demo/canary", pricing={"prompt": "0.000001", "completion": "0"})
    await gateway.add_endpoint("demo/canary", "canary", "gpt-demo")
    await manage("DELETE", f"/catalog/credentials/{gone['data']['id']}")
    topup = {"enabled": True, "threshold": 1, "amount": 5, "hook_url": HOOK}
    hook = await gateway.operator.patch("/credits/auto-topup", json=topup)
    secret = hook.json().get("data", {}).get("secret") or hook.json().get("secret")
    temporary, temporary_id = await gateway.new_key(name="temporary")
    await manage("DELETE", f"/keys/{temporary_id}")
    made_here = [gateway.key, gateway.management_key, temporary]
    return [*KEYS, REFERENCED, ASKED, ANSWERED, *made_here, *([secret] if secret else [])]


async def _use(gateway: Gateway) -> None:
    """Requests that go well and badly; vendors repeat the key they were given, as some do."""
    script = gateway.vendor.script
    for model in ("demo/canary", "demo/claude", "demo/responses"):
        for stream in (False, True):
            script.next(Behaviour(text=ANSWERED))
            reply = await gateway.client.post("/chat/completions", json=_body(model, stream=stream))
            assert reply.status_code == 200
    for status in (400, 401, 403, 429, 500):
        script.always(
            Behaviour(
                status=status, message=f"Incorrect API key provided: {KEYS[1]} ({REFERENCED})"
            )
        )
        await gateway.client.post("/chat/completions", json=_body("demo/canary", stream=False))
    script.clear()
    for wrong in (gateway.key[:-1] + "x", gateway.key.upper(), f"{gateway.key}{gateway.key}"):
        headers = {"authorization": f"Bearer {wrong}", "x-api-key": wrong}
        await gateway.client.post("/chat/completions", json={}, headers=headers)
    await gateway.client.get(f"/models/{gateway.key}")
    await gateway.operator.post("/catalog/credentials", json={"provider": "none", "key": KEYS[0]})
    await gateway.operator.post(
        "/catalog/credentials", json={"provider": "canary", "key": [KEYS[0]]}
    )


def _body(model: str, *, stream: bool) -> dict[str, Any]:
    return {"model": model, "stream": stream, "messages": [{"role": "user", "content": ASKED}]}


async def _look_around(gateway: Gateway) -> None:
    """Every list and page that an operator reads."""
    for path in (
        *("/catalog/providers", "/catalog/credentials", "/catalog/models", "/catalog/endpoints"),
        *("/keys", "/audit", "/generations", "/credits", "/credits/ledger", "/credits/auto-topup"),
        *("/organizations", "/organization", "/workspaces", "/notifications/events"),
        *(
            "/notifications/destinations",
            "/auth/key",
            "/ledger/head?all=true",
            "/models",
            "/doctor",
        ),
    ):
        await gateway.operator.get(path)
    for path in ("/metrics", "/readyz", "/healthz", "/"):
        await gateway.operator.get(gateway.base_url.removesuffix("/api/v1") + path)
    for credential in (await gateway.manage("GET", "/catalog/credentials"))["data"]:
        await gateway.operator.post(f"/catalog/credentials/{credential['id']}/test", json={})


async def _exported(gateway: Gateway) -> bytes:
    """gwctl export, and what it says on the way with --debug."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GWCTL_")}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "gwctl", "export", "--debug"],
        cwd=ROOT,
        env={**kept, "GWCTL_URL": gateway.base_url, "GWCTL_KEY": gateway.management_key},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def _ring(read: settings.Settings) -> list[str]:
    ring = msgspec.json.decode(read.keyring.read_bytes())
    return [ring["pepper"], *ring["keks"].values()]


def _forms(secret: str) -> set[bytes]:
    """The secret as it is, and in the forms in which it could hide."""
    plain = secret.encode()
    found = {
        plain,
        base64.b64encode(plain).rstrip(b"="),
        plain.hex().encode(),
        quote(secret).encode(),
    }
    if len(secret) == 44 and secret.endswith("="):
        found.add(base64.b64decode(secret))
    return found
