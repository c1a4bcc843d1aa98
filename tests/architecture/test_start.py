"""What a node loads before it serves: libraries that few requests need are imported by the first that does."""

import subprocess
import sys

LATER = {
    "httpx": "hooks, channels and gwctl",
    "httpcore": "below httpx",
    "anyio": "below httpx",
    "rich": "what commands print",
    "typer": "the commands",
    "jinja2": "the page",
    "markupsafe": "the page",
    "gwd.page.site": "the page",
    "gwd.demo": "gwd demo",
    "opentelemetry": "[otel]",
    "requests": "[otel]",
    "gwd.telemetry": "[otel]",
}


def test_a_node_that_serves_has_not_loaded_what_it_may_never_need():
    program = "import sys, gwd.node.serve, gwd.wiring; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "gwd.wiring" in loaded
    assert {name: reason for name, reason in LATER.items() if name in loaded} == {}
