"""A whole team in one command: workspace, invitation and key; what is there already is kept."""

import re
from dataclasses import dataclass
from typing import Any

from gwctl.changes import report, send
from gwctl.client import quote
from gwctl.commands.member import INVITATIONS, MEMBERS
from gwctl.errors import CommandError, usage
from gwctl.keys import KEYS, is_live
from gwctl.records import called, data
from gwctl.session import Session
from gwctl.tables import Record
from gwctl.values import body

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+", re.ASCII)


@dataclass(frozen=True)
class Team:
    """What `workspace create` was asked for beside the workspace itself."""

    lead: str | None
    limit: object
    window: str | None
    if_absent: bool


def lead_address(text: str | None) -> str | None:
    """The address as it is sent; refused here, because the workspace is made before the invitation."""
    if text is not None and (not _EMAIL.fullmatch(text.strip()) or not text.isprintable()):
        raise usage(f"--lead {text!r} is not an address", do="for example --lead ada@example.com")
    return text.strip() if text is not None else None


def create(session: Session, record: Record | None, wanted: Record, team: Team) -> None:
    """Make what is missing, in this order; what is shown once is printed as soon as it was made."""
    made: dict[str, Any] = {}
    try:
        workspace = record or _workspace(session, wanted, if_absent=team.if_absent)
        made["workspace"] = workspace
        if team.lead is not None:
            made |= _invitation(session, workspace, team.lead, team)
        if team.limit is not None:
            made |= _key(session, workspace, str(wanted["slug"]), team)
    finally:
        if session.out.shape.machine and made and not session.dry_run:
            session.out.data_once(made)
    if any(name in made and not made[name] for name in ("accept_url", "key")):
        raise CommandError(
            "the link or key was already shown",
            code="secret_not_shown",
            why="the same request was made before; secrets are shown once and not stored",
            do="gwctl key rotate NAME makes a new key, gwctl member revoke EMAIL room for a new link",
        )
    if not session.dry_run and not session.out.shape.machine and not session.out.shape.quiet:
        report(session, workspace, f"workspace {wanted['slug']} is ready")


def made_meanwhile(session: Session, error: CommandError, slug: str) -> Record | None:
    """The workspace that somebody else made between our look and our request; None for another error."""
    if error.code != "already_exists":
        return None
    found: Record = data(session.api.get(f"/workspaces/{quote(slug)}"))
    return found


def _workspace(session: Session, wanted: Record, *, if_absent: bool) -> Record:
    slug = wanted["slug"]
    try:
        reply = send(session, "POST", "/workspaces", wanted, what=f"create workspace {slug}")
    except CommandError as error:
        record = made_meanwhile(session, error, slug) if if_absent else None
        if record is None:
            raise
        return record
    return data(reply) if reply is not None else {"id": "(new)", "slug": slug}


def _invitation(session: Session, workspace: Record, lead: str, team: Team) -> dict[str, Any]:
    if team.if_absent and (there := _invited(session, workspace, lead)):
        session.out.note(there)
        return {}
    wanted = {"email": lead, "is_lead": True, "workspace_ids": [workspace["id"]]}
    reply = send(session, "POST", INVITATIONS.path, wanted, what=f"invite {lead}")
    if reply is None:
        return {}
    _show_once(session, f"{lead} can join with", reply.get("accept_url"))
    return {"accept_url": reply.get("accept_url"), "invitation": data(reply)}


def _invited(session: Session, workspace: Record, lead: str) -> str:
    """What there is already for this person; empty where they have to be invited."""
    for invitation in called(session, INVITATIONS, lead):
        if invitation.get("status") == "pending" and workspace["id"] in (
            invitation.get("workspace_ids") or ()
        ):
            again = f"gwctl member revoke {lead} makes room for a new one"
            return f"{lead} is invited; the link was shown once ({again})"
    if called(session, MEMBERS, lead):
        return f"{lead} is a member already"
    return ""


def _key(session: Session, workspace: Record, slug: str, team: Team) -> dict[str, Any]:
    if team.if_absent and session.dry_run:
        for record in called(session, KEYS, slug):
            if is_live(record) and record.get("workspace_id") == workspace["id"]:
                return _there(session, record)
    policy = {
        "name": slug,
        "limit": team.limit,
        "limit_reset": team.window,
        "workspace_id": workspace["id"],
        "if_absent": team.if_absent or None,
    }
    reply = send(session, "POST", KEYS.path, body(policy), what=f"create key {slug}")
    if reply is None:
        return {}
    if reply.get("existed"):
        return _there(session, data(reply))
    _show_once(session, "Its key", reply.get("key"))
    if not session.out.shape.machine and not session.out.shape.quiet:
        session.out.line(KEYS.summary(data(reply)))
    return {"key": reply.get("key"), "key_record": data(reply)}


def _there(session: Session, record: Record) -> dict[str, Any]:
    hint = f"gwctl key rotate {record.get('id')} makes a new secret"
    session.out.note(f"key {record.get('name')} exists; its secret was shown once ({hint})")
    return {"key_record": record}


def _show_once(session: Session, title: str, secret: Any) -> None:
    """Alone on its line with -q; JSON has it in the whole."""
    if session.out.shape.machine or not secret:
        return
    if session.out.shape.quiet:
        session.out.line(str(secret))
    else:
        session.out.line(f"{title} (shown once):\n\n  {secret}\n")
    session.out.flush()
