"""The tests themselves: they may be started in the background, and what forks they start end with them."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_they_run_where_the_shell_has_them_ignore_an_interrupt() -> None:
    """So do `nohup make test &` and a pipeline that goes to the background; a child would inherit it."""
    script = """
        import os, signal, sys
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        wanted = ["tests/cli/test_exit_codes.py", "-k", "test_ctrl_c_ends_with_130"]
        os.execv(sys.executable, [sys.executable, "-m", "pytest", "-q", "-n", "0", *wanted])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_forks_end_with_the_process_that_asked_for_them(tmp_path: Path) -> None:
    """Also when it is killed and can end nothing itself."""
    script = f"""
        import os, pathlib, pytest, signal
        from tests.support import warm
        log = pathlib.Path({str(tmp_path / "log")!r})
        words = ["demo", "--port", str(warm.free_port())]
        print(warm.WarmProcess("gwd", words, os.environ, out=log, err=log).pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = int(done.stdout)
    deadline = time.monotonic() + 60
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
