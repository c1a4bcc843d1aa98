"""Invitations: made, shown once, accepted within seven days, withdrawn."""

from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from gwd.core.errors import AlreadyExists, Conflict, Forbidden, InvalidValue, NotFound
from gwd.keys import secret
from gwd.keys.admission import find_by_digest
from gwd.management import invitations, people, teams
from gwd.management.change import Change
from gwd.management.invitations import AcceptInvitation, CreateInvitation, SentInvitation
from gwd.management.teams import CreateTeam
from gwd.orgs import members, workspaces
from gwd.orgs.members import PatchMember
from gwd.orgs.organizations import CreatedOrganization
from gwd.store import Connection
from tests.support.people import ISSUING, caller, organization, person
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

DAY_US = 86_400_000_000


@pytest.fixture
def made(connection: Connection) -> CreatedOrganization:
    return organization(connection)


def change(actor, at_us: int = NOW_US) -> Change:
    return Change(actor=actor, now_us=at_us)


def sent(connection, made, actor=None, **fields) -> SentInvitation:
    new = CreateInvitation(**{"email": "ada@acme.example", **fields})
    return invitations.create(
        connection,
        new,
        change=change(actor or caller(made, "owner")),
        pepper=ISSUING.pepper,
        app_url="https://app.example/",
    )


def token_of(invitation: SentInvitation) -> str:
    return parse_qs(urlsplit(invitation.accept_url).query)["token"][0]


def accepted(connection, invitation: SentInvitation, at_us: int = NOW_US):
    body = AcceptInvitation(token=token_of(invitation), first_name="Ada")
    return invitations.accept(connection, body, issuing=ISSUING, now_us=at_us)


def workspace(connection, made, name="Web") -> str:
    owner = caller(made, "owner")
    return teams.create(
        connection, CreateTeam(name=name), change=change(owner), issuing=ISSUING
    ).workspace.id


def test_whoever_accepts_joins_with_role_workspaces_and_a_key_of_their_own(connection, made):
    web = workspace(connection, made)
    invitation = sent(
        connection, made, email=" Ada@ACME.example ", role="admin", workspace_ids=["web"]
    )
    shown = invitations.record(invitation.invitation, now_us=NOW_US)
    assert msgspec.to_builtins(shown) == {
        "id": invitation.invitation.id,
        "email": "ada@acme.example",
        "role": "admin",
        "workspace_ids": [web],
        "is_lead": False,
        "status": "pending",
        "invited_by": made.owner_id,
        "created_at": "2026-09-21T14:13:20Z",
        "expires_at": "2026-09-28T14:13:20Z",
    }
    joined = accepted(connection, invitation)
    assert (joined.member.email, joined.member.role) == ("ada@acme.example", "admin")
    assert joined.member.first_name == "Ada"
    assert workspaces.has_member(connection, web, joined.member.id)
    found = find_by_digest(connection, secret.digest(joined.issued.plaintext, ISSUING.pepper))
    assert found is not None
    assert (found.caller.role, found.caller.user_id) == ("admin", joined.member.id)
    assert found.caller.workspace_id is None
    assert invitations.status(joined.invitation, NOW_US) == "accepted"


def test_a_token_works_once(connection, made):
    invitation = sent(connection, made)
    accepted(connection, invitation)
    with pytest.raises(NotFound):
        accepted(connection, invitation)


def test_an_invitation_expires_after_seven_days(connection, made):
    invitation = sent(connection, made)
    end_us = NOW_US + 7 * DAY_US
    assert invitations.status(invitation.invitation, end_us - 1) == "pending"
    assert invitations.status(invitation.invitation, end_us) == "expired"
    with pytest.raises(NotFound):
        accepted(connection, invitation, end_us)
    assert accepted(connection, invitation, end_us - 1).member.role == "member"


def test_a_revoked_an_expired_and_an_unknown_token_are_the_same_not_found(connection, made):
    owner = caller(made, "owner")
    revoked, expired = sent(connection, made), sent(connection, made, email="bob@acme.example")
    invitations.revoke(connection, revoked.invitation.id, change=change(owner))
    texts = set()
    for attempt in (
        lambda: accepted(connection, revoked),
        lambda: accepted(connection, expired, NOW_US + 8 * DAY_US),
        lambda: invitations.accept(
            connection, AcceptInvitation(token="guess"), issuing=ISSUING, now_us=NOW_US
        ),
        lambda: invitations.accept(
            connection,
            AcceptInvitation(token=revoked.invitation.id),
            issuing=ISSUING,
            now_us=NOW_US,
        ),
    ):
        with pytest.raises(NotFound) as refused:
            attempt()
        texts.add(refused.value.message)
    assert len(texts) == 1


def test_the_token_is_not_stored(connection, made):
    invitation = sent(connection, made)
    rows = connection.rows("SELECT * FROM invitation")
    assert token_of(invitation) not in str(rows) + repr(invitation)


def test_revoking_twice_is_harmless_and_revoking_an_accepted_one_a_conflict(connection, made):
    owner = change(caller(made, "owner"))
    first = sent(connection, made)
    assert invitations.revoke(connection, first.invitation.id, change=owner)
    ended = invitations.get(connection, made.organization.id, first.invitation.id)
    assert invitations.status(ended, NOW_US) == "revoked"
    assert not invitations.revoke(connection, first.invitation.id, change=owner)
    assert invitations.get(connection, made.organization.id, first.invitation.id) == ended
    second = sent(connection, made)
    accepted(connection, second)
    with pytest.raises(Conflict):
        invitations.revoke(connection, second.invitation.id, change=owner)


def test_one_address_has_one_open_invitation_and_members_need_none(connection, made):
    sent(connection, made)
    with pytest.raises(AlreadyExists):
        sent(connection, made, email="ADA@acme.example")
    with pytest.raises(AlreadyExists):
        sent(connection, made, email="owner@acme.example")


@pytest.mark.parametrize(
    "email", ["", "ada", "a b@c", "ada@", "a\x07@b.c", "x" * 250 + "@b.example"]
)
def test_an_address_must_look_like_one(connection, made, email):
    with pytest.raises(InvalidValue) as refused:
        sent(connection, made, email=email)
    assert refused.value.param == "email"


def test_nobody_invites_above_their_own_role(connection, made):
    admin = person(connection, made, "admin")
    with pytest.raises(Forbidden):
        sent(connection, made, admin, role="owner")
    for role in ("member", "billing"):
        with pytest.raises(Forbidden):
            sent(connection, made, person(connection, made, role), email="x@y.example")
    assert sent(connection, made, admin, role="admin").invitation.role == "admin"


def test_a_lead_joins_with_an_admin_key_bound_to_the_workspace(connection, made):
    web = workspace(connection, made)
    joined = accepted(connection, sent(connection, made, workspace_ids=[web], is_lead=True))
    assert joined.member.role == "member"
    found = find_by_digest(connection, secret.digest(joined.issued.plaintext, ISSUING.pepper))
    assert found is not None
    assert (found.caller.role, found.caller.workspace_id) == ("admin", web)
    owner = change(caller(made, "owner"))
    teams.remove_members(connection, web, [joined.member.id], change=owner)
    found = find_by_digest(connection, secret.digest(joined.issued.plaintext, ISSUING.pepper))
    assert found is not None
    assert found.caller.role == "member"


@pytest.mark.parametrize("fields", [{"workspace_ids": []}, {"role": "admin"}])
def test_a_lead_is_a_member_who_leads_exactly_one_workspace(connection, made, fields):
    web = workspace(connection, made)
    with pytest.raises(InvalidValue) as refused:
        sent(connection, made, **{"workspace_ids": [web], "is_lead": True, **fields})
    assert refused.value.param == "is_lead"


def test_a_lead_invites_members_into_its_own_workspace_only(connection, made):
    web, other = workspace(connection, made), workspace(connection, made, "Other")
    lead = caller(made, "admin", workspace_id=web)
    assert sent(connection, made, lead).invitation.workspace_ids == [web]
    for fields in ({"workspace_ids": [other]}, {"role": "admin"}, {"role": "billing"}):
        with pytest.raises(Forbidden):
            sent(connection, made, lead, email="bob@acme.example", **fields)


def test_a_workspace_that_is_gone_by_then_is_passed_over(connection, made):
    web = workspace(connection, made)
    invitation = sent(connection, made, workspace_ids=[web], is_lead=True)
    teams.delete(connection, web, change=change(caller(made, "owner")))
    joined = accepted(connection, invitation)
    assert (joined.issued.key.role, joined.issued.key.workspace_id) == ("member", None)


@pytest.mark.parametrize("ending", ["demoted to member", "demoted to admin", "removed"])
def test_open_invitations_end_with_the_rights_they_were_made_with(connection, made, ending):
    second = person(connection, made, "owner", "second")
    assert second.user_id is not None
    high = sent(connection, made, second, role="owner")
    low = sent(connection, made, second, email="low@acme.example")
    owner = change(caller(made, "owner"))
    match ending:
        case "removed":
            people.remove(connection, second.user_id, change=owner)
        case "demoted to member":
            people.patch(connection, second.user_id, PatchMember(role="member"), change=owner)
        case _:
            people.patch(connection, second.user_id, PatchMember(role="admin"), change=owner)
    with pytest.raises(NotFound):
        accepted(connection, high)
    if ending == "demoted to admin":
        assert accepted(connection, low).member.role == "member"
    else:
        with pytest.raises(NotFound):
            accepted(connection, low)


def test_invitations_stay_in_their_organization(connection, made):
    other = organization(connection, "Other")
    foreign = sent(connection, other)
    with pytest.raises(NotFound):
        invitations.revoke(connection, foreign.invitation.id, change=change(caller(made, "owner")))
    _, total = invitations.list_invitations(connection, made.organization.id, limit=9, offset=0)
    assert total == 0
    assert accepted(connection, foreign).member.organization_id == other.organization.id


def test_an_invitation_whose_address_joined_meanwhile_is_a_conflict(connection, made):
    invitation = sent(connection, made)
    members.join(
        connection,
        made.organization.id,
        members.NewMember(email="ada@acme.example", role="member"),
        now_us=NOW_US,
    )
    with pytest.raises(AlreadyExists):
        accepted(connection, invitation)
