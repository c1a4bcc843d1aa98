"""Everything gwctl prints: data on stdout, notes and errors on stderr. No other file prints."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from gwctl import jsontext, tables, text
from gwctl.errors import CommandError, usage
from gwctl.files import replacing
from gwctl.tables import Column, Record
from gwctl.time_input import utc_now


@dataclass(frozen=True)
class Shape:
    """What the caller asked the output to look like."""

    json: bool = False
    fields: tuple[str, ...] = ()
    jq: str | None = None
    lines: bool = False
    quiet: bool = False
    no_color: bool = False
    wide: bool = False

    @property
    def machine(self) -> bool:
        return self.json or self.lines or self.jq is not None


class Output:
    """Prints records, secrets, notes and errors in the shape that was asked for."""

    def __init__(self, shape: Shape, environment: Mapping[str, str] | None = None) -> None:
        self.shape = shape
        self.environment = os.environ if environment is None else environment
        self.noted: set[str] = set()
        self.pager: Callable[[], str] = lambda: "cat"
        self.file: TextIO | None = None

    @property
    def terminal(self) -> bool:
        return sys.stdout.isatty()

    @property
    def unicode(self) -> bool:
        """Whether standard output takes more than ASCII."""
        return (sys.stdout.encoding or "").lower().replace("-", "") in ("utf8", "utf16", "utf32")

    @property
    def table(self) -> bool:
        """Whether tables are drawn for a person rather than for a pipe."""
        return self.terminal and not self.shape.machine

    def color(self, stream: Any) -> bool:
        if self.shape.no_color or self.environment.get("NO_COLOR"):
            return False
        if self.environment.get("CLICOLOR_FORCE", "0") not in ("", "0"):
            return True
        return bool(stream.isatty()) and self.environment.get("TERM") != "dumb"

    def records(
        self,
        rows: Sequence[Record],
        columns: Sequence[Column],
        *,
        total: int | None = None,
        noun: str = "record",
        full: bool = False,
    ) -> None:
        """A list: a table, tab separated lines, one JSON array, or bare ids with -q.

        `full` says that as many are shown as were asked for: without a total nobody knows whether these are all.
        """
        self._rows(rows, columns, noun)
        if self.shape.quiet:
            return
        # Also without a terminal: a script must not take the first page for everything.
        if total is not None and total > len(rows):
            self.note(f"{len(rows)} of {total} shown; --all shows every one")
        elif total is None and full:
            self.note(f"{len(rows)} shown, there may be many more; --all shows every one")

    def pages(
        self, pages: Iterable[Sequence[Record]], columns: Sequence[Column], *, noun: str
    ) -> None:
        """A whole list, printed while it is read. What has to be known whole is read first: a table, and --jq."""
        if self.table or self.shape.jq is not None:
            self.records([row for page in pages for row in page], columns, noun=noun)
        elif self.shape.machine and not self.shape.lines:
            for piece in jsontext.array(row for page in pages for row in self.picked(page)):
                self._write(piece)
        else:
            for page in pages:
                self._rows(page, columns, noun)
                self.flush()

    def _rows(self, rows: Sequence[Record], columns: Sequence[Column], noun: str) -> None:
        if self.shape.machine:
            self.data(list(rows))
            return
        if self.shape.quiet:
            for row in rows:
                self.line(str(row.get("id") or row.get("slug") or row.get("name") or ""))
            return
        if not self.table:
            forced = self.color(sys.stdout)  # only CLICOLOR_FORCE colours what is no terminal
            self._write(tables.tab_separated(rows, columns, color=forced))
            return
        if not rows:
            self.note(f"no {noun} found")
            return
        from gwctl import layout

        width = None if self.shape.wide else shutil.get_terminal_size().columns
        drawing = layout.drawn(
            rows, columns, now=utc_now(), width=width, color=self.color(sys.stdout)
        )
        self._page(drawing.text)
        if drawing.left_out:
            self.flush()
            self.note(f"{text.counted(drawing.left_out, 'column')} left out; --wide shows all")

    def following(self, row: Record, columns: Sequence[Column]) -> None:
        """One record of a list that is never complete."""
        if self.shape.machine:
            self.data(row) if self.shape.jq else self._write(
                f"{jsontext.dumps(self.picked(row))}\n"
            )
        elif self.table:
            cells = [tables.cell(c.value(row), c.kind, utc_now()) for c in columns]
            self._write("   ".join(cells) + "\n")
        else:
            self._write(tables.tab_separated([row], columns))
        sys.stdout.flush()

    def record(self, record: Record, of: str = "") -> None:
        """One record: its fields, or its JSON, or its bare id with -q."""
        if self.shape.machine:
            self.data(record)
        elif self.shape.quiet:
            self.line(str(record.get("id") or record.get("slug") or record.get("name") or ""))
        elif self.table:
            self._write(tables.described(record, of, now=utc_now()))
        else:
            self._write(tables.described_plain(record, of))

    def secret(self, title: str, name: str, secret: str, record: Record, summary: str = "") -> None:
        """A new secret, shown this once: alone on stdout with -q, in the record with --json."""
        if self.shape.machine:
            self.data_once({name: secret, **record})
        elif self.shape.quiet:
            self._write(f"{text.clean_line(secret)}\n")
        else:
            self._write(f"{text.clean_line(title)} It is shown once; keep it now.\n\n")
            self._write(f"  {text.clean_line(secret)}\n\n")
            if summary:
                self.line(summary)
        self.flush()

    def check(self) -> None:
        """Refuse a --jq that cannot be read before anything is done."""
        if self.shape.jq is not None:
            from gwctl import jq

            jq.parsed(self.shape.jq)

    def data_once(self, value: Any) -> None:
        """JSON that may hold a secret: shown whole where the fields or --jq asked for do not fit."""
        try:
            self.data(value)
        except CommandError:
            self._write(f"{jsontext.dumps(value, indent=2)}\n")
            raise
        finally:
            self.flush()

    def data(self, value: Any) -> None:
        """A value as JSON, after field picks and --jq."""
        value = self.picked(value)
        if self.shape.jq is not None:
            from gwctl import jq

            for result in jq.run(self.shape.jq, value):
                self._write(
                    f"{text.clean(result)}\n"
                    if isinstance(result, str)
                    else f"{jsontext.dumps(result)}\n"
                )
        elif self.shape.lines:
            for item in value if isinstance(value, list) else [value]:
                self._write(f"{jsontext.dumps(item)}\n")
        else:
            self._write(f"{jsontext.dumps(value, indent=2)}\n")

    def line(self, line: str) -> None:
        """One line of data for a person."""
        self._write(f"{text.clean(line)}\n")

    def block(self, block: str) -> None:
        """Text that is already laid out line by line."""
        self._write(text.clean(block))

    def stream(self, piece: str) -> None:
        """A piece of text as it arrives, without a newline."""
        self._write(text.clean(piece))
        sys.stdout.flush()

    def note(self, message: str, *, again: bool = False) -> None:
        """A hint or progress on stderr, so that pipes stay clean; the same one once, unless it tells of an event."""
        if (self.shape.quiet and self.shape.machine) or (message in self.noted and not again):
            return
        if message:
            self.noted.add(message)
        self._say(text.clean(message))

    def debug(self, line: str) -> None:
        self._say(text.clean(line))

    def _say(self, line: str) -> None:
        # Where nobody can be told, the work goes on all the same.
        with suppress(OSError):
            print(line, file=sys.stderr)

    def error(self, error: CommandError) -> None:
        """Three lines: what, why, what to do; or one JSON object with --json."""
        what, why, do = (
            text.mask_keys(text.clean_line(part)) for part in (error.what, error.why, error.do)
        )
        if self.shape.machine:
            body = {
                "code": error.code,
                "message": what,
                "hint": do,
                "request_id": error.request_id or None,
            }
            self._say(jsontext.dumps(body))
            return
        red, reset = ("\x1b[31m", "\x1b[0m") if self.color(sys.stderr) else ("", "")
        self._say(f"{red}error:{reset} {what}")
        request = f"   (request {text.clean_line(error.request_id)})" if error.request_id else ""
        if why:
            self._say(f"  why: {why}{'' if do else request}")
        if do:
            self._say(f"  do:  {do}{request}")

    def ask(self, question: str) -> str:
        """A visible question on stderr, answered on the terminal."""
        print(text.clean(question), end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip()

    def clear(self) -> None:
        """Start a fresh screen for --watch; does nothing without a terminal."""
        if self.terminal and self.environment.get("TERM") != "dumb":
            self._write("\x1b[H\x1b[2J")

    @contextmanager
    def live(self) -> Iterator[Callable[[str], None]]:
        """A block that is drawn again in its place; what does not fit the screen is left out. The last one stays."""
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(file=sys.stdout, color_system=None, highlight=False, markup=False)
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
            yield lambda block: live.update(Text(text.clean(block.rstrip("\n"))), refresh=True)

    def flush(self) -> None:
        """What was printed is out, whatever happens next."""
        sys.stdout.flush()

    def picked(self, value: Any) -> Any:
        """The fields that were asked for, of one record or of each of a list; all without."""
        if not self.shape.fields:
            return value
        rows = value if isinstance(value, list) else [value]
        known = {key for row in rows if isinstance(row, Mapping) for key in row}
        for name in self.shape.fields:
            if known and name not in known and name.split(".")[0] not in known:
                raise usage(
                    f"there is no field {name} here", do=f"fields: {', '.join(sorted(known))}"
                )
        picked = [{name: tables.pick(row, name) for name in self.shape.fields} for row in rows]
        return picked if isinstance(value, list) else picked[0]

    @contextmanager
    def into(self, path: Path | None) -> Iterator[None]:
        """Print what follows to this file, whole or not at all; to standard output without one, or for `-`."""
        if path is None or str(path) == "-":
            yield
            return
        with replacing(path, "output_file") as self.file:
            try:
                yield
            finally:
                self.file = None

    def _write(self, written: str) -> None:
        (self.file or sys.stdout).write(written)

    def _page(self, written: str) -> None:
        """What is longer than the screen goes through the pager, where a person sits in front of it."""
        command = self.pager()
        lines = written.count("\n")
        if lines < shutil.get_terminal_size().lines or not self._person or _is_none(command):
            self._write(written)
            return
        self.flush()
        try:
            done = subprocess.run(shlex.split(command), input=written, text=True, check=False)  # noqa: S603
        except (OSError, ValueError):
            self._write(written)
            return
        if done.returncode in _NO_PROGRAM:
            self._write(written)

    @property
    def _person(self) -> bool:
        """Whether a pager can be used: a terminal at all three ends, in the foreground, that can be drawn on."""
        if self.environment.get("TERM", "dumb") == "dumb" or self.environment.get("CI"):
            return False
        if self.environment.get("PAGER") == "":  # said to be none
            return False
        if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
            return False
        try:
            return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        except (OSError, ValueError, AttributeError):
            return True  # a terminal that has no jobs


_NO_PROGRAM = (126, 127)


def _is_none(command: str) -> bool:
    return command.strip() in ("", "cat")
