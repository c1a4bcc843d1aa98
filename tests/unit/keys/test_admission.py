"""A key at the moment of admission: its state, its limit, its rate, its owner and its organization."""

from dataclasses import dataclass
from decimal import Decimal

import msgspec
import pytest

from gwd import ledger, spend
from gwd.core.clock import US_PER_DAY, US_PER_S
from gwd.core.errors import (
    KeyDisabled,
    KeyExpired,
    KeyLimitExceeded,
    OrganizationSuspended,
    Unauthenticated,
)
from gwd.keys import secret
from gwd.keys.admission import KeyRow, admit, find_by_digest, require_usable
from gwd.keys.cascades import delete, end_with_member
from gwd.keys.fields import CreateKey, PatchKey
from gwd.keys.service import IssuedKey, patch
from gwd.orgs import members, organizations
from gwd.orgs.organizations import CreatedOrganization, PatchAnyOrganization
from gwd.orgs.settings import PatchSettings, patch_settings
from gwd.store import Connection
from tests.support.people import ISSUING, caller, issued, organization, person
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

USD = 1_000_000_000


@dataclass
class Stage:
    """One organization and the connection it lives on."""

    connection: Connection
    made: CreatedOrganization

    def key(self, **fields) -> IssuedKey:
        return issued(self.connection, self.made, CreateKey(name="ci", **fields))

    def change(self, key: IssuedKey, **fields) -> None:
        patch(
            self.connection,
            self.made.organization.id,
            key.key.id,
            PatchKey(**fields),
            actor=caller(self.made, "owner"),
            rate_limit_ceiling=600,
            now_us=NOW_US,
        )

    def spend(
        self, key: IssuedKey, usd: float, *, byok_usd: float = 0, at_us: int = NOW_US
    ) -> None:
        spend.add(
            self.connection,
            (key.key.family_id,),
            charged_nano=int(usd * USD),
            byok_nano=int(byok_usd * USD),
            at_us=at_us,
        )

    def admit(self, key: IssuedKey, *, at_us: int = NOW_US):
        return admit(self.connection, key.key.id, now_us=at_us)

    def find(self, key: IssuedKey, **options) -> KeyRow | None:
        digest = secret.digest(key.plaintext, ISSUING.pepper)
        return find_by_digest(self.connection, digest, **options)


@pytest.fixture
def stage(connection: Connection) -> Stage:
    return Stage(connection, organization(connection))


def test_a_key_is_found_by_the_digest_of_its_text_only(stage: Stage):
    key = stage.key()
    found = stage.find(key)
    assert found is not None
    assert found.caller.key_id == key.key.id
    assert found.caller.family_id == key.key.id
    assert found.caller.workspace_id == stage.made.workspace_id
    assert found.caller.role is None
    for address in (key.key.id, key.key.hash):
        assert find_by_digest(stage.connection, secret.digest(address, ISSUING.pepper)) is None


def test_the_stored_row_holds_neither_the_key_nor_its_public_hash_as_digest(stage: Stage):
    key = stage.key()
    row = stage.connection.row("SELECT * FROM api_key WHERE id = ?", (key.key.id,))
    assert row is not None
    assert key.plaintext not in str(row)
    assert key.plaintext not in repr(key)


def test_a_disabled_key_stops_at_the_next_admission(stage: Stage):
    key = stage.key()
    stage.admit(key)
    stage.change(key, disabled=True)
    with pytest.raises(KeyDisabled):
        stage.admit(key)
    found = stage.find(key)
    assert found is not None
    with pytest.raises(KeyDisabled):
        require_usable(found, now_us=NOW_US)
    stage.change(key, disabled=False)
    stage.admit(key)


def test_a_key_expires_at_the_moment_named_whatever_the_offset(stage: Stage):
    """case 089: 2026-10-01T00:00:00+09:00 is 15:00 UTC of the day before."""
    key = stage.key(expires_at="2026-10-01T00:00:00+09:00")
    end_us = 1_790_780_400 * US_PER_S
    stage.admit(key, at_us=end_us - 1)
    with pytest.raises(KeyExpired) as refused:
        stage.admit(key, at_us=end_us)
    assert "2026-09-30T15:00:00Z" in refused.value.message


def test_a_deleted_key_is_unknown_at_once(stage: Stage):
    key = stage.key()
    owner = caller(stage.made, "owner")
    delete(stage.connection, stage.made.organization.id, key.key.id, actor=owner, now_us=NOW_US)
    with pytest.raises(Unauthenticated) as refused:
        stage.admit(key)
    assert refused.value.message == secret.unknown_key().message
    assert stage.find(key) is None


def test_the_request_that_reaches_the_limit_completes_and_the_next_is_refused(stage: Stage):
    """Spend reaches its limit → 402 key_limit_exceeded; compared spent ≥ limit, no estimate."""
    key = stage.key(limit=Decimal("5"))
    stage.spend(key, 4.999999999)
    stage.admit(key)
    stage.spend(key, 0.000000001)
    with pytest.raises(KeyLimitExceeded) as refused:
        stage.admit(key)
    assert msgspec.json.decode(msgspec.json.encode(refused.value.metadata)) == {
        "limit": 5,
        "limit_reset": None,
        "usage": 5,
        "limit_resets_at": None,
    }


def test_a_limit_of_zero_blocks_at_once(stage: Stage):
    with pytest.raises(KeyLimitExceeded):
        stage.admit(stage.key(limit=Decimal(0)))


@pytest.mark.parametrize(
    ("reset", "resets_at"),
    [
        ("daily", "2026-09-22T00:00:00Z"),
        ("weekly", "2026-09-28T00:00:00Z"),
        ("monthly", "2026-10-01T00:00:00Z"),
    ],
)
def test_a_recurring_limit_opens_again_at_the_start_of_its_period_utc(
    stage: Stage, reset, resets_at
):
    key = stage.key(limit=Decimal(1), limit_reset=reset)
    stage.spend(key, 1)
    with pytest.raises(KeyLimitExceeded) as refused:
        stage.admit(key)
    assert refused.value.metadata is not None
    assert refused.value.metadata["limit_resets_at"] == resets_at
    assert refused.value.metadata["limit_reset"] == reset
    assert resets_at in refused.value.message
    days = {"daily": 1, "weekly": 7, "monthly": 10}[reset]
    next_us = (NOW_US // US_PER_DAY + days) * US_PER_DAY
    with pytest.raises(KeyLimitExceeded):
        stage.admit(key, at_us=next_us - 1)
    stage.admit(key, at_us=next_us)


def test_own_provider_key_spend_counts_only_if_the_key_says_so(stage: Stage):
    key = stage.key(limit=Decimal(5))
    stage.spend(key, 0, byok_usd=7)
    stage.admit(key)
    stage.change(key, include_byok_in_limit=True)
    with pytest.raises(KeyLimitExceeded):
        stage.admit(key)


def test_open_holds_count_for_a_strict_key_only(stage: Stage):
    key = stage.key(limit=Decimal(5))
    now = {"now_us": NOW_US}
    organization_id = stage.made.organization.id
    ledger.open_account(stage.connection, organization_id, **now)
    credit = ledger.NewCredit(kind="granted", type="grant", amount_nano=100 * USD)
    ledger.add_credit(stage.connection, organization_id, credit, **now)
    hold = ledger.NewReservation(
        generation_id="gen-1",
        organization_id=organization_id,
        workspace_id=stage.made.workspace_id,
        key_id=key.key.id,
        family_id=key.key.family_id,
        amount_nano=2 * USD,
        boot_id="boot",
        context=b"",
    )
    ledger.reserve(stage.connection, hold, **now)
    stage.spend(key, 3)
    stage.admit(key)
    stage.change(key, strict=True)
    with pytest.raises(KeyLimitExceeded) as refused:
        stage.admit(key)
    assert "held by running requests" in refused.value.message
    ledger.release(stage.connection, "gen-1", now_us=now["now_us"])
    stage.admit(key)


def test_a_changed_limit_keeps_what_was_spent(stage: Stage):
    """Changing limit or reset never zeroes usage."""
    key = stage.key(limit=Decimal(1))
    stage.spend(key, 1)
    stage.change(key, limit=Decimal(2), limit_reset="monthly")
    stage.admit(key)
    stage.spend(key, 1)
    with pytest.raises(KeyLimitExceeded):
        stage.admit(key)
    stage.change(key, limit=None)
    assert stage.admit(key).limit_nano is None


def test_the_lowest_rate_limit_of_key_organization_and_node_applies(stage: Stage):
    """600 a minute by default; a lower value can be set per key."""

    def effective(key: IssuedKey, ceiling: int = 600) -> int:
        found = stage.find(key, rate_limit_ceiling=ceiling)
        assert found is not None
        return found.caller.rate_limit_per_minute

    plain, low = stage.key(), stage.key(rate_limit_per_minute=100)
    assert (effective(plain), effective(low)) == (600, 100)
    patch_settings(
        stage.connection,
        stage.made.organization.id,
        PatchSettings(default_rate_limit_per_minute=60),
        actor=caller(stage.made, "owner"),
        rate_limit_ceiling=600,
        now_us=NOW_US,
    )
    assert (effective(plain), effective(low)) == (60, 60)
    assert effective(low, ceiling=30) == 30


def test_a_demoted_member_has_at_most_the_present_role_with_an_old_key(stage: Stage):
    admin = person(stage.connection, stage.made, "admin")
    key = issued(
        stage.connection,
        stage.made,
        CreateKey(name="console", type="management", role="admin"),
        actor=admin,
    )
    assert admin.user_id is not None
    members.change_role(
        stage.connection,
        stage.made.organization.id,
        admin.user_id,
        "member",
        actor=caller(stage.made, "owner"),
    )
    found = stage.find(key)
    assert found is not None
    assert found.caller.role == "member"


def test_a_removed_member_is_out_even_before_their_keys_are_touched(stage: Stage):
    admin = person(stage.connection, stage.made, "admin")
    key = issued(
        stage.connection,
        stage.made,
        CreateKey(name="console", type="management", role="admin"),
        actor=admin,
    )
    assert admin.user_id is not None
    organization_id = stage.made.organization.id
    owner = caller(stage.made, "owner")
    members.remove(stage.connection, organization_id, admin.user_id, actor=owner, now_us=NOW_US)
    found = stage.find(key)
    assert found is not None
    with pytest.raises(KeyDisabled):
        require_usable(found, now_us=NOW_US)
    assert (
        len(
            end_with_member(
                stage.connection, organization_id, admin.user_id, keep=False, now_us=NOW_US
            ).disabled
        )
        == 1
    )


def test_keys_of_a_suspended_organization_are_refused_but_not_the_operator(stage: Stage):
    key = stage.key()
    operator = issued(
        stage.connection,
        stage.made,
        CreateKey(name="root", type="management", role="operator"),
        actor=caller(stage.made, "operator"),
    )
    organizations.patch(
        stage.connection,
        stage.made.organization.id,
        PatchAnyOrganization(suspended=True),
        actor=caller(stage.made, "operator"),
        now_us=NOW_US,
    )
    found, root = stage.find(key), stage.find(operator)
    assert found is not None
    assert root is not None
    with pytest.raises(OrganizationSuspended):
        require_usable(found, now_us=NOW_US)
    require_usable(root, now_us=NOW_US)


def test_keys_of_a_deleted_organization_are_unknown(stage: Stage):
    key = stage.key()
    organizations.delete(stage.connection, stage.made.organization.id, now_us=NOW_US)
    assert stage.find(key) is None
