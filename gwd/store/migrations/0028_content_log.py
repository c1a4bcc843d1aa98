"""What an organization has stored of its requests, sealed by data keys that the ring seals."""

from gwd.store.connection import Connection

STEPS = (
    # one for each organization, day and run of the node
    """CREATE TABLE content_log_key (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organization(id), sealed TEXT NOT NULL
    ) STRICT""",
    # Users and sessions are digests: who looks for one finds it, and who reads the table learns none.
    """CREATE TABLE content_log (
        id INTEGER PRIMARY KEY, generation_id TEXT NOT NULL UNIQUE,
        organization_id TEXT NOT NULL REFERENCES organization(id), workspace_id TEXT, family_id TEXT NOT NULL,
        user_digest BLOB, session_digest BLOB, data_key_id TEXT NOT NULL REFERENCES content_log_key(id),
        created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, size INTEGER NOT NULL CHECK (size > 0),
        content BLOB NOT NULL
    ) STRICT""",
    "CREATE INDEX content_log_of_organization ON content_log (organization_id, created_at, size)",
    "CREATE INDEX content_log_expiry ON content_log (expires_at)",
    "CREATE INDEX content_log_of_data_key ON content_log (data_key_id)",
    "CREATE INDEX content_log_of_family ON content_log (organization_id, family_id)",
    "CREATE INDEX content_log_of_workspace ON content_log (organization_id, workspace_id)",
    "CREATE INDEX content_log_of_user ON content_log (organization_id, user_digest) WHERE user_digest IS NOT NULL",
    "CREATE INDEX content_log_of_session ON content_log (organization_id, session_digest)"
    " WHERE session_digest IS NOT NULL",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
