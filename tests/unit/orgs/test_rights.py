"""The table of rights: what each role may do, and whom it may give a role."""

import typing

import pytest

from gwd.core.caller import ROLES, Caller
from gwd.core.errors import Forbidden
from gwd.orgs.rights import _TABLE, Right, allowed, require, require_grant


def who(role, workspace_id=None, kind="management") -> Caller:
    return Caller(
        kind=kind,
        key_id="mk_1",
        key_name="k",
        family_id="mk_1",
        organization_id="org_1",
        workspace_id=workspace_id,
        user_id="usr_1",
        role=role,
    )


# the page's table, one line each: member, billing, admin, owner, operator
PAGE = {
    "keys.read": "own all all all all",
    "keys.write": "own none all all all",
    "activity.read": "own all all all all",
    "content_log.read": "own none all all all",
    "content_log.erase": "none none all all all",
    "credits.read": "all all all all all",
    "credits.write": "none all none all all",
    "credits.grant": "none none none none all",
    "budgets.read": "all all all all all",
    "budgets.write": "none all all all all",
    "members.read": "all all all all all",
    "members.write": "none none all all all",
    "invitations.write": "none none all all all",
    "workspaces.read": "all all all all all",
    "workspaces.write": "none none all all all",
    "settings.read": "all all all all all",
    "settings.write": "none none all all all",
    "byok.read": "all all all all all",
    "byok.write": "none none all all all",
    "notifications.read": "all all all all all",
    "notifications.write": "none all all all all",
    "audit.read": "none all all all all",
    "ledger.read": "none all all all all",
    "ledger.verify": "none all all all all",
    "catalog.read": "all all all all all",
    "catalog.write": "none none none none all",
    "organizations.manage": "none none none none all",
    "operator": "none none none none all",
}


@pytest.mark.parametrize("right", PAGE)
def test_each_role_has_the_rights_of_the_page(right):
    assert " ".join(allowed(who(role), right) for role in ROLES) == PAGE[right]


def test_every_right_that_can_be_named_is_in_the_table():
    assert set(_TABLE) == set(typing.get_args(Right))


@pytest.mark.parametrize("right", _TABLE)
def test_inference_keys_have_no_management_right(right):
    assert allowed(who(None, kind="inference"), right) == "none"


@pytest.mark.parametrize("right", _TABLE)
@pytest.mark.parametrize("role", ROLES)
def test_a_key_bound_to_a_workspace_never_has_more_than_one_that_is_not(right, role):
    order = ["none", "own", "workspace", "all"]
    bound, free = allowed(who(role, "ws_1"), right), allowed(who(role), right)
    assert order.index(bound) <= order.index(free)
    if right.endswith((".write", ".create", ".grant", ".manage", ".verify")) or right == "operator":
        assert bound != "all", "authority of a lead ends at its workspace"


def test_a_missing_right_is_named_with_the_role_that_has_it():
    with pytest.raises(Forbidden) as refused:
        require(who("member"), "settings.write")
    assert "settings.write" in refused.value.message
    assert "admin" in refused.value.message
    assert require(who("member"), "keys.write") == "own"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("wanted", ROLES)
def test_nobody_grants_a_role_above_their_own(role, wanted):
    if ROLES.index(wanted) <= ROLES.index(role):
        require_grant(who(role), wanted)
    else:
        with pytest.raises(Forbidden):
            require_grant(who(role), wanted)


@pytest.mark.parametrize("wanted", ["billing", "owner", "operator"])
def test_a_lead_grants_nothing_that_reaches_beyond_a_workspace(wanted):
    with pytest.raises(Forbidden):
        require_grant(who("owner", "ws_1"), wanted)
