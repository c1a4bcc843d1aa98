"""`gwctl workspace`: workspaces, and a whole team in one command."""

import re
from typing import Annotated

from gwctl import team
from gwctl.changes import create_record, update_record
from gwctl.errors import CommandError
from gwctl.records import Resource, existing, find
from gwctl.session import Session
from gwctl.tables import Column, Record, of
from gwctl.tree import Noun
from gwctl.values import (
    RESETS,
    SORTS,
    amount,
    arg,
    assignments,
    body,
    flag,
    listed,
    one_of,
    opt,
    text_or_none,
)
from gwctl.verbs import add_delete, add_list, add_show

WORKSPACES = Resource(
    noun="workspace",
    path="/workspaces",
    by_path=True,
    id_prefix=("ws_",),
    names=("slug", "name"),
    columns=of(
        "WorkspaceRecord",
        Column("SLUG", "slug", name=True),
        Column("NAME", "name"),
        Column("ID", "id", leaves=1),
        Column("DESCRIPTION", "description"),
        Column("CREATED", "created_at"),
    ),
)

_TAG = opt("--tag", "TAG", "Tag of its keys' requests, all of them; none: no tag; repeatable.")

workspace = Noun("workspace", "Workspaces: groups of keys and people with budgets of their own.")
NOUNS = [workspace]

add_list(workspace, WORKSPACES)
add_show(workspace, WORKSPACES, "web")


@workspace.verb(
    "create",
    "gwctl workspace create web --lead ada@example.com --key-limit 50 --reset monthly",
    "gwctl workspace create batch --if-absent --json",
    writes=True,
)
def create(
    session: Session,
    name: Annotated[str, arg("NAME", "Name of the workspace.")],
    slug: Annotated[str | None, opt("--slug", "SLUG", "Short name; made from the name.")] = None,
    description: Annotated[str | None, opt("--description", "TEXT", "What it is for.")] = None,
    lead: Annotated[str | None, opt("--lead", "EMAIL", "Invite this person to lead it.")] = None,
    key_limit: Annotated[
        str | None, opt("--key-limit", "USD", "Make a key for the team with this limit.")
    ] = None,
    reset: Annotated[
        str | None, opt("--reset", "WINDOW", "Reset of that limit: daily, weekly, monthly.")
    ] = None,
    tag: Annotated[list[str] | None, _TAG] = None,
    if_absent: Annotated[bool, flag("--if-absent", "Accept one that exists.")] = False,
) -> None:
    """Create a workspace; with --lead and --key-limit a whole team.

    The invitation link and the key are shown once, each alone on its line with -q. Everything that
    exists already is kept, so the command can be repeated after a failure with --if-absent.
    """
    wanted = body(
        {
            "name": name,
            "slug": slug or slug_of(name),
            "description": description,
            "tags": listed(tag),
        }
    )
    limit, lead = amount("--key-limit", key_limit), team.lead_address(lead)
    window = one_of("--reset", reset, RESETS)
    record: Record | None = None
    if if_absent:
        record = existing(session, WORKSPACES, str(wanted["slug"]))
    if record is not None:
        session.out.note(f"workspace {name} exists")
    if lead is None and limit is None:
        if record is None:
            try:
                create_record(session, WORKSPACES, wanted)
            except CommandError as error:
                if not if_absent:
                    raise
                record = team.made_meanwhile(session, error, str(wanted["slug"]))
                if record is None:
                    raise
                session.out.note(f"workspace {name} exists")
        if record is not None and (session.out.shape.machine or session.out.shape.quiet):
            session.out.record(record, WORKSPACES.record)
        return
    team.create(session, record, wanted, team.Team(lead, limit, window, if_absent))


def slug_of(name: str) -> str:
    """Lower-case segments joined by single hyphens, as the API wants slugs."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].strip("-")


@workspace.verb(
    "update",
    "gwctl workspace update web --name 'Web team'",
    "gwctl workspace update web --description 'the shop'",
    "gwctl workspace update web --sort price --default-model openai/gpt-5",
    writes=True,
)
def update(
    session: Session,
    reference: Annotated[str, arg("SLUG", "Workspace slug or id.")],
    name: Annotated[str | None, opt("--name", "NAME", "New name.")] = None,
    slug: Annotated[str | None, opt("--slug", "SLUG", "New slug.")] = None,
    description: Annotated[str | None, opt("--description", "TEXT", "What it is for.")] = None,
    sort: Annotated[
        str | None,
        opt("--sort", "HOW", "price, throughput or latency; none: the organization's."),
    ] = None,
    model: Annotated[
        str | None,
        opt("--default-model", "MODEL", "Model of requests that name none; none: refuse them."),
    ] = None,
    tag: Annotated[list[str] | None, _TAG] = None,
) -> None:
    """Change a workspace."""
    changes = {
        "name": name,
        "slug": slug,
        "description": description,
        "default_provider_sort": one_of("--sort", sort, SORTS, clear=True),
        "default_text_model": text_or_none(model),
        "tags": listed(tag),
    }
    update_record(session, WORKSPACES, reference, body(changes))


@workspace.verb(
    "settings",
    "gwctl workspace settings web",
    "gwctl workspace settings web include_byok_in_budgets=true",
    writes=True,
)
def settings(
    session: Session,
    reference: Annotated[str, arg("SLUG", "Workspace slug or id.")],
    words: Annotated[
        list[str] | None, arg("NAME=VALUE", "Settings to change; none shows them.")
    ] = None,
) -> None:
    """Show or change a workspace's settings."""
    if words:
        update_record(session, WORKSPACES, reference, assignments(words))
    else:
        session.out.record(find(session, WORKSPACES, reference), WORKSPACES.record)


add_delete(workspace, WORKSPACES, "web")
