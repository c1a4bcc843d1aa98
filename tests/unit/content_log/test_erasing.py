"""Of what is erased no byte stays in the file, however entries come and go and pages are split and joined."""

import os
import random
from pathlib import Path

from gwd.content_log import service
from gwd.content_log.service import Entry, Which
from gwd.core.clock import US_PER_DAY
from gwd.credentials.data_keys import DataKey
from gwd.store.connection import Connection, open_connection, transaction
from tests.support.money import ORGANIZATION, open_organization
from tests.support.store import NOW_US, migrated, open_store

SIZES = (60, 200, 900, 1_500, 5_000, 20_000)
KEY = DataKey(id="dk_1", organization_id=ORGANIZATION, key=b"", sealed="gw1.k.x.y.z")


def entry(number: int, content: bytes) -> Entry:
    return Entry(
        generation_id=f"gen-{number}",
        organization_id=ORGANIZATION,
        workspace_id=None,
        family_id="key_1",
        user_digest=os.urandom(32) if number % 2 else None,
        session_digest=None,
        created_us=NOW_US + number,
        data_key=KEY,
        content=content,
    )


def test_no_byte_of_what_was_erased_is_left(tmp_path: Path) -> None:
    chance = random.Random(1)
    path = Path(migrated(tmp_path))
    connection = open_connection(str(path), "writer")
    live: dict[int, bytes] = {}
    gone: list[bytes] = []
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        connection.execute("""UPDATE organization SET settings = '{"content_log": {"days": 1}}'""")
    for _ in range(40):
        with transaction(connection, "IMMEDIATE"):
            for _ in range(chance.randrange(1, 15)):
                number = len(live) + len(gone)
                live[number] = os.urandom(chance.choice(SIZES))
                assert service.write(connection, entry(number, live[number]))
        with transaction(connection, "IMMEDIATE"):
            for number in chance.sample(sorted(live), min(len(live), chance.randrange(14))):
                which = Which(organization_id=ORGANIZATION, generation_id=f"gen-{number}")
                found = service.find(connection, which=which, at_most=5)
                assert service.erase(connection, found) == 1
                gone.append(live.pop(number))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    connection.raw.close()
    assert len(gone) > 100
    assert [content for content in live.values() if content[10:40] not in data] == []
    places = (0, 24, 0.5, -16)  # what of it lies in its row, and what in pages of its own
    pieces = [
        content[start:][:16]
        for content in gone
        for place in places
        for start in [int(len(content) * place) if isinstance(place, float) else place]
    ]
    assert [piece for piece in pieces if piece in data] == []


def test_data_keys_go_with_the_last_that_they_sealed(tmp_path: Path) -> None:
    connection = open_connection(migrated(tmp_path), "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        connection.execute("""UPDATE organization SET settings = '{"content_log": {"days": 1}}'""")
        for number in range(3):
            assert service.write(connection, entry(number, b"content"))
        which = Which(organization_id=ORGANIZATION)
        first, *others = service.find(connection, which=which, at_most=5)
        assert service.erase(connection, [first]) == 1
        keys = connection.rows("SELECT id FROM content_log_key")
        assert keys == [(KEY.id,)]
        assert service.erased(connection) is not None
        assert service.erase(connection, others) == 2
        assert connection.rows("SELECT id FROM content_log_key") == []
    connection.raw.close()


def test_what_a_deleted_organization_had_is_found_as_is_what_is_past_its_time(
    tmp_path: Path,
) -> None:
    connection = open_connection(migrated(tmp_path), "writer")
    with transaction(connection, "IMMEDIATE"):
        open_organization(connection, now_us=NOW_US)
        connection.execute("""UPDATE organization SET settings = '{"content_log": {"days": 1}}'""")
        assert service.write(connection, entry(1, b"content"))
        end_us = NOW_US + 1 + US_PER_DAY
        assert service.expired(connection, now_us=end_us - 1, at_most=5) == []
        assert service.expired(connection, now_us=end_us, at_most=5) == [1]
        connection.execute("UPDATE organization SET deleted_at = 1")
        assert service.expired(connection, now_us=NOW_US, at_most=5) == [1]
        assert not service.write(connection, entry(2, b"content"))
    connection.raw.close()


async def test_the_log_of_writes_is_emptied_once_no_reader_needs_it(tmp_path: Path) -> None:
    canary = "canary-" + "x" * 5_000

    def begin(connection: Connection) -> None:
        connection.execute("CREATE TABLE kept (text TEXT) STRICT")
        connection.execute("INSERT INTO kept VALUES (?)", (canary,))

    async with open_store(tmp_path, begin) as store:
        log = Path(f"{store.path}-wal")
        reader = open_connection(store.path, "reader")
        reader.raw.execute("BEGIN")
        assert reader.row("SELECT COUNT(*) FROM kept") == (1,)
        await store.write(lambda connection: connection.execute("DELETE FROM kept"))
        assert not await store.empty_log()
        assert canary.encode()[:200] in log.read_bytes()
        reader.raw.execute("COMMIT")
        assert await store.empty_log()
        assert canary.encode()[:200] not in log.read_bytes() + Path(store.path).read_bytes()
        reader.raw.close()
