"""Keys under management: made, listed, changed, and who may."""

from decimal import Decimal

import msgspec
import pytest

from gwd import spend
from gwd.core.errors import Forbidden, InvalidValue, NotFound
from gwd.keys import secret
from gwd.keys.cascades import delete
from gwd.keys.fields import CreateKey, KeyFilter, PatchKey
from gwd.keys.record import record, usage
from gwd.keys.service import count_live, get, list_keys, patch
from gwd.keys.tables import KeyTable
from gwd.orgs import workspaces
from gwd.orgs.organizations import CreatedOrganization
from gwd.orgs.workspaces import CreateWorkspace
from gwd.store import Connection
from tests.support.people import caller, issued, organization, person
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

DAY_US = 86_400_000_000


@pytest.fixture
def made(connection: Connection) -> CreatedOrganization:
    return organization(connection)


def listed(connection: Connection, made: CreatedOrganization, actor=None, **wanted) -> list[str]:
    keys, total = list_keys(
        connection,
        made.organization.id,
        KeyFilter(**wanted),
        actor=actor or caller(made, "owner"),
        limit=100,
        offset=0,
        now_us=NOW_US,
    )
    assert total == len(keys)
    return sorted(key.name for key in keys)


def changed(connection: Connection, made: CreatedOrganization, ref: str, actor=None, **fields):
    return patch(
        connection,
        made.organization.id,
        ref,
        PatchKey(**fields),
        actor=actor or caller(made, "owner"),
        rate_limit_ceiling=600,
        now_us=NOW_US + 1,
    )


def workspace(connection: Connection, made: CreatedOrganization, name: str) -> str:
    new = CreateWorkspace(name=name)
    return workspaces.create(
        connection, made.organization.id, new, created_by=None, now_us=NOW_US
    ).id


def test_a_new_key_keeps_what_was_asked_for(connection, made):
    key = issued(
        connection,
        made,
        CreateKey(
            name=" ci ",
            limit=Decimal("12.5"),
            limit_reset="monthly",
            allowed_models=["openai/*", "~test/oai-latest"],
            allowed_providers=["OpenAI", "openai/eu"],
            ignored_providers=["azure", "azure"],
            default_provider_sort="latency",
            data_policy="deny",
            tags=["ci", " nightly", "ci"],
            rate_limit_per_minute=120,
            expires_at="2027-01-01T00:00:00Z",
            external_user="tenant 7",
        ),
    )
    shown = msgspec.json.decode(
        msgspec.json.encode(
            record(
                key.key,
                usage(connection, key.key, now_us=NOW_US),
                default_rate_limit_per_minute=600,
                now_us=NOW_US,
            )
        )
    )
    assert shown == {
        "id": key.key.id,
        "hash": secret.public_hash(key.plaintext),
        "object": "api_key",
        "name": "ci",
        "label": f"{key.plaintext[:8]}…{key.plaintext[-4:]}",
        "type": "inference",
        "role": None,
        "organization_id": made.organization.id,
        "workspace_id": made.workspace_id,
        "user_id": made.owner_id,
        "creator_user_id": made.owner_id,
        "external_user": "tenant 7",
        "disabled": False,
        "limit": 12.5,
        "limit_remaining": 12.5,
        "limit_reset": "monthly",
        "limit_resets_at": "2026-10-01T00:00:00Z",
        "include_byok_in_limit": False,
        "strict": False,
        "in_flight_cap": None,
        **dict.fromkeys(
            (
                f"{kind}{window}"
                for kind in ("usage", "byok_usage")
                for window in ("", "_daily", "_weekly", "_monthly")
            ),
            0,
        ),
        "rate_limit_per_minute": 120,
        "allowed_models": ["openai/*", "~test/oai-latest"],
        "allowed_providers": ["OpenAI", "openai/eu"],
        "ignored_providers": ["azure"],
        "default_provider_sort": "latency",
        "data_policy": "deny",
        "alert_thresholds": [50, 80, 90, 100],
        "tags": ["ci", "nightly"],
        "expires_at": "2027-01-01T00:00:00Z",
        "created_at": "2026-09-21T14:13:20Z",
        "updated_at": "2026-09-21T14:13:20Z",
        "last_used_at": None,
        "rotated_to": None,
        "rotated_from": None,
    }


def test_usage_is_shown_per_calendar_window_whatever_the_limit_resets(connection, made):
    key = issued(connection, made, CreateKey(name="ci", limit=Decimal(4), limit_reset="weekly")).key
    for days_ago, usd in ((0, 1), (1, 2), (10, 4), (40, 8)):
        spend.add(
            connection,
            (key.family_id,),
            charged_nano=usd * 10**9,
            byok_nano=usd * 10**8,
            at_us=NOW_US - days_ago * DAY_US,
        )
    used = usage(connection, key, now_us=NOW_US)
    shown = record(key, used, default_rate_limit_per_minute=60, now_us=NOW_US)
    numbers = {
        name: float(bytes(getattr(shown, name)))
        for name in shown.__struct_fields__
        if "usage" in name
    }
    assert numbers == {
        "usage": 15,
        "usage_daily": 1,
        "usage_weekly": 1,  # NOW is a Monday
        "usage_monthly": 7,
        "byok_usage": 1.5,
        "byok_usage_daily": 0.1,
        "byok_usage_weekly": 0.1,
        "byok_usage_monthly": 0.7,
    }
    assert shown.limit_remaining is not None
    assert bytes(shown.limit_remaining) == b"3"
    assert shown.rate_limit_per_minute == 60


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"name": "  "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\x1b[31m"}, "name"),
        ({"limit": Decimal(-1)}, "limit"),
        ({"limit": Decimal("NaN")}, "limit"),
        ({"limit": Decimal("0.0000000001")}, "limit"),
        ({"rate_limit_per_minute": 0}, "rate_limit_per_minute"),
        ({"rate_limit_per_minute": 601}, "rate_limit_per_minute"),
        ({"allowed_models": []}, "allowed_models"),
        ({"allowed_models": ["a/b", "/*"]}, "allowed_models[1]"),
        ({"allowed_providers": []}, "allowed_providers"),
        ({"ignored_providers": ["a", " "]}, "ignored_providers[1]"),
        ({"alert_thresholds": [0]}, "alert_thresholds"),
        ({"expires_at": "2026-12-01T00:00:00"}, "expires_at"),
        ({"expires_at": "2026-01-01T00:00:00Z"}, "expires_at"),
        ({"role": "admin"}, "role"),
    ],
)
def test_a_bad_field_is_named(connection, made, fields, param):
    with pytest.raises(InvalidValue) as refused:
        issued(connection, made, CreateKey(**{"name": "ci", **fields}))
    assert refused.value.param == param


def test_lists_leave_out_disabled_expired_and_deleted_keys_unless_asked(connection, made):
    issued(connection, made, CreateKey(name="plain"))
    off = issued(connection, made, CreateKey(name="off"))
    changed(connection, made, off.key.id, disabled=True)
    old = issued(connection, made, CreateKey(name="old", expires_at="2026-09-22T00:00:00Z"))
    connection.execute("UPDATE api_key SET expires_at = ? WHERE id = ?", (NOW_US, old.key.id))
    gone = issued(connection, made, CreateKey(name="gone"))
    delete(
        connection,
        made.organization.id,
        gone.key.id,
        actor=caller(made, "owner"),
        now_us=NOW_US,
    )
    assert listed(connection, made) == ["plain"]
    assert listed(connection, made, include_disabled=True) == ["off", "plain"]
    assert listed(connection, made, include_expired=True) == ["old", "plain"]
    assert listed(connection, made, name="plain") == ["plain"]
    assert listed(connection, made, name="pla") == []


def test_lists_show_all_workspaces_unless_one_is_named_by_id_or_slug(connection, made):
    web = workspace(connection, made, "Web")
    issued(connection, made, CreateKey(name="here"))
    issued(connection, made, CreateKey(name="there", workspace_id="web"))
    assert listed(connection, made) == ["here", "there"]
    assert listed(connection, made, workspace_id=web) == ["there"]
    assert listed(connection, made, workspace_id="web") == ["there"]
    assert count_live(connection, made.organization.id, workspace_id=web, now_us=NOW_US) == 1


def test_a_key_is_addressed_by_id_or_public_hash_never_by_its_digest(connection, made):
    key = issued(connection, made, CreateKey(name="ci"))
    owner = caller(made, "owner")
    for ref in (key.key.id, key.key.hash):
        assert get(connection, made.organization.id, ref, actor=owner).id == key.key.id
    for ref in (key.plaintext, secret.digest(key.plaintext, b"p" * 32).hex(), "ci"):
        with pytest.raises(NotFound):
            get(connection, made.organization.id, ref, actor=owner)


def test_foreign_deleted_and_absent_keys_are_the_same_not_found(connection, made):
    other = organization(connection, "Other")
    foreign = issued(connection, other, CreateKey(name="ci"))
    gone = issued(connection, made, CreateKey(name="gone"))
    owner = caller(made, "owner")
    delete(connection, made.organization.id, gone.key.id, actor=owner, now_us=NOW_US)
    texts = set()
    for ref in (foreign.key.id, foreign.key.hash, gone.key.id, "key_absent"):
        with pytest.raises(NotFound) as refused:
            get(connection, made.organization.id, ref, actor=owner)
        texts.add(refused.value.message)
    assert len(texts) == 1


def test_patch_changes_what_is_named_and_null_clears(connection, made):
    key = issued(
        connection,
        made,
        CreateKey(name="ci", limit=Decimal(5), allowed_models=["a/b"], rate_limit_per_minute=5),
    )
    after = changed(connection, made, key.key.hash, limit=None, name="new")
    assert (after.name, after.limit_nano, after.allowed_models) == ("new", None, ["a/b"])
    after = changed(connection, made, key.key.id, allowed_models=None, rate_limit_per_minute=None)
    assert (after.allowed_models, after.rate_limit_per_minute) == (None, None)
    assert after.updated_at == NOW_US + 1
    assert changed(connection, made, key.key.id) == after


def test_a_member_reaches_own_keys_only(connection, made):
    ada, bob = person(connection, made, "member", "ada"), person(connection, made, "member", "bob")
    mine = issued(connection, made, CreateKey(name="mine"), actor=ada)
    theirs = issued(connection, made, CreateKey(name="theirs"), actor=bob)
    assert listed(connection, made, ada) == ["mine"]
    changed(connection, made, mine.key.id, ada, disabled=True)
    for attempt in (
        lambda: get(connection, made.organization.id, theirs.key.id, actor=ada),
        lambda: changed(connection, made, theirs.key.id, ada, name="stolen"),
        lambda: delete(connection, made.organization.id, theirs.key.id, actor=ada, now_us=NOW_US),
    ):
        with pytest.raises(NotFound):
            attempt()


def test_a_member_creates_keys_for_themselves_in_workspaces_they_are_in(connection, made):
    ada, bob = person(connection, made, "member", "ada"), person(connection, made, "member", "bob")
    web = workspace(connection, made, "Web")
    assert ada.user_id is not None
    with pytest.raises(Forbidden):
        issued(connection, made, CreateKey(name="x", user_id=bob.user_id), actor=ada)
    with pytest.raises(Forbidden):
        issued(connection, made, CreateKey(name="x", workspace_id=web), actor=ada)
    workspaces.add_members(
        connection,
        made.organization.id,
        web,
        [ada.user_id],
        actor=caller(made, "owner"),
        now_us=NOW_US,
    )
    key = issued(connection, made, CreateKey(name="x", workspace_id=web), actor=ada)
    assert (key.key.workspace_id, key.key.user_id) == (web, ada.user_id)


def test_billing_reads_keys_but_makes_none(connection, made):
    issued(connection, made, CreateKey(name="ci"))
    billing = person(connection, made, "billing")
    assert listed(connection, made, billing) == ["ci"]
    with pytest.raises(Forbidden):
        issued(connection, made, CreateKey(name="mine"), actor=billing)


def test_nobody_makes_a_key_above_their_own_role(connection, made):
    """A management key's role is at most the caller's."""
    admin = person(connection, made, "admin")
    with pytest.raises(Forbidden):
        issued(connection, made, CreateKey(name="x", type="management", role="owner"), actor=admin)
    with pytest.raises(Forbidden):
        issued(connection, made, CreateKey(name="x", type="management", role="operator"))
    key = issued(connection, made, CreateKey(name="x", type="management"), actor=admin)
    assert (key.key.role, key.key.user_id) == ("admin", admin.user_id)
    assert key.key.id.startswith("mk_")


def test_a_key_has_at_most_the_role_of_the_member_it_belongs_to(connection, made):
    ada = person(connection, made, "member", "ada")
    new = CreateKey(name="x", type="management", role="admin", user_id=ada.user_id)
    with pytest.raises(InvalidValue) as refused:
        issued(connection, made, new)
    assert refused.value.param == "role"
    new = CreateKey(name="x", type="management", user_id=ada.user_id)
    assert issued(connection, made, new).key.role == "member"


def test_a_lower_role_cannot_touch_a_key_with_a_higher_one(connection, made):
    admin = person(connection, made, "admin")
    owners = issued(connection, made, CreateKey(name="root", type="management", role="owner"))
    with pytest.raises(Forbidden):
        changed(connection, made, owners.key.id, admin, disabled=True)
    with pytest.raises(Forbidden):
        delete(connection, made.organization.id, owners.key.id, actor=admin, now_us=NOW_US)
    assert get(connection, made.organization.id, owners.key.id, actor=admin).role == "owner"


def test_a_lead_sees_and_makes_keys_of_one_workspace_only(connection, made):
    """A workspace lead is an admin whose key is bound to one workspace."""
    web = workspace(connection, made, "Web")
    elsewhere = issued(connection, made, CreateKey(name="elsewhere"))
    lead = caller(made, "admin", workspace_id=web)
    key = issued(connection, made, CreateKey(name="mine"), actor=lead)
    assert key.key.workspace_id == web
    assert listed(connection, made, lead) == ["mine"]
    with pytest.raises(NotFound):
        get(connection, made.organization.id, elsewhere.key.id, actor=lead)
    with pytest.raises(Forbidden):
        issued(connection, made, CreateKey(name="x", workspace_id="default"), actor=lead)
    bound = issued(connection, made, CreateKey(name="m", type="management"), actor=lead)
    assert bound.key.workspace_id == web
    with pytest.raises(Forbidden):
        issued(connection, made, CreateKey(name="b", type="management", role="billing"), actor=lead)


def test_the_table_has_the_columns_of_the_schema(connection):
    columns = {row[1]: not row[3] for row in connection.rows("PRAGMA table_info(api_key)")}
    assert {name: field.null for name, field in KeyTable._meta.fields.items()} == columns
