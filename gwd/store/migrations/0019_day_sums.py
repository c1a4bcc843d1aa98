"""What generations came to by day, key, workspace, model and endpoint is kept, so that no report reads them all."""

from gwd.store.connection import Connection

_SUMS = (
    *("requests", "errors", "fallbacks", "insured", "refusals"),
    *(
        "tokens_cache_write",
        "tokens_input",
        "tokens_cache_read",
        "tokens_output",
        "tokens_reasoning",
    ),
    *("cost_prompt_nano", "cost_cache_read_nano", "cost_cache_write_nano", "cost_completion_nano"),
    *("cost_reasoning_nano", "cost_request_fee_nano", "cost_web_search_nano"),
    *("cost_platform_fee_nano", "charged_nano", "cache_discount_nano"),
    *("latency_ms", "latencies", "ttft_ms", "ttfts", "generation_ms", "timed_tokens"),
)
_STEPS = (
    f"""CREATE TABLE day_sum (
        organization_id TEXT NOT NULL, day INTEGER NOT NULL, key_id TEXT NOT NULL, model TEXT NOT NULL,
        endpoint_id TEXT NOT NULL, byok INTEGER NOT NULL, workspace_id TEXT NOT NULL, vendor TEXT NOT NULL,
        provider TEXT NOT NULL, {", ".join(f"{name} INTEGER NOT NULL" for name in _SUMS)},
        PRIMARY KEY (organization_id, day, key_id, model, endpoint_id, byok, workspace_id, vendor, provider)
    ) STRICT, WITHOUT ROWID""",
    # Row by row into its sum: no million rows are sorted, and memory stays small.
    f"""INSERT INTO day_sum
        SELECT organization_id, settled_at / 86400000000, key_id, COALESCE(model, ''), COALESCE(endpoint_id, ''), byok,
            COALESCE(workspace_id, ''), COALESCE(vendor, ''), COALESCE(provider, ''),
            status <> 'refused', status IN ('failed', 'incomplete'), fallbacks, insured,
            occurrences * (status = 'refused'), tokens_cache_write_5m + tokens_cache_write_1h, tokens_input,
            tokens_cache_read, tokens_output, tokens_reasoning, cost_prompt_nano, cost_cache_read_nano,
            cost_cache_write_nano, cost_completion_nano, cost_reasoning_nano, cost_request_fee_nano,
            cost_web_search_nano, cost_platform_fee_nano, cost_total_nano, COALESCE(cache_discount_nano, 0),
            COALESCE(latency_ms, 0) * (status <> 'refused'), latency_ms IS NOT NULL AND status <> 'refused',
            COALESCE(ttft_ms, 0), ttft_ms IS NOT NULL, COALESCE(generation_ms, 0),
            (tokens_output + tokens_reasoning) * (COALESCE(generation_ms, 0) > 0)
        FROM generation WHERE true
        ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in _SUMS)}""",  # noqa: S608
)


def up(connection: Connection) -> None:
    for statement in _STEPS:
        connection.execute(statement)
