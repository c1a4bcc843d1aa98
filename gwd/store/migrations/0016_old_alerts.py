"""What waits for an addressee is found in its order, and lists and old rows of alerts without reading all others."""

from gwd.store.connection import Connection

STEPS = (
    "DROP INDEX delivery_pending",
    # What was tried before comes first, then the oldest; a row's number decides between two of one moment.
    "CREATE INDEX delivery_pending ON delivery (addressee, (attempt = 0), created_at) WHERE status = 'pending'",
    "DROP INDEX delivery_by_event",
    # With the organization, so that it is chosen before the index that has the order of the list.
    "CREATE INDEX delivery_by_event ON delivery (event_id, organization_id)",
    "CREATE INDEX delivery_by_organization ON delivery (organization_id)",
    "CREATE INDEX delivery_by_status ON delivery (organization_id, status)",
    "CREATE INDEX delivery_by_time ON delivery (organization_id, created_at)",
    "CREATE INDEX delivery_by_age ON delivery (created_at)",
    "CREATE INDEX alert_by_age ON alert (created_at)",
    "CREATE INDEX alert_mark_by_time ON alert_mark (marked_at)",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
