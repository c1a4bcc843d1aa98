"""Budgets may be for a tag or an external user; what was charged for each user so far is counted."""

from gwd.store.connection import Connection

_OLD = "scope IN ('organization', 'workspace', 'key')"
_NEW = "scope IN ('organization', 'workspace', 'key', 'tag', 'user')"
_CHILDREN = ("budget_would_refuse", "budget_would_refuse_open")
_STEPS = (
    "CREATE INDEX budget_by_name ON budget (organization_id) WHERE scope IN ('tag', 'user')",
    # Records that ended before this day may have forgotten their users and tags, of which spend knows more then.
    """CREATE TABLE senders_forgotten (
        organization_id TEXT PRIMARY KEY REFERENCES organization(id), before_day INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # Row by row into its counter, and then its lifetime: no request bore a tag until now.
    """INSERT INTO spend (scope_id, day, charged_nano, byok_nano)
        SELECT organization_id || ':user:' || user_tag, settled_at / 86400000000, cost_total_nano,
            byok * (cost_prompt_nano + cost_cache_read_nano + cost_cache_write_nano + cost_completion_nano
                + cost_reasoning_nano + cost_request_fee_nano + cost_web_search_nano)
        FROM generation WHERE user_tag IS NOT NULL AND (cost_total_nano <> 0 OR byok)
        ON CONFLICT DO UPDATE SET charged_nano = charged_nano + excluded.charged_nano,
            byok_nano = byok_nano + excluded.byok_nano""",
    """INSERT INTO spend (scope_id, day, charged_nano, byok_nano)
        SELECT scope_id, 0, SUM(charged_nano), SUM(byok_nano) FROM spend
        WHERE instr(scope_id, ':') > 0 GROUP BY scope_id""",
)


def up(connection: Connection) -> None:
    _allow_names(connection)
    for statement in _STEPS:
        connection.execute(statement)


def _allow_names(connection: Connection) -> None:
    """The table's rule is written anew, its indexes stay; what refers to its rows steps aside meanwhile."""
    row = connection.row("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'budget'")
    assert row is not None
    attached = connection.rows(
        "SELECT sql FROM sqlite_master WHERE tbl_name = 'budget' AND type = 'index' AND sql IS NOT NULL"
    )
    head, _, body = row[0].partition("(")
    assert "budget" in head
    assert _OLD in body, "the rule on scopes is not the one that is known"
    for child in _CHILDREN:
        connection.execute(f"CREATE TABLE {child}_aside AS SELECT * FROM {child}")  # noqa: S608
        connection.execute(f"DELETE FROM {child}")  # noqa: S608
    connection.execute(f"CREATE TABLE budget_anew ({body.replace(_OLD, _NEW)}")
    connection.execute("INSERT INTO budget_anew SELECT * FROM budget")
    connection.execute("DROP TABLE budget")
    connection.execute("ALTER TABLE budget_anew RENAME TO budget")
    for (statement,) in attached:
        connection.execute(statement)
    for child in _CHILDREN:
        connection.execute(f"INSERT INTO {child} SELECT * FROM {child}_aside")  # noqa: S608
        connection.execute(f"DROP TABLE {child}_aside")
