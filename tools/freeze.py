"""`python -m tools.freeze NAME [GWD]` makes a node that has lived and keeps it in tests/upgrades/NAME.

The node is one of the program GWD (default: the one beside this interpreter): organization, keys, budgets, people and
catalog by the management API, requests to a simulated vendor, and a kill in the middle of a stream. What is kept:
the packed database, its key ring, and facts.json with what every later version has to find in it.
"""

import json
import lzma
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx

from tests.cases.caserunner.ports import free_port

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "tests" / "upgrades"
REQUESTS: Final = 40
_PRICING = {"prompt": "0.000002", "completion": "0.000008", "input_cache_read": "0.0000005"}
_USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 120,
    "total_tokens": 129,
    "prompt_tokens_details": {"cached_tokens": 4},
}
_POLICIES: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "limited": {"limit": 5, "limit_reset": "monthly"},
    "web": {"workspace_id": "web"},
    "rotated": {},
    "disabled": {},
    "deleted": {},
}


class _Vendor(BaseHTTPRequestHandler):
    """A vendor of chat completions that fails every seventh call and never ends a stream."""

    calls = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        _Vendor.calls += 1
        if body.get("stream"):
            self._head(200, "text/event-stream")
            self._say({"role": "assistant", "content": "It begins"})
            time.sleep(60)
        elif _Vendor.calls % 7 == 0:
            self._head(400, "application/json")
            self.wfile.write(b'{"error":{"message":"no","type":"invalid_request_error"}}')
        else:
            self._head(200, "application/json")
            message = {"role": "assistant", "content": "An answer."}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
            self.wfile.write(json.dumps({**answer, "choices": [choice], "usage": _USAGE}).encode())

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()

    def _say(self, delta: dict[str, str]) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}
        self.wfile.write(
            b"data: " + json.dumps({**chunk, "created": 1, "model": "m"}).encode() + b"\n\n"
        )
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nothing is told of single calls."""


@contextmanager
def _vendor() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Vendor)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()


@contextmanager
def _served(gwd: str, config: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    node = subprocess.Popen([gwd, "serve", "--config", config, "--port", str(port)])
    try:
        for _ in range(200):
            try:
                if httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == httpx.codes.OK:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
        yield node
    finally:
        node.send_signal(signal.SIGKILL)
        node.wait()


class _Operator:
    def __init__(self, base_url: str, key: str) -> None:
        self.base_url = base_url
        self._client = httpx.Client(
            base_url=base_url, headers={"authorization": f"Bearer {key}"}, timeout=20
        )

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._client.request(method, path, json=body)
        if answer.is_error:
            raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json(parse_float=Decimal)


def _set_up(manage: _Operator, vendor: str) -> dict[str, str]:
    """A catalog with two models, two workspaces, people, budgets and keys. Returns the keys by name."""
    provider: dict[str, Any] = {
        "slug": "vendor",
        "name": "Vendor",
        "adapter": "openai_chat",
        "base_url": vendor,
    }
    manage("POST", "/catalog/providers", provider)
    manage("POST", "/catalog/credentials", {"provider": "vendor", "key": "sk-frozen-0000"})
    for name in ("one", "two"):
        model: dict[str, Any] = {
            "id": f"demo/{name}",
            "name": name,
            "vendor": "Demo",
            "pricing": _PRICING,
        }
        model |= {"context_length": 100_000, "max_completion_tokens": 4_000}
        model |= {"supported_parameters": ["max_tokens"], "input_modalities": ["text"]}
        manage("POST", "/catalog/models", {**model, "output_modalities": ["text"]})
        endpoint = {"model": f"demo/{name}", "provider": "vendor", "upstream_model": f"m-{name}"}
        manage("POST", "/catalog/endpoints", endpoint)
    manage("POST", "/workspaces", {"name": "Web", "slug": "web"})
    manage("PUT", "/workspaces/web/budgets/monthly", {"limit_usd": 40})
    manage("POST", "/organization/invitations", {"email": "new@acme.example", "role": "member"})
    manage("POST", "/credits/grants", {"kind": "granted", "amount": 50, "note": "to begin with"})
    manage("POST", "/credits/purchases", {"amount": 25, "reference": "order 1"})
    manage("POST", "/credits/refunds", {"amount": 5, "note": "ordered too much"})
    keys = {}
    for name, more in _POLICIES.items():
        keys[name] = manage("POST", "/keys", {"name": name, **more})["key"]
    return keys


def _live(manage: _Operator, keys: dict[str, str]) -> None:
    """Requests with every key, and what becomes of keys."""
    names = list(keys)
    for number in range(REQUESTS):
        body: dict[str, Any] = {"model": ("demo/one", "demo/two")[number % 2], "max_tokens": 200}
        body["messages"] = [{"role": "user", "content": f"question {number}"}]
        httpx.post(
            f"{manage.base_url}/chat/completions",
            json=body,
            headers={"authorization": f"Bearer {keys[names[number % len(names)]]}"},
            timeout=20,
        )
    ids = {key["name"]: key["id"] for key in manage("GET", "/keys?limit=100")["data"]}
    manage("PATCH", f"/keys/{ids['disabled']}", {"disabled": True})
    manage("DELETE", f"/keys/{ids['deleted']}")
    keys["rotated"] = manage("POST", f"/keys/{ids['rotated']}/rotate", {})["key"]


def _facts(manage: _Operator, keys: dict[str, str]) -> dict[str, Any]:
    ledger = manage("GET", "/credits/ledger?limit=1")
    charged = manage("GET", "/credits")["data"]
    return {
        "keys": keys,
        "entries": ledger["total_count"],
        "credits": {name: str(charged[name]) for name in ("total_credits", "total_usage")},
        "usage": {
            key["name"]: str(key["usage"]) for key in manage("GET", "/keys?limit=100")["data"]
        },
    }


def freeze(name: str, gwd: str) -> Path:
    """Make the node and keep it. Returns its folder."""
    kept = PLACE / name
    with tempfile.TemporaryDirectory() as place, _vendor() as vendor:
        folder, port = Path(place), free_port()
        made = subprocess.run(
            [
                gwd,
                "init",
                "--dir",
                place,
                "--org",
                "Acme",
                "--email",
                "owner@acme.example",
                "--json",
            ],
            check=True,
            capture_output=True,
        )
        key = json.loads(made.stdout)["management_key"]
        with _served(gwd, folder / "gwd.toml", port):
            manage = _Operator(f"http://127.0.0.1:{port}/api/v1", key)
            keys = _set_up(manage, vendor)
            _live(manage, keys)
            facts = {"management_key": key, **_facts(manage, keys)}
            body = {"model": "demo/one", "messages": [{"role": "user", "content": "cut"}]}
            bearer = {"authorization": f"Bearer {keys['plain']}"}
            url = f"{manage.base_url}/chat/completions"
            with httpx.stream("POST", url, json={**body, "stream": True}, headers=bearer) as stream:
                next(stream.iter_lines())
                time.sleep(0.5)
        with sqlite3.connect(folder / "gwd.db") as database:
            facts["schema"] = [
                row[0] for row in database.execute("SELECT name FROM schema_history ORDER BY 1")
            ]
        database.close()
        with sqlite3.connect(folder / "gwd.db") as database:
            database.execute("VACUUM INTO ?", (str(folder / "copy.db"),))
        database.close()
        with sqlite3.connect(folder / "copy.db") as database:
            database.execute("PRAGMA journal_mode = wal")
        database.close()
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        (kept / "gwd.db.xz").write_bytes(lzma.compress((folder / "copy.db").read_bytes()))
        shutil.copy(folder / "keyring.json", kept)
        (kept / "facts.json").write_text(json.dumps(facts, indent=2) + "\n")
    return kept


if __name__ == "__main__":
    program = sys.argv[2] if len(sys.argv) > 2 else str(Path(sys.executable).with_name("gwd"))
    print(freeze(sys.argv[1], program))
