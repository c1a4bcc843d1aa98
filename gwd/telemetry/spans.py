"""A generation as spans: one of the request, below it one for each call to a vendor."""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from gwd import __version__
from gwd.activity.row import GenerationRow
from gwd.core.clock import US_PER_S
from gwd.core.target import Target
from gwd.core.trace_context import TraceContext
from gwd.pipeline.settle.observer import Ended

NS_PER_US: Final = 1_000
SCOPE: Final = InstrumentationScope("gwd", __version__)
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_OPERATIONS: Final = {"embeddings": "embeddings", "completions": "text_completion"}

Value = str | int | bool | tuple[str, ...]


def spans_of(ended: Ended, trace: TraceContext, resource: Resource) -> Iterator[ReadableSpan]:
    """The request's span first."""
    row = ended.row
    own = _context(trace.trace_id, trace.span_id)
    parent_id = trace.parent_id
    is_bad = row.status in ("failed", "incomplete")
    yield ReadableSpan(
        f"{operation(row)} {row.model}" if row.model else operation(row),
        context=own,
        parent=None if parent_id is None else _context(trace.trace_id, parent_id, is_remote=True),
        resource=resource,
        attributes=_known(_of_request(row)),
        kind=SpanKind.SERVER,
        status=Status(StatusCode.ERROR, row.error_code) if is_bad else Status(),
        start_time=row.created_at * NS_PER_US,
        end_time=max(row.created_at, ended.now_us) * NS_PER_US,
        instrumentation_scope=SCOPE,
    )
    for number, began_s, ended_s, target, more in _attempts(ended):
        yield ReadableSpan(
            f"{operation(row)} {target.upstream_model}",
            context=_context(trace.trace_id, trace.attempt_id(number)),
            parent=own,
            resource=resource,
            attributes=_known({**_of_target(row, target), **more}),
            kind=SpanKind.CLIENT,
            status=Status(StatusCode.ERROR if "error.type" in more else StatusCode.UNSET),
            start_time=_wall_ns(ended, began_s),
            end_time=_wall_ns(ended, ended_s),
            instrumentation_scope=SCOPE,
        )


def operation(row: GenerationRow) -> str:
    """The conventions' word for what was asked for."""
    return _OPERATIONS.get(row.dialect, "chat")


def input_tokens(row: GenerationRow) -> int:
    """As the conventions count: those of the cache as well."""
    written = row.tokens_cache_write_5m + row.tokens_cache_write_1h
    return row.tokens_input + row.tokens_cache_read + written


def output_tokens(row: GenerationRow) -> int:
    """As the conventions count: those of reasoning as well."""
    return row.tokens_output + row.tokens_reasoning


def _of_request(row: GenerationRow) -> dict[str, Value | None]:
    return {
        "gen_ai.operation.name": operation(row),
        "gen_ai.provider.name": row.provider,
        # What a client wrote and no model is called may be anything.
        "gen_ai.request.model": row.requested_model if row.model else None,
        "gen_ai.response.model": row.model,
        "gen_ai.response.id": row.id,
        "gen_ai.response.finish_reasons": (row.finish_reason,) if row.finish_reason else None,
        "gen_ai.usage.input_tokens": input_tokens(row),
        "gen_ai.usage.output_tokens": output_tokens(row),
        "gen_ai.usage.cache_read.input_tokens": row.tokens_cache_read,
        "gen_ai.usage.cache_creation.input_tokens": row.tokens_cache_write_5m
        + row.tokens_cache_write_1h,
        "error.type": row.error_code,
        "gwd.request.id": row.request_id,
        "gwd.organization.id": row.organization_id,
        "gwd.workspace.id": row.workspace_id,
        "gwd.key.id": row.key_id,
        "gwd.dialect": row.dialect,
        "gwd.status": row.status,
        "gwd.streamed": row.streamed,
        "gwd.attempts": row.attempts,
        "gwd.cost_nano": row.cost_total_nano,
        "gwd.ttft_ms": row.ttft_ms,
    }


def _of_target(row: GenerationRow, target: Target) -> dict[str, Value | None]:
    parts = urlsplit(target.base_url)
    return {
        "gen_ai.operation.name": operation(row),
        "gen_ai.provider.name": target.provider,
        "gen_ai.request.model": target.upstream_model,
        "server.address": parts.hostname,
        "server.port": parts.port,
        "gwd.endpoint.id": target.endpoint_id,
        "gwd.adapter": target.adapter,
        "gwd.byok": target.credential.byok,
    }


def _attempts(
    ended: Ended,
) -> Iterator[tuple[int, float, float, Target, Mapping[str, Value | None]]]:
    """(number, when it began and ended by the monotonic clock, where, what more is known)."""
    outcome = ended.outcome
    if outcome is None:
        return
    for number, failed in enumerate(outcome.failures, start=1):
        why = {"error.type": failed.fault.reason, "http.response.status_code": failed.fault.status}
        ends_s = failed.began_s + failed.duration_s
        yield number, failed.began_s, ends_s, failed.planned.target, why
    if outcome.asked_s is None or outcome.trying is None:
        return
    more: dict[str, Value | None] = {"gen_ai.response.id": outcome.upstream_id}
    if outcome.finished is None:
        more["error.type"] = "cancelled" if outcome.client_left else "broken_off"
    until_s = outcome.last_output_s or ended.now_s
    yield outcome.attempts, outcome.asked_s, until_s, outcome.trying.target, more


def _wall_ns(ended: Ended, at_s: float) -> int:
    """A moment of the monotonic clock as a time."""
    return (ended.now_us + int((at_s - ended.now_s) * US_PER_S)) * NS_PER_US


def _context(trace_id: int, span_id: int, *, is_remote: bool = False) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote, _SAMPLED)


def _known(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if value is not None}
