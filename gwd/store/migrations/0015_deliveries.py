"""Deliveries know their addressee and their alert's type, and may expire; destinations say how much they want to hear.

Each addressee, a destination or a person's address, is served in its own order. A signing secret may overlap with the
one before it.
"""

from gwd.store.connection import Connection

STEPS = (
    "DROP INDEX delivery_due",
    """CREATE TABLE delivery_new (
        id TEXT PRIMARY KEY, event_id TEXT NOT NULL REFERENCES alert(id), organization_id TEXT NOT NULL,
        destination_id TEXT, recipient TEXT, addressee TEXT NOT NULL, type TEXT NOT NULL,
        attempt INTEGER NOT NULL DEFAULT 0,
        status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed', 'expired')),
        response_status INTEGER, error TEXT, latency_ms INTEGER, next_attempt_at INTEGER,
        finished_at INTEGER, created_at INTEGER NOT NULL
    ) STRICT""",
    """INSERT INTO delivery_new (id, event_id, organization_id, destination_id, recipient, addressee, type, attempt,
            status, response_status, error, next_attempt_at, created_at)
        SELECT d.id, d.event_id, d.organization_id, d.destination_id, d.recipient,
            COALESCE(d.destination_id, d.recipient), a.type, d.attempt, d.status, d.response_status, d.error,
            d.next_attempt_at, d.created_at
        FROM delivery AS d JOIN alert AS a ON a.id = d.event_id ORDER BY d.rowid""",
    "DROP TABLE delivery",
    "ALTER TABLE delivery_new RENAME TO delivery",
    "CREATE INDEX delivery_due ON delivery (next_attempt_at) WHERE status = 'pending'",
    "CREATE INDEX delivery_pending ON delivery (addressee, created_at) WHERE status = 'pending'",
    "CREATE INDEX delivery_by_destination ON delivery (organization_id, destination_id)",
    "CREATE INDEX delivery_by_event ON delivery (event_id)",
    "ALTER TABLE destination ADD COLUMN min_severity TEXT NOT NULL DEFAULT 'info'",
    "ALTER TABLE destination ADD COLUMN chat_format TEXT",
    "ALTER TABLE destination ADD COLUMN sealed_old_secret TEXT",
    "ALTER TABLE destination ADD COLUMN old_secret_until INTEGER",
    "ALTER TABLE destination ADD COLUMN last_delivery_error TEXT",
    "ALTER TABLE alert_setting ADD COLUMN muted_until INTEGER",
    "CREATE INDEX destination_by_organization ON destination (organization_id)",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
