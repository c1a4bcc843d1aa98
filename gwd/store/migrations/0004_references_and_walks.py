"""References of credit count once whatever books them; lists are walked in the order in which their rows were written.

The new indexes of generations end in the row number, which only grows: each entry is added at the end of its range.
Those by time go: a stretch of time is a stretch of row numbers. So a settlement enters as many indexes as before, and
one more for its model.
"""

from gwd.store.connection import Connection

STEPS = (
    """CREATE TABLE credit_reference (
        organization_id TEXT NOT NULL REFERENCES account(organization_id), type TEXT NOT NULL,
        reference TEXT NOT NULL, seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
        PRIMARY KEY (organization_id, type, reference)
    ) STRICT, WITHOUT ROWID""",
    """INSERT INTO credit_reference (organization_id, type, reference, seq, last_seq)
        SELECT organization_id, type, reference, MIN(seq), MIN(seq) FROM entry
        WHERE type IN ('purchase', 'grant') AND reference IS NOT NULL GROUP BY 1, 2, 3""",
    """CREATE INDEX entry_of_credit ON entry (organization_id, type, seq)
        WHERE type IN ('purchase', 'grant', 'refund', 'expiry', 'adjustment')""",
    "DROP INDEX generation_by_key",
    "DROP INDEX generation_by_time",
    "CREATE INDEX generation_by_organization ON generation (organization_id)",
    "CREATE INDEX generation_by_key ON generation (organization_id, key_id)",
    "CREATE INDEX generation_by_model ON generation (organization_id, model)",
    "CREATE INDEX generation_by_status ON generation (organization_id, status) WHERE status <> 'succeeded'",
    "CREATE INDEX generation_by_user ON generation (organization_id, user_tag) WHERE user_tag IS NOT NULL",
    "CREATE INDEX audit_by_organization ON audit (organization_id)",
    "CREATE INDEX alert_by_organization ON alert (organization_id)",
    # a key whose successor was deleted is followed by what followed that one, or counts as not rotated
    """UPDATE api_key SET rotated_to = (SELECT s.rotated_to FROM api_key AS s WHERE s.id = api_key.rotated_to)
        WHERE rotated_to IN (SELECT id FROM api_key WHERE deleted_at IS NOT NULL)""",
    """UPDATE api_key SET rotated_to = NULL
        WHERE rotated_to IN (SELECT id FROM api_key WHERE deleted_at IS NOT NULL)""",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
