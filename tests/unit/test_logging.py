"""What the log may say: gwd's own lines at the level that was set, the libraries' warnings only."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import logging
from gwd.node.serve import configure_logging
configure_logging("debug")
for name in ("peewee", "httpx", "httpcore.http11", "sanic.root", "asyncio", "anything.new"):
    logging.getLogger(name).info("canary")
    logging.getLogger(name).debug("canary")
    logging.getLogger(name).warning("%s warns", name)
logging.getLogger("gwd.pipeline").debug("gwd tells", extra={"request_id": "req_1"})
"""


def test_no_library_speaks_below_a_warning_at_any_level() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert "canary" not in done.stderr
    assert done.stderr.count(" warns") == 6
    assert done.stderr.endswith("gwd.pipeline gwd tells request_id=req_1\n")
