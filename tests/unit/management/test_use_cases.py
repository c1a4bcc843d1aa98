"""Use cases over several rooms: what a change drags along."""

from decimal import Decimal

import pytest

from gwd import ledger
from gwd.core.errors import Conflict, Forbidden, KeyDisabled, NotFound
from gwd.keys import cascades, secret
from gwd.keys.admission import find_by_digest, require_usable
from gwd.keys.fields import CreateKey
from gwd.management import organizations, people, teams
from gwd.management.change import Change
from gwd.management.teams import CreateTeam
from gwd.orgs import organizations as organizations_of_the_node
from gwd.orgs import workspaces
from gwd.orgs.members import PatchMember
from gwd.orgs.organizations import (
    CreatedOrganization,
    CreateOrganization,
    PatchAnyOrganization,
    PatchOrganization,
)
from gwd.orgs.settings import PatchSettings, patch_settings
from gwd.orgs.workspaces import PatchWorkspace
from gwd.store import Connection
from tests.support.people import ISSUING, caller, issued, organization, person
from tests.support.store import NOW_US, connection

__all__ = ["connection"]


@pytest.fixture
def made(connection: Connection) -> CreatedOrganization:
    return organization(connection)


def change(actor) -> Change:
    return Change(actor=actor, now_us=NOW_US)


def found(connection, plaintext: str):
    row = find_by_digest(connection, secret.digest(plaintext, ISSUING.pepper))
    assert row is not None
    return row


@pytest.mark.parametrize("keep", [False, True])
def test_a_removed_members_keys_stop_at_once_and_what_lives_on_is_named(connection, made, keep):
    """Their inference keys live on where that is asked for; keys they made for others always do."""
    admin = person(connection, made, "admin")
    assert admin.user_id is not None
    console = issued(connection, made, CreateKey(name="console", type="management"), actor=admin)
    app = issued(connection, made, CreateKey(name="app"), actor=admin)
    shared = issued(connection, made, CreateKey(name="shared", user_id=made.owner_id), actor=admin)
    gone = people.remove(
        connection, admin.user_id, change=change(caller(made, "owner")), keep_keys=keep
    )
    stopped = [console.key.id] if keep else [console.key.id, app.key.id]
    assert {key.id for key in gone.keys.disabled} == set(stopped)
    assert [key.id for key in gone.keys.kept] == ([app.key.id] if keep else [])
    assert [key.id for key in gone.keys.made] == [shared.key.id]
    with pytest.raises(KeyDisabled):
        require_usable(found(connection, console.plaintext), now_us=NOW_US)
    assert found(connection, console.plaintext).state.disabled
    require_usable(found(connection, shared.plaintext), now_us=NOW_US)
    assert found(connection, app.plaintext).state.disabled is not keep


def test_a_demotion_lowers_keys_for_good_and_a_promotion_raises_none(connection, made):
    admin = person(connection, made, "admin")
    assert admin.user_id is not None
    console = issued(connection, made, CreateKey(name="console", type="management"), actor=admin)
    by_owner = change(caller(made, "owner"))
    people.patch(connection, admin.user_id, PatchMember(role="member"), change=by_owner)
    assert found(connection, console.plaintext).state.role == "member"
    people.patch(connection, admin.user_id, PatchMember(role="owner"), change=by_owner)
    assert found(connection, console.plaintext).caller.role == "member"


def test_a_lead_comes_with_the_workspace_and_survives_a_demotion(connection, made):
    admin = person(connection, made, "admin")
    assert admin.user_id is not None
    by_owner = change(caller(made, "owner"))
    team = teams.create(
        connection,
        CreateTeam(name="Web", lead_user_id=admin.user_id),
        change=by_owner,
        issuing=ISSUING,
    )
    assert team.lead_key is not None
    people.patch(connection, admin.user_id, PatchMember(role="member"), change=by_owner)
    lead = found(connection, team.lead_key.plaintext).caller
    assert (lead.role, lead.workspace_id) == ("admin", team.workspace.id)
    own = issued(connection, made, CreateKey(name="bound", type="management"), actor=lead)
    assert (own.key.role, own.key.workspace_id) == ("admin", team.workspace.id)
    with pytest.raises(Forbidden):
        teams.create(connection, CreateTeam(name="More"), change=change(lead), issuing=ISSUING)
    with pytest.raises(Forbidden):
        teams.delete(connection, "web", change=change(lead))
    renamed = workspaces.patch(
        connection,
        made.organization.id,
        "web",
        PatchWorkspace(name="Site"),
        actor=lead,
        now_us=NOW_US,
    )
    assert renamed.name == "Site"


def test_a_workspace_with_an_unknown_lead_is_not_made(connection, made):
    with pytest.raises(NotFound) as refused:
        teams.create(
            connection,
            CreateTeam(name="Web", lead_user_id="usr_x"),
            change=change(caller(made, "owner")),
            issuing=ISSUING,
        )
    assert refused.value.param == "lead_user_id"


def test_a_workspace_is_deleted_once_no_key_lives_in_it(connection, made):
    by_owner = change(caller(made, "owner"))
    teams.create(connection, CreateTeam(name="Web"), change=by_owner, issuing=ISSUING)
    key = issued(connection, made, CreateKey(name="app", workspace_id="web"))
    with pytest.raises(Conflict):
        teams.delete(connection, "web", change=by_owner)
    cascades.delete(
        connection, made.organization.id, key.key.id, actor=by_owner.actor, now_us=NOW_US
    )
    gone = teams.delete(connection, "web", change=by_owner)
    assert (gone.workspace.slug, gone.ended) == ("web", [])


def test_members_of_a_workspace_come_and_go(connection, made):
    ada = person(connection, made, "member", "ada")
    user_id = ada.user_id
    assert user_id is not None
    by_owner = change(caller(made, "owner"))

    def add(actor):
        where = (connection, made.organization.id, "default")
        return workspaces.add_members(*where, [user_id], actor=actor, now_us=NOW_US)

    assert add(by_owner.actor) == [user_id]
    app = issued(connection, made, CreateKey(name="app"), actor=ada)
    gone = teams.remove_members(connection, "default", [user_id], change=by_owner)
    assert (gone.user_ids, gone.keys_left) == ([user_id], [app.key])
    with pytest.raises(Forbidden):
        add(ada)


def test_the_operator_founds_an_organization_with_account_owner_and_key(connection, made):
    operator = change(caller(made, "operator"))
    founded = organizations.create(
        connection,
        CreateOrganization(name="Other", owner_email="boss@other.example"),
        change=operator,
        issuing=ISSUING,
    )
    other = founded.created.organization
    owner = found(connection, founded.issued.plaintext).caller
    assert (owner.role, owner.organization_id) == ("owner", other.id)
    assert owner.user_id == founded.created.owner_id
    assert ledger.balance(connection, other.id, now_us=NOW_US) is not None
    with pytest.raises(Forbidden):
        organizations.create(
            connection, CreateOrganization(name="More"), change=change(owner), issuing=ISSUING
        )


def test_only_the_operator_suspends_or_deletes_and_not_the_own_organization(connection, made):
    other = organization(connection, "Other")
    ledger.open_account(connection, other.organization.id, now_us=NOW_US)
    operator, owner = caller(made, "operator"), caller(other, "owner")

    def suspend(actor):
        return organizations_of_the_node.patch(
            connection,
            other.organization.id,
            PatchAnyOrganization(suspended=True),
            actor=actor,
            now_us=NOW_US,
        )

    for act in (
        lambda: suspend(owner),
        lambda: suspend(caller(made, "owner")),
        lambda: organizations.delete(connection, other.organization.id, change=change(owner)),
    ):
        with pytest.raises(Forbidden):
            act()
    assert suspend(operator).suspended
    organizations.delete(connection, other.organization.id, change=change(operator))
    with pytest.raises(Conflict):
        organizations.delete(connection, made.organization.id, change=change(operator))


def test_settings_and_name_are_changed_by_admins(connection, made):
    def rename(actor):
        new = PatchOrganization(name="Acme 2")
        where = (connection, made.organization.id)
        return organizations_of_the_node.patch(*where, new, actor=actor, now_us=NOW_US)

    def warn(actor):
        return patch_settings(
            connection,
            made.organization.id,
            PatchSettings(low_balance_threshold=Decimal(3)),
            actor=actor,
            rate_limit_ceiling=600,
            now_us=NOW_US,
        )

    admin, member = person(connection, made, "admin"), person(connection, made, "member")
    assert rename(admin).name == "Acme 2"
    assert warn(admin).settings.low_balance_threshold_nano == 3_000_000_000
    for refused in (member, caller(organization(connection, "Other"), "owner")):
        for act in (rename, warn):
            with pytest.raises(Forbidden):
                act(refused)
