"""The vendor of the bench: nginx with a fixed answer and a fixed stream; what is sent to it; the tools it needs."""

import json
import shutil
import subprocess
import sys
from typing import Any

from tests.bench.machine import LOAD_CORE, WORK, Skip, log, run, spawn

PORTS = {"json": 9100, "sse": 9101, "paced": 9102}
URLS = {kind: f"http://127.0.0.1:{port}/v1" for kind, port in PORTS.items()}
EVENTS = 104  # of one stream, [DONE] included
TOKENS = 100
TOOLS_PYTHON = WORK / "v-tools" / "bin" / "python"

_NGINX = """
worker_processes 1; pid %(w)s/nginx.pid; error_log %(w)s/nginx.err error; daemon off;
events { worker_connections 4096; multi_accept on; }
http { access_log off; sendfile off; tcp_nodelay on; keepalive_timeout 300s; keepalive_requests 100000000;
  client_body_buffer_size 1m; client_max_body_size 16m; open_file_cache max=100 inactive=600s;
  client_body_temp_path %(w)s/t1; proxy_temp_path %(w)s/t2; fastcgi_temp_path %(w)s/t3;
  uwsgi_temp_path %(w)s/t4; scgi_temp_path %(w)s/t5;
  server { listen 127.0.0.1:%(j)d backlog=4096; root %(w)s/html; error_page 405 =200 /chat.json;
    location = /chat.json { types {} default_type application/json; etag off; if_modified_since off; }
    location / { rewrite ^ /chat.json last; } }
  server { listen 127.0.0.1:%(s)d backlog=4096; root %(w)s/html; output_buffers 2 64k; error_page 405 =200 /chat.sse;
    location = /chat.sse { types {} default_type "text/event-stream; charset=utf-8"; etag off; if_modified_since off; }
    location / { rewrite ^ /chat.sse last; } }
}
"""
_WRK = """
wrk.method="POST"
for k,v in string.gmatch(os.getenv("HDRS"),"([^=;]+)=([^;]+)") do wrk.headers[k]=v end
local f=io.open(os.getenv("BODY"),"rb"); wrk.body=f:read("*a"); f:close()
function done(s,l,r)
 io.write(string.format('{"n":%d,"secs":%.3f,"bad":%d,"err":%d,"p50":%d,"p99":%d,"bytes":%d}\\n',
  s.requests,s.duration/1e6,s.errors.status,s.errors.connect+s.errors.read+s.errors.write+s.errors.timeout,
  l:percentile(50),l:percentile(99),s.bytes))
end
"""
_SYSTEM = "You are a helpful assistant."
_PROMPT = (
    "Tell me about the quick brown fox and why it jumps over the lazy dog, "
    "in about one hundred words please."
)
_ENVELOPE: dict[str, Any] = {
    "id": "chatcmpl-bench0001",
    "created": 1_760_000_000,
    "model": "gpt-4o-mini-2024-07-18",
    "service_tier": "default",
    "system_fingerprint": "fp_bench",
}
_USAGE = {
    "prompt_tokens": 25,
    "completion_tokens": TOKENS,
    "total_tokens": 25 + TOKENS,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


def prepare() -> None:
    """Answers, configuration and tools in the work folder; nginx and wrk come from Debian once."""
    (WORK / "html").mkdir(parents=True, exist_ok=True)
    WORK.chmod(0o755)
    missing = [tool for tool in ("nginx", "wrk") if shutil.which(tool) is None]
    if missing:
        log("installing", *missing)
        run(["apt-get", "update"], "apt.log")
        run(["apt-get", "install", "-y", "--no-install-recommends", *missing], "apt.log")
    (WORK / "html" / "chat.json").write_text(whole_answer())
    (WORK / "html" / "chat.sse").write_text(streamed_answer())
    places = {"w": WORK, "j": PORTS["json"], "s": PORTS["sse"]}
    (WORK / "nginx.conf").write_text(_NGINX % places)
    (WORK / "post.lua").write_text(_WRK)
    if not TOOLS_PYTHON.exists():
        run([sys.executable, "-m", "venv", str(WORK / "v-tools")], "tools.log")
        run([str(WORK / "v-tools" / "bin" / "pip"), "install", "-q", "uvloop"], "tools.log")


def start() -> subprocess.Popen[bytes]:
    command = ["nginx", "-c", str(WORK / "nginx.conf"), "-p", str(WORK)]
    nginx = spawn(command, LOAD_CORE, "nginx.out")
    try:
        nginx.wait(0.5)
    except subprocess.TimeoutExpired:
        return nginx
    raise Skip(f"nginx did not start: see {WORK / 'nginx.out'} (is a port in use?)")


def request_body(model: str, *, stream: bool) -> bytes:
    body: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": _PROMPT},
        ],
        "max_tokens": 200,
        "temperature": 0.7,
    }
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return json.dumps(body).encode()


def whole_answer() -> str:
    text = "The quick brown fox jumps over the lazy dog. " * 12
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    body = {**_ENVELOPE, "object": "chat.completion", "usage": _USAGE, "choices": [choice]}
    return json.dumps(body)


def streamed_answer() -> str:
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f" token{number}"} for number in range(TOKENS)]
    none: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": None}
    choices = [[{**none, "delta": delta}] for delta in deltas]
    choices.append([{**none, "delta": {}, "finish_reason": "stop"}])
    chunk: dict[str, Any] = {**_ENVELOPE, "object": "chat.completion.chunk"}
    chunks = [{**chunk, "choices": one} for one in choices]
    chunks.append({**chunk, "choices": [], "usage": _USAGE})
    frames = [json.dumps(one, separators=(",", ":")) for one in chunks]
    return "".join(f"data: {frame}\n\n" for frame in [*frames, "[DONE]"])
