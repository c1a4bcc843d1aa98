"""A reservation knows the numbers of its generation's entries: an index that every entry had to enter is gone."""

from gwd.store.connection import Connection

STEPS = (
    "ALTER TABLE reservation ADD COLUMN opened_seq INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE reservation ADD COLUMN ended_seq INTEGER",
    "ALTER TABLE reservation ADD COLUMN last_seq INTEGER",
    """UPDATE reservation SET
        opened_seq = (SELECT seq FROM entry WHERE generation_id = reservation.generation_id AND type = 'reservation'),
        ended_seq = (SELECT seq FROM entry WHERE generation_id = reservation.generation_id
            AND type IN ('settlement', 'release')),
        last_seq = (SELECT MAX(seq) FROM entry WHERE generation_id = reservation.generation_id
            AND type <> 'reservation')""",
    "DROP INDEX entry_by_generation",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
