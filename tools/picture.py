"""`python -m tools.picture PORT` plays a short session against a demo node and draws what the terminal showed.

Everything in docs/session.svg is what the real programs wrote to a pseudo-terminal, but for two things: keys are
shortened, and the port is the one that a demo has by default.
"""

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "session.svg"
COLUMNS, ROWS = 104, 60
SESSION = (
    "gwctl key create ci --limit 5 --reset monthly",
    "gwctl chat demo/gpt-demo 'What is a ledger good for?' --receipt",
    "gwctl ledger list --limit 4",
    "gwctl ledger verify",
    "gwctl status",
)
_PLAIN = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>A session of gwctl with a demo node</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-family: system-ui, sans-serif; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def session(port: int) -> str:
    """The commands and what they print, as a terminal received it."""
    node = subprocess.Popen(
        [_program("gwd"), "demo", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        environment = _environment(node)
        shown = []
        for line in SESSION:
            shown.append(
                f"\x1b[1;32m$\x1b[0m \x1b[1m{line}\x1b[0m\n{_on_a_terminal(line, environment)}"
            )
        return "\n".join(shown)
    finally:
        node.send_signal(signal.SIGINT)
        node.wait(30)


def _environment(node: "subprocess.Popen[str]") -> dict[str, str]:
    """What the demo says to set, read from its own words."""
    assert node.stdout is not None
    inference = ""
    for line in node.stdout:
        if found := re.search(r"Bearer (gwi_\w+)", line):
            inference = found[1]
        if found := re.search(r"export GWCTL_URL=(\S+) GWCTL_KEY=(\S+)", line):
            home = tempfile.mkdtemp(prefix="gwd-picture-")
            return {
                **{name: os.environ[name] for name in ("PATH",)},
                "HOME": home,
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
                "PAGER": "cat",
                "GWCTL_URL": found[1],
                "GWCTL_KEY": found[2],
                "GWCTL_INFERENCE_KEY": inference,
            }
    raise SystemExit("the demo node did not start")


def _on_a_terminal(line: str, environment: dict[str, str]) -> str:
    """The output of one command on a pseudo-terminal of a fixed size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    path = f"{Path(sys.executable).parent}:{environment['PATH']}"
    command = subprocess.Popen(
        ["sh", "-c", line],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "PATH": path},
        start_new_session=True,
    )
    os.close(theirs)
    got, deadline_s = b"", time.monotonic() + 60
    while time.monotonic() < deadline_s:
        if not select.select([ours], [], [], 0.2)[0]:
            if command.poll() is not None:
                break
            continue
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # the other side was closed
            break
        if not piece:
            break
        got += piece
    os.close(ours)
    if command.wait(10):
        raise SystemExit(f"`{line}` failed: {got.decode()}")
    return got.decode().replace("\r\n", "\n")


def draw(text: str) -> str:
    """The picture. It loads nothing: fonts are the reader's own."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(_short(text)))
    return console.export_svg(title="gwd", code_format=_PLAIN, unique_id="gwd")


def _short(text: str) -> str:
    """Keys of a node that is gone, shortened all the same, and the port that a reader will see."""
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", text.rstrip("\n"))
    return re.sub(r"(gw[im]_\w{6})\w{37,}(\w{4})", r"\1…\2", text)


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def main() -> int:
    """The command."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    picture = draw(session(port))
    PICTURE.write_text(picture, "utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}, {len(picture):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
