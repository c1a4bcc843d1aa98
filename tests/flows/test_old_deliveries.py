"""A file of the version that raised alerts and told nobody: what is old is closed, the rest is told in few mails."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gwd.alerts import queue
from gwd.core.clock import US_PER_DAY, US_PER_S, SystemClock
from gwd.jobs.deliveries import DeliveryJob
from gwd.store import Connection, Store, migrations
from gwd.store.connection import open_connection, transaction
from gwd.store.migrations import migrate
from tests.flows.test_deliveries import Scene
from tests.support import people
from tests.support.receivers import open_mail_box, open_receiver
from tests.support.store import NOW_US

OLD, RECENT = 700, 450
OWNER = "owner@acme.example"
_ADD = (
    "INSERT INTO alert (id, organization_id, category, type, severity, title, message, url, data, created_at)"
    " VALUES (?1, 'org', 'key_limit', 'alert.key_limit', 'warning', ?2, 'm', 'https://gate.example/', '{}', ?3)"
)
_WAIT = (
    "INSERT INTO delivery (id, event_id, organization_id, recipient, status, next_attempt_at, created_at)"
    " VALUES ('dlv_' || ?1, ?1, 'org', ?2, 'pending', ?3, ?3)"
)


def waits(path: str) -> None:
    """As that version left it: a delivery for each alert, all of them pending."""
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        for number in range(OLD + RECENT):
            age_us = (30 * US_PER_DAY if number < OLD else US_PER_DAY) - number * US_PER_S
            at_us = NOW_US - age_us
            connection.execute(_ADD, (f"evt_{number}", f"Alert {number}", at_us))
            connection.execute(_WAIT, (f"evt_{number}", OWNER, at_us))
    connection.raw.close()


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    path = str(tmp_path / "gwd.db")
    before = [
        name for name in migrations.names() if not name.endswith(("deliveries", "old_alerts"))
    ]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "names", lambda: before)
        migrate(path, SystemClock())
    waits(path)
    assert "0015_deliveries" in migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        office = people.organization(connection)
        organization_id = office.organization.id
        for table in ("alert", "delivery"):
            connection.execute(
                f"UPDATE {table} SET organization_id = ?",
                (organization_id,),
            )
    connection.raw.close()
    store = Store(path)
    async with open_receiver() as receiver, open_mail_box() as box:
        yield Scene(store, receiver, box, office)
    await store.close()


async def test_what_waited_is_closed_or_told_and_nobody_is_flooded(scene: Scene) -> None:
    assert isinstance(scene.job, DeliveryJob)
    for _ in range(20):
        await scene.tick(seconds=30)
    mails = scene.box.to(OWNER)
    # Two hundred at once at most, one mail a minute.
    assert [mail["Subject"].split(" alerts")[0] for mail in mails] == ["200", "200", "50"]
    counts = {
        status: await scene.store.read(_count, status)
        for status in ("pending", "delivered", "expired", "failed")
    }
    assert counts == {"pending": 0, "delivered": RECENT, "expired": OLD, "failed": 0}
    [error] = {d.error for d in await scene.deliveries(status="expired")}
    assert error == queue.EXPIRED
    text = mails[0].get_body(("plain",))
    assert text is not None
    assert "and 180 more" in text.get_content()


def _count(connection: Connection, status: str) -> int:
    row = connection.row("SELECT COUNT(*) FROM delivery WHERE status = ?", (status,))
    assert row is not None
    return int(row[0])
