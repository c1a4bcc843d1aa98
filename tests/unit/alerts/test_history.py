"""How long alerts, deliveries and marks are kept, and what an organization leaves that is deleted."""

from pathlib import Path

import pytest

from gwd import ledger
from gwd.alerts import deliveries, destinations, history, marks, queue
from gwd.alerts.marks import Mark, mark_once
from gwd.alerts.queue import Outcome
from gwd.alerts.service import NewAlert, enqueue, raise_, raise_to
from gwd.alerts.tables import DestinationTable
from gwd.core.clock import US_PER_DAY, SystemClock
from gwd.core.errors import Conflict
from gwd.core.node_clock import NodeClock
from gwd.jobs import retention
from gwd.management import organizations
from gwd.management.change import Change
from gwd.orgs import members
from gwd.orgs.members import NewMember
from gwd.store import Connection
from tests.support import people
from tests.support.store import NOW_US, connection, open_store

__all__ = ["connection"]

ALERT = NewAlert(
    category="node",
    type="alert.test",
    severity="info",
    title="t",
    message="m",
    url="https://a.example/",
    data={},
)
FORGOTTEN = (
    "key_limit:fam:5000:daily:20000",
    "key_limit:fam:5000:monthly:20000",
    "budget:bud_1:weekly:20000",
    "auto_topup:top_1",
    "topup_cap:org:1:2:3",
    "node:certificate:17",
    "catalog:deprecated:acme/x:17",
    "catalog:retiring:acme/x:17",
    "catalog:retired:acme/x:17",
    "catalog:price_changed:acme/x:17:prc_1",
    "catalog:alias_moved:acme/x:17",
)
KEPT = (
    "key_limit:fam:5000:lifetime:0",
    "budget:bud_1:lifetime:0",
    "low_balance:org_1",
    "node:quarantine",
    "catalog:unavailable:acme/x:daily:1",
    "catalog:price_announced:acme/x:17:prc_1",
)


def destination(connection: Connection, organization_id: str, *, enabled: bool = True) -> str:
    connection.run(
        DestinationTable.insert(
            id="dst_1",
            organization_id=organization_id,
            type="webhook",
            name="ops",
            address="https://hooks.example/",
            events=[],
            enabled=enabled,
            created_at=NOW_US,
            updated_at=NOW_US,
        )
    )
    return "dst_1"


def names(connection: Connection) -> set[str]:
    return {row[0] for row in connection.rows("SELECT name FROM alert_mark")}


def statuses(connection: Connection) -> list[tuple[str, str | None]]:
    return [
        (status, error)
        for status, error in connection.rows("SELECT status, error FROM delivery ORDER BY rowid")
    ]


def test_marks_of_causes_that_cannot_come_again_are_forgotten(connection: Connection) -> None:
    for name in (*FORGOTTEN, *KEPT):
        mark_once(connection, Mark(name=name), now_us=NOW_US)
    assert marks.old(connection, now_us=NOW_US + marks.KEPT_US, at_most=100) == []
    later_us = NOW_US + marks.KEPT_US + 1
    found = marks.old(connection, now_us=later_us, at_most=100)
    assert set(found) == set(FORGOTTEN)
    mark_once(connection, Mark(name=FORGOTTEN[0], value=2), now_us=later_us)
    marks.forget(connection, found, now_us=later_us)
    assert names(connection) == {*KEPT, FORGOTTEN[0]}


def test_alerts_outlive_their_deliveries_and_what_waits_stays(connection: Connection) -> None:
    organization_id = people.organization(connection).organization.id
    destination(connection, organization_id)
    for _ in range(3):
        raise_to(connection, organization_id, ALERT, "dst_1", now_us=NOW_US)
    [first, *_] = [row[0] for row in connection.rows("SELECT id FROM delivery ORDER BY rowid")]
    connection.execute("UPDATE delivery SET status = 'delivered' WHERE id <> ?", (first,))
    late_us = NOW_US + history.DELIVERIES_KEPT_US
    assert history.old_deliveries(connection, now_us=late_us, at_most=10) == []
    found = history.old_deliveries(connection, now_us=late_us + 1, at_most=10)
    assert len(found) == 2
    assert first not in found
    history.forget_deliveries(connection, [*found, first])
    assert statuses(connection) == [("pending", None)]
    later_us = NOW_US + history.ALERTS_KEPT_US + 1
    old = history.old_alerts(connection, now_us=later_us, at_most=10)
    assert len(old) == 2
    enqueue(connection, organization_id, old[0], ALERT.type, recipient="a@b.c", now_us=later_us)
    history.forget_alerts(connection, old)
    rows = connection.rows("SELECT id FROM alert")
    assert len(rows) == 2
    assert (old[0],) in rows


async def test_the_job_forgets_them_in_short_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "CHUNK", 4)
    now_us = SystemClock().now_us()

    def begin(connection: Connection) -> None:
        organization_id = people.organization(connection).organization.id
        destination(connection, organization_id)
        for _ in range(10):
            raise_to(connection, organization_id, ALERT, "dst_1", now_us=now_us - 401 * US_PER_DAY)
        raise_to(connection, organization_id, ALERT, "dst_1", now_us=now_us - 91 * US_PER_DAY)
        connection.execute("UPDATE delivery SET status = 'delivered'")
        mark_once(connection, Mark(name=FORGOTTEN[0]), now_us=now_us - 401 * US_PER_DAY)

    async with open_store(tmp_path, begin) as store:
        await retention.forget(store, NodeClock(SystemClock()))
        counts = await store.read(
            Connection.row,
            "SELECT (SELECT COUNT(*) FROM alert), (SELECT COUNT(*) FROM delivery) + (SELECT COUNT(*) FROM alert_mark)",
        )
    assert counts == (1, 0)


def test_a_deleted_organization_is_told_nothing_and_leaves_no_address(
    connection: Connection,
) -> None:
    operator, made = people.organization(connection, "Node"), people.organization(connection)
    organization_id = made.organization.id
    destination(connection, organization_id)
    connection.execute("UPDATE destination SET sealed_secret = 'sealed'")
    raise_(connection, organization_id, ALERT, now_us=NOW_US)
    raise_(connection, operator.organization.id, ALERT, now_us=NOW_US)
    assert len(queue.due(connection, now_us=NOW_US)) == 3
    message = queue.next_message(connection, "dst_1", held=(), now_us=NOW_US)
    assert message is not None
    ledger.open_account(connection, organization_id, now_us=NOW_US)
    change = Change(actor=people.caller(operator, "operator"), now_us=NOW_US)
    organizations.delete(connection, organization_id, change=change)
    assert connection.rows("SELECT id FROM destination") == []
    assert queue.due(connection, now_us=NOW_US) == ["owner@node.example"]
    # The attempt that was under way fails: that opens nothing again.
    failed = Outcome(error="no answer")
    queue.note(connection, message, failed, jitter=0, app_url="https://a.example", now_us=NOW_US)
    assert {each for each in statuses(connection) if each[0] != "pending"} == {
        ("failed", "the organization was deleted")
    }
    row = connection.row(
        "SELECT COUNT(*) FROM delivery WHERE status = 'failed' AND finished_at > 0"
    )
    assert row == (2,)


def test_sending_again_asks_for_the_destination(connection: Connection) -> None:
    organization_id = people.organization(connection).organization.id
    destination(connection, organization_id, enabled=False)
    delivery_id = raise_to(connection, organization_id, ALERT, "dst_1", now_us=NOW_US)
    again = deliveries.redeliver(connection, organization_id, delivery_id, now_us=NOW_US)
    assert again.next_attempt_at is None  # it waits until somebody enables the destination
    destinations.switch(connection, organization_id, "dst_1", enabled=True, now_us=NOW_US)
    assert queue.due(connection, now_us=NOW_US) == ["dst_1"]
    destinations.delete(connection, organization_id, "dst_1", now_us=NOW_US)
    with pytest.raises(Conflict, match="was deleted"):
        deliveries.redeliver(connection, organization_id, delivery_id, now_us=NOW_US)


def test_a_digest_is_of_one_organization(connection: Connection) -> None:
    """Whoever belongs to two is told of each under its name."""
    made = [people.organization(connection, name) for name in ("Acme", "Other")]
    for each in made:
        members.join(
            connection,
            each.organization.id,
            NewMember(email="both@people.example", role="owner"),
            now_us=NOW_US,
        )
        raise_(connection, each.organization.id, ALERT, now_us=NOW_US)
        raise_(connection, each.organization.id, ALERT, now_us=NOW_US)
    seen = []
    for _ in made:
        message = queue.next_message(connection, "both@people.example", held=(), now_us=NOW_US)
        assert message is not None
        assert {alert.organization_id for alert in message.alerts} == {
            message.addressee.organization_id
        }
        seen.append((message.addressee.organization_id, len(message.alerts)))
        queue.note(
            connection,
            message,
            Outcome(error=None),
            jitter=0,
            app_url="https://a.example",
            now_us=NOW_US,
        )
    assert seen == [(each.organization.id, 2) for each in made]


def test_who_is_paused_or_disabled_is_not_due(connection: Connection) -> None:
    organization_id = people.organization(connection).organization.id
    destination(connection, organization_id)
    for _ in range(2):
        raise_(connection, organization_id, ALERT, now_us=NOW_US)
    message = queue.next_message(connection, "dst_1", held=(), now_us=NOW_US)
    assert message is not None
    failed = Outcome(error="no answer")
    queue.note(connection, message, failed, jitter=0, app_url="https://a.example", now_us=NOW_US)
    assert "dst_1" not in queue.due(connection, now_us=NOW_US)
    assert "dst_1" in queue.due(connection, now_us=NOW_US + 6_000_000)
    connection.execute("UPDATE destination SET enabled = 0")
    assert "dst_1" not in queue.due(connection, now_us=NOW_US + 6_000_000)
