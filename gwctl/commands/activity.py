"""`gwctl activity`: every request, served and refused."""

import time
from pathlib import Path
from typing import Annotated, Any

from gwctl import record_export, time_input
from gwctl.commands.ledger import period
from gwctl.errors import usage
from gwctl.records import PAGE, data, fetch, show_list
from gwctl.session import Session
from gwctl.tables import Column, of
from gwctl.tree import Noun
from gwctl.values import arg, flag, given, opt, whole

PATH = record_export.PATH
# What `--status error` means: everything that did not end as the client wanted.
_ERROR = ("failed", "incomplete", "refused")
_STATUSES = ("in_progress", "succeeded", "incomplete", "failed", "cancelled", "refused", "error")


COLUMNS = of(
    "GenerationRecord",
    Column("TIME", "created_at"),
    Column("ID", "id", name=True),
    Column("MODEL", lambda row: row.get("model") or row.get("requested_model")),
    Column("STATUS", "status", "state"),
    Column("IN", "tokens_prompt", leaves=1),
    Column("OUT", "tokens_completion", leaves=1),
    Column("COST", "total_cost"),
    Column("TIME TAKEN", "latency", leaves=2),
    Column("KEY", lambda row: row.get("key_name") or row.get("key_id"), leaves=1),
    Column(
        "WHY",
        lambda row: (
            (row.get("error") or {}).get("code")
            or ("insured" if row.get("insured") else row.get("finish_reason"))
        ),
    ),
)

activity = Noun("activity", "Requests, served and refused.")
NOUNS = [activity]

_KEY = opt("--key", "NAME", "Only this key (name or id).")
_MODEL = opt("--model", "MODEL", "Only this model.")
_STATUS = opt("--status", "STATUS", "succeeded, failed, refused, …; error for all that went wrong.")
_TAG = opt("--tag", "TAG", "Only requests with this tag.")
_LAST = opt("--last", "SPAN", "Only the last 1h, 7d, …")
_FROM = opt("--from", "TIME", "From this time on.")
_TO = opt("--to", "TIME", "Up to this time; a day is included (UTC).")


def _filters(
    session: Session, *, key: str | None, model: str | None, more: dict[str, Any]
) -> dict[str, Any]:
    from gwctl.keys import KEYS
    from gwctl.records import find

    key_id = str(find(session, KEYS, key)["id"]) if key is not None else None
    return {"key_id": key_id, "model": model, **more}


def _troubled(
    session: Session, query: dict[str, Any], *, limit: int, everything: bool
) -> tuple[list[Any], int | None]:
    """Records of each status that counts as an error, newest first."""
    rows: list[Any] = []
    total = 0
    for one in _ERROR:
        found, count = fetch(
            session, PATH, {**query, "status": one}, limit=limit, everything=everything
        )
        rows += found
        total += count or len(found)
    rows.sort(key=lambda row: str(row.get("settled_at")), reverse=True)
    return (rows if everything else rows[:limit]), total


@activity.verb(
    "list",
    "gwctl activity list --last 1h --status error --json id,model,status --jq '.[].id'",
    "gwctl activity list --key ci --model openai/gpt-5",
    lists=True,
)
def list_activity(
    session: Session,
    key: Annotated[str | None, _KEY] = None,
    model: Annotated[str | None, _MODEL] = None,
    status: Annotated[str | None, _STATUS] = None,
    user: Annotated[str | None, opt("--user", "ID", "Only this end user.")] = None,
    in_session: Annotated[str | None, opt("--session", "ID", "Only this session.")] = None,
    app: Annotated[str | None, opt("--app", "NAME", "Only this application.")] = None,
    tag: Annotated[str | None, _TAG] = None,
    last: Annotated[str | None, _LAST] = None,
    start: Annotated[str | None, _FROM] = None,
    end: Annotated[str | None, _TO] = None,
) -> None:
    """List requests, newest first; refusals are records too."""
    more = {
        "user": user,
        "session_id": in_session,
        "app": app,
        "tag": tag,
        **period(session, last, start, end),
    }
    query = _filters(session, key=key, model=model, more=more)
    if status is not None and status not in _STATUSES:
        raise usage(f"--status {status!r} is not known", do=f"one of: {', '.join(_STATUSES)}")
    if status != "error":
        show_list(session, PATH, {**query, "status": status}, COLUMNS, noun="request")
        return
    rows, total = _troubled(session, query, limit=session.limit, everything=session.everything)
    session.out.records(rows, COLUMNS, total=total, noun="request")


@activity.verb("show", "gwctl activity show gen-6vR2abc", "gwctl activity show gen-6vR2abc --json")
def show(
    session: Session, generation: Annotated[str, arg("GENERATION", "A generation id (gen-…).")]
) -> None:
    """Show one request with everything that is known of it."""
    record = data(session.api.get("/generation", {"id": generation}))
    if session.out.table:
        record = {name: value for name, value in record.items() if value not in (None, [], "")}
    session.out.record(record, "GenerationRecord")


@activity.verb(
    "tail",
    "gwctl activity tail --status error",
    "gwctl activity tail --json id,model,total_cost",
)
def tail(
    session: Session,
    key: Annotated[str | None, _KEY] = None,
    model: Annotated[str | None, _MODEL] = None,
    status: Annotated[str | None, _STATUS] = None,
    interval: Annotated[int, whole("--interval", "SECONDS", "How often to ask; 2.")] = 2,
) -> None:
    """Print requests as they end, until interrupted."""
    if status is not None and status not in _STATUSES:
        raise usage(f"--status {status!r} is not known", do=f"one of: {', '.join(_STATUSES)}")
    wanted = _ERROR if status == "error" else (status,)
    query = _filters(session, key=key, model=model, more={})
    pause_s = min(max(interval, 1), 86_400)
    # The list is in the order in which requests ended: what ends from now on stands before the newest there is.
    started = time_input.iso(time_input.utc_now())
    place = session.api.get(PATH, {**query, "limit": 1}).get("previous")
    while True:
        since = {"from": started} if place is None else {"before": place}
        reply = session.api.get(PATH, {**query, **since, "limit": PAGE})
        rows = data(reply)
        for row in reversed(rows):
            if status is None or row.get("status") in wanted:
                session.out.following(row, COLUMNS)
        place = reply.get("previous") or place
        if len(rows) < PAGE:
            time.sleep(pause_s)


@activity.verb(
    "export",
    "gwctl activity export --last 30d --csv -o activity.csv",
    "gwctl activity export --from 2026-11-01 --to 2026-11-30 --jsonl | gzip > november.jsonl.gz",
)
def export(
    session: Session,
    csv: Annotated[bool, flag("--csv", "Comma separated values (the default).")] = False,
    target: Annotated[Path | None, record_export.OUTPUT] = None,
    key: Annotated[str | None, _KEY] = None,
    model: Annotated[str | None, _MODEL] = None,
    status: Annotated[str | None, _STATUS] = None,
    tag: Annotated[str | None, _TAG] = None,
    last: Annotated[str | None, _LAST] = None,
    start: Annotated[str | None, _FROM] = None,
    end: Annotated[str | None, _TO] = None,
    after: Annotated[str | None, record_export.AFTER] = None,
) -> None:
    """Write all requests of a time as CSV, or as JSON with --json or --jsonl.

    They are written while they are read, newest first, each once, whatever is added meanwhile. A file gets its name
    when it is complete; what an export that broke off had written is in FILE.part, and a note says how to go on.
    """
    if csv and session.out.shape.machine:
        raise usage("--csv and --json exclude each other", do="give one of them")
    if status is not None and status not in _STATUSES:
        raise usage(f"--status {status!r} is not known", do=f"one of: {', '.join(_STATUSES)}")
    more = period(session, last, start, end)
    query = _filters(session, key=key, model=model, more={"tag": tag, **more})
    stretch = record_export.Stretch(query, _ERROR if status == "error" else (status,), after)
    words = {"--key": key, "--model": model, "--status": status, "--tag": tag}
    words |= {"--from": more["from"], "--to": more["to"]}
    record_export.export(session, stretch, target, ["activity", "export", *given(words)])
