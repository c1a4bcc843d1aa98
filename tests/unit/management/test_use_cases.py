"""Use cases over several rooms: what a change drags along, and its line in the audit trail."""

from decimal import Decimal

import pytest

from gwd import ledger
from gwd.audit.service import AuditFilter, Origin, list_lines
from gwd.core.errors import Conflict, Forbidden, KeyDisabled, NotFound
from gwd.keys import secret
from gwd.keys.admission import find_by_digest, require_usable
from gwd.keys.fields import CreateKey, PatchKey
from gwd.keys.rotation import RotateKey
from gwd.management import keys, organizations, people, teams
from gwd.management.change import Change
from gwd.management.teams import CreateTeam
from gwd.orgs.members import PatchMember
from gwd.orgs.organizations import (
    CreatedOrganization,
    CreateOrganization,
    PatchAnyOrganization,
    PatchOrganization,
)
from gwd.orgs.settings import PatchSettings
from gwd.orgs.workspaces import PatchWorkspace
from gwd.store import Connection
from tests.support.people import ISSUING, caller, organization, person
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

ORIGIN = Origin(address="192.0.2.1", request_id="req_1")


@pytest.fixture
def made(connection: Connection) -> CreatedOrganization:
    return organization(connection)


def change(actor) -> Change:
    return Change(actor=actor, now_us=NOW_US, origin=ORIGIN)


def trail(connection, organization_id: str) -> list[tuple[str, str | None, dict]]:
    lines, _ = list_lines(connection, organization_id, AuditFilter(), limit=50, offset=0)
    assert all((line.address, line.request_id) == ("192.0.2.1", "req_1") for line in lines)
    return [(line.action, line.subject_id, line.details) for line in lines]


def found(connection, plaintext: str):
    row = find_by_digest(connection, secret.digest(plaintext, ISSUING.pepper))
    assert row is not None
    return row


def test_the_life_of_a_key_is_told_without_its_secret(connection, made):
    by_owner = change(caller(made, "owner"))
    issued = keys.create(
        connection, CreateKey(name="ci", limit=Decimal(5)), change=by_owner, issuing=ISSUING
    )
    keys.patch(
        connection,
        issued.key.hash,
        PatchKey(limit=Decimal("7.5"), expires_at=None),
        change=by_owner,
        rate_limit_ceiling=600,
    )
    both = keys.rotate(connection, issued.key.id, RotateKey(), change=by_owner, issuing=ISSUING)
    keys.delete(connection, both.issued.key.id, change=by_owner)
    lines = trail(connection, made.organization.id)
    assert {(action, subject) for action, subject, _ in lines} == {
        ("key.create", issued.key.id),
        ("key.patch", issued.key.id),
        ("key.rotate", issued.key.id),
        ("key.delete", both.issued.key.id),
    }
    details = {action: details for action, _, details in lines}
    assert details["key.patch"] == {"limit": "7.5", "expires_at": None}
    assert details["key.rotate"] == {"overlap": "24h", "rotated_to": both.issued.key.id}
    assert issued.plaintext not in str(lines)
    assert both.issued.plaintext not in str(lines)


@pytest.mark.parametrize("keep", [False, True])
def test_a_removed_members_keys_stop_at_once_and_what_lives_on_is_named(connection, made, keep):
    """Their inference keys live on where that is asked for; keys they made for others always do."""
    admin = person(connection, made, "admin")
    assert admin.user_id is not None
    console = keys.create(
        connection,
        CreateKey(name="console", type="management"),
        change=change(admin),
        issuing=ISSUING,
    )
    app = keys.create(connection, CreateKey(name="app"), change=change(admin), issuing=ISSUING)
    shared = keys.create(
        connection,
        CreateKey(name="shared", user_id=made.owner_id),
        change=change(admin),
        issuing=ISSUING,
    )
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
    removal = next(
        details
        for action, _, details in trail(connection, made.organization.id)
        if action == "member.remove"
    )
    assert (removal["keys_disabled"], removal["role"]) == (len(stopped), "admin")


def test_a_demotion_lowers_keys_for_good_and_a_promotion_raises_none(connection, made):
    admin = person(connection, made, "admin")
    assert admin.user_id is not None
    console = keys.create(
        connection,
        CreateKey(name="console", type="management"),
        change=change(admin),
        issuing=ISSUING,
    )
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
    own = keys.create(
        connection,
        CreateKey(name="bound", type="management"),
        change=change(lead),
        issuing=ISSUING,
    )
    assert (own.key.role, own.key.workspace_id) == ("admin", team.workspace.id)
    with pytest.raises(Forbidden):
        teams.create(connection, CreateTeam(name="More"), change=change(lead), issuing=ISSUING)
    with pytest.raises(Forbidden):
        teams.delete(connection, "web", change=change(lead))
    renamed = teams.patch(connection, "web", PatchWorkspace(name="Site"), change=change(lead))
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
    key = keys.create(
        connection, CreateKey(name="app", workspace_id="web"), change=by_owner, issuing=ISSUING
    )
    with pytest.raises(Conflict):
        teams.delete(connection, "web", change=by_owner)
    keys.delete(connection, key.key.id, change=by_owner)
    teams.delete(connection, "web", change=by_owner)
    actions = [action for action, _, _ in trail(connection, made.organization.id)]
    assert actions == ["workspace.delete", "key.delete", "key.create", "workspace.create"]


def test_members_of_a_workspace_come_and_go(connection, made):
    ada = person(connection, made, "member", "ada")
    assert ada.user_id is not None
    by_owner = change(caller(made, "owner"))
    assert teams.add_members(connection, "default", [ada.user_id], change=by_owner) == [ada.user_id]
    app = keys.create(connection, CreateKey(name="app"), change=change(ada), issuing=ISSUING)
    gone = teams.remove_members(connection, "default", [ada.user_id], change=by_owner)
    assert (gone.user_ids, gone.keys_left) == ([ada.user_id], [app.key])
    with pytest.raises(Forbidden):
        teams.add_members(connection, "default", [ada.user_id], change=change(ada))


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
    assert [action for action, _, _ in trail(connection, other.id)] == ["organization.create"]
    with pytest.raises(Forbidden):
        organizations.create(
            connection, CreateOrganization(name="More"), change=change(owner), issuing=ISSUING
        )


def test_only_the_operator_suspends_or_deletes_and_not_the_own_organization(connection, made):
    other = organization(connection, "Other")
    ledger.open_account(connection, other.organization.id, now_us=NOW_US)
    operator, owner = change(caller(made, "operator")), change(caller(other, "owner"))
    for act in (
        lambda: organizations.patch_any(
            connection,
            other.organization.id,
            PatchAnyOrganization(suspended=True),
            change=owner,
        ),
        lambda: organizations.delete(connection, other.organization.id, change=owner),
    ):
        with pytest.raises(Forbidden):
            act()
    assert organizations.patch_any(
        connection, other.organization.id, PatchAnyOrganization(suspended=True), change=operator
    ).suspended
    organizations.delete(connection, other.organization.id, change=operator)
    with pytest.raises(Conflict):
        organizations.delete(connection, made.organization.id, change=operator)


def test_settings_and_name_are_changed_by_admins_and_told(connection, made):
    admin, member = person(connection, made, "admin"), person(connection, made, "member")
    organizations.patch(connection, PatchOrganization(name="Acme 2"), change=change(admin))
    changes = PatchSettings(low_balance_threshold=Decimal(3))
    organizations.change_settings(connection, changes, change=change(admin), rate_limit_ceiling=600)
    with pytest.raises(Forbidden):
        organizations.change_settings(
            connection, changes, change=change(member), rate_limit_ceiling=600
        )
    told = {action: details for action, _, details in trail(connection, made.organization.id)}
    assert told == {
        "organization.patch": {"name": "Acme 2"},
        "settings.patch": {"low_balance_threshold": "3"},
    }
