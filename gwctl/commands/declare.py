"""`gwctl apply`, `diff`, `export`: the gateway as a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from gwctl import desired, plan
from gwctl.plan import Change
from gwctl.session import Session
from gwctl.text import counted
from gwctl.tree import Noun
from gwctl.values import ACCEPT, flag, opt

top = Noun("", "The gateway as a file.")
NOUNS = [top]

_FILE = opt("--file", "FILE", "gw.toml or catalog.toml.", "-f")
_PRUNE = flag("--prune", "Delete what the file's tables do not hold.")


@top.verb(
    "apply",
    "gwctl apply -f gw.toml --dry-run",
    "gwctl apply -f gw.toml --prune --yes",
    writes=True,
)
def apply(
    session: Session,
    file: Annotated[Path, _FILE],
    prune: Annotated[bool, _PRUNE] = False,
    accept: Annotated[bool, ACCEPT] = False,
) -> None:
    """Make the gateway match a file; the second time nothing changes.

    Only the kinds of record whose tables stand in the file are touched, and of a record only the
    fields that are written; clear = ["limit"] empties a field. New keys are printed once.
    """
    changes = _compared(session, file, prune=prune)
    todo = [change for change in changes if change.action != "leave"]
    if session.dry_run:
        _show(session, changes, ending="Nothing was done.")
        return
    slips = [f"{change.kind.word} {change.name}: {change.slip}" for change in todo if change.slip]
    if slips and not accept:
        for slip in slips:
            session.out.note(slip)
        session.accept_price(f"{counted(len(slips), 'price')} of the file look like a slip")
    deleted = [change.name for change in todo if change.action == "delete"]
    if deleted:
        session.out.note(f"--prune deletes: {', '.join(deleted)}")
        session.confirm_name("delete what is not in the file, type", "prune")
    _make(session, changes, accept=accept or bool(slips))


def _compared(session: Session, file: Path, *, prune: bool) -> list[Change]:
    return plan.make(session, desired.read(file), prune=prune, origin=desired.origin(file))


def _make(session: Session, changes: Sequence[Change], *, accept: bool) -> None:
    """Make the changes, printing each secret at once: a later failure must not take it along."""
    session.api.compares = True
    made: list[Change] = []
    results: list[dict[str, Any]] = []
    try:
        for change, result in plan.apply(session, changes, accept=accept):
            made.append(change)
            results.append(result)
            _show_secret(session, result)
    finally:
        if session.out.shape.machine:
            if results or not changes:
                session.out.data_once(results)
        elif not session.out.shape.quiet:
            _print(session, made)
            done = sum(1 for change in made if change.action != "leave")
            rest = sum(1 for change in changes if change.action != "leave") - done
            left = sum(1 for change in changes if change.action == "leave")
            ending = f"{rest} not done." if rest else f"{left} left alone."
            session.out.line(f"{counted(done, 'change')} made, {ending}")


def _show_secret(session: Session, result: dict[str, Any]) -> None:
    once = next((name for name in ("key", "signing_secret") if name in result), None)
    if once is not None and not session.out.shape.machine:
        title = f"{result['kind'].capitalize()} {result['name']} created."
        session.out.secret(title, once, result[once], {})


@top.verb("diff", "gwctl diff -f gw.toml", "gwctl diff -f gw.toml --json", writes=False)
def diff(
    session: Session,
    file: Annotated[Path, _FILE],
    prune: Annotated[bool, _PRUNE] = False,
) -> None:
    """Show what apply would change, field by field; exit 8 when there is something."""
    _show(session, _compared(session, file, prune=prune), ending="")


def _show(session: Session, changes: Sequence[Change], *, ending: str) -> None:
    todo = [change for change in changes if change.action != "leave"]
    session.found_changes = bool(todo)
    if session.out.shape.machine:
        session.out.data([plan.as_json(change) for change in changes])
        return
    _print(session, changes)
    left = len(changes) - len(todo)
    session.out.line(f"{counted(len(todo), 'change')}, {left} left alone. {ending}".rstrip())


def _print(session: Session, changes: Sequence[Change]) -> None:
    for change in changes:
        for line in plan.lines(change):
            session.out.line(line)


@top.verb("export", "gwctl export > gw.toml", "gwctl export --only keys --only budgets")
def export(
    session: Session,
    only: Annotated[
        list[str] | None, opt("--only", "TABLE", "providers, models, keys, …; repeatable.")
    ] = None,
) -> None:
    """Write gw.toml from the running gateway; secrets as references or not at all."""
    from gwctl.export import document, entries

    found = entries(session, only or [])
    if session.out.shape.machine:
        session.out.data(found)
    else:
        session.out.block(document(found))
