"""The command line of the node: arguments only. What a command does lives in `node` and `wiring`.

Exit codes: 0 done · 1 failed, or `check` found differences · 2 wrong usage. Mistakes are one line on stderr.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gwd.node.init import InitializedNode
    from gwd.node.secrets import Standing

# Everything else is imported by the command that needs it, so that `gwd --help` answers at once.

app = typer.Typer(
    name="gwd",
    help="A self-hosted model gateway with a prepaid, exact, auditable ledger.",
    epilog="\b\nExamples:\n  $ gwd init --credit 25\n  $ gwd serve",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DEFAULT_DIRECTORY = Path("gwd-data")


def _path(text: str | Path) -> Path:
    if not str(text).strip():
        raise typer.BadParameter("it is empty; name a directory, or . for this one")
    return Path(text)


Config = Annotated[
    Path,
    typer.Option(
        "--config",
        envvar="GWD_CONFIG",
        parser=_path,
        metavar="PATH",
        help="The node's gwd.toml, or the directory it lies in.",
    ),
]


def main() -> None:
    """The entry point `gwd`."""
    _refuse_what_cannot_work()
    with _errors_in_one_line():
        try:
            app()
        finally:
            _print_all()


def _refuse_what_cannot_work() -> None:
    """Before anything is done: words that are no text, and nowhere to print a key that is shown once."""
    if sys.stderr is None:
        # Printing to None would print to standard output.
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    wrong = ""
    if any(not _is_text(word) for word in (*sys.argv, os.environ.get("GWD_CONFIG", ""))):
        wrong = "an argument or GWD_CONFIG is not valid UTF-8; nothing was done"
    elif sys.stdout is None:
        wrong = "standard output is closed; nothing was done. Write >/dev/null to see nothing"
    if wrong:
        print(f"error: {wrong}", file=sys.stderr)
        raise SystemExit(2)


def _is_text(word: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in word)


def _print_all() -> None:
    """What was printed has arrived; else the failure is the command's own."""
    try:
        sys.stdout.flush()
    except OSError:
        # The interpreter would flush again at exit and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        from gwd import __version__

        print(f"gwd {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_version, help="Show the version."),
    ] = False,
) -> None:
    """A self-hosted model gateway with a prepaid, exact, auditable ledger."""


def _usd(text: str) -> Decimal:
    from gwd.core import numbers

    number = numbers.read(text.removeprefix("$"))
    if number is None:
        hint = numbers.hint(text) or "write 25 or 0.50"
        raise typer.BadParameter(f"{text!r} is no amount; {hint}")
    return number


@app.command()
def init(
    *,
    directory: Annotated[
        Path,
        typer.Option(
            "--dir",
            parser=_path,
            metavar="PATH",
            help="Where the node shall live; absent or empty.",
        ),
    ] = DEFAULT_DIRECTORY,
    organization: Annotated[
        str, typer.Option("--org", help="Name of the first organization.")
    ] = "Default",
    email: Annotated[
        str | None, typer.Option(help="Address of the owner, for alerts by mail.")
    ] = None,
    credit: Annotated[
        Decimal | None,
        typer.Option(
            parser=_usd, metavar="USD", help="Credit to begin with, booked as a purchase."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Make a new node: directory, settings, key ring, database, organization, operator key.

    gwd init --credit 25

    gwd init --dir /var/lib/gwd --org Acme --email ops@example.com --json
    """
    from gwd.core.clock import SystemClock
    from gwd.management.setup import NewNode
    from gwd.node.init import initialize

    if email is None and not as_json and _on_a_terminal():
        email = typer.prompt("Owner's address for alerts (empty for none)", default="") or None
    new = NewNode(organization=organization, owner_email=email, credit_usd=credit)
    node = initialize(directory, new, SystemClock())
    made = node.created
    with _or_another_key(node.config):
        if as_json:
            answer = {
                "management_key": made.management_key,
                "organization_id": made.organization_id,
                "config": str(node.config),
            }
            print(json.dumps(answer))
        else:
            _introduce(node)
        _print_all()


def _introduce(node: "InitializedNode") -> None:
    """What a person needs to know of the node they have just made."""
    made = node.created
    print(f"The node lies in {node.config.parent}.\n")
    print("Operator key, shown once; keep it now:\n")
    print(f"  {made.management_key}\n")
    print(f"Copy {node.keyring} to a safe place apart from the database's backups:")
    print("losing it loses every stored secret and every API key.\n")
    print("Next:\n")
    print(f"  gwd serve --config {node.config}")
    print("  export GWCTL_URL=http://127.0.0.1:8080/api/v1 GWCTL_KEY=<the key above>")
    print("  gwctl status")


@app.command()
def serve(
    *,
    config: Config = DEFAULT_DIRECTORY,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
) -> None:
    """Serve until SIGTERM; running requests finish first.

    gwd serve

    gwd serve --config /var/lib/gwd/gwd.toml --port 8080
    """
    from gwd import settings
    from gwd.node import serve as serving

    raise typer.Exit(serving.serve(settings.load(config, os.environ, host, port), os.environ))


@app.command()
def demo(
    *,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, help="Port to listen on; 8080, or with --once a free one."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Send one streamed request, show what it cost, and end.")
    ] = False,
) -> None:
    """Serve a throw-away gateway with a simulated vendor, 10 USD and a key, ready to paste into curl and SDKs.

    Real vendors join for each of OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY that is set.

    gwd demo --once

    OPENAI_API_KEY=… gwd demo --port 9000
    """
    from gwd.node import demo as trial

    raise typer.Exit(trial.run(port, once=once, environ=os.environ))


@app.command()
def check(
    *,
    config: Config = DEFAULT_DIRECTORY,
    head: Annotated[
        Path | None,
        typer.Option(help="What `gwctl ledger head` printed once: the ledger must contain it."),
    ] = None,
) -> None:
    """Look over a stopped node: key ring, schema, file, and the whole ledger recomputed.

    Exits 1 if anything is wrong. While the node serves, `gwctl ledger verify` does the ledger's part.

    gwd check

    gwd check --head head-of-october.json

    gwd check --config /var/lib/gwd
    """
    from gwd import settings
    from gwd.core.clock import SystemClock
    from gwd.node import check as looking

    findings = looking.check(settings.load(config, os.environ), SystemClock(), head)
    for finding in findings:
        print(f"{'wrong' if finding.wrong else 'ok':<6} {finding.name}: {finding.detail}")
        for line in finding.wrong:
            print(f"       {line}")
    if any(finding.wrong for finding in findings):
        raise typer.Exit(1)


@app.command()
def migrate(
    *,
    config: Config = DEFAULT_DIRECTORY,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be applied; change nothing.")
    ] = False,
) -> None:
    """Bring a stopped node's database up to this version; a copy of the file is made first.

    gwd migrate --dry-run

    gwd migrate --config /var/lib/gwd
    """
    from gwd import settings
    from gwd.core.clock import SystemClock
    from gwd.node import check as looking

    read = settings.load(config, os.environ)
    names = looking.pending(read) if dry_run else looking.migrate(read, SystemClock())
    for name in names:
        print(f"{'would apply' if dry_run else 'applied'} {name}")
    if not names:
        print("nothing to apply")


@app.command()
def clock(
    *,
    config: Config = DEFAULT_DIRECTORY,
    repair: Annotated[
        bool, typer.Option("--mend", help="Let the ledger go on from the present time.")
    ] = False,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who mends it; kept for ever.")] = "",
    why: Annotated[str, typer.Option(metavar="TEXT", help="Why; kept for ever.")] = "",
) -> None:
    """Compare a stopped node's ledger with the clock, and mend it after a clock that was ahead.

    An entry says who and why; credit that expired too early comes back. Exits 1 if the ledger is ahead and not mended.

    gwd clock

    gwd clock --mend --by ana --why "the time server was a year ahead"
    """
    from gwd import settings
    from gwd.core.clock import SystemClock, iso
    from gwd.core.money import usd_text
    from gwd.node import check as looking

    read, machine = settings.load(config, os.environ), SystemClock()
    if repair and not (by.strip() and why.strip()):
        raise typer.BadParameter("say who mends the time, and why: --by NAME --why TEXT")
    print(f"the clock says {iso(machine.now_us())}")
    if not repair:
        found = looking.time_ahead(read, machine)
        for each in found:
            print(f"{each.organization_id} is ahead: its last entry is of {iso(each.last_us)}")
        if found:
            print("If the clock is right now: gwd clock --mend --by NAME --why TEXT")
            raise typer.Exit(1)
        print("no ledger entry lies in the future")
        return
    repairs = looking.repair_time(read, machine, by=by, why=why)
    for done in repairs:
        print(
            f"{done.organization_id} goes on from {iso(done.to_us)} instead of {iso(done.from_us)};"
            f" {usd_text(done.restored_nano)} USD of credit came back"
        )
    if not repairs:
        print("no ledger entry lies in the future; nothing was done")


@app.command()
def backup(
    file: Annotated[
        Path | None, typer.Argument(help="Where the copy goes; must not exist.")
    ] = None,
    *,
    config: Config = DEFAULT_DIRECTORY,
    follow: Annotated[
        Path | None,
        typer.Option(
            "--follow",
            metavar="DIR",
            help="Keep a continuous copy in this directory until it is stopped.",
        ),
    ] = None,
) -> None:
    """Copy the database, also while the node serves, and prove the copy. The key ring is not in it.

    Exits 1 if the copy is not a whole node; it is kept all the same. With --follow it takes over every second what was
    committed, and loses at most the last 10 s when the node's machine is lost; `gwd restore DIR/gwd.db` puts it back.

    gwd backup gwd-monday.db

    gwd backup /backup/gwd.db --config /var/lib/gwd

    gwd backup --follow /mnt/other/gwd --config /var/lib/gwd
    """
    if (file is None) == (follow is None):
        raise typer.BadParameter("name the file of one copy, or --follow DIR for a continuous one")
    from gwd import settings

    if follow is not None:
        from gwd.node import follow as following

        read = settings.load(config, os.environ)
        following.follow(read, follow, lambda line: print(line, flush=True))
        return
    assert file is not None
    from gwd.node import backup as copying

    made = copying.backup(settings.load(config, os.environ), file)
    print(f"{made.path}  {made.size_bytes} bytes  {_entries(made.entries)}")
    print(f"sha256 {made.sha256}")
    if made.wrong:
        print(f"error: {made.wrong}", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def restore(
    file: Annotated[
        Path | None,
        typer.Argument(help="What `gwd backup` made; for a drill the newest copy by the clock."),
    ] = None,
    *,
    config: Config = DEFAULT_DIRECTORY,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without being asked.")] = False,
    drill: Annotated[
        bool,
        typer.Option(
            "--drill", help="Try it in a directory that is deleted again; change nothing."
        ),
    ] = False,
) -> None:
    """Put a backup in place of a stopped node's database; the present file is kept under another name.

    What was charged after the backup is forgotten; what was revoked after it is revoked again at the next start, as far
    as the revocation log beside the database (gwd.revocations) knows. A drill may run while the node serves: it
    migrates and recomputes the copy, and exits 1 if that would not be a whole node.

    gwd restore --drill

    gwd restore gwd-monday.db

    gwd restore /backup/gwd.db --config /var/lib/gwd --yes
    """
    if drill:
        _drill(file, config)
        return
    if file is None:
        raise typer.BadParameter("name the backup to put back; only a drill chooses the newest")
    if not yes and not (_on_a_terminal() and typer.confirm("Replace the present database?")):
        raise typer.BadParameter("nothing was done; --yes replaces the database")
    from gwd import settings
    from gwd.core.clock import SystemClock
    from gwd.node import backup as copying

    done = copying.restore(settings.load(config, os.environ), file, SystemClock())
    print(f"restored {done.backup.path}  {_entries(done.backup.entries)}")
    if done.replaced is not None:
        print(f"the replaced database is {done.replaced}")
    match done.lost_entries:
        case None:
            print("the replaced database could not be read")
        case 0:
            print("no ledger entry was lost")
        case lost:
            verb = "is" if lost == 1 else "are"
            print(f"{_entries(lost, 'later ledger')} {verb} only in the replaced database")
    if done.has_log:
        print("What was revoked after the backup is revoked again when the node starts.")
    else:
        print(
            "There is no revocation log beside the database: keys that were revoked after the backup work again;"
        )
        print("look through `gwctl key list`.")


def _drill(file: Path | None, config: Path) -> None:
    from gwd import settings
    from gwd.core.clock import US_PER_S, SystemClock, iso
    from gwd.node import backup as copying

    read, machine = settings.load(config, os.environ), SystemClock()
    tried = copying.drill(read, file or copying.newest(read), machine)
    for name in tried.applied:
        print(f"applied {name} to the copy")
    if tried.backup.wrong:
        print(
            f"error: {tried.backup.path} cannot be restored: {tried.backup.wrong}", file=sys.stderr
        )
        raise typer.Exit(1)
    known = ""
    if tried.last_us is not None:
        minutes = max(0, machine.now_us() - tried.last_us) // (60 * US_PER_S)
        known = f"  last moment {iso(tried.last_us)}, {minutes // 60} h {minutes % 60} min ago"
    print(f"can be restored: {tried.backup.path}  {_entries(tried.backup.entries)}{known}")
    print(f"it took {tried.took_s:.1f} s; the scratch copy is deleted, nothing else was touched")


secrets = typer.Typer(
    name="secrets",
    help="The key ring of a stopped node; while it serves, gwctl server secrets does the same.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(secrets)


@secrets.command("status")
def secrets_status(*, config: Config = DEFAULT_DIRECTORY) -> None:
    """Show the keys of a stopped node's ring, and how many stored secrets each seals. Exits 1 if one is missing.

    gwd secrets status

    gwd secrets status --config /var/lib/gwd
    """
    from gwd import settings
    from gwd.node import secrets as rotation

    found = rotation.status(settings.load(config, os.environ))
    _print_ring(found)
    if found.uses.keys() - found.ring.keks.keys():
        raise typer.Exit(1)


@secrets.command("rotate")
def secrets_rotate(*, config: Config = DEFAULT_DIRECTORY) -> None:
    """Add a key to a stopped node's ring, and seal every stored secret anew with it. Old keys stay until pruned.

    It may be ended at any moment: the next run, or the node itself, goes on. API keys, signed heads and everything
    else that comes from the pepper stay as they are.

    gwd secrets rotate

    gwd secrets rotate --config /var/lib/gwd
    """
    from gwd import settings
    from gwd.core.clock import SystemClock
    from gwd.node import secrets as rotation

    def progress(left: int) -> None:
        print(f"{left} left", file=sys.stderr)

    done = rotation.rotate(settings.load(config, os.environ), SystemClock(), progress=progress)
    print(f"{'new key' if done.made else 'went on with'} {done.ring.active}")
    _print_ring(done)
    if done.left:
        print("error: not everything opens; gwd secrets verify names it", file=sys.stderr)
        raise typer.Exit(1)
    print("Copy the key ring to your safe place now; backups of before need the keys of before.")


@secrets.command("verify")
def secrets_verify(*, config: Config = DEFAULT_DIRECTORY) -> None:
    """Open every stored secret of a stopped node, and name those that do not open. Exits 1 if there are any.

    gwd secrets verify

    gwd secrets verify --config /var/lib/gwd
    """
    from gwd import settings
    from gwd.node import secrets as rotation

    found = rotation.verify(settings.load(config, os.environ))
    for each in found.unopened:
        print(f"wrong  {each.message}")
    print(f"{found.values - len(found.unopened)} of {found.values} stored secrets open")
    if found.unopened:
        raise typer.Exit(1)


@secrets.command("prune")
def secrets_prune(
    *,
    config: Config = DEFAULT_DIRECTORY,
    copy: Annotated[
        Path | None,
        typer.Option("--copy", help="Write the ring as it was to this new file, for old backups."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="A copy is kept already, or old backups are not needed.")
    ] = False,
) -> None:
    """Remove old keys from a stopped node's ring, once every stored secret opens and none needs them.

    Backups of before the rotation can be read with the old keys only.

    gwd secrets prune --copy /safe/keyring-of-october.json

    gwd secrets prune --force --config /var/lib/gwd
    """
    from gwd import settings
    from gwd.core.clock import SystemClock
    from gwd.node import secrets as rotation

    read = settings.load(config, os.environ)
    old = rotation.prune(read, SystemClock(), copy=copy, force=force)
    if copy is not None and old:
        print(f"the ring as it was is in {copy}")
    print(f"removed {', '.join(old)}" if old else "there is no old key; nothing was done")


def _print_ring(found: "Standing") -> None:
    from gwd.core.clock import iso

    for name in sorted(found.ring.keks.keys() | found.uses.keys()):
        made_us = found.ring.made_us.get(name)
        about = "active" if name == found.ring.active else "old"
        if name not in found.ring.keks:
            about = "MISSING: restore the newest copy of the key ring"
        places = found.uses.get(name, {})
        print(f"{name}  {about}  made {'-' if made_us is None else iso(made_us)}")
        for place, count in places.items():
            print(f"  {count} × {place}")
    print(f"{found.left} sealed by an old key")


@app.command("operator-key")
def operator_key(
    *,
    config: Config = DEFAULT_DIRECTORY,
    new: Annotated[bool, typer.Option("--new", help="Issue one; needed.")] = False,
) -> None:
    """Issue a new operator key on a stopped node, for whoever lost theirs. It is printed once, alone.

    gwd operator-key --new

    KEY=$(gwd operator-key --new --config /var/lib/gwd)
    """
    if not new:
        raise typer.BadParameter("keys are never shown again; --new issues another one")
    from gwd import settings
    from gwd.core.clock import SystemClock
    from gwd.node import check as looking

    read = settings.load(config, os.environ)
    with _or_another_key(read.config):
        print(looking.new_operator_key(read, SystemClock()))
        _print_all()
    print(
        "The old operator key still works; delete it with gwctl if it was stolen.", file=sys.stderr
    )


@contextmanager
def _or_another_key(config: Path) -> Iterator[None]:
    """A key that could not be printed is lost, and whoever made it must know how to get one."""
    try:
        yield
    except OSError as error:
        print(
            f"error: the key could not be printed ({error.strerror}); "
            f"issue another: gwd operator-key --new --config {config}",
            file=sys.stderr,
        )
        raise typer.Exit(1) from None


def _entries(number: int, kind: str = "ledger") -> str:
    return f"{number} {kind} {'entry' if number == 1 else 'entries'}"


def _on_a_terminal() -> bool:
    # A script may have closed the stream, then there is none.
    return sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        from gwd.node.errors import text_of

        if (text := text_of(error)) is None:
            raise
        print(f"error: {text}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
