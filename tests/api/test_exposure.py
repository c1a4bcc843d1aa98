"""A node that would carry keys in the clear does not start."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gwd.core.clock import SystemClock
from gwd.management.setup import NewNode
from gwd.node.init import initialize
from tests.cases.caserunner.ports import free_port

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gateway.example"])
def test_serve_refuses_plain_http_on_an_address_that_others_reach(
    tmp_path: Path, host: str
) -> None:
    initialize(tmp_path / "node", NewNode(organization="Acme"), SystemClock())
    port = free_port()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "gwd", "serve", "--config", "node"),
            *("--host", host, "--port", str(port)),
        ],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "tls_cert" in line
    assert "allow_plain_http" in line
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
