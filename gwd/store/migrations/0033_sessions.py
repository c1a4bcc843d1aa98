"""Browsers that are signed in at the node's page, and links that sign in once."""

from gwd.store.connection import Connection

STEPS = (
    # opaque: what the browser holds is digested, and the key is never kept
    """CREATE TABLE browser_session (
        id TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE, key_id TEXT NOT NULL REFERENCES api_key(id),
        organization_id TEXT NOT NULL REFERENCES organization(id), user_id TEXT,
        own_device INTEGER NOT NULL CHECK (own_device IN (0, 1)), address TEXT NOT NULL, user_agent TEXT NOT NULL,
        created_at INTEGER NOT NULL, proved_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX browser_session_by_key ON browser_session (key_id, seen_at)",
    "CREATE INDEX browser_session_by_organization ON browser_session (organization_id, created_at)",
    "CREATE INDEX browser_session_by_expiry ON browser_session (expires_at)",
    """CREATE TABLE sign_in_link (
        digest BLOB PRIMARY KEY, key_id TEXT NOT NULL REFERENCES api_key(id), path TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX sign_in_link_by_expiry ON sign_in_link (expires_at)",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
