"""Every record of a stretch of requests, written while it is read: page by page, in memory that stays the same.

A file gets its name when it is complete. What was read when an export broke off stays beside it, in FILE.part, and
`--after` goes on there: the list is walked from the newest to the oldest, so the place where it ended is enough.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from pathlib import Path
from typing import IO, Any

from gwctl import comma_separated, jsontext, schema, text
from gwctl.errors import CommandError, usage
from gwctl.records import pages
from gwctl.session import Session
from gwctl.values import opt

OUTPUT = opt("--output", "FILE", "Write to this file, whole or not at all.", "-o")
AFTER = opt("--after", "GENERATION", "Go on where an export broke off, as its note says.")
PATH = "/generations"
RECORD = "GenerationRecord"
_FIRST = ("created_at", "id", "model", "status", "total_cost")
_TAIL_BYTES = 65_536  # more than any record has


@dataclass(frozen=True)
class Stretch:
    """Which requests: the filters of the list (a day is a time by now), and the words for those in several."""

    query: Mapping[str, Any]
    statuses: Sequence[str | None] = (None,)
    after: str | None = None


def field_order() -> list[str]:
    """The fields of a record, in an order that stays: when, which, what, how it ended, what it cost, then by name."""
    known = schema.fields(RECORD)
    return [*_FIRST, *sorted(name for name in known if name not in _FIRST)]


def export(session: Session, stretch: Stretch, target: Path | None, command: Sequence[str]) -> None:
    """Write them as CSV, JSON lines or a JSON array, to a file or to standard output.

    `command` is what was typed, with its times written out: an export that breaks off says how to go on.
    """
    shape = session.out.shape
    if shape.jq is not None:
        if target is not None:
            raise usage("--jq and -o exclude each other", do="write to a file with > FILE")
        found = _walked(session, stretch, quiet=False)
        session.out.data([row for page in found for row in page])
        return
    if shape.json and not shape.lines and stretch.after is not None:
        raise usage("--after cannot go on within a JSON array", do="use --csv or --jsonl")
    fields = [f"--json={','.join(shape.fields)}"] if shape.fields else []
    again = ["gwctl", *command, *fields, "--jsonl" if shape.lines else "--csv"]
    if target is None or str(target) == "-":
        _Standard(session, stretch, shlex.join(again)).run()
    else:
        _File(session, stretch, shlex.join([*again, "-o", str(target)]), target).run()


def _walked(session: Session, stretch: Stretch, *, quiet: bool) -> Iterator[list[Any]]:
    """Pages of records, newest first; of several statuses in one order."""
    walks = [
        pages(
            session,
            PATH,
            {**stretch.query, "status": status},
            after=stretch.after,
            quiet=quiet,
        )
        for status in stretch.statuses
    ]
    if len(walks) == 1:
        yield from (page for page, _ in walks[0])
        return
    rows = (_each(walk) for walk in walks)
    for row in merge(*rows, key=lambda row: str(row.get("settled_at")), reverse=True):
        yield [row]


def _each(walk: Iterable[tuple[list[Any], int | None]]) -> Iterator[Any]:
    for page, _ in walk:
        yield from page


class _Writer:
    """What is common: the shape of the text, how far it came, and what to say when it breaks off."""

    quiet = False
    kept = ""

    def __init__(self, session: Session, stretch: Stretch, again: str) -> None:
        self.session = session
        self.stretch = stretch
        self.again = again
        self.last: str | None = None
        self.written = 0
        self.names = field_order()

    def run(self) -> None:
        try:
            for piece in self._pieces():
                self.put(piece)
        except (CommandError, KeyboardInterrupt):
            self._tell_the_place()
            raise

    def put(self, piece: str) -> None:
        raise NotImplementedError

    @cached_property
    def _lines(self) -> bool:
        return not self.session.out.shape.machine or self.session.out.shape.lines

    def _pieces(self) -> Iterator[str]:
        """The text, one piece for each page."""
        out = self.session.out
        found = _walked(self.session, self.stretch, quiet=self.quiet)
        if not out.shape.machine:
            if self.stretch.after is None:
                yield comma_separated.title(self.names)
            for page in found:
                yield comma_separated.lines(page, self.names)
                self._reached(page)
        elif out.shape.lines:
            for page in found:
                yield "".join(f"{jsontext.dumps(row)}\n" for row in out.picked(page))
                self._reached(page)
        else:
            yield from self._array(found)

    def _array(self, found: Iterator[list[Any]]) -> Iterator[str]:
        """A JSON array as `Output.data` writes it."""
        return jsontext.array(self._rows(found))

    def _rows(self, found: Iterator[list[Any]]) -> Iterator[Any]:
        for page in found:
            yield from self.session.out.picked(page)
            self._reached(page)

    def _reached(self, page: list[Any]) -> None:
        if page:
            self.last = str(page[-1].get("id"))
            self.written += len(page)

    def _tell_the_place(self) -> None:
        if self.last is None:
            return
        said = f"{text.counted(self.written, 'record')} written{self.kept} before it broke off"
        do = f"; go on: {self.again} --after {self.last}" if self._lines else ""
        self.session.out.note(f"{said}{do}")


class _Standard(_Writer):
    """To standard output; on a terminal the records are the progress."""

    def __init__(self, session: Session, stretch: Stretch, again: str) -> None:
        super().__init__(session, stretch, again)
        self.quiet = session.out.terminal

    def put(self, piece: str) -> None:
        self.session.out.block(piece)


class _File(_Writer):
    """To a file that is there whole or not at all."""

    def __init__(self, session: Session, stretch: Stretch, again: str, target: Path) -> None:
        super().__init__(session, stretch, again)
        self.target = target.resolve()  # a link to a file kept elsewhere stays a link
        self.part = self.target.with_name(f"{self.target.name}.part")
        self.kept = f" to {self.part}"
        self.file: IO[str] | None = None
        self.whole_bytes = 0

    def run(self) -> None:
        if self.target.exists() and not self.target.is_file():
            raise usage(f"{self.target} is no file", do="name a file, or leave -o out")
        mode = "a" if self._goes_on() else "w"
        try:
            with self.part.open(mode, encoding="utf-8", newline="") as file:
                self._keep_the_mode()
                self.file, self.whole_bytes = file, file.tell()
                super().run()
                os.fsync(file.fileno())
            self.part.replace(self.target)
        except OSError as error:
            self._tell_the_place()
            raise CommandError(
                f"cannot write {self.part}: {error.strerror}",
                code="export_file",
                do="make room, or name another file with -o",
            ) from None
        finally:
            self._leave(new=mode == "w")
        self.session.out.note(f"{text.counted(self.written, 'record')} written to {self.target}")

    def put(self, piece: str) -> None:
        assert self.file is not None
        self.file.write(text.clean(piece))
        self.file.flush()

    def _reached(self, page: list[Any]) -> None:
        assert self.file is not None
        super()._reached(page)
        self.whole_bytes = self.file.tell()

    def _keep_the_mode(self) -> None:
        """Whoever may not read the old file may not read the new one."""
        if self.target.exists():
            self.part.chmod(self.target.stat().st_mode & 0o777)

    def _leave(self, *, new: bool) -> None:
        """What is left of an export that broke off ends with a whole record; nothing is left of none."""
        with suppress(OSError):
            if self.last is None and new:
                self.part.unlink(missing_ok=True)
            elif self.part.exists():
                os.truncate(self.part, self.whole_bytes)

    def _goes_on(self) -> bool:
        """Whether the part of an earlier export is continued; it has to end where this one begins."""
        if self.stretch.after is None:
            return False
        try:
            with self.part.open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - _TAIL_BYTES))
                tail = file.read()
        except OSError:
            raise usage(
                f"there is no {self.part} to go on with",
                do="leave --after out to export everything, or give the -o of the export that broke off",
            ) from None
        last = tail.rstrip(b"\n").rpartition(b"\n")[2]
        if not tail.endswith(b"\n") or self.stretch.after.encode() not in last:
            raise usage(
                f"{self.part} does not end with {self.stretch.after}",
                do="give --after as the export that broke off told it",
            )
        return True
