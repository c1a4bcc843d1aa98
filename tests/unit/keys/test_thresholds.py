"""Thresholds of key limits: 50, 80, 90 and 100 percent, each told once in a period."""

from decimal import Decimal

import msgspec
import pytest

from gwd import spend
from gwd.alerts.marks import Mark, mark_once
from gwd.core.clock import US_PER_DAY
from gwd.keys.admission import standing, state
from gwd.keys.fields import CreateKey
from gwd.keys.rotation import RotateKey, rotate
from gwd.keys.thresholds import KeyCrossing, alert_data, crossed
from gwd.store import Connection
from tests.support.people import ISSUING, caller, issued, organization
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

USD = 1_000_000_000


def charge(
    connection: Connection, key_id: str, usd: Decimal, *, byok_usd: int = 0, at_us: int = NOW_US
) -> KeyCrossing | None:
    key = state(connection, key_id)
    assert key is not None
    amounts = {"charged_nano": int(usd * USD), "byok_nano": byok_usd * USD}
    spend.add(connection, (key.family_id,), **amounts, at_us=at_us)
    found = standing(connection, key_id, at_us=at_us)
    assert found is not None
    key, spent_nano = found
    return crossed(key, spent_nano, **amounts, at_us=at_us)


def reported(connection: Connection, found: KeyCrossing | None) -> int | None:
    """The percentage an alert would name, or None if it was told before."""
    if found is None:
        return None
    mark = Mark(name=found.crossing.mark, value=found.crossing.threshold_percent)
    if not mark_once(connection, mark, now_us=NOW_US):
        return None
    return found.crossing.threshold_percent


def test_each_threshold_speaks_once_and_the_highest_crossed_is_named(connection):
    key = issued(connection, organization(connection), CreateKey(name="ci", limit=Decimal(10))).key
    heard = [
        reported(connection, charge(connection, key.id, Decimal(usd)))
        for usd in ("4.999999999", "0.000000001", "2", "2.5", "0.5", "5")
    ]
    assert heard == [None, 50, None, 90, 100, None]


def test_several_crossed_at_once_are_listed(connection):
    key = issued(connection, organization(connection), CreateKey(name="ci", limit=Decimal(10))).key
    found = charge(connection, key.id, Decimal("9.5"))
    assert found is not None
    assert msgspec.json.decode(msgspec.json.encode(alert_data(found))) == {
        "key_id": key.id,
        "key_hash": key.hash,
        "key_name": "ci",
        "workspace_id": key.workspace_id,
        "limit": 10,
        "limit_reset": None,
        "usage": 9.5,
        "percent_used": 95,
        "threshold_percent": 90,
        "thresholds_crossed": [50, 80, 90],
        "resets_at": None,
    }


def test_a_new_period_speaks_anew(connection):
    new = CreateKey(name="ci", limit=Decimal(1), limit_reset="daily")
    key = issued(connection, organization(connection), new).key
    tomorrow_us = NOW_US + US_PER_DAY
    assert reported(connection, charge(connection, key.id, Decimal(1))) == 100
    assert reported(connection, charge(connection, key.id, Decimal(1), at_us=tomorrow_us)) == 100


def test_a_successor_does_not_repeat_what_the_old_key_told(connection):
    made = organization(connection)
    old = issued(connection, made, CreateKey(name="ci", limit=Decimal(10))).key
    assert reported(connection, charge(connection, old.id, Decimal(8))) == 80
    both = rotate(
        connection,
        made.organization.id,
        old.id,
        RotateKey(),
        actor=caller(made, "owner"),
        issuing=ISSUING,
        now_us=NOW_US,
    )
    assert reported(connection, charge(connection, both.issued.key.id, Decimal("0.5"))) is None
    assert reported(connection, charge(connection, both.issued.key.id, Decimal("0.5"))) == 90
    assert reported(connection, charge(connection, old.id, Decimal("0.1"))) is None


@pytest.mark.parametrize(("counted", "percent"), [(False, None), (True, 50)])
def test_own_provider_key_spend_counts_only_if_the_key_says_so(connection, counted, percent):
    new = CreateKey(name="ci", limit=Decimal(10), include_byok_in_limit=counted)
    key = issued(connection, organization(connection), new).key
    assert reported(connection, charge(connection, key.id, Decimal(0), byok_usd=5)) == percent


@pytest.mark.parametrize(
    "fields", [{}, {"limit": Decimal(0)}, {"limit": Decimal(1), "alert_thresholds": []}]
)
def test_without_limit_or_thresholds_nothing_is_told(connection, fields):
    key = issued(connection, organization(connection), CreateKey(name="ci", **fields)).key
    assert charge(connection, key.id, Decimal(5)) is None
