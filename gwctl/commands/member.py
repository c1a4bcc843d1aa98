"""`gwctl member`: members, roles and invitations."""

from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from gwctl.changes import create_record, delete_record, send, update_record
from gwctl.keys import workspace_id
from gwctl.records import Resource, data, list_records
from gwctl.secret_input import read_secret
from gwctl.session import Session
from gwctl.tables import Column, Record, of
from gwctl.text import mask_keys
from gwctl.tree import Noun
from gwctl.values import arg, body, flag, one_of, opt
from gwctl.verbs import add_list

ROLES = ("member", "billing", "admin", "owner")

MEMBERS = Resource(
    noun="member",
    path="/organization/members",
    names=("email",),
    columns=of(
        "MemberRecord",
        Column(
            "NAME",
            lambda r: " ".join(str(r[n]) for n in ("first_name", "last_name") if r.get(n)),
        ),
        Column("EMAIL", "email", name=True),
        Column("ROLE", "role"),
        Column("ID", lambda r: r.get("id") or r.get("user_id"), "id", leaves=1),
        Column("JOINED", "joined_at"),
    ),
)

INVITATIONS = Resource(
    noun="invitation",
    path="/organization/invitations",
    id_prefix=("inv_",),
    names=("email",),
    rank=lambda record: int(record.get("status") == "pending"),
    shown_once="accept_url",
    created="Invitation created. This link lets the person join.",
    summary=lambda record: (
        f"for {record.get('email')}   role {record.get('role')}"
        f"   id {record.get('id')}   until {record.get('expires_at')}"
    ),
    columns=of(
        "InvitationRecord",
        Column("EMAIL", "email", name=True),
        Column("ROLE", "role"),
        Column("STATUS", "status", "state"),
        Column("ID", "id", leaves=1),
        Column("EXPIRES", "expires_at"),
    ),
)

member = Noun("member", "Members, roles and invitations.")
NOUNS = [member]

add_list(member, MEMBERS)


@member.verb(
    "invite",
    "gwctl member invite ada@example.com --workspace web --lead",
    "LINK=$(gwctl member invite bob@example.com -q)",
    writes=True,
)
def invite(
    session: Session,
    email: Annotated[str, arg("EMAIL", "Address of the person.")],
    role: Annotated[
        str, opt("--role", "ROLE", "member (the default), billing, admin or owner.")
    ] = "member",
    workspace: Annotated[
        list[str] | None, opt("--workspace", "SLUG", "Workspace to join; repeatable.")
    ] = None,
    lead: Annotated[
        bool, flag("--lead", "The person leads that one workspace: an admin inside it.")
    ] = False,
) -> None:
    """Invite a person; the link is shown once and valid for seven days."""
    ids = [workspace_id(session, reference) for reference in workspace or []]
    wanted = {
        "email": email,
        "role": one_of("--role", role, ROLES),
        "workspace_ids": ids or None,
        "is_lead": lead or None,
    }
    create_record(session, INVITATIONS, body(wanted))


@member.verb(
    "role",
    "gwctl member role ada@example.com billing",
    "gwctl member role usr_6vR2abc admin --dry-run",
    writes=True,
)
def role(
    session: Session,
    reference: Annotated[str, arg("EMAIL", "Address or id of the member.")],
    new_role: Annotated[str, arg("ROLE", "member, billing, admin or owner.")],
) -> None:
    """Give a member another role."""
    update_record(session, MEMBERS, reference, {"role": one_of("ROLE", new_role, ROLES)})


@member.verb(
    "remove",
    "gwctl member remove ada@example.com",
    "gwctl member remove ada@example.com --keep-keys --yes",
    writes=True,
)
def remove(
    session: Session,
    reference: Annotated[str, arg("EMAIL", "Address or id of the member.")],
    keep_keys: Annotated[
        bool, flag("--keep-keys", "Their inference keys go on working; otherwise all stop.")
    ] = False,
) -> None:
    """Remove a member from the organization; asks for the address. Says which keys stop and which live on."""
    query = {"keep_keys": True} if keep_keys else None
    delete_record(session, MEMBERS, reference, verb="remove", query=query)


@member.verb(
    "invitations",
    "gwctl member invitations",
    "gwctl member invitations --json email,status",
    lists=True,
)
def invitations(session: Session) -> None:
    """List invitations and what became of them."""
    list_records(session, INVITATIONS)


@member.verb(
    "revoke",
    "gwctl member revoke ada@example.com",
    "gwctl member revoke inv_6vR2abc --yes",
    writes=True,
)
def revoke(
    session: Session,
    reference: Annotated[str, arg("EMAIL", "Address or id of the invitation.")],
) -> None:
    """Revoke an invitation that was not accepted."""
    delete_record(session, INVITATIONS, reference, verb="revoke")


@member.verb(
    "accept",
    "gwctl member accept",
    "gwctl member accept --secret-file invitation.txt -q",
    writes=True,
)
def accept(
    session: Session,
    secret_stdin: Annotated[bool, flag("--secret-stdin", "Read the link from stdin.")] = False,
    secret_file: Annotated[
        Path | None, opt("--secret-file", "FILE", "Read the link from a file.")
    ] = None,
    first_name: Annotated[str | None, opt("--first-name", "NAME", "Your first name.")] = None,
    last_name: Annotated[str | None, opt("--last-name", "NAME", "Your last name.")] = None,
) -> None:
    """Accept an invitation by its link or token; your management key is shown once."""
    token = token_of(read_secret("invitation link", stdin=secret_stdin, file=secret_file))
    person = {"first_name": first_name, "last_name": last_name}
    if session.dry_run:
        send(session, "POST", "/invitations/accept", {"token": "…"}, what="accept an invitation")
        return
    reply = session.anonymous.post("/invitations/accept", {"token": token, **body(person)})
    record: Record = data(reply)
    summary = f"member {record.get('email') or record.get('id')}   role {record.get('role')}"
    session.out.secret(
        "Welcome. This is your management key.",
        "management_key",
        str(reply.get("management_key") or ""),
        record,
        f"{summary}   keep it with: gwctl login --url {mask_keys(session.settings.url())}",
    )


def token_of(link: str) -> str:
    """The token inside an invitation link; a bare token stays as it is."""
    if "://" not in link:
        return link
    parts = urlsplit(link)
    query = parse_qs(parts.query) | parse_qs(parts.fragment)
    if query.get("token"):
        return query["token"][0]
    return parts.path.rstrip("/").rpartition("/")[2]
