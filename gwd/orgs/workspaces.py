"""Workspaces: rooms inside an organization for keys, budgets and people; by id or slug."""

from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core import tags
from gwd.core.caller import Caller
from gwd.core.errors import AlreadyExists, Conflict, Forbidden, NotFound
from gwd.core.ids import mint
from gwd.core.inputs import NameInput, SlugInput, TextInput
from gwd.core.patches import named
from gwd.core.tags import TagsInput
from gwd.orgs import checks
from gwd.orgs.members import MemberRole
from gwd.orgs.organizations import DEFAULT_WORKSPACE
from gwd.orgs.policy import Sort
from gwd.orgs.rights import require
from gwd.orgs.settings import bump_revision
from gwd.orgs.tables import MemberRow, WorkspaceMemberRow, WorkspaceRow
from gwd.store import Connection

MAX_AT_ONCE: Final = 100

_tags: Final = msgspec.json.Decoder(list[str])


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace; its slug is unique within the organization."""

    id: str
    organization_id: str
    name: str
    slug: str
    description: str | None
    created_by: str | None
    default_provider_sort: Sort | None
    default_text_model: str | None
    include_byok_in_budgets: bool
    tags: list[str]
    created_at: int
    updated_at: int


Name = Annotated[NameInput, Meta(description="What people call the workspace.")]
Description = Annotated[TextInput, Meta(description="What it is for.")]
ProviderSort = Annotated[
    Sort,
    Meta(
        description="By what endpoints are tried in order, where neither a request nor its key names anything. Null is"
        " the organization's."
    ),
]
TextModel = Annotated[
    TextInput,
    Meta(
        description="The model that serves requests of its keys which name none, embeddings excepted. Null: such"
        " requests are refused."
    ),
]
Tags = Annotated[
    TagsInput,
    Meta(
        description="Tags that every request of its keys bears beside its own and the key's, at most eight."
    ),
]
WithByok = Annotated[
    bool,
    Meta(
        description="Whether its budgets, when they are made, count requests on the owner's own vendor keys."
    ),
]


class CreateWorkspace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new workspace."""

    name: Name
    slug: Annotated[
        SlugInput | None,
        Meta(
            description="Its short name, unique in the organization. Null makes one from the name."
        ),
    ] = None
    description: Description | None = None
    default_provider_sort: ProviderSort | None = None
    default_text_model: TextModel | None = None
    include_byok_in_budgets: WithByok = False
    tags: Tags = []


class PatchWorkspace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a workspace: absent is unchanged, null clears."""

    name: Name | UnsetType = UNSET
    slug: Annotated[
        SlugInput | UnsetType,
        Meta(
            description="Its short name, unique in the organization. That of the default workspace stays."
        ),
    ] = UNSET
    description: Description | UnsetType | None = UNSET
    default_provider_sort: ProviderSort | UnsetType | None = UNSET
    default_text_model: TextModel | UnsetType | None = UNSET
    include_byok_in_budgets: WithByok | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET


class WorkspaceMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member inside a workspace; a lead manages it with a key bound to it."""

    user_id: str
    email: str
    role: MemberRole
    is_lead: bool
    added_at: int


def create(
    connection: Connection,
    organization_id: str,
    new: CreateWorkspace,
    *,
    created_by: str | None,
    now_us: int,
) -> Workspace:
    """A workspace; the slug is made from the name when absent."""
    name = checks.name(new.name)
    slug = checks.slug(new.slug if new.slug is not None else checks.slug_from(name))
    _refuse_taken(connection, organization_id, slug, but="")
    workspace_id = mint("ws_")
    connection.run(
        WorkspaceRow.insert(
            id=workspace_id,
            organization_id=organization_id,
            name=name,
            slug=slug,
            description=checks.optional_text(new.description, param="description"),
            created_by=created_by,
            default_provider_sort=new.default_provider_sort,
            default_text_model=checks.optional_text(
                new.default_text_model, param="default_text_model"
            ),
            include_byok_in_budgets=new.include_byok_in_budgets,
            tags=list(tags.checked(new.tags, param="tags")),
            created_at=now_us,
            updated_at=now_us,
        )
    )
    bump_revision(connection, organization_id, now_us=now_us)
    return get(connection, organization_id, workspace_id)


def get(connection: Connection, organization_id: str, ref: str) -> Workspace:
    """One workspace by id or slug; foreign, deleted and absent ones are the same NotFound."""
    row = connection.first(
        _live(organization_id).where((WorkspaceRow.id == ref) | (WorkspaceRow.slug == ref))
    )
    if row is None:
        raise NotFound("No such workspace.")
    return _workspace(row)


def default(connection: Connection, organization_id: str) -> Workspace:
    """The workspace every organization has."""
    return get(connection, organization_id, DEFAULT_WORKSPACE)


def list_workspaces(
    connection: Connection, organization_id: str, *, limit: int, offset: int
) -> tuple[list[Workspace], int]:
    """All workspaces, oldest first."""
    query = _live(organization_id).order_by(WorkspaceRow.created_at, WorkspaceRow.id)
    rows = connection.run(query.limit(limit).offset(offset))
    return [_workspace(row) for row in rows], connection.count(query)


def patch(
    connection: Connection,
    organization_id: str,
    ref: str,
    changes: PatchWorkspace,
    *,
    actor: Caller,
    now_us: int,
) -> Workspace:
    """Change what is named. The default workspace keeps its slug: scripts rely on it."""
    require(actor, "workspaces.write")
    workspace = get(connection, organization_id, ref)
    require_within(actor, workspace.id)
    fields = named(changes)
    if "name" in fields:
        fields["name"] = checks.name(fields["name"])
    for name in ("description", "default_text_model"):
        if name in fields:
            fields[name] = checks.optional_text(fields[name], param=name)
    if "tags" in fields:
        fields["tags"] = list(tags.checked(fields["tags"], param="tags"))
    if "slug" in fields and checks.slug(fields["slug"]) != workspace.slug:
        if workspace.slug == DEFAULT_WORKSPACE:
            raise Conflict("The default workspace keeps its slug.", param="slug")
        _refuse_taken(connection, organization_id, fields["slug"], but=workspace.id)
    if fields:
        connection.run(
            WorkspaceRow.update(**fields, updated_at=now_us).where(WorkspaceRow.id == workspace.id)
        )
        bump_revision(connection, organization_id, now_us=now_us)
    return get(connection, organization_id, workspace.id)


def delete(
    connection: Connection, organization_id: str, ref: str, *, live_keys: int, now_us: int
) -> Workspace:
    """Delete a workspace without live keys (the caller counts them); its records stay readable. Gives it back."""
    workspace = get(connection, organization_id, ref)
    if workspace.slug == DEFAULT_WORKSPACE:
        raise Conflict("The default workspace cannot be deleted.")
    if live_keys:
        raise Conflict(
            f"The workspace has {live_keys} live {'key' if live_keys == 1 else 'keys'}; delete them first."
        )
    connection.run(
        WorkspaceRow.update(deleted_at=now_us, updated_at=now_us).where(
            WorkspaceRow.id == workspace.id
        )
    )
    connection.run(
        WorkspaceMemberRow.delete().where(WorkspaceMemberRow.workspace_id == workspace.id)
    )
    bump_revision(connection, organization_id, now_us=now_us)
    return workspace


class Defaults(NamedTuple):
    """What a workspace says for requests that say nothing."""

    provider_sort: Sort | None
    text_model: str | None
    tags: list[str]


def defaults_of(connection: Connection, workspace_id: str | None) -> Defaults:
    """The defaults of a key's workspace. Plain SQL: authentication asks."""
    row = connection.row(
        "SELECT default_provider_sort, default_text_model, tags FROM workspace WHERE id = ?",
        (workspace_id,),
    )
    if row is None:
        return Defaults(None, None, [])
    provider_sort, text_model, stored = row
    return Defaults(provider_sort, text_model, _tags.decode(stored))


def name_of(connection: Connection, workspace_id: str) -> str | None:
    """What a workspace is called, or was before it was deleted. Plain SQL: settlement asks."""
    row = connection.row("SELECT name FROM workspace WHERE id = ?", (workspace_id,))
    return None if row is None else row[0]


def is_deleted(connection: Connection, workspace_id: str | None) -> bool:
    """Whether a workspace that was there is gone."""
    row = connection.row(
        "SELECT 1 FROM workspace WHERE id = ? AND deleted_at IS NOT NULL", (workspace_id,)
    )
    return row is not None


def names(connection: Connection, organization_id: str) -> dict[str, str]:
    """What an organization's workspaces are called by id, or were before they were deleted."""
    return dict(
        connection.rows(
            "SELECT id, name FROM workspace WHERE organization_id = ?", (organization_id,)
        )
    )


def list_members(
    connection: Connection, organization_id: str, ref: str, *, limit: int, offset: int
) -> tuple[list[WorkspaceMember], int]:
    """Who is in a workspace, in the order they came."""
    query = _members(get(connection, organization_id, ref))
    rows = connection.run(query.limit(limit).offset(offset).dicts())
    return [WorkspaceMember(**row) for row in rows], connection.count(query)


def members_among(
    connection: Connection, organization_id: str, ref: str, user_ids: list[str]
) -> list[WorkspaceMember]:
    """Those of `user_ids` who are in a workspace."""
    query = _members(get(connection, organization_id, ref))
    rows = connection.run(query.where(WorkspaceMemberRow.user_id.in_(user_ids)).dicts())
    return [WorkspaceMember(**row) for row in rows]


def add_members(
    connection: Connection,
    organization_id: str,
    ref: str,
    user_ids: list[str],
    *,
    actor: Caller,
    lead: bool = False,
    now_us: int,
) -> list[str]:
    """Add members of the organization, as leads if asked for; gives back who was added or became lead."""
    require(actor, "workspaces.write")
    workspace = get(connection, organization_id, ref)
    require_within(actor, workspace.id)
    added = []
    for index, user_id in enumerate(user_ids):
        found = MemberRow.select().where(
            (MemberRow.organization_id == organization_id)
            & (MemberRow.id == user_id)
            & MemberRow.removed_at.is_null()
        )
        if connection.first(found) is None:
            raise NotFound(
                "No such member in this organization; invite the person first.",
                param=f"user_ids[{index}]",
            )
        if enter(connection, workspace.id, user_id, is_lead=lead, now_us=now_us):
            added.append(user_id)
    return added


def enter(
    connection: Connection, workspace_id: str, user_id: str, *, is_lead: bool, now_us: int
) -> bool:
    """Put a member into a workspace, or make one who is in its lead; false if nothing changed."""
    changed = connection.execute(
        "INSERT INTO workspace_member (workspace_id, user_id, is_lead, added_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET is_lead = 1 WHERE excluded.is_lead > is_lead",
        (workspace_id, user_id, int(is_lead), now_us),
    )
    return changed > 0


def remove_members(
    connection: Connection, organization_id: str, ref: str, user_ids: list[str], *, actor: Caller
) -> list[str]:
    """Take members out of a workspace; they stay in the organization. Gives back who was taken out."""
    workspace = get(connection, organization_id, ref)
    require_within(actor, workspace.id)
    return [
        user_id
        for user_id in user_ids
        if connection.run(WorkspaceMemberRow.delete().where(_is_in(workspace.id, user_id)))
    ]


def has_member(connection: Connection, workspace_id: str, user_id: str) -> bool:
    """Whether a member has been added to a workspace."""
    return connection.count(WorkspaceMemberRow.select().where(_is_in(workspace_id, user_id))) > 0


def _is_in(workspace_id: str, user_id: str) -> Any:
    return (WorkspaceMemberRow.workspace_id == workspace_id) & (
        WorkspaceMemberRow.user_id == user_id
    )


def require_within(actor: Caller, workspace_id: str) -> None:
    """A lead's authority ends at the workspace its key is bound to."""
    if actor.workspace_id not in (None, workspace_id):
        raise Forbidden("This management key is bound to another workspace.")


def _live(organization_id: str) -> Any:
    return WorkspaceRow.select().where(
        (WorkspaceRow.organization_id == organization_id) & WorkspaceRow.deleted_at.is_null()
    )


def _members(workspace: Workspace) -> Any:
    return (
        WorkspaceMemberRow.select(
            WorkspaceMemberRow.user_id,
            MemberRow.email,
            MemberRow.role,
            WorkspaceMemberRow.is_lead,
            WorkspaceMemberRow.added_at,
        )
        .join(MemberRow, on=(MemberRow.id == WorkspaceMemberRow.user_id))
        .where(WorkspaceMemberRow.workspace_id == workspace.id)
        .order_by(WorkspaceMemberRow.added_at, WorkspaceMemberRow.user_id)
    )


def _refuse_taken(connection: Connection, organization_id: str, slug: str, *, but: str) -> None:
    taken = _live(organization_id).where((WorkspaceRow.slug == slug) & (WorkspaceRow.id != but))
    if connection.count(taken):
        raise AlreadyExists(
            f"A workspace with the slug {slug} exists; choose another slug.", param="slug"
        )


def _workspace(row: WorkspaceRow) -> Workspace:
    return Workspace(**{name: getattr(row, name) for name in Workspace.__struct_fields__})
