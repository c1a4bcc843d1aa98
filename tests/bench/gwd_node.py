"""gwd for the bench: a fresh node, seeded over the management API, restarted and then measured."""

import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.bench.machine import GATEWAY_CORE, WORK, Skip, spawn, stop
from tests.bench.upstream import URLS

PORT = 9330
BASE = f"http://127.0.0.1:{PORT}"
READY_TRIES = 300
ENVIRONMENT = {"GWD_LIMITS_DEFAULT_RATE_LIMIT_PER_MINUTE": "100000000"}  # all load is of one key
PRICES = {"prompt": "0.000002", "completion": "0.000008", "input_cache_read": "0.0000005"}


def start(checkout: Path) -> tuple[subprocess.Popen[bytes], str]:
    """The running node and an inference key: three models, credit, a key limit and three hard budgets."""
    data = WORK / "gwd-data"
    shutil.rmtree(data, ignore_errors=True)
    init = [sys.executable, "-m", "gwd", "init", "--dir", str(data), "--json"]
    done = subprocess.run(init, capture_output=True, text=True, check=True, cwd=checkout)
    made = json.loads(done.stdout)
    process = _serve(checkout, made["config"])
    try:
        _wait_until_ready()
        key = _seed(made["management_key"])
    finally:
        stop(process)
    return _serve(checkout, made["config"]), key


def _serve(checkout: Path, config: str) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-m", "gwd", "serve", "--config", config),
        *("--host", "127.0.0.1", "--port", str(PORT)),
    ]
    return spawn(command, GATEWAY_CORE, "gwd.log", environment=ENVIRONMENT, cwd=checkout)


def _wait_until_ready() -> None:
    for _ in range(READY_TRIES):
        try:
            urllib.request.urlopen(f"{BASE}/readyz", timeout=2)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise Skip(f"gwd serve did not become ready, see {WORK / 'gwd.log'}")


def _seed(management_key: str) -> str:
    def post(path: str, body: dict[str, Any]) -> Any:
        return _post(path, body, management_key)

    for kind, base_url in URLS.items():
        provider = {"slug": f"bench-{kind}", "name": kind, "adapter": "openai_chat"}
        post("/catalog/providers", {**provider, "base_url": base_url})
        post("/catalog/credentials", {"provider": f"bench-{kind}", "key": "sk-upstream"})
        model = {
            "id": f"bench/m-{kind}",
            "name": kind,
            "vendor": "Bench",
            "context_length": 128_000,
            "max_completion_tokens": 16_000,
            "supported_parameters": ["max_tokens", "temperature"],
            "pricing": PRICES,
        }
        post("/catalog/models", model)
        endpoint = {"model": model["id"], "provider": f"bench-{kind}"}
        post("/catalog/endpoints", {**endpoint, "upstream_model": "gpt-4o-mini"})
    post("/credits/grants", {"kind": "purchased", "amount": 1_000_000})
    made = post("/keys", {"name": "bench", "limit": 500_000, "limit_reset": "monthly"})
    record = made["data"]
    scopes = {"organization": "organization_id", "workspace": "workspace_id", "key": "id"}
    for scope, field in scopes.items():
        cap = {"interval": "monthly", "kind": "hard", "limit": 400_000}
        post("/budgets", {"scope": scope, "scope_id": record[field], **cap})
    key: str = made["key"]
    return key


def _post(path: str, body: dict[str, Any], key: str) -> Any:
    request = urllib.request.Request(
        f"{BASE}/api/v1{path}",
        method="POST",
        data=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {key}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as error:
        raise Skip(f"POST {path} answered {error.code}: {error.read()[:300]!r}") from None
