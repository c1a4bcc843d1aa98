"""One line of the log for each request of inference, with what its record says; never what was asked or answered."""

import logging

from gwd.pipeline.settle.observer import Ended

log = logging.getLogger("gwd.requests")


def write(ended: Ended) -> None:
    """The line of a generation that has ended."""
    row = ended.row
    input_tokens = (
        row.tokens_input
        + row.tokens_cache_read
        + row.tokens_cache_write_5m
        + row.tokens_cache_write_1h
    )
    output_tokens = row.tokens_output + row.tokens_reasoning
    fields = {
        "generation_id": row.id,
        "request_id": row.request_id,
        "organization_id": row.organization_id,
        "workspace_id": row.workspace_id,
        "key_id": row.key_id,
        "dialect": row.dialect,
        "model": row.model,
        "provider": row.provider,
        "status": row.status,
        "error_code": row.error_code,
        "finish_reason": row.finish_reason,
        "streamed": row.streamed,
        "attempts": row.attempts,
        "tokens_prompt": input_tokens,
        "tokens_completion": output_tokens,
        "cost_nano": row.cost_total_nano,
        "ttft_ms": row.ttft_ms,
        "latency_ms": row.latency_ms,
    }
    log.info(
        "request %s: %s, %d tokens in, %d out, %s ms",
        *(row.error_code or row.status, row.model or row.dialect, input_tokens, output_tokens),
        row.latency_ms,
        extra=fields,
    )
