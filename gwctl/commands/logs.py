"""`gwctl server logs`: the daemon's log on its own machine, from systemd's journal, as text or as JSON."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Annotated, Any

from gwctl import time_input
from gwctl.commands.server import server
from gwctl.errors import CommandError, usage
from gwctl.session import Session
from gwctl.tables import Column
from gwctl.text import parse_time
from gwctl.values import flag, opt, whole

LEVELS = ("debug", "info", "warning", "error", "critical")
LINES = 200
_UNIT = re.compile(r"[\w@.:-]+")
_TEXT = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[,.](\d{3}) (DEBUG|INFO|WARNING|ERROR|CRITICAL) (\S+) (.*)"
)
_COLUMNS = tuple(Column(name.upper(), name) for name in ("time", "level", "logger", "message"))


@server.verb(
    "logs",
    "gwctl server logs --since 1h --level warning",
    "gwctl server logs --follow --id req_01JD",
)
def logs(
    session: Session,
    since: Annotated[
        str | None, opt("--since", "TIME", "From then on: 1h, 2026-11-01, yesterday.")
    ] = None,
    follow: Annotated[bool, flag("--follow", "Go on until interrupted.")] = False,
    level: Annotated[
        str | None, opt("--level", "LEVEL", f"Least level: {', '.join(LEVELS)}.")
    ] = None,
    about: Annotated[
        str | None, opt("--id", "ID", "Only events that name this request or generation.")
    ] = None,
    lines: Annotated[
        int, whole("--lines", "N", f"How many lines of the journal; {LINES}.", least=1)
    ] = LINES,
    unit: Annotated[str, opt("--unit", "NAME", "The service; gwd.")] = "gwd",
) -> None:
    """Show the daemon's log; on the machine that it runs on, where systemd keeps it.

    With --since all lines from then on, else the last --lines. A line that belongs to the one before it (where an error
    came from) goes with it. --json makes each event an object.
    """
    if level is not None and level not in LEVELS:
        raise usage(f"--level {level!r} is not known", do=f"one of: {', '.join(LEVELS)}")
    if not _UNIT.fullmatch(unit) or unit.startswith("-"):
        raise usage(f"--unit {unit!r} is no name of a service", do="for example --unit gwd")
    words = ["--unit", unit, "--output", "cat", "--no-pager", "--quiet"]
    if since is None:
        words += ["--lines", str(lines)]
    else:
        moment = parse_time(time_input.past(since))
        assert moment is not None
        words += ["--since", f"@{int(moment.timestamp())}"]
    found, wanted = False, level in (None, "debug", "info") and about is None
    for line in _journal([*words, "--follow"] if follow else words):
        event = _begun(line)
        if event is not None:
            is_bad_enough = LEVELS.index(event["level"]) >= LEVELS.index(level or "debug")
            wanted = is_bad_enough and (about is None or about in line)
        if not wanted:
            continue
        found = True
        if session.out.shape.machine:
            session.out.following(event or {"message": line}, _COLUMNS)
        else:
            session.out.line(line)
            session.out.flush()
    if not found:
        session.out.note(f"no such event in the journal of {unit}; --since looks further back")


def _journal(words: list[str]) -> Iterator[str]:
    """The lines that journalctl prints; what it says against it is the error."""
    program = shutil.which("journalctl")
    if program is None:
        raise CommandError(
            "this machine has no journal",
            code="no_journal",
            why="journalctl is not installed",
            do="run it on the daemon's machine; without systemd its log is where its standard error goes",
        )
    with subprocess.Popen(  # noqa: S603 - a program of the system, and words that were checked
        [program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            yield from (line.rstrip("\n") for line in process.stdout)
            said = process.stderr.read().strip()
        finally:
            process.terminate()
    if process.returncode > 0:
        raise CommandError(
            "the journal cannot be read",
            code="journal_failed",
            why=said.splitlines()[0] if said else f"journalctl ended with {process.returncode}",
            do="run it as root or as a member of the group systemd-journal",
        )


def _begun(line: str) -> dict[str, Any] | None:
    """The event that begins with this line; None where it belongs to an earlier one, or is not the daemon's."""
    if line.startswith("{"):
        try:
            record = json.loads(line)
        except ValueError:
            return None
        return record if isinstance(record, dict) and record.get("level") in LEVELS else None
    found = _TEXT.fullmatch(line)
    if found is None:
        return None
    at, ms, level, logger, message = found.groups()
    return {"time": f"{at}.{ms}", "level": level.lower(), "logger": logger, "message": message}
