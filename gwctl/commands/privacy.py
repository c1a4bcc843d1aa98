"""`gwctl privacy`: what is stored of requests and answers."""

from typing import Annotated, Any

from gwctl.changes import report, send
from gwctl.commands.org import change_at
from gwctl.commands.workspace import WORKSPACES
from gwctl.errors import usage
from gwctl.keys import KEYS
from gwctl.records import Resource, data, find
from gwctl.session import Session
from gwctl.text import counted
from gwctl.tree import Noun
from gwctl.values import arg, body, flag, listed, one_of, opt, whole

PATH = "/content-log"
CONTENT = "/generation/content"
RULES = ("card", "email", "iban", "phone", "secret")
SETTINGS = "/organization/settings"

privacy = Noun("privacy", "What is stored of requests and answers.")
log = Noun("log", "The content log: requests and answers, hidden, sealed, for some days.")
NOUNS = [privacy]

privacy.group(log)


@log.verb("show", "gwctl privacy log show", "gwctl privacy log show --json")
def show(session: Session) -> None:
    """Show whether requests are stored, which, for how long, and how much there is."""
    session.out.record(data(session.api.get(PATH)), "ContentLogRecord")


@log.verb(
    "on",
    "gwctl privacy log on --days 7",
    "gwctl privacy log on --days 30 --redact email,card --pattern 'MRN-######' --key ci",
    writes=True,
)
def on(
    session: Session,
    days: Annotated[int, whole("--days", "N", "Erase after so many days.", least=1, most=365)],
    redact: Annotated[
        list[str] | None,
        opt(
            "--redact", "RULE", "card, email, iban, phone, secret (default: all); `none` for none."
        ),
    ] = None,
    pattern: Annotated[
        list[str] | None,
        opt(
            "--pattern", "TEXT", "Hide this, too; # is a digit, * at the end the rest of the word."
        ),
    ] = None,
    key: Annotated[
        list[str] | None, opt("--key", "NAME", "Only requests of this key (name or id).")
    ] = None,
    workspace: Annotated[
        list[str] | None, opt("--workspace", "NAME", "Only requests of this workspace's keys.")
    ] = None,
) -> None:
    """Store requests and answers from now on; what is not given has its default."""
    wanted = {
        "days": days,
        "redact": None
        if redact is None
        else [one_of("--redact", rule, RULES) for rule in listed(redact) or ()],
        "patterns": pattern or None,
        "keys": _ids(session, KEYS, key),
        "workspaces": _ids(session, WORKSPACES, workspace),
    }
    change_at(session, SETTINGS, {"content_log": body(wanted)}, what="content log")


@log.verb(
    "off",
    "gwctl privacy log off",
    "gwctl privacy log off --erase --yes",
    writes=True,
)
def off(
    session: Session,
    erase: Annotated[bool, flag("--erase", "Erase what is stored, too.")] = False,
) -> None:
    """Store nothing more; what there is stays until its time is over, or is erased with --erase."""
    change_at(session, SETTINGS, {"content_log": None}, what="content log")
    stored = data(session.api.get(PATH)).get("stored", 0)
    if stored and not erase and not session.dry_run:
        erase = session.interactive and session.out.ask(
            f"Erase what is stored of {counted(stored, 'request')}, too? [y/N] "
        ).lower() in ("y", "yes")
        if not erase:
            stay = "stays stored until its" if stored == 1 else "stay stored until their"
            session.out.note(
                f"{counted(stored, 'request')} {stay} time is over; gwctl privacy log erase --all"
            )
    if stored and erase:
        reply = _erased(session, PATH, {"all": "true"}, "everything")
        if reply is not None:
            session.out.note(_said(reply))


@log.verb("read", "gwctl privacy log read gen-6vR2abc", "gwctl privacy log read gen-6vR2abc --json")
def read(
    session: Session, generation: Annotated[str, arg("GENERATION", "A generation id (gen-…).")]
) -> None:
    """Show a request and its answer as they are stored; the audit trail notes it."""
    session.out.record(data(session.api.get(CONTENT, {"id": generation})), "LoggedRequest")


@log.verb(
    "erase",
    "gwctl privacy log erase gen-6vR2abc",
    "gwctl privacy log erase --user ada --yes",
    "gwctl privacy log erase --all",
    writes=True,
)
def erase(
    session: Session,
    generation: Annotated[str | None, arg("GENERATION", "One generation (gen-…).")] = None,
    key: Annotated[str | None, opt("--key", "NAME", "What is stored of this key.")] = None,
    workspace: Annotated[
        str | None, opt("--workspace", "NAME", "What is stored of this workspace's keys.")
    ] = None,
    user: Annotated[str | None, opt("--user", "ID", "What is stored of this end user.")] = None,
    in_session: Annotated[
        str | None, opt("--session", "ID", "What is stored of this session.")
    ] = None,
    everything: Annotated[bool, flag("--all", "Everything.")] = False,
) -> None:
    """Erase what is stored of requests; their records, without what was said, stay."""
    named = {"--key": key, "--workspace": workspace, "--user": user, "--session": in_session}
    given = [name for name, value in named.items() if value is not None]
    if (generation is not None) + bool(given) + everything != 1:
        raise usage(
            "say what to erase, in one way",
            do="a generation, or --key, --workspace, --user, --session, or --all",
        )
    if generation is not None:
        _erase(session, CONTENT, {"id": generation}, generation)
        return
    if everything:
        _erase(session, PATH, {"all": "true"}, "everything")
        return
    query = {
        "key_id": None if key is None else str(find(session, KEYS, key)["id"]),
        "workspace_id": None
        if workspace is None
        else str(find(session, WORKSPACES, workspace)["id"]),
        "user": user,
        "session_id": in_session,
    }
    what = " ".join(f"{name[2:]} {named[name]}" for name in given)
    _erase(session, PATH, {name: value for name, value in query.items() if value}, what)


def _erase(session: Session, path: str, query: dict[str, str], what: str) -> None:
    reply = _erased(session, path, query, what)
    if reply is not None:
        report(session, reply, _said(reply))


def _erased(session: Session, path: str, query: dict[str, str], what: str) -> Any | None:
    if session.dry_run:
        return send(session, "DELETE", path, what=f"erase what is stored of {what}")
    session.confirm_name("erase what is stored of", what)
    return session.api.request("DELETE", path, query=query)


def _said(reply: Any) -> str:
    later = (
        "" if reply["log_emptied"] else "; the database's log of writes forgets it within minutes"
    )
    return f"erased what was stored of {counted(reply['erased'], 'request')}{later}"


def _ids(session: Session, resource: Resource, references: list[str] | None) -> list[str] | None:
    return [str(find(session, resource, one)["id"]) for one in references or ()] or None
