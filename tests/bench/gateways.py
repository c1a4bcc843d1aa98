"""The peers of the bench: how each is installed, configured and started. None here keeps the books that gwd keeps."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import gwd_node
from tests.bench.machine import GATEWAY_CORE, WORK, Skip, log, run, spawn, stop
from tests.bench.upstream import URLS

UPSTREAM_MODEL = "gpt-4o-mini"
PROJECT = Path(__file__).resolve().parents[2]


@dataclass
class Peer:
    """A started gateway: where it listens, what it wants, and what was seen of it."""

    process: subprocess.Popen[bytes] | None
    url: str
    models: dict[str, str]  # by kind of upstream; a kind that it cannot serve is missing
    headers: dict[str, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    headers_of: dict[str, dict[str, str]] = field(default_factory=dict)
    bodies: dict[str, Path] = field(default_factory=dict)
    stream_bytes: int = 0
    started_s: float = field(default_factory=time.monotonic)

    def address(self, kind: str) -> str:
        return self.urls.get(kind, self.url)

    def headers_for(self, kind: str) -> dict[str, str]:
        return {**self.headers, **self.headers_of.get(kind, {})}


def start_direct(_: Path) -> Peer:
    """No gateway: the floor that added latency is counted from."""
    urls = {kind: f"{url}/chat/completions" for kind, url in URLS.items()}
    return Peer(None, urls["json"], dict.fromkeys(URLS, UPSTREAM_MODEL), urls=urls)


def start_portkey(_: Path) -> Peer:
    folder = _npm("portkey", "@portkey-ai/gateway")
    server = folder / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    _mend_portkey(server)
    command = ["node", str(server), "--headless", "--port=9320"]
    environment = {"NODE_ENV": "production"}
    process = spawn(command, GATEWAY_CORE, "portkey.log", environment=environment, cwd=folder)
    return Peer(
        process,
        "http://127.0.0.1:9320/v1/chat/completions",
        dict.fromkeys(URLS, UPSTREAM_MODEL),
        headers={"authorization": "Bearer sk-up", "x-portkey-provider": "openai"},
        headers_of={kind: {"x-portkey-custom-host": url} for kind, url in URLS.items()},
    )


def start_litellm(_: Path, *, with_key: bool = False) -> Peer:
    python = _venv("litellm", "litellm[proxy]")
    config = WORK / f"litellm-{with_key}.yaml"
    models = "".join(
        f"  - model_name: m-{kind}\n    litellm_params:"
        f" {{model: openai/{UPSTREAM_MODEL}, api_base: '{url}', api_key: sk-up}}\n"
        for kind, url in URLS.items()
    )
    text = f"model_list:\n{models}litellm_settings: {{telemetry: false, num_retries: 0}}\n"
    if with_key:
        text += "general_settings: {master_key: sk-master-bench}\n"
    config.write_text(text)
    environment = {
        "LITELLM_LOG": "ERROR",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MODE": "PRODUCTION",
        "NO_DOCS": "True",
        "LITELLM_TELEMETRY": "False",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "" if with_key else "true",
    }
    command = [
        *(str(python.with_name("litellm")), "--config", str(config)),
        *("--host", "127.0.0.1", "--port", "9310", "--num_workers", "1"),
    ]
    return Peer(
        spawn(command, GATEWAY_CORE, "litellm.log", environment=environment, cwd=WORK),
        "http://127.0.0.1:9310/v1/chat/completions",
        {kind: f"m-{kind}" for kind in URLS},
        headers={"authorization": "Bearer sk-master-bench"},
    )


def start_litellm_key(checkout: Path) -> Peer:
    return start_litellm(checkout, with_key=True)


def start_tensorzero(_: Path) -> Peer:
    """The Rust gateway inside the PyPI client package (a private entry point), observability off."""
    python = _venv("tensorzero", "tensorzero")
    config = WORK / "tensorzero.toml"
    models = "".join(
        f'[models.m-{kind}]\nrouting=["p"]\n[models.m-{kind}.providers.p]\ntype="openai"\n'
        f'api_base="{url}/"\nmodel_name="{UPSTREAM_MODEL}"\napi_key_location="none"\n'
        for kind, url in URLS.items()
    )
    config.write_text(f"[gateway]\nobservability.enabled=false\n{models}")
    code = (
        "import tensorzero, signal\n"
        f"g = tensorzero._start_http_gateway(config_file={str(config)!r}, clickhouse_url=None,"
        " postgres_url=None, valkey_url=None, async_setup=False)\n"
        "print('URL', g.base_url, flush=True)\nsignal.pause()"
    )
    quiet = {"RUST_LOG": "error"}
    process = spawn([str(python), "-c", code], GATEWAY_CORE, "tensorzero.log", environment=quiet)
    for _attempt in range(400):
        found = re.search(r"URL (\S+)", (WORK / "tensorzero.log").read_text())
        if found:
            url = f"{found[1].rstrip('/')}/chat/completions"
            names = {kind: f"tensorzero::model_name::m-{kind}" for kind in URLS}
            return Peer(process, url, names)
        if process.poll() is not None:
            break
        time.sleep(0.02)
    stop(process)
    raise Skip("the embedded gateway did not start")


def start_gwd(checkout: Path) -> Peer:
    """A fresh node of the checkout with all books on. GWD_CMD and GWD_KEY let a command stand in."""
    path = os.environ.get("GWD_PATH", "/api/v1/chat/completions")
    if command := os.environ.get("GWD_CMD"):
        places = {f"GWD_UP_{kind.upper()}": url for kind, url in URLS.items()}
        environment = {"GWD_PORT": str(gwd_node.PORT), **places}
        process = spawn(
            ["bash", "-c", f"exec {command}"],
            GATEWAY_CORE,
            "gwd.log",
            environment=environment,
            cwd=checkout,
        )
        key = os.environ.get("GWD_KEY", "sk-bench")
    else:
        process, key = gwd_node.start(checkout)
    return Peer(
        process,
        f"http://127.0.0.1:{gwd_node.PORT}{path}",
        {kind: f"bench/m-{kind}" for kind in URLS},
        headers={"authorization": f"Bearer {key}"},
    )


PEERS: dict[str, Callable[[Path], Peer]] = {
    "direct": start_direct,
    "portkey": start_portkey,
    "litellm": start_litellm,
    "litellm-key": start_litellm_key,
    "tensorzero": start_tensorzero,
    "gwd": start_gwd,
}


def _mend_portkey(server: Path) -> None:
    """Version 1.15.2, installed afresh, answers every stream with 500: it edits the immutable headers of a reply.

    One expression of its bundle is changed so that streaming can be measured at all.
    """
    mended = "{status:e.status,statusText:e.statusText,headers:new Headers(e.headers)}"
    text = server.read_text("utf-8")
    old, new = ":new Response(p,e)}const Ad=", f":new Response(p,{mended})}}const Ad="
    server.write_text(text.replace(old, new), "utf-8")


def _venv(name: str, *packages: str) -> Path:
    """The interpreter of an environment with these packages, made once."""
    folder = WORK / f"v-{name}"
    if not (folder / "ok").exists():
        log("pip install", *packages)
        run([sys.executable, "-m", "venv", str(folder)], f"{name}.pip.log")
        if not run([str(folder / "bin" / "pip"), "install", "-q", *packages], f"{name}.pip.log"):
            raise Skip(f"pip install failed, see {WORK / f'{name}.pip.log'}")
        (folder / "ok").touch()
    return folder / "bin" / "python"


def _npm(name: str, package: str) -> Path:
    """A folder with this package, made once."""
    folder = WORK / f"n-{name}"
    if not (folder / "ok").exists():
        log("npm install", package)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(json.dumps({"name": "x", "private": True}))
        install = ["npm", "install", "--no-audit", "--no-fund", package]
        if not run(install, f"{name}.npm.log", cwd=folder):
            raise Skip(f"npm install failed, see {WORK / f'{name}.npm.log'}")
        (folder / "ok").touch()
    return folder
