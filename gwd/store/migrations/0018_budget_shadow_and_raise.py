"""A hard budget may be a shadow, which counts what it would refuse, and may be raised for a time."""

from gwd.store.connection import Connection

STEPS = (
    "ALTER TABLE budget ADD COLUMN shadow INTEGER NOT NULL DEFAULT 0 CHECK (shadow = 0 OR kind = 'hard')",
    "ALTER TABLE budget ADD COLUMN raised_nano INTEGER CHECK (raised_nano > 0)",
    "ALTER TABLE budget ADD COLUMN raised_until INTEGER CHECK ((raised_until IS NULL) = (raised_nano IS NULL))",
    "ALTER TABLE budget ADD COLUMN raised_by TEXT",
    "CREATE INDEX budget_raised ON budget (raised_until) WHERE raised_until IS NOT NULL",
    # by the first day of the budget's period, as spend is by day
    """CREATE TABLE budget_would_refuse (
        budget_id TEXT NOT NULL REFERENCES budget(id), first_day INTEGER NOT NULL,
        requests INTEGER NOT NULL CHECK (requests > 0),
        charged_nano INTEGER NOT NULL DEFAULT 0 CHECK (charged_nano >= 0),
        byok_nano INTEGER NOT NULL DEFAULT 0 CHECK (byok_nano >= 0),
        first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
        PRIMARY KEY (budget_id, first_day)
    ) STRICT, WITHOUT ROWID""",
    # what was counted and has not ended, so that its cost goes where it was counted
    """CREATE TABLE budget_would_refuse_open (
        generation_id TEXT NOT NULL, budget_id TEXT NOT NULL REFERENCES budget(id), first_day INTEGER NOT NULL,
        PRIMARY KEY (generation_id, budget_id)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX budget_would_refuse_open_by_budget ON budget_would_refuse_open (budget_id)",
)


def up(connection: Connection) -> None:
    for statement in STEPS:
        connection.execute(statement)
