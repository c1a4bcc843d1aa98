"""Rotation: a successor with the same limits, one spend counter for both, an overlap that ends (I14)."""

from decimal import Decimal

import pytest

from gwd import spend
from gwd.core.errors import AlreadyRotated, Conflict, Forbidden, InvalidValue, KeyLimitExceeded
from gwd.keys import secret
from gwd.keys.admission import admit, find_by_digest
from gwd.keys.fields import CreateKey, PatchKey
from gwd.keys.rotation import OVERLAP_US, RotatedKey, RotateKey, rotate
from gwd.keys.service import IssuedKey, patch
from gwd.orgs.organizations import CreatedOrganization
from gwd.store import Connection
from tests.support.people import ISSUING, caller, issued, organization, person
from tests.support.store import NOW_US, connection

__all__ = ["connection"]


@pytest.fixture
def made(connection: Connection) -> CreatedOrganization:
    return organization(connection)


def rotated(connection, made, key: IssuedKey, actor=None, **fields) -> RotatedKey:
    return rotate(
        connection,
        made.organization.id,
        key.key.id,
        RotateKey(**fields),
        actor=actor or caller(made, "owner"),
        issuing=ISSUING,
        now_us=NOW_US,
    )


def changed(connection, made, key_id: str, **fields):
    return patch(
        connection,
        made.organization.id,
        key_id,
        PatchKey(**fields),
        actor=caller(made, "owner"),
        rate_limit_ceiling=600,
        now_us=NOW_US,
    )


@pytest.mark.parametrize("overlap", ["1h", "24h", "7d"])
def test_the_old_key_works_for_the_overlap_and_then_expires_by_itself(connection, made, overlap):
    key = issued(connection, made, CreateKey(name="ci"))
    both = rotated(connection, made, key, overlap=overlap)
    end_us = NOW_US + OVERLAP_US[overlap]
    assert both.previous.expires_at == end_us
    admit(connection, key.key.id, now_us=end_us - 1)
    with pytest.raises(Exception, match="expired"):
        admit(connection, key.key.id, now_us=end_us)
    admit(connection, both.issued.key.id, now_us=end_us)


def test_the_successor_has_the_same_name_limits_and_allowed_models(connection, made):
    key = issued(
        connection,
        made,
        CreateKey(
            name="ci",
            limit=Decimal(5),
            limit_reset="monthly",
            allowed_models=["a/b"],
            rate_limit_per_minute=7,
            strict=True,
            include_byok_in_limit=True,
            in_flight_cap=3,
            alert_thresholds=[75],
            external_user="tenant",
        ),
    )
    both = rotated(connection, made, key)
    new = both.issued.key
    for name in (
        "name", "limit_nano", "limit_reset", "allowed_models", "rate_limit_per_minute", "strict",
        "include_byok_in_limit", "in_flight_cap", "alert_thresholds", "external_user", "workspace_id",
        "organization_id", "user_id", "kind", "role", "family_id", "expires_at",
    ):  # fmt: skip
        assert getattr(new, name) == getattr(key.key, name), name
    assert new.rotated_from == key.key.id
    assert both.previous.rotated_to == new.id
    assert both.issued.plaintext != key.plaintext
    found = find_by_digest(connection, secret.digest(both.issued.plaintext, ISSUING.pepper))
    assert found is not None
    assert found.caller.family_id == key.key.family_id


def test_old_and_new_key_share_one_spend_counter(connection, made):
    key = issued(connection, made, CreateKey(name="ci", limit=Decimal(5)))
    spend.add(connection, (key.key.family_id,), charged_nano=4 * 10**9, byok_nano=0, at_us=NOW_US)
    new = rotated(connection, made, key).issued
    admit(connection, new.key.id, now_us=NOW_US)
    spend.add(connection, (new.key.family_id,), charged_nano=10**9, byok_nano=0, at_us=NOW_US)
    for key_id in (key.key.id, new.key.id):
        with pytest.raises(KeyLimitExceeded):
            admit(connection, key_id, now_us=NOW_US)


def test_a_rotated_key_is_not_rotated_again_but_its_successor_is(connection, made):
    key = issued(connection, made, CreateKey(name="ci"))
    second = rotated(connection, made, key).issued
    with pytest.raises(AlreadyRotated):
        rotated(connection, made, key)
    third = rotated(connection, made, second).issued
    assert third.key.family_id == key.key.family_id


def test_rotating_does_not_undo_disabling_or_expiry(connection, made):
    off = issued(connection, made, CreateKey(name="off"))
    changed(connection, made, off.key.id, disabled=True)
    with pytest.raises(Conflict):
        rotated(connection, made, off)
    old = issued(connection, made, CreateKey(name="old"))
    connection.execute("UPDATE api_key SET expires_at = ? WHERE id = ?", (NOW_US, old.key.id))
    with pytest.raises(Conflict):
        rotated(connection, made, old)


def test_an_end_that_comes_before_the_overlap_stays(connection, made):
    soon = issued(connection, made, CreateKey(name="ci", expires_at="2026-09-21T15:00:00Z"))
    both = rotated(connection, made, soon, overlap="7d")
    assert both.previous.expires_at == soon.key.expires_at
    assert both.issued.key.expires_at == soon.key.expires_at


def test_the_end_of_a_rotated_key_can_only_be_brought_forward(connection, made):
    key = issued(connection, made, CreateKey(name="ci"))
    rotated(connection, made, key)
    for later in ("2027-01-01T00:00:00Z", None):
        with pytest.raises(InvalidValue):
            changed(connection, made, key.key.id, expires_at=later)
    changed(connection, made, key.key.id, expires_at="2026-09-21T15:00:00Z")


def test_an_admin_cannot_obtain_an_owner_key_by_rotating_one(connection, made):
    owners = issued(connection, made, CreateKey(name="root", type="management", role="owner"))
    with pytest.raises(Forbidden):
        rotated(connection, made, owners, actor=person(connection, made, "admin"))
