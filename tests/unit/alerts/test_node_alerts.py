"""What the operator hears of the node: each thing once, until it is over."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gwd.alerts import node_alerts
from gwd.core.certificate import read_certificate
from gwd.core.clock import US_PER_DAY
from gwd.store.connection import Connection
from tests.support import certificates, people
from tests.support.store import NOW_US, connection

__all__ = ["connection"]

APP = "https://gate.example"


def told(connection: Connection) -> list[Any]:
    rows = connection.rows("SELECT type, severity, title, data FROM alert ORDER BY rowid")
    return [
        (kind, severity, title, msgspec.json.decode(data)) for kind, severity, title, data in rows
    ]


@pytest.fixture(autouse=True)
def _office(connection: Connection) -> None:
    people.organization(connection)


def test_a_quarantine_is_told_once_until_the_books_are_in_order(connection: Connection) -> None:
    for _ in range(2):
        node_alerts.quarantined(connection, "a lot is short", app_url=APP, now_us=NOW_US)
    [(kind, severity, _, data)] = told(connection)
    assert (kind, severity, data["reason"]) == (
        "alert.ledger_quarantined",
        "critical",
        "a lot is short",
    )
    node_alerts.in_order(connection)
    node_alerts.quarantined(connection, "again", app_url=APP, now_us=NOW_US)
    assert len(told(connection)) == 2


def test_late_copies_are_told_of_once_until_there_is_a_good_one(connection: Connection) -> None:
    def tell(reason: str, *, is_damage: bool) -> None:
        node_alerts.backup_overdue(
            connection,
            directory="/backup",
            newest_us=None,
            every_us=US_PER_DAY,
            reason=reason,
            is_damage=is_damage,
            app_url=APP,
            now_us=NOW_US,
        )

    tell("no room", is_damage=False)
    tell("still no room", is_damage=False)
    assert node_alerts.is_backup_told(connection)
    tell("a copy is damaged", is_damage=True)
    tell("no room again", is_damage=False)
    late, damaged = told(connection)
    assert late[:2] == ("alert.backup_overdue", "warning")
    assert late[3]["reason"] == "no room"
    assert (late[3]["newest_at"], late[3]["every_s"]) == (None, 86_400)
    assert damaged[:3] == (
        "alert.backup_overdue",
        "critical",
        "A copy of the database is damaged",
    )
    node_alerts.backed_up(connection)
    assert not node_alerts.is_backup_told(connection)
    tell("once more", is_damage=False)
    assert len(told(connection)) == 3


def test_a_certificate_is_told_of_in_its_stages(connection: Connection) -> None:
    ends_us = NOW_US + 40 * US_PER_DAY
    for day in range(45):
        node_alerts.certificate(
            connection,
            ends_us=ends_us,
            names=["gate.example"],
            app_url=APP,
            now_us=NOW_US + day * US_PER_DAY,
        )
    assert [(severity, title) for _, severity, title, _ in told(connection)] == [
        *[("warning", "The certificate of gate.example ends soon")] * 3,
        ("critical", "The certificate of gate.example has ended"),
    ]


def test_the_end_of_a_certificate_is_read_from_its_file(tmp_path: Path) -> None:
    certificates.server_tls(tmp_path, host="gate.example", days=1)
    pem = (tmp_path / "server.pem").read_bytes()
    alone = tmp_path / "alone.pem"
    alone.write_bytes(pem[pem.index(b"-----BEGIN CERTIFICATE") :])
    found = read_certificate(alone)
    assert found.names == ("gate.example",)
    assert found.ends_us > 0
