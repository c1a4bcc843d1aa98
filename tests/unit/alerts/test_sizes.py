"""Two hundred thousand alerts and deliveries: lists and the queue answer within 50 ms of processor time."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gwd.alerts import deliveries, history, marks, queue
from gwd.alerts.deliveries import DeliveryFilter
from gwd.alerts.queue import Outcome
from gwd.alerts.service import AlertFilter, list_events
from gwd.core.clock import SystemClock
from gwd.store import Connection
from gwd.store.connection import open_connection, transaction
from gwd.store.migrations import migrate
from tests.support import people
from tests.support.store import NOW_US

ROWS = 200_000
WAITING = 20_000
LIMIT = 1_300_000
"""Steps: counting all rows by an index takes four to six each; sorting them would take fifteen."""
NEXT = 500
_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1)"


@pytest.fixture(scope="module")
def history_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Connection, str]]:
    """A file with a long history; twenty destinations have much that waits for them."""
    path = str(tmp_path_factory.mktemp("history") / "gwd.db")
    migrate(path, SystemClock())
    connection = open_connection(path, "writer")
    with transaction(connection, "IMMEDIATE"):
        organization_id = people.organization(connection).organization.id
        connection.execute(
            f"{_NUMBERS} INSERT INTO destination (id, organization_id, type, name, address, events, enabled,"
            " consecutive_failures, created_at, updated_at)"
            " SELECT 'dst_' || i, ?2, 'webhook', 'ops', 'https://a.example/', '[]', 1, 0, 0, 0 FROM n",
            (20, organization_id),
        )
        connection.execute(
            f"{_NUMBERS} INSERT INTO alert SELECT 'evt_' || i, ?2, iif(i % 2, 'key_limit', 'node'), 'alert.key_limit',"
            " iif(i % 9, 'info', 'critical'), 't', 'm', 'u', json_object('text', hex(zeroblob(200))), ?3 + i FROM n",
            (ROWS, organization_id, NOW_US),
        )
        connection.execute(
            f"{_NUMBERS} INSERT INTO delivery (id, event_id, organization_id, destination_id, addressee, type, attempt,"
            " status, next_attempt_at, created_at) SELECT 'dlv_' || i, 'evt_' || i, ?2, 'dst_' || (i % 20),"
            " 'dst_' || (i % 20), 'alert.key_limit', 0, iif(i < ?4, 'pending', iif(i % 7, 'delivered', 'failed')),"
            " iif(i < ?4, ?3, NULL), ?3 + i FROM n",
            (ROWS, organization_id, NOW_US, WAITING),
        )
    yield connection, organization_id
    connection.raw.close()


def steps(connection: Connection, fn: Callable[[], Any]) -> int:
    """How many steps of SQLite's machine it takes, to the nearest hundred: the same on every machine."""
    looks = 0

    def look() -> bool:
        nonlocal looks
        looks += 1
        return False

    connection.raw.set_progress_handler(look, 100)
    try:
        fn()
    finally:
        connection.raw.set_progress_handler(None)
    return looks * 100


def test_lists_and_the_queue_do_not_read_everything(history_file: tuple[Connection, str]) -> None:
    connection, organization_id = history_file
    now_us = NOW_US + ROWS
    page: dict[str, Any] = {"limit": 50, "offset": 0}

    def alerts(**wanted: Any) -> Callable[[], Any]:
        return lambda: list_events(connection, organization_id, AlertFilter(**wanted), **page)

    def told(**wanted: Any) -> Callable[[], Any]:
        found = DeliveryFilter(**wanted)
        return lambda: deliveries.list_(connection, organization_id, found, **page)

    asked = {
        "alerts": alerts(),
        "alerts of a category": alerts(category="node"),
        "alerts of a severity": alerts(severity="critical"),
        "alerts between": alerts(from_us=NOW_US + 5, to_us=NOW_US + 900),
        "alerts after": lambda: list_events(
            connection, organization_id, AlertFilter(), **page, after="evt_100000"
        ),
        "deliveries": told(),
        "deliveries of a destination": told(destination_id="dst_3"),
        "deliveries that failed": told(status="failed"),
        "deliveries that wait": told(status="pending"),
        "deliveries of an alert": told(event_id="evt_77"),
        "deliveries between": told(from_us=NOW_US + 5, to_us=NOW_US + 900),
        "what is due": lambda: queue.due(connection, now_us=now_us),
        "how much waits": lambda: queue.waiting(connection, now_us=now_us),
        "the next message": lambda: queue.next_message(connection, "dst_3", held=(), now_us=now_us),
        "what expires": lambda: queue.expire(connection, now_us=now_us),
        "old alerts": lambda: history.old_alerts(connection, now_us=now_us, at_most=1_000),
        "old deliveries": lambda: history.old_deliveries(connection, now_us=now_us, at_most=1_000),
        "old marks": lambda: marks.old(connection, now_us=now_us, at_most=1_000),
    }
    took = {name: steps(connection, fn) for name, fn in asked.items()}
    print(took)
    assert {name: s for name, s in took.items() if s > LIMIT} == {}
    # The queue asks for each message: what waits behind it must not be read every time.
    assert took["the next message"] < NEXT


def test_a_queue_of_many_is_emptied_without_reading_it_again_and_again(
    history_file: tuple[Connection, str],
) -> None:
    connection, _ = history_file
    arrived = Outcome(error=None, response_status=204)

    def all_of_one() -> None:
        while (
            message := queue.next_message(connection, "dst_7", held=(), now_us=NOW_US + ROWS)
        ) is not None:
            queue.note(
                connection,
                message,
                arrived,
                jitter=0,
                app_url="https://a.example",
                now_us=NOW_US + ROWS,
            )

    with transaction(connection, "IMMEDIATE"):
        each = steps(connection, all_of_one) / (WAITING / 20)
    print(f"{each:.0f} steps a message")
    assert each < 500
