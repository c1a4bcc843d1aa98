"""`gwctl server` and `gwctl doctor`: is the daemon well, and is this machine."""

import stat
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from gwctl import address_checks, profile
from gwctl.changes import report, send
from gwctl.client import own_version
from gwctl.commands.help import gateway_version, health
from gwctl.errors import UNREACHABLE, CommandError, usage
from gwctl.records import data
from gwctl.session import Session
from gwctl.tables import Column, of
from gwctl.text import counted, mask_keys
from gwctl.tree import Noun
from gwctl.values import arg, flag, opt

server = Noun("server", "Check and reload the daemon.")
top = Noun("", "Checks.")
NOUNS = [server, top]

_CHECKS = (
    Column("CHECK", "name", name=True),
    Column("STATE", "state", "state"),
    Column("FOUND", "message"),
    Column("DO", "do", "note"),
)
_RING = of(
    "RingKeyRecord",
    Column("KEY", "id", name=True),
    Column("ACTIVE", "active"),
    Column("IN RING", "in_ring", leaves=2),
    Column("SEALS", "sealed"),
    Column("MADE", "made_at", leaves=1),
)


@server.verb("check", "gwctl server check", "gwctl server check --json && echo ready")
def check(session: Session) -> None:
    """Ask whether the daemon lives and takes requests; exit 1 when it does not."""
    rows = []
    for name in ("healthz", "readyz"):
        try:
            answer = health(session, name)
            rows.append({"name": name, "state": "ok", "message": answer[:200]})
        except CommandError as error:
            if error.exit_code == UNREACHABLE and name == "healthz":
                raise
            rows.append(_row(name, "failed", error.what, error.do))
    session.out.records(rows, _CHECKS, noun="check")
    _fail_on(rows)


@server.verb("reload", "gwctl server reload", "gwctl server reload --dry-run", writes=True)
def reload_(session: Session) -> None:
    """Have the daemon read its configuration and secret references again."""
    reply = send(session, "POST", "/operator/reload", what="reload the daemon's configuration")
    if reply is None:
        return
    record = data(reply)
    report(session, record, "configuration reloaded")
    problems = record.get("problems") or []
    for problem in problems:
        session.out.note(f"{problem.get('provider')}: {problem.get('message')}")
    if problems:
        raise CommandError(
            f"{counted(len(problems), 'credential')} cannot be used",
            code="credentials_failed",
            do="gwctl provider secret SLUG",
        )


@server.verb(
    "clock",
    "gwctl server clock",
    "gwctl server clock --accept --reason 'off for a month'",
    writes=True,
)
def clock_(
    session: Session,
    accept: Annotated[bool, flag("--accept", "Say that the gateway's clock is right.")] = False,
    reason: Annotated[str | None, opt("--reason", "TEXT", "Why; for the audit trail.")] = None,
) -> None:
    """Show whether the gateway believes its machine's clock; accept a clock that is in doubt."""
    if not accept:
        if reason is not None:
            raise usage("--reason is said with --accept", do="gwctl server clock --help")
        session.out.record(data(session.api.get("/operator/clock")), "ClockRecord")
        return
    body: dict[str, Any] = {"accept": True}
    if reason is not None:
        body["reason"] = reason
    reply = send(session, "POST", "/operator/clock", body, what="accept the gateway's clock")
    if reply is not None:
        record = data(reply)
        report(session, record, f"the clock is believed: {record.get('machine')}")


@server.verb(
    "secrets",
    "gwctl server secrets",
    "gwctl server secrets rotate",
    "gwctl server secrets prune --force",
    writes=True,
)
def secrets_(
    session: Session,
    action: Annotated[
        str | None, arg("ACTION", "status (as without one), rotate, verify or prune.")
    ] = None,
    force: Annotated[
        bool,
        flag("--force", "Prune: a copy of the key ring is kept, or no older backup is needed."),
    ] = False,
) -> None:
    """Show the key ring; seal every stored secret anew with a new key, open them all, remove old keys."""
    if force and action != "prune":
        raise usage("--force is for prune", do="gwctl server secrets --help")
    match action or "status":
        case "status":
            _show_ring(session, data(session.api.get("/operator/secrets")), "SecretsRecord")
        case "rotate":
            _rotate_secrets(session)
        case "verify":
            _verify_secrets(session)
        case "prune":
            _prune_secrets(session, force=force)
        case _:
            raise usage(
                f"{action} is not status, rotate, verify or prune",
                do="gwctl server secrets --help",
            )


def _show_ring(session: Session, record: dict[str, Any], name: str) -> None:
    """The record, and its keys as a table of their own."""
    if session.out.shape.machine:
        session.out.record(record, name)
        return
    session.out.record({field: record[field] for field in record if field != "keys"}, name)
    session.out.records(record["keys"], _RING, noun="key")


def _rotate_secrets(session: Session) -> None:
    what = "add a key to the ring and seal every stored secret anew"
    reply = send(session, "POST", "/operator/secrets/rotate", {}, what=what)
    if reply is None:
        return
    record = data(reply)
    report(session, record, f"{record['active']} seals from now on, {record['left']} left to seal")
    session.out.note("gwctl server secrets shows how far it is; then copy keyring.json again.")


def _verify_secrets(session: Session) -> None:
    record = data(session.api.get("/operator/secrets/verify"))
    _show_ring(session, record, "VerifiedSecretsRecord")
    if not record["ok"]:
        wrong = counted(len(record["unopened"]), "stored secret")
        raise CommandError(f"{wrong} cannot be opened", code="checks_failed")


def _prune_secrets(session: Session, *, force: bool) -> None:
    what = "remove old keys from the ring"
    reply = send(session, "POST", "/operator/secrets/prune", {"force": force}, what=what)
    if reply is not None:
        report(session, data(reply), f"{data(reply)['active']} is the only key of the ring")


@top.verb("doctor", "gwctl doctor", "gwctl doctor --json name,state,message")
def doctor(
    session: Session,
    local: Annotated[bool, flag("--local", "Only look at this machine.")] = False,
) -> None:
    """Check the gateway and this machine for known trouble; exit 1 when something is wrong."""
    rows = [*_profile_checks(session), *_interpreter_checks()]
    if not local:
        rows += _gateway_checks(session)
    session.out.records(rows, _CHECKS, noun="check")
    _fail_on(rows)


def _fail_on(rows: list[dict[str, Any]]) -> None:
    failed = [row["name"] for row in rows if row["state"] == "failed"]
    if failed:
        raise CommandError(f"not well: {', '.join(failed)}", code="checks_failed")


def _row(name: str, state: str, message: str, do: str = "") -> dict[str, Any]:
    return {"name": name, "state": state, "message": message, "do": do}


def _profile_checks(session: Session) -> list[dict[str, Any]]:
    path = profile.config_path()
    rows = []
    if path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
        state = "failed" if mode & 0o077 else "ok"
        rows.append(_row("profile file", state, f"{path} has mode {mode:04o}"))
    url = session.settings.url()
    parts = urlsplit(url)
    exposed = parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1")
    rows.append(
        _row(
            "address",
            "warning" if exposed else "ok",
            f"{mask_keys(url)}, keys travel unencrypted" if exposed else mask_keys(url),
            "use https" if exposed else "",
        )
    )
    return rows


def _interpreter_checks() -> list[dict[str, Any]]:
    """`.pth` files may hold code that runs at every start of Python; name the lines that do."""
    found = []
    for folder in sorted(
        {Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))}
    ):
        owned = _owned(folder)
        for file in sorted(folder.glob("*.pth")):
            if file.name in owned or not file.is_file():
                continue
            text = file.read_text(encoding="utf-8-sig", errors="replace")
            if any(line.startswith(("import ", "import\t")) for line in text.splitlines()):
                found.append(str(file))
    message = "no code at start but that of installed distributions"
    if found:
        message = (
            f"code at every start of Python that no installed distribution owns: {', '.join(found)}"
        )
    do = "check who put them there, and delete what you do not know" if found else ""
    return [_row("python .pth files", "warning" if found else "ok", message, do)]


def _owned(folder: Path) -> set[str]:
    """The `.pth` files of a folder that are on the list of files of something installed there."""
    owned = set()
    for distribution in distributions(path=[str(folder)]):
        owned |= {file.name for file in distribution.files or () if len(file.parts) == 1}
    return {name for name in owned if name.endswith(".pth")}


def _gateway_checks(session: Session) -> list[dict[str, Any]]:
    rows = []
    theirs, ours = gateway_version(session), own_version()
    same = theirs == ours or "unknown" in (theirs, ours)
    rows.append(_row("versions", "ok" if same else "warning", f"gwd {theirs}, gwctl {ours}"))
    found = data(session.api.get("/operator/doctor"))
    rows += address_checks.checks(session, found.get("base_url"))
    return [*rows, *found["checks"]]
