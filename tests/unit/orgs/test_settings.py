"""Settings of an organization: defaults, changes, what is refused, and who may set what."""

from decimal import Decimal

import msgspec
import pytest

from gwd.core.errors import Forbidden, InvalidValue, NotFound
from gwd.orgs.organizations import CreatedOrganization
from gwd.orgs.settings import (
    OrganizationState,
    PatchSettings,
    Settings,
    patch_settings,
    record,
    revision,
    settings,
)
from gwd.store import Connection
from tests.support.people import caller, organization
from tests.support.store import NOW_US, connection

__all__ = ["connection"]


@pytest.fixture
def made(connection: Connection) -> CreatedOrganization:
    return organization(connection)


def patched(connection, made, role="owner", **fields) -> OrganizationState:
    return patch_settings(
        connection,
        made.organization.id,
        PatchSettings(**fields),
        actor=caller(made, role),
        rate_limit_ceiling=600,
        now_us=NOW_US,
    )


def shown(state: OrganizationState) -> dict[str, object]:
    return msgspec.json.decode(
        msgspec.json.encode(record(state, rate_limit_ceiling=600)), type=dict[str, object]
    )


def test_defaults_are_those_of_the_page(connection, made):
    state = settings(connection, made.organization.id)
    assert state.settings == Settings()
    assert shown(state) == {
        "forward_retired_models": True,
        "allowed_models": None,
        "allowed_providers": None,
        "ignored_providers": [],
        "default_provider_sort": None,
        "data_policy": "allow",
        "routing_strategy": "expiry_first",
        "default_rate_limit_per_minute": 600,
        "byok_fee_percent": 5,
        "store_prompts": False,
        "content_log": None,
        "retention_days": None,
        "low_balance_threshold": 10,
        "alert_email_min_percent": 80,
        "is_filtered_model_catalog_enabled": False,
        "deprecation_alerts": "all",
    }


def test_what_is_named_changes_and_the_revision_tells(connection, made):
    before = revision(connection, made.organization.id)
    state = patched(
        connection,
        made,
        forward_retired_models=False,
        allowed_models=["openai/*"],
        ignored_providers=["azure", "azure"],
        low_balance_threshold=Decimal("2.5"),
        default_rate_limit_per_minute=60,
        retention_days=30,
    )
    assert state.revision == before + 1
    assert settings(connection, made.organization.id) == state
    after = shown(state)
    assert after["forward_retired_models"] is False
    assert after["allowed_models"] == ["openai/*"]
    assert after["ignored_providers"] == ["azure"]
    assert after["low_balance_threshold"] == 2.5
    assert after["default_rate_limit_per_minute"] == 60
    assert after["retention_days"] == 30


def test_null_clears_and_a_patch_that_changes_nothing_keeps_the_revision(connection, made):
    patched(connection, made, allowed_models=["a/b"], low_balance_threshold=None)
    state = patched(connection, made, allowed_models=None)
    assert state.settings.allowed_models is None
    assert state.settings.low_balance_threshold_nano is None
    assert patched(connection, made, allowed_models=None).revision == state.revision


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("allowed_models", []),
        ("allowed_providers", []),
        ("default_rate_limit_per_minute", 601),
        ("low_balance_threshold", Decimal(-1)),
    ],
)
def test_a_bad_setting_is_named_and_nothing_is_changed(connection, made, field, value):
    before = settings(connection, made.organization.id)
    with pytest.raises(InvalidValue) as refused:
        patched(connection, made, **{field: value}, forward_retired_models=False)
    assert refused.value.param == field
    assert settings(connection, made.organization.id) == before


def test_only_the_operator_sets_the_fee_of_own_provider_keys(connection, made):
    """The percentage is set by whoever runs the gateway."""
    with pytest.raises(Forbidden):
        patched(connection, made, byok_fee_percent=Decimal(0))
    state = patched(connection, made, role="operator", byok_fee_percent=Decimal("2.25"))
    assert state.settings.byok_fee_bps == 225
    assert shown(state)["byok_fee_percent"] == 2.25
    for bad in (Decimal(101), Decimal(-1), Decimal("0.001"), Decimal("NaN")):
        with pytest.raises(InvalidValue):
            patched(connection, made, role="operator", byok_fee_percent=bad)


def test_an_unknown_organization_is_not_found(connection):
    with pytest.raises(NotFound):
        settings(connection, "org_absent")
