"""Of what is erased no byte stays in the file, however entries come and go and pages are split and joined."""

import os
import random
from pathlib import Path

from gwd.content_log import service
from gwd.content_log.service import Entry, Which
from gwd.credentials.data_keys import DataKey
from gwd.store.connection import open_connection, transaction
from tests.support.money import ORGANIZATION, open_organization
from tests.support.store import NOW_US, migrated

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
