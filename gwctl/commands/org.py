"""`gwctl org`: the organization, its settings, and (for operators) all organizations."""

from typing import Annotated, Any

from gwctl import schema
from gwctl.changes import create_record, report, send, unchanged, update_record
from gwctl.client import quote
from gwctl.errors import usage
from gwctl.records import Resource, data, find, same_field
from gwctl.session import Session
from gwctl.tables import Column, of, unambiguous
from gwctl.time_input import utc_now
from gwctl.tree import Noun
from gwctl.values import arg, assignments, body, opt
from gwctl.verbs import add_list

ORGANIZATIONS = Resource(
    noun="org",
    path="/organizations",
    id_prefix=("org_",),
    names=("slug", "name"),
    shown_once="management_key",
    created="Organization created. This is its owner's management key.",
    summary=lambda record: f"organization {record.get('name')}   id {record.get('id')}",
    columns=of(
        "OrganizationRecord",
        Column("NAME", "name"),
        Column("SLUG", "slug", name=True),
        Column("ID", "id", leaves=1),
        Column("CREATED", "created_at"),
    ),
)

org = Noun("org", "The organization and its settings.")
NOUNS = [org]

add_list(org, ORGANIZATIONS)


@org.verb("show", "gwctl org show", "gwctl org show acme --json")
def show(
    session: Session,
    reference: Annotated[str | None, arg("NAME", "Another organization (operator).")] = None,
) -> None:
    """Show your organization, or for an operator the named one."""
    if reference is None:
        session.out.record(data(session.api.get("/organization")), ORGANIZATIONS.record)
    else:
        session.out.record(find(session, ORGANIZATIONS, reference), ORGANIZATIONS.record)


@org.verb(
    "create",
    "gwctl org create Acme --email owner@acme.example",
    "KEY=$(gwctl org create Acme -q)",
    writes=True,
)
def create(
    session: Session,
    name: Annotated[str, arg("NAME", "Name of the organization.")],
    slug: Annotated[str | None, opt("--slug", "SLUG", "Short name; made from the name.")] = None,
    email: Annotated[str | None, opt("--email", "ADDRESS", "Address of its owner.")] = None,
) -> None:
    """Create an organization (operator); its owner's management key is shown once."""
    create_record(session, ORGANIZATIONS, body({"name": name, "slug": slug, "owner_email": email}))


@org.verb(
    "update",
    "gwctl org update --name 'Acme Ltd'",
    "gwctl org update --slug acme",
    "gwctl org update --org acme --name 'Acme Ltd'",
    writes=True,
)
def update(
    session: Session,
    name: Annotated[str | None, opt("--name", "NAME", "New name.")] = None,
    slug: Annotated[str | None, opt("--slug", "SLUG", "New short name.")] = None,
    organization: Annotated[
        str | None, opt("--org", "NAME", "Another organization (operator): name, slug or id.")
    ] = None,
) -> None:
    """Rename your organization, or for an operator any other."""
    if name is None and slug is None:
        raise usage("nothing to change was given", do="add --name or --slug")
    changes = body({"name": name, "slug": slug})
    if organization is not None:
        update_record(session, ORGANIZATIONS, organization, changes)
        return
    change_at(session, "/organization", changes, what="organization")


@org.verb("suspend", "gwctl org suspend acme", "gwctl org suspend acme --dry-run", writes=True)
def suspend(
    session: Session, reference: Annotated[str, arg("NAME", "Its name, slug or id.")]
) -> None:
    """Refuse all keys of an organization (operator), until it is resumed."""
    update_record(session, ORGANIZATIONS, reference, {"suspended": True})


@org.verb("resume", "gwctl org resume acme", "gwctl org resume acme --dry-run", writes=True)
def resume(
    session: Session, reference: Annotated[str, arg("NAME", "Its name, slug or id.")]
) -> None:
    """Let a suspended organization go on (operator)."""
    update_record(session, ORGANIZATIONS, reference, {"suspended": False})


@org.verb(
    "settings",
    "gwctl org settings",
    "gwctl org settings retention_days=30 forward_retired_models=false",
    "gwctl org settings 'allowed_models=openai/*,*/claude-*' data_policy=deny",
    "gwctl org settings --org acme byok_fee_percent=2.5",
    writes=True,
)
def settings(
    session: Session,
    words: Annotated[
        list[str] | None, arg("NAME=VALUE", "Settings to change; none shows them all.")
    ] = None,
    organization: Annotated[
        str | None, opt("--org", "NAME", "Another organization (operator): name, slug or id.")
    ] = None,
) -> None:
    """Show or change the organization's settings, or for an operator those of any other."""
    identity = organization_id(session, organization)
    path = "/organization/settings"
    if identity is not None:
        path = f"{ORGANIZATIONS.path}/{quote(identity)}/settings"
    if not words:
        session.out.record(data(session.api.get(path)), "SettingsRecord")
        return
    changes = _lists(assignments(words), schema.taken("PATCH", path))
    change_at(session, path, changes, what="organization settings")


def _lists(changes: dict[str, object], taken: str) -> dict[str, object]:
    """Lists as people type them: names with commas, and none for a list that cannot be null."""
    for name, value in changes.items():
        field = schema.field(taken, name)
        if not field.bare.startswith("["):
            continue
        if isinstance(value, str):
            changes[name] = [part for part in value.split(",") if part]
        elif value is None and not field.may_be_null:
            changes[name] = []
    return changes


def organization_id(session: Session, reference: str | None) -> str | None:
    """The id of an organization named on the command line."""
    return None if reference is None else str(find(session, ORGANIZATIONS, reference)["id"])


def change_at(session: Session, path: str, changes: dict[str, object], *, what: str) -> Any:
    """PATCH a record that has no id in its path, and say what changed; returns the reply."""
    before, shape = data(session.api.get(path)), schema.answered("GET", path)
    if all(
        name in before and same_field(schema.field(shape, name), before[name], value)
        for name, value in changes.items()
    ):
        unchanged(session, what, path, before)
        return None
    reply = send(session, "PATCH", path, changes, what=f"change {what}")
    if reply is None:
        return None
    after = data(reply)
    secret = "signing_secret" in reply
    if not (secret and (session.out.shape.machine or session.out.shape.quiet)):
        report(session, after, f"{what} updated")
    if session.out.shape.machine or session.out.shape.quiet:
        return reply
    for name in changes:
        kind = schema.field(shape, name).kind
        old, new = (unambiguous(record.get(name), kind, utc_now()) for record in (before, after))
        session.out.line(f"  {name}  {old} -> {new}")
    return reply
