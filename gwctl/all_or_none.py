"""Several changes that one command makes: all of them, or after a refusal none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gwctl.changes import send
from gwctl.client import quote
from gwctl.errors import CommandError
from gwctl.records import data
from gwctl.session import Session
from gwctl.tables import Record
from gwctl.text import counted


@dataclass(frozen=True)
class Step:
    """A POST or a PATCH of one record; `before` are the fields of a PATCH as they were."""

    method: str
    path: str
    body: Mapping[str, Any]
    line: str
    before: Mapping[str, Any] | None = None


def all_or_none(session: Session, steps: Sequence[Step], *, done: str) -> list[Record]:
    """Make the changes and print them; what a refusal comes after is taken back before it is raised."""
    if session.dry_run:
        _would(session, steps)
        return []
    records: list[Record] = []
    for step in steps:
        try:
            records.append(_made(session, step))
        except CommandError as error:
            _take_back(session, steps, records, error)
            raise
    if session.out.shape.machine:
        session.out.data(records)
    for step, record in zip(steps, records, strict=True):
        if session.out.shape.quiet:
            session.out.record(record)
        elif not session.out.shape.machine:
            session.out.line(f"{step.line}   {done}")
    return records


def _made(session: Session, step: Step) -> Record:
    reply = send(session, step.method, step.path, dict(step.body), what=step.line)
    return dict(data(reply))


def _take_back(
    session: Session, steps: Sequence[Step], records: Sequence[Record], error: CommandError
) -> None:
    """The error says what became of the changes before it."""
    left = [*zip(steps, records, strict=False)]
    try:
        while left:
            step, record = left[-1]
            if step.before is None:
                session.api.request("DELETE", f"{step.path}/{quote(str(record['id']))}")
            else:
                session.api.request("PATCH", step.path, body=dict(step.before))
            left.pop()
    except CommandError as second:
        lines = ", ".join(step.line for step, _ in left)
        error.what += f"; {lines} could not be taken back: {second.what}"
        return
    if records:
        error.what += f"; {counted(len(records), 'change')} before it taken back"


def _would(session: Session, steps: Sequence[Step]) -> None:
    session.found_changes = bool(steps)
    if session.out.shape.machine:
        session.out.data(
            [{"dry_run": True, "method": s.method, "path": s.path, "body": s.body} for s in steps]
        )
        return
    for step in steps:
        session.out.line(f"{'+' if step.method == 'POST' else '~'} {step.line}")
    session.out.note("Nothing was done.")
