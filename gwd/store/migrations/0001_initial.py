"""The first schema: organizations, keys, catalog, credentials, ledger, spend, budgets, activity, alerts, audit."""

from gwd.store.connection import Connection

AMOUNT = (
    "INTEGER NOT NULL DEFAULT 0 CHECK ({0} BETWEEN -9000000000000000000 AND 9000000000000000000)"
)

TABLES = (
    # node
    "CREATE TABLE node_fact (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE revision (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    # orgs
    """CREATE TABLE organization (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT NOT NULL,
        settings TEXT NOT NULL DEFAULT '{}', revision INTEGER NOT NULL DEFAULT 0,
        suspended INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, deleted_at INTEGER
    ) STRICT""",
    "CREATE UNIQUE INDEX organization_slug ON organization (slug) WHERE deleted_at IS NULL",
    """CREATE TABLE workspace (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organization(id),
        name TEXT NOT NULL, slug TEXT NOT NULL, description TEXT, created_by TEXT,
        default_provider_sort TEXT, default_text_model TEXT,
        include_byok_in_budgets INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, deleted_at INTEGER
    ) STRICT""",
    "CREATE UNIQUE INDEX workspace_slug ON workspace (organization_id, slug) WHERE deleted_at IS NULL",
    """CREATE TABLE member (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organization(id),
        email TEXT NOT NULL, first_name TEXT, last_name TEXT,
        role TEXT NOT NULL CHECK (role IN ('member', 'billing', 'admin', 'owner')),
        joined_at INTEGER NOT NULL, removed_at INTEGER
    ) STRICT""",
    "CREATE UNIQUE INDEX member_email ON member (organization_id, email) WHERE removed_at IS NULL AND email <> ''",
    """CREATE TABLE workspace_member (
        workspace_id TEXT NOT NULL REFERENCES workspace(id), user_id TEXT NOT NULL REFERENCES member(id),
        is_lead INTEGER NOT NULL DEFAULT 0, added_at INTEGER NOT NULL,
        PRIMARY KEY (workspace_id, user_id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE invitation (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organization(id),
        email TEXT NOT NULL, role TEXT NOT NULL, workspace_ids TEXT NOT NULL DEFAULT '[]',
        is_lead INTEGER NOT NULL DEFAULT 0, token_digest BLOB NOT NULL UNIQUE, invited_by TEXT,
        created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, accepted_at INTEGER, revoked_at INTEGER
    ) STRICT""",
    # keys
    """CREATE TABLE api_key (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organization(id),
        workspace_id TEXT, family_id TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('inference', 'management')),
        role TEXT, user_id TEXT, creator_user_id TEXT, external_user TEXT,
        name TEXT NOT NULL, label TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, digest BLOB NOT NULL UNIQUE,
        disabled INTEGER NOT NULL DEFAULT 0,
        limit_nano INTEGER CHECK (limit_nano IS NULL OR limit_nano >= 0),
        limit_reset TEXT, include_byok_in_limit INTEGER NOT NULL DEFAULT 0,
        strict INTEGER NOT NULL DEFAULT 0, in_flight_cap INTEGER,
        rate_limit_per_minute INTEGER, allowed_models TEXT,
        alert_thresholds TEXT NOT NULL DEFAULT '[50,80,90,100]',
        expires_at INTEGER, rotated_to TEXT, rotated_from TEXT, last_used_at INTEGER,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, deleted_at INTEGER
    ) STRICT""",
    "CREATE INDEX api_key_by_organization ON api_key (organization_id, created_at)",
    "CREATE INDEX api_key_by_family ON api_key (family_id)",
    # catalog
    """CREATE TABLE provider (
        slug TEXT PRIMARY KEY, name TEXT NOT NULL, adapter TEXT NOT NULL, base_url TEXT NOT NULL,
        headers TEXT NOT NULL DEFAULT '{}', flags TEXT NOT NULL DEFAULT '{}',
        disabled INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE model (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, vendor TEXT NOT NULL, description TEXT,
        family TEXT, aliases TEXT NOT NULL DEFAULT '[]',
        context_length INTEGER NOT NULL, max_completion_tokens INTEGER NOT NULL, default_max_tokens INTEGER,
        supported_parameters TEXT NOT NULL, input_modalities TEXT NOT NULL, output_modalities TEXT NOT NULL,
        is_moderated INTEGER NOT NULL DEFAULT 0, released_at INTEGER,
        deprecated_at INTEGER, retired_at INTEGER, successor TEXT,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT""",
    "CREATE TABLE model_alias (alias TEXT PRIMARY KEY, model TEXT NOT NULL REFERENCES model(id)) STRICT, WITHOUT ROWID",
    """CREATE TABLE endpoint (
        id TEXT PRIMARY KEY, model TEXT NOT NULL REFERENCES model(id),
        provider TEXT NOT NULL REFERENCES provider(slug), tag TEXT NOT NULL,
        upstream_model TEXT NOT NULL, base_url TEXT, context_length INTEGER, max_completion_tokens INTEGER,
        supported_parameters TEXT, flags TEXT NOT NULL DEFAULT '{}', weight REAL NOT NULL DEFAULT 1.0,
        disabled INTEGER NOT NULL DEFAULT 0, draining INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX endpoint_by_model ON endpoint (model)",
    """CREATE TABLE price (
        id TEXT PRIMARY KEY, model TEXT NOT NULL, endpoint_id TEXT,
        effective_at INTEGER NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX price_by_model ON price (model, effective_at)",
    # credentials: organization_id NULL is the platform's own
    """CREATE TABLE credential (
        id TEXT PRIMARY KEY, organization_id TEXT REFERENCES organization(id), provider TEXT NOT NULL,
        name TEXT NOT NULL, label TEXT NOT NULL, sealed TEXT, key_ref TEXT, base_url TEXT,
        sort_order INTEGER NOT NULL DEFAULT 0, expires_at INTEGER, disabled INTEGER NOT NULL DEFAULT 0,
        is_fallback INTEGER NOT NULL DEFAULT 0, is_required INTEGER NOT NULL DEFAULT 0,
        workspace_id TEXT, allowed_models TEXT, allowed_api_key_hashes TEXT, allowed_user_ids TEXT,
        last_used_at INTEGER, last_error_at INTEGER, last_error_reason TEXT,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
        CHECK ((sealed IS NULL) <> (key_ref IS NULL))
    ) STRICT""",
    "CREATE INDEX credential_by_owner ON credential (organization_id, provider)",
    # ledger
    f"""CREATE TABLE account (
        organization_id TEXT PRIMARY KEY REFERENCES organization(id),
        funding_nano {AMOUNT.format("funding_nano")}, pool_nano {AMOUNT.format("pool_nano")},
        held_nano {AMOUNT.format("held_nano")}, spent_nano {AMOUNT.format("spent_nano")},
        expired_nano {AMOUNT.format("expired_nano")}, debt_nano {AMOUNT.format("debt_nano")},
        last_seq INTEGER NOT NULL DEFAULT 0, last_hash BLOB NOT NULL DEFAULT x'',
        last_at INTEGER NOT NULL DEFAULT 0, next_expiry_at INTEGER,
        CHECK (held_nano >= 0), CHECK (debt_nano >= 0)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE lot (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES account(organization_id),
        kind TEXT NOT NULL CHECK (kind IN ('promotional', 'granted', 'purchased')),
        amount_nano INTEGER NOT NULL CHECK (amount_nano > 0),
        remaining_nano INTEGER NOT NULL CHECK (remaining_nano >= 0 AND remaining_nano <= amount_nano),
        debt_paid_nano INTEGER NOT NULL DEFAULT 0 CHECK (debt_paid_nano >= 0),
        expires_at INTEGER, created_at INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX lot_with_credit ON lot (organization_id) WHERE remaining_nano > 0",
    """CREATE TABLE entry (
        organization_id TEXT NOT NULL REFERENCES account(organization_id), seq INTEGER NOT NULL,
        id TEXT NOT NULL, type TEXT NOT NULL, from_account TEXT NOT NULL, to_account TEXT NOT NULL,
        amount_nano INTEGER NOT NULL CHECK (amount_nano >= 0), bucket TEXT, lot_id TEXT,
        generation_id TEXT, key_id TEXT, workspace_id TEXT, reference TEXT, note TEXT, actor TEXT,
        balance_after_nano INTEGER NOT NULL, created_at INTEGER NOT NULL, hash BLOB NOT NULL,
        PRIMARY KEY (organization_id, seq),
        CHECK (from_account <> to_account),
        CHECK (amount_nano > 0 OR type IN ('reservation', 'settlement', 'release'))
    ) STRICT, WITHOUT ROWID""",
    "CREATE UNIQUE INDEX one_end ON entry (generation_id) WHERE type IN ('settlement', 'release')",
    """CREATE UNIQUE INDEX one_purchase ON entry (organization_id, reference)
        WHERE type = 'purchase' AND reference IS NOT NULL""",
    "CREATE INDEX entry_by_generation ON entry (generation_id) WHERE generation_id IS NOT NULL",
    "CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    """CREATE TABLE reservation (
        generation_id TEXT NOT NULL UNIQUE, organization_id TEXT NOT NULL, workspace_id TEXT, key_id TEXT NOT NULL,
        family_id TEXT NOT NULL, amount_nano INTEGER NOT NULL CHECK (amount_nano >= 0),
        state TEXT NOT NULL CHECK (state IN ('open', 'closed')), boot_id TEXT NOT NULL,
        context BLOB, progress BLOB, created_at INTEGER NOT NULL, closed_at INTEGER
    ) STRICT""",
    "CREATE INDEX reservation_open ON reservation (family_id) WHERE state = 'open'",
    # spend: day 0 holds the lifetime total
    """CREATE TABLE spend (
        scope_id TEXT NOT NULL, day INTEGER NOT NULL,
        charged_nano INTEGER NOT NULL DEFAULT 0 CHECK (charged_nano >= 0),
        byok_nano INTEGER NOT NULL DEFAULT 0 CHECK (byok_nano >= 0),
        PRIMARY KEY (scope_id, day)
    ) STRICT, WITHOUT ROWID""",
    # budgets
    """CREATE TABLE budget (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organization(id),
        scope TEXT NOT NULL CHECK (scope IN ('organization', 'workspace', 'key')), scope_id TEXT NOT NULL,
        spend_id TEXT NOT NULL,
        interval TEXT NOT NULL CHECK (interval IN ('daily', 'weekly', 'monthly', 'lifetime')),
        kind TEXT NOT NULL CHECK (kind IN ('hard', 'soft')), limit_nano INTEGER NOT NULL CHECK (limit_nano > 0),
        include_byok INTEGER NOT NULL DEFAULT 0, alert_thresholds TEXT NOT NULL DEFAULT '[50,80,90,100]',
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT""",
    "CREATE UNIQUE INDEX one_budget ON budget (spend_id, interval, kind)",
    "CREATE INDEX budget_by_organization ON budget (organization_id)",
    # credits: automatic top-up
    """CREATE TABLE auto_topup (
        organization_id TEXT PRIMARY KEY REFERENCES organization(id), enabled INTEGER NOT NULL DEFAULT 0,
        threshold_nano INTEGER, amount_nano INTEGER, monthly_cap_nano INTEGER, hook_url TEXT, sealed_secret TEXT,
        last_attempt_at INTEGER, last_attempt_status TEXT, last_attempt_error TEXT, updated_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE topup_attempt (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organization(id),
        amount_nano INTEGER NOT NULL CHECK (amount_nano > 0), attempt INTEGER NOT NULL DEFAULT 0,
        state TEXT NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed')),
        next_attempt_at INTEGER NOT NULL, error TEXT, created_at INTEGER NOT NULL, closed_at INTEGER
    ) STRICT""",
    "CREATE UNIQUE INDEX one_topup ON topup_attempt (organization_id) WHERE state = 'pending'",
    # activity
    """CREATE TABLE generation (
        id TEXT NOT NULL UNIQUE, organization_id TEXT NOT NULL, workspace_id TEXT, key_id TEXT NOT NULL,
        family_id TEXT NOT NULL, user_tag TEXT, session_id TEXT, referer TEXT, title TEXT,
        dialect TEXT NOT NULL, requested_model TEXT, model TEXT, vendor TEXT, provider TEXT, endpoint_id TEXT,
        status TEXT NOT NULL CHECK (status IN ('succeeded', 'incomplete', 'failed', 'cancelled', 'refused')),
        streamed INTEGER NOT NULL DEFAULT 0, finish_reason TEXT, native_finish_reason TEXT,
        error_status INTEGER, error_code TEXT, error_message TEXT,
        tokens_input INTEGER NOT NULL DEFAULT 0, tokens_cache_read INTEGER NOT NULL DEFAULT 0,
        tokens_cache_write_5m INTEGER NOT NULL DEFAULT 0, tokens_cache_write_1h INTEGER NOT NULL DEFAULT 0,
        tokens_output INTEGER NOT NULL DEFAULT 0, tokens_reasoning INTEGER NOT NULL DEFAULT 0,
        images INTEGER NOT NULL DEFAULT 0, usage_estimated INTEGER NOT NULL DEFAULT 0,
        cost_prompt_nano INTEGER NOT NULL DEFAULT 0, cost_cache_read_nano INTEGER NOT NULL DEFAULT 0,
        cost_cache_write_nano INTEGER NOT NULL DEFAULT 0, cost_completion_nano INTEGER NOT NULL DEFAULT 0,
        cost_reasoning_nano INTEGER NOT NULL DEFAULT 0, cost_request_fee_nano INTEGER NOT NULL DEFAULT 0,
        cost_platform_fee_nano INTEGER NOT NULL DEFAULT 0, cost_total_nano INTEGER NOT NULL DEFAULT 0,
        insured INTEGER NOT NULL DEFAULT 0, byok INTEGER NOT NULL DEFAULT 0, fee_bps INTEGER NOT NULL DEFAULT 0,
        price TEXT, attempts INTEGER NOT NULL DEFAULT 0, fallbacks INTEGER NOT NULL DEFAULT 0,
        routing_ms INTEGER, fallback_ms INTEGER, ttft_ms INTEGER, generation_ms INTEGER, latency_ms INTEGER,
        upstream_id TEXT, request_id TEXT, user_agent TEXT, dropped_parameters TEXT, dropped_tools TEXT,
        forwarded_from TEXT, receipt TEXT, occurrences INTEGER NOT NULL DEFAULT 1,
        created_at INTEGER NOT NULL, settled_at INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX generation_by_time ON generation (organization_id, created_at)",
    "CREATE INDEX generation_by_key ON generation (family_id, created_at)",
    # audit
    """CREATE TABLE audit (
        id TEXT PRIMARY KEY, organization_id TEXT, actor_key_id TEXT, actor_user_id TEXT, actor_role TEXT,
        action TEXT NOT NULL, subject_type TEXT NOT NULL, subject_id TEXT, details TEXT NOT NULL DEFAULT '{}',
        address TEXT, request_id TEXT, created_at INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX audit_by_time ON audit (organization_id, created_at)",
    "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    # replay
    """CREATE TABLE idempotency (
        scope TEXT NOT NULL, name TEXT NOT NULL, fingerprint BLOB NOT NULL, status INTEGER NOT NULL,
        body BLOB NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (scope, name)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE signature (
        organization_id TEXT NOT NULL, call_id TEXT NOT NULL, body BLOB NOT NULL, expires_at INTEGER NOT NULL,
        PRIMARY KEY (organization_id, call_id)
    ) STRICT, WITHOUT ROWID""",
    # alerts
    """CREATE TABLE alert (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL, category TEXT NOT NULL, type TEXT NOT NULL,
        severity TEXT NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
        title TEXT NOT NULL, message TEXT NOT NULL, url TEXT NOT NULL, data TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX alert_by_time ON alert (organization_id, created_at)",
    """CREATE TABLE alert_mark (
        name TEXT PRIMARY KEY, value INTEGER NOT NULL, marked_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE alert_setting (
        organization_id TEXT NOT NULL REFERENCES organization(id), category TEXT NOT NULL,
        enabled INTEGER NOT NULL DEFAULT 1, thresholds TEXT, channels TEXT, email_roles TEXT,
        PRIMARY KEY (organization_id, category)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE destination (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organization(id),
        type TEXT NOT NULL CHECK (type IN ('webhook', 'email', 'chat')), name TEXT NOT NULL,
        address TEXT NOT NULL, sealed_address TEXT, sealed_secret TEXT, secret_hint TEXT,
        events TEXT NOT NULL DEFAULT '[]', enabled INTEGER NOT NULL DEFAULT 1,
        consecutive_failures INTEGER NOT NULL DEFAULT 0, disabled_at INTEGER, disabled_reason TEXT,
        last_delivery_at INTEGER, last_delivery_status TEXT,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE delivery (
        id TEXT PRIMARY KEY, event_id TEXT NOT NULL REFERENCES alert(id), organization_id TEXT NOT NULL,
        destination_id TEXT, recipient TEXT, attempt INTEGER NOT NULL DEFAULT 0,
        status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
        response_status INTEGER, error TEXT, next_attempt_at INTEGER, created_at INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX delivery_due ON delivery (next_attempt_at) WHERE status = 'pending'",
    "INSERT INTO revision (name, value) VALUES ('catalog', 1)",
)


def up(connection: Connection) -> None:
    for statement in TABLES:
        connection.execute(statement)
