"""Alerts: what is on record, who hears of them by destination and by mail, and that a cause speaks once."""

import msgspec
import pytest

from gwd.alerts.categories import PatchAlertSetting, list_settings, patch_setting
from gwd.alerts.marks import Mark, clear, mark_once
from gwd.alerts.service import AlertFilter, NewAlert, list_events, raise_, record
from gwd.alerts.tables import DeliveryTable, DestinationTable
from gwd.core.errors import InvalidValue, NotFound
from gwd.orgs.organizations import CreatedOrganization
from gwd.orgs.settings import PatchSettings, patch_settings
from gwd.store import Connection
from tests.support.people import caller, organization, person
from tests.support.store import NOW_US, connection

__all__ = ["connection"]


@pytest.fixture
def made(connection: Connection) -> CreatedOrganization:
    return organization(connection)


def alert(category="key_limit", percents=(), **fields) -> NewAlert:
    return NewAlert(
        category=category,
        type="alert.key_limit",
        severity="warning",
        title="A key reached 80 %",
        message="The key ci has spent 8 of 10 USD.",
        url="https://app.example/keys/key_1",
        data={"key_id": "key_1"},
        thresholds_crossed=percents,
        **fields,
    )


def destination(connection, made, name, *, events=(), enabled=True, type_="webhook") -> str:
    connection.run(
        DestinationTable.insert(
            id=f"dst_{name}",
            organization_id=made.organization.id,
            type=type_,
            name=name,
            address="hooks.example",
            events=list(events),
            enabled=enabled,
            created_at=NOW_US,
            updated_at=NOW_US,
        )
    )
    return f"dst_{name}"


def sent_to(connection, event_id) -> set[str]:
    rows = connection.run(DeliveryTable.select().where(DeliveryTable.event_id == event_id))
    found = list(rows)
    assert all(
        (row.status, row.attempt, row.next_attempt_at) == ("pending", 0, NOW_US) for row in found
    )
    assert all(row.id.startswith("dlv_") for row in found)
    return {row.destination_id or row.recipient for row in found}


def raised(connection, made, new: NewAlert, **options) -> str:
    event_id = raise_(connection, made.organization.id, new, now_us=NOW_US, **options)
    assert event_id is not None
    return event_id


def wants(connection, made, category="key_limit", **fields) -> None:
    patch_setting(connection, made.organization.id, PatchAlertSetting(category=category, **fields))


def test_an_alert_is_on_record_in_the_shape_webhooks_carry(connection, made):
    event_id = raised(connection, made, alert())
    events, total = list_events(connection, made.organization.id, AlertFilter(), limit=10, offset=0)
    assert total == 1
    assert msgspec.to_builtins(record(events[0])) == {
        "id": event_id,
        "type": "alert.key_limit",
        "severity": "warning",
        "title": "A key reached 80 %",
        "message": "The key ci has spent 8 of 10 USD.",
        "url": "https://app.example/keys/key_1",
        "data": {"organization_id": made.organization.id, "key_id": "key_1"},
        "organization_id": made.organization.id,
        "created_at": "2026-09-21T14:13:20Z",
    }
    assert event_id.startswith("evt_")


def test_enabled_destinations_that_subscribe_hear_of_it(connection, made):
    everything = destination(connection, made, "everything")
    keys = destination(connection, made, "keys", events=["key_limit", "low_balance"])
    destination(connection, made, "prices", events=["price_change"])
    destination(connection, made, "off", enabled=False)
    other = organization(connection, "Other")
    destination(connection, other, "foreign")
    event_id = raised(connection, made, alert("key_limit", (50,)))
    assert sent_to(connection, event_id) == {everything, keys}


def test_owners_and_admins_are_emailed_from_80_percent_on(connection, made):
    """Owners and admins are emailed at 80 percent and above by default."""
    person(connection, made, "admin")
    person(connection, made, "billing")
    person(connection, made, "member")
    assert sent_to(connection, raised(connection, made, alert(percents=(50,)))) == set()
    for percents in ((80,), (50, 80, 90)):
        event_id = raised(connection, made, alert(percents=percents))
        assert sent_to(connection, event_id) == {"owner@acme.example", "admin@acme.example"}
    patch_settings(
        connection,
        made.organization.id,
        PatchSettings(alert_email_min_percent=100),
        actor=caller(made, "owner"),
        rate_limit_ceiling=600,
        now_us=NOW_US,
    )
    assert sent_to(connection, raised(connection, made, alert(percents=(90,)))) == set()


def test_settings_of_a_category_decide_who_hears(connection, made):
    person(connection, made, "billing")
    one, two = destination(connection, made, "one"), destination(connection, made, "two")
    wants(connection, made, email_roles=["billing"], channels=[two])
    assert sent_to(connection, raised(connection, made, alert())) == {"billing@acme.example", two}
    wants(connection, made, email_roles=[], channels=None, thresholds=[100, 90])
    assert sent_to(connection, raised(connection, made, alert(percents=(80,)))) == set()
    assert sent_to(connection, raised(connection, made, alert(percents=(80, 90)))) == {one, two}
    wants(connection, made, enabled=False)
    assert sent_to(connection, raised(connection, made, alert(percents=(90,)))) == set()
    assert sent_to(connection, raised(connection, made, alert("low_balance"))) == {
        "billing@acme.example",
        "owner@acme.example",
        one,
        two,
    }


def test_settings_list_every_category_and_null_brings_back_the_default(connection, made):
    wants(connection, made, email_roles=["member"], thresholds=[90, 50, 90])
    held = {one.category: one for one in list_settings(connection, made.organization.id)}
    assert len(held) == 10
    assert held["key_limit"].email_roles == ["member"]
    assert held["key_limit"].thresholds == [50, 90]
    wants(connection, made, email_roles=None)
    held = {one.category: one for one in list_settings(connection, made.organization.id)}
    assert held["key_limit"].email_roles == ["owner", "admin"]
    assert held["key_limit"].thresholds == [50, 90]


def test_bad_settings_are_refused(connection, made):
    other = organization(connection, "Other")
    foreign = destination(connection, other, "foreign")
    with pytest.raises(NotFound) as refused:
        wants(connection, made, channels=[foreign])
    assert refused.value.param == "channels[0]"
    with pytest.raises(InvalidValue):
        wants(connection, made, thresholds=[0])


def test_owners_always_hear_of_a_disabled_destination(connection, made):
    """A destination failing five times in a row is disabled and owners are emailed."""
    with pytest.raises(InvalidValue):
        wants(connection, made, category="destination", email_roles=["admin"])
    assert sent_to(connection, raised(connection, made, alert("destination"))) == {
        "owner@acme.example"
    }


@pytest.mark.parametrize(
    "silence", [{"enabled": False}, {"muted_until": "2100-01-01T00:00:00Z"}, {"email_roles": None}]
)
def test_owners_hear_of_a_disabled_destination_also_in_silence(connection, made, silence):
    other = destination(connection, made, "other")
    wants(connection, made, category="destination", **silence)
    is_silent = "email_roles" not in silence
    assert sent_to(connection, raised(connection, made, alert("destination"))) == {
        "owner@acme.example",
        *(() if is_silent else (other,)),
    }


def test_a_mark_lets_a_cause_speak_once_and_only_louder_again(connection, made):
    def tell(percent: int) -> bool:
        once = Mark(name="key_limit:key_1:monthly:20000", value=percent)
        return (
            raise_(connection, made.organization.id, alert(), now_us=NOW_US, once=once) is not None
        )

    assert [tell(percent) for percent in (50, 50, 90, 80, 90, 100)] == [
        True, False, True, False, False, True,
    ]  # fmt: skip
    _, total = list_events(connection, made.organization.id, AlertFilter(), limit=1, offset=0)
    assert total == 3


def test_a_cleared_mark_speaks_again(connection):
    low = Mark(name="low_balance:org_1")
    assert mark_once(connection, low, now_us=NOW_US)
    assert not mark_once(connection, low, now_us=NOW_US)
    assert clear(connection, low.name)
    assert not clear(connection, low.name)
    assert mark_once(connection, low, now_us=NOW_US)


def test_events_are_filtered_and_stay_in_their_organization(connection, made):
    other = organization(connection, "Other")
    raised(connection, made, alert("low_balance"))
    raised(connection, made, alert("key_limit"))
    raised(connection, other, alert("key_limit"))
    events, total = list_events(
        connection, made.organization.id, AlertFilter(category="key_limit"), limit=9, offset=0
    )
    assert (total, [event.category for event in events]) == (1, ["key_limit"])
    _, total = list_events(
        connection, made.organization.id, AlertFilter(to_us=NOW_US), limit=9, offset=0
    )
    assert total == 0
