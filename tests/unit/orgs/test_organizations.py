"""Organizations, workspaces, members: made, changed, deleted, and what each role may."""

import pytest

from gwd.core.errors import AlreadyExists, Conflict, Forbidden, InvalidValue, NotFound
from gwd.orgs import members, organizations, workspaces
from gwd.orgs.members import NewMember
from gwd.orgs.organizations import (
    CreatedOrganization,
    CreateOrganization,
    PatchAnyOrganization,
    PatchOrganization,
)
from gwd.orgs.settings import revision, settings
from gwd.orgs.workspaces import CreateWorkspace, PatchWorkspace
from gwd.store import Connection
from tests.support.people import caller, organization, person
from tests.support.store import NOW_US, connection

__all__ = ["connection"]


@pytest.fixture
def made(connection: Connection) -> CreatedOrganization:
    return organization(connection)


def new_workspace(connection, made, name="Web Team", **fields):
    new = CreateWorkspace(name=name, **fields)
    return workspaces.create(
        connection, made.organization.id, new, created_by=made.owner_id, now_us=NOW_US
    )


def test_an_organization_starts_with_a_default_workspace_and_one_owner(connection, made):
    assert made.organization.slug == "acme"
    assert made.organization.owner_user_id == made.owner_id
    listed, total = workspaces.list_workspaces(connection, made.organization.id, limit=9, offset=0)
    assert total == 1
    assert [workspace.slug for workspace in listed] == ["default"]
    people, total = members.list_members(connection, made.organization.id, limit=9, offset=0)
    assert [(one.role, one.email) for one in people] == [("owner", "owner@acme.example")]
    assert members.record(people[0]).joined_at == "2026-09-21T14:13:20Z"


def test_an_owner_without_address_is_shown_with_null(connection):
    made = organizations.create(connection, CreateOrganization(name="Solo"), now_us=NOW_US)
    owner = members.get(connection, made.organization.id, made.owner_id)
    assert members.record(owner).email is None


def test_slugs_of_organizations_are_unique(connection, made):
    with pytest.raises(AlreadyExists):
        organizations.create(connection, CreateOrganization(name="ACME!"), now_us=NOW_US)
    other = organization(connection, "Other")
    with pytest.raises(AlreadyExists):
        organizations.patch(
            connection,
            other.organization.id,
            PatchOrganization(slug="acme"),
            actor=caller(other, "owner"),
            now_us=NOW_US,
        )


@pytest.mark.parametrize("slug", ["", "A", "a--b", "-a", "a-", "a_b", "ä", "x" * 51, "a\n"])
def test_a_slug_is_lower_case_segments_joined_by_single_hyphens(connection, slug):
    with pytest.raises(InvalidValue) as refused:
        organizations.create(connection, CreateOrganization(name="n", slug=slug), now_us=NOW_US)
    assert refused.value.param == "slug"


def test_a_change_the_pipeline_reads_bumps_the_revision(connection, made):
    organization_id = made.organization.id
    before = revision(connection, organization_id)
    changed = organizations.patch(
        connection,
        organization_id,
        PatchAnyOrganization(suspended=True),
        actor=caller(made, "operator"),
        now_us=NOW_US,
    )
    assert changed.suspended
    assert revision(connection, organization_id) == before + 1
    new_workspace(connection, made)
    assert revision(connection, organization_id) == before + 2
    assert revision(connection, "org_absent") == -1


def test_a_deleted_organization_is_gone_and_its_slug_is_free(connection, made):
    other = organization(connection, "Other")
    organizations.delete(connection, other.organization.id, now_us=NOW_US)
    with pytest.raises(NotFound):
        organizations.get(connection, other.organization.id)
    with pytest.raises(NotFound):
        settings(connection, other.organization.id)
    listed, total = organizations.list_organizations(connection, limit=9, offset=0)
    assert (total, [one.id for one in listed]) == (1, [made.organization.id])
    assert organization(connection, "Other").organization.id != other.organization.id


def test_a_workspace_is_found_by_id_or_slug_within_its_organization(connection, made):
    web = new_workspace(connection, made, description=" the site ")
    assert web.slug == "web-team"
    assert web.description == "the site"
    organization_id = made.organization.id
    assert workspaces.get(connection, organization_id, "web-team") == web
    assert workspaces.get(connection, organization_id, web.id) == web
    other = organization(connection, "Other")
    for ref in (web.id, "web-team"):
        with pytest.raises(NotFound):
            workspaces.get(connection, other.organization.id, ref)


def test_a_workspace_slug_is_free_again_after_deletion(connection, made):
    web = new_workspace(connection, made)
    with pytest.raises(AlreadyExists):
        new_workspace(connection, made)
    workspaces.delete(connection, made.organization.id, web.id, live_keys=0, now_us=NOW_US)
    assert new_workspace(connection, made).id != web.id


def test_the_default_workspace_stays_and_keeps_its_slug(connection, made):
    organization_id = made.organization.id
    with pytest.raises(Conflict):
        workspaces.delete(connection, organization_id, "default", live_keys=0, now_us=NOW_US)
    owner = caller(made, "owner")
    with pytest.raises(Conflict):
        workspaces.patch(
            connection,
            organization_id,
            "default",
            PatchWorkspace(slug="main"),
            actor=owner,
            now_us=NOW_US,
        )
    changes = PatchWorkspace(name="Main", default_provider_sort="price")
    after = workspaces.patch(
        connection, organization_id, "default", changes, actor=owner, now_us=NOW_US
    )
    assert (after.name, after.default_provider_sort, after.slug) == ("Main", "price", "default")


def test_a_workspace_with_live_keys_is_not_deleted(connection, made):
    new_workspace(connection, made)
    with pytest.raises(Conflict, match="1 live key;"):
        workspaces.delete(connection, made.organization.id, "web-team", live_keys=1, now_us=NOW_US)


def test_workspace_members_are_added_once_and_taken_out(connection, made):
    organization_id = made.organization.id
    new_workspace(connection, made)
    ada = person(connection, made, "member", "ada")
    owner = caller(made, "owner")
    assert ada.user_id is not None
    add = [ada.user_id, made.owner_id]
    args = (connection, organization_id, "web-team")
    assert workspaces.add_members(*args, add, actor=owner, now_us=NOW_US) == add
    assert workspaces.add_members(*args, add, actor=owner, now_us=NOW_US) == []
    listed, total = workspaces.list_members(*args, limit=1, offset=0)
    assert total == 2
    assert len(listed) == 1
    assert workspaces.remove_members(*args, [ada.user_id, "usr_x"], actor=owner) == [ada.user_id]
    with pytest.raises(NotFound) as refused:
        workspaces.add_members(*args, [made.owner_id, "usr_x"], actor=owner, now_us=NOW_US)
    assert refused.value.param == "user_ids[1]"


def test_a_lead_writes_its_own_workspace_only(connection, made):
    web = new_workspace(connection, made)
    lead = caller(made, "admin", workspace_id=web.id)
    organization_id = made.organization.id
    renamed = workspaces.patch(
        connection,
        organization_id,
        web.id,
        PatchWorkspace(name="Site"),
        actor=lead,
        now_us=NOW_US,
    )
    assert renamed.name == "Site"
    with pytest.raises(Forbidden):
        workspaces.patch(
            connection,
            organization_id,
            "default",
            PatchWorkspace(name="Mine"),
            actor=lead,
            now_us=NOW_US,
        )
    with pytest.raises(Forbidden):
        members.remove(connection, organization_id, made.owner_id, actor=lead, now_us=NOW_US)


def test_the_last_owner_can_be_neither_removed_nor_demoted(connection, made):
    organization_id, owner = made.organization.id, caller(made, "owner")
    with pytest.raises(Conflict):
        members.remove(connection, organization_id, made.owner_id, actor=owner, now_us=NOW_US)
    with pytest.raises(Conflict):
        members.change_role(connection, organization_id, made.owner_id, "admin", actor=owner)
    second = person(connection, made, "owner", "second")
    members.change_role(connection, organization_id, made.owner_id, "admin", actor=owner)
    assert second.user_id is not None
    with pytest.raises(Conflict):
        members.remove(connection, organization_id, second.user_id, actor=second, now_us=NOW_US)


def test_admins_write_members_but_not_owners_and_grant_at_most_admin(connection, made):
    organization_id = made.organization.id
    admin = person(connection, made, "admin")
    ada = person(connection, made, "member", "ada")
    assert ada.user_id is not None
    after = members.change_role(connection, organization_id, ada.user_id, "billing", actor=admin)
    assert after.role == "billing"
    with pytest.raises(Forbidden):
        members.change_role(connection, organization_id, ada.user_id, "owner", actor=admin)
    with pytest.raises(Forbidden):
        members.change_role(connection, organization_id, made.owner_id, "member", actor=admin)
    with pytest.raises(Forbidden):
        members.remove(connection, organization_id, made.owner_id, actor=admin, now_us=NOW_US)


def test_a_removed_member_is_gone_everywhere_and_may_come_back_as_somebody_new(connection, made):
    organization_id, owner = made.organization.id, caller(made, "owner")
    new_workspace(connection, made)
    ada = person(connection, made, "member", "ada")
    assert ada.user_id is not None
    workspaces.add_members(
        connection, organization_id, "web-team", [ada.user_id], actor=owner, now_us=NOW_US
    )
    members.remove(connection, organization_id, ada.user_id, actor=owner, now_us=NOW_US)
    with pytest.raises(NotFound):
        members.get(connection, organization_id, ada.user_id)
    _, total = workspaces.list_members(connection, organization_id, "web-team", limit=9, offset=0)
    assert total == 0
    assert members.current_role(connection, organization_id, ada.user_id) is None
    again = members.join(
        connection,
        organization_id,
        NewMember(email="ada@acme.example", role="member"),
        now_us=NOW_US,
    )
    assert again.id != ada.user_id


def test_one_address_is_one_member(connection, made):
    with pytest.raises(AlreadyExists):
        members.join(
            connection,
            made.organization.id,
            NewMember(email="owner@acme.example", role="member"),
            now_us=NOW_US,
        )


def test_mails_go_to_the_roles_named_and_to_nobody_without_an_address(connection, made):
    person(connection, made, "admin")
    person(connection, made, "member")
    members.join(connection, made.organization.id, NewMember(email="", role="owner"), now_us=NOW_US)
    found = members.emails_of_roles(connection, made.organization.id, ["owner", "admin"])
    assert found == ["admin@acme.example", "owner@acme.example"]
