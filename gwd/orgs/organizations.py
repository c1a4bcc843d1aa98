"""Organizations: created with a workspace and an owner, looked up, renamed, suspended, deleted."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core.caller import Caller
from gwd.core.clock import iso
from gwd.core.errors import AlreadyExists, NotFound
from gwd.core.fields import Id, Moment, Slug
from gwd.core.ids import mint
from gwd.core.inputs import NameInput, SlugInput
from gwd.orgs import checks
from gwd.orgs.rights import require
from gwd.orgs.settings import bump_revision
from gwd.orgs.tables import MemberRow, OrganizationRow, WorkspaceRow
from gwd.store import Connection

DEFAULT_WORKSPACE: Final = "default"


class Organization(msgspec.Struct, frozen=True, kw_only=True):
    """An organization; the owner named is the one who has been owner longest."""

    id: str
    name: str
    slug: str
    suspended: bool
    owner_user_id: str | None
    created_at_us: int
    updated_at_us: int


class OrganizationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who pays: an organization with its own credits, people, keys and settings."""

    id: Annotated[Id, Meta(description="`org_…`")]
    name: Annotated[str, Meta(description="What people call the organization.")]
    slug: Annotated[Slug, Meta(description="Its short name, the only one on this node.")]
    owner_user_id: Annotated[
        Id | None, Meta(description="The member who has been owner longest; null if there is none.")
    ]
    suspended: Annotated[
        bool, Meta(description="Whether the operator lets its keys do nothing for now.")
    ]
    created_at: Annotated[Moment, Meta(description="When it was made.")]
    updated_at: Annotated[
        Moment, Meta(description="When it, its settings or its workspaces were last changed.")
    ]


OrgName = Annotated[NameInput, Meta(description="What people call the organization.")]
OrgSlug = Annotated[SlugInput, Meta(description="Its short name, unique on the node.")]


class CreateOrganization(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new organization with its owner."""

    name: OrgName
    slug: Annotated[
        SlugInput | None,
        Meta(description="Its short name, unique on the node. Null makes one from the name."),
    ] = None
    owner_email: Annotated[
        str | None,
        Meta(description="The owner's address, for alerts by mail. Null sends none."),
    ] = None


class PatchOrganization(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of an organization: absent is unchanged."""

    name: OrgName | UnsetType = UNSET
    slug: OrgSlug | UnsetType = UNSET


class PatchAnyOrganization(PatchOrganization, frozen=True, kw_only=True):
    """Changes of any organization: absent is unchanged."""

    suspended: Annotated[
        bool | UnsetType,
        Meta(description="Whether its keys are refused until it may go on."),
    ] = UNSET


class CreatedOrganization(msgspec.Struct, frozen=True, kw_only=True):
    """A new organization with the ids of what was made along with it."""

    organization: Organization
    workspace_id: str
    owner_id: str


def create(connection: Connection, new: CreateOrganization, *, now_us: int) -> CreatedOrganization:
    """An organization with its workspace `default` and one owner."""
    name = checks.name(new.name)
    slug = checks.slug(new.slug if new.slug is not None else checks.slug_from(name))
    email = "" if new.owner_email is None else checks.email(new.owner_email, param="owner_email")
    _refuse_taken(connection, slug, but="")
    organization_id, workspace_id, owner_id = mint("org_"), mint("ws_"), mint("usr_")
    stamps = {"created_at": now_us, "updated_at": now_us}
    connection.run(OrganizationRow.insert(id=organization_id, name=name, slug=slug, **stamps))
    connection.run(
        WorkspaceRow.insert(
            id=workspace_id,
            organization_id=organization_id,
            name="Default",
            slug=DEFAULT_WORKSPACE,
            created_by=owner_id,
            **stamps,
        )
    )
    connection.run(
        MemberRow.insert(
            id=owner_id,
            organization_id=organization_id,
            email=email,
            role="owner",
            joined_at=now_us,
        )
    )
    return CreatedOrganization(
        organization=get(connection, organization_id), workspace_id=workspace_id, owner_id=owner_id
    )


def get(connection: Connection, organization_id: str) -> Organization:
    """One organization, by id."""
    row = connection.first(_live().where(OrganizationRow.id == organization_id))
    if row is None:
        raise NotFound("No such organization.")
    return _organization(connection, row)


def name_of(connection: Connection, organization_id: str) -> str | None:
    """What an organization is called, or was before it was deleted. Plain SQL: settlement asks."""
    row = connection.row("SELECT name FROM organization WHERE id = ?", (organization_id,))
    return None if row is None else row[0]


def made_us(connection: Connection, organization_id: str) -> int:
    """When an organization was made, one that was deleted too. Raises NotFound."""
    row = connection.row("SELECT created_at FROM organization WHERE id = ?", (organization_id,))
    if row is None:
        raise NotFound("No such organization.")
    return int(row[0])


def ids(connection: Connection) -> list[str]:
    """All organizations that are not deleted, oldest first."""
    rows = connection.run(_live().order_by(OrganizationRow.created_at, OrganizationRow.id))
    return [row.id for row in rows]


def list_organizations(
    connection: Connection, *, limit: int, offset: int
) -> tuple[list[Organization], int]:
    """All organizations of the node, oldest first, for its operator."""
    query = _live().order_by(OrganizationRow.created_at, OrganizationRow.id)
    rows = connection.run(query.limit(limit).offset(offset))
    return [_organization(connection, row) for row in rows], connection.count(query)


def operator_id(connection: Connection) -> str | None:
    """The operator's organization: the node's oldest."""
    row = connection.row(
        "SELECT id FROM organization WHERE deleted_at IS NULL ORDER BY created_at, id LIMIT 1"
    )
    return None if row is None else str(row[0])


def patch(
    connection: Connection,
    organization_id: str,
    changes: PatchOrganization,
    *,
    actor: Caller,
    now_us: int,
) -> Organization:
    """Rename, move to another slug. Other organizations, and whether one is suspended, are the operator's to change."""
    require(actor, "organization.write")
    if organization_id != actor.organization_id or isinstance(changes, PatchAnyOrganization):
        require(actor, "organizations.manage")
    get(connection, organization_id)
    fields: dict[str, Any] = {}
    if changes.name is not UNSET:
        fields["name"] = checks.name(changes.name)
    if changes.slug is not UNSET:
        fields["slug"] = checks.slug(changes.slug)
        _refuse_taken(connection, fields["slug"], but=organization_id)
    if isinstance(changes, PatchAnyOrganization) and changes.suspended is not UNSET:
        fields["suspended"] = changes.suspended
    if fields:
        connection.run(
            OrganizationRow.update(**fields).where(OrganizationRow.id == organization_id)
        )
        bump_revision(connection, organization_id, now_us=now_us)
    return get(connection, organization_id)


def delete(connection: Connection, organization_id: str, *, now_us: int) -> Organization:
    """Delete an organization: its keys die at once, its ledger and records stay. Gives back what was deleted."""
    organization = get(connection, organization_id)
    connection.run(
        OrganizationRow.update(deleted_at=now_us).where(OrganizationRow.id == organization_id)
    )
    bump_revision(connection, organization_id, now_us=now_us)
    return organization


def record(organization: Organization) -> OrganizationRecord:
    """The organization as the API shows it."""
    return OrganizationRecord(
        id=organization.id,
        name=organization.name,
        slug=organization.slug,
        owner_user_id=organization.owner_user_id,
        suspended=organization.suspended,
        created_at=iso(organization.created_at_us),
        updated_at=iso(organization.updated_at_us),
    )


def _refuse_taken(connection: Connection, slug: str, *, but: str) -> None:
    taken = _live().where((OrganizationRow.slug == slug) & (OrganizationRow.id != but))
    if connection.count(taken):
        raise AlreadyExists(
            f"An organization with the slug {slug} exists; choose another slug.", param="slug"
        )


def _live() -> Any:
    return OrganizationRow.select().where(OrganizationRow.deleted_at.is_null())


def _organization(connection: Connection, row: OrganizationRow) -> Organization:
    owner = connection.first(
        MemberRow.select(MemberRow.id)
        .where(
            (MemberRow.organization_id == row.id)
            & (MemberRow.role == "owner")
            & MemberRow.removed_at.is_null()
        )
        .order_by(MemberRow.joined_at, MemberRow.id)
    )
    return Organization(
        id=row.id,
        name=row.name,
        slug=row.slug,
        suspended=row.suspended,
        owner_user_id=None if owner is None else owner.id,
        created_at_us=row.created_at,
        updated_at_us=row.updated_at,
    )
