"""The settlement transaction: ledger, spend, activity, alerts; everything a generation leaves behind, at once."""

from typing import Any, Final

import msgspec

from gwd import budgets
from gwd.activity import service as activity
from gwd.activity.row import GenerationRow, digest
from gwd.alerts import threshold_alerts
from gwd.core.cost import Cost
from gwd.core.extras import Applied
from gwd.core.spender import Spender
from gwd.core.usage import Usage
from gwd.keys import service as keys
from gwd.ledger import service as ledger
from gwd.ledger.service import Settlement
from gwd.pipeline.admit.identity import GenerationIdentity, error_columns, identity_columns
from gwd.pipeline.dispatch.outcome import Outcome
from gwd.pipeline.plan.routing import Planned
from gwd.pipeline.settle.bill import Bill
from gwd.pipeline.settle.progress import Served, served_of
from gwd.pipeline.settle.receipt import Timing, modifiers_record
from gwd.spend import service as spend
from gwd.store import Connection

_encoder: Final = msgspec.json.Encoder()
_tags: Final = msgspec.json.Decoder(tuple[str, ...])


def settle(
    connection: Connection, row: GenerationRow, *, charged: bool, app_url: str, now_us: int
) -> Settlement | None:
    """Settle (`charged`) or release a generation and record it. A second call changes nothing.

    None when the generation never held anything: then it is not recorded here either (its refusal was).
    """
    if not charged:
        ended = ledger.release(connection, row.id, now_us=now_us, seal=digest(row))
        if ended is not None and ended.first:
            activity.write(connection, _at(row, ended.at_us))
            budgets.end_would_refuse(connection, _spender(row), row.id)
        return ended
    settled = ledger.settle(
        connection, row.id, row.cost_total_nano, now_us=now_us, seal=digest(row)
    )
    if settled.first:
        byok_nano = _list_price(row) if row.byok else 0
        spender = _spender(row)
        spend.add(
            connection,
            spender.counters,
            charged_nano=settled.charged_nano,
            byok_nano=byok_nano,
            at_us=settled.at_us,
        )
        budgets.end_would_refuse(
            connection,
            spender,
            row.id,
            charged_nano=settled.charged_nano,
            byok_nano=byok_nano,
        )
        activity.write(connection, _at(row, settled.at_us))
        keys.mark_used(connection, row.key_id, now_us=settled.at_us)
        if settled.charged_nano or byok_nano:
            charge = threshold_alerts.Charge(
                row=row,
                spender=spender,
                settled=settled,
                byok_nano=byok_nano,
                app_url=app_url,
                now_us=now_us,
            )
            threshold_alerts.raise_crossed(connection, charge)
    return settled


def abandon(connection: Connection, refused: GenerationRow, *, app_url: str, now_us: int) -> None:
    """The end of a generation that broke before its outcome was known: give back what it holds, and record it."""
    failed = msgspec.structs.replace(refused, status="failed")
    if settle(connection, failed, charged=False, app_url=app_url, now_us=now_us) is None:
        activity.write(connection, refused)


def row_of(
    identity: GenerationIdentity,
    outcome: Outcome,
    bill: Bill,
    *,
    primary: Planned,
    timing: Timing,
    receipt: msgspec.Raw | None,
    settled_us: int,
) -> GenerationRow:
    """The record of an admitted generation. `primary` names the model of one that no target served."""
    shown = outcome.serving or primary
    return charged_row(
        identity,
        bill.usage,
        bill.cost,
        applied=bill.applied,
        served=served_of(shown),
        fields={
            "status": bill.status,
            "finish_reason": bill.finish_reason,
            "native_finish_reason": outcome.finished.upstream_reason if outcome.finished else None,
            **error_columns(outcome.error),
            "attempts": outcome.attempts,
            "fallbacks": len(outcome.failures) if outcome.serving else max(0, outcome.attempts - 1),
            "routing_ms": timing.routing,
            "fallback_ms": timing.fallback,
            "ttft_ms": timing.ttft,
            "generation_ms": timing.generation,
            "latency_ms": timing.total,
            "upstream_id": outcome.upstream_id,
            "service_tier": outcome.given.values.get("service_tier") if outcome.given else None,
            "dropped_tools": _encoder.encode(shown.target.sold.refused_tools).decode()
            if shown.target.sold.refused_tools
            else None,
            "dropped_parameters": _encoder.encode(outcome.dropped).decode()
            if outcome.dropped
            else None,
            "receipt": bytes(receipt).decode() if receipt is not None else None,
            "settled_at": settled_us,
        },
    )


def charged_row(
    identity: GenerationIdentity,
    usage: Usage,
    cost: Cost,
    *,
    applied: Applied,
    served: Served,
    fields: dict[str, Any],
) -> GenerationRow:
    """A record with the usage, the cost, and the price and the factors it was computed from."""
    columns = {
        **identity_columns(identity),
        "model": served.model,
        "vendor": served.vendor,
        "provider": served.provider,
        "endpoint_id": served.endpoint_id,
        "tokens_input": usage.input,
        "tokens_cache_read": usage.cache_read,
        "tokens_cache_write_5m": usage.cache_write_5m,
        "tokens_cache_write_1h": usage.cache_write_1h,
        "tokens_output": usage.output,
        "tokens_reasoning": usage.reasoning,
        "images": usage.images,
        "web_searches": applied.searches,
        "price_modifiers": _encoder.encode(modifiers_record(applied)).decode()
        if applied.factors
        else None,
        "usage_estimated": usage.estimated,
        "prompt_above_bound": usage.above_bound,
        "cost_prompt_nano": cost.prompt_nano,
        "cost_cache_read_nano": cost.cache_read_nano,
        "cost_cache_write_nano": cost.cache_write_nano,
        "cost_completion_nano": cost.completion_nano,
        "cost_reasoning_nano": cost.reasoning_nano,
        "cost_request_fee_nano": cost.request_fee_nano,
        "cost_web_search_nano": cost.web_search_nano,
        "cost_platform_fee_nano": cost.platform_fee_nano,
        "cost_total_nano": cost.total_nano,
        "cache_discount_nano": cost.cache_discount_nano,
        "insured": cost.insured,
        "byok": cost.byok,
        "fee_bps": served.fee_bps,
        "price": served.price.version,
        "forwarded_from": served.forwarded_from,
        **fields,
    }
    return GenerationRow(**columns)


def _at(row: GenerationRow, at_us: int) -> GenerationRow:
    return row if row.settled_at == at_us else msgspec.structs.replace(row, settled_at=at_us)


def _spender(row: GenerationRow) -> Spender:
    return Spender(
        organization_id=row.organization_id,
        workspace_id=row.workspace_id,
        family_id=row.family_id,
        user=row.user_tag,
        tags=() if row.tags is None else _tags.decode(row.tags),
    )


def _list_price(row: GenerationRow) -> int:
    return (
        row.cost_prompt_nano
        + row.cost_cache_read_nano
        + row.cost_cache_write_nano
        + row.cost_completion_nano
        + row.cost_reasoning_nano
        + row.cost_request_fee_nano
        + row.cost_web_search_nano
    )
