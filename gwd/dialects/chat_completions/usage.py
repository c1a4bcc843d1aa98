"""The `usage` object of chat-style answers."""

import msgspec

from gwd.core import money
from gwd.core.cost import Cost
from gwd.core.events import Settled


class PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int
    cache_write_tokens: int


class CompletionDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int


class CostDetails(msgspec.Struct, frozen=True):
    """`upstream_inference_cost` is the list price on the owner's own key, where `cost` is only the fee."""

    upstream_inference_cost: msgspec.Raw | None
    upstream_inference_prompt_cost: msgspec.Raw
    upstream_inference_completions_cost: msgspec.Raw


class UsageObject(msgspec.Struct, frozen=True, omit_defaults=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails
    cost: msgspec.Raw | None = None
    cost_details: CostDetails | None = None
    is_byok: bool | None = None


class EmbeddingUsageObject(msgspec.Struct, frozen=True, omit_defaults=True):
    prompt_tokens: int
    total_tokens: int
    cost: msgspec.Raw | None = None
    cost_details: CostDetails | None = None
    is_byok: bool | None = None


def usage_object(settled: Settled, *, include_cost: bool) -> UsageObject:
    """Totals that hold their details, as OpenAI counts; cost only where the client asked for it."""
    usage = settled.usage
    plain = UsageObject(
        prompt_tokens=usage.input_total,
        completion_tokens=usage.output_total,
        total_tokens=usage.total,
        prompt_tokens_details=PromptDetails(usage.cache_read, usage.cache_write),
        completion_tokens_details=CompletionDetails(usage.reasoning),
    )
    if not include_cost:
        return plain
    return msgspec.structs.replace(
        plain,
        cost=money.usd_json(settled.cost.total_nano),
        cost_details=_cost_details(settled.cost),
        is_byok=settled.cost.byok,
    )


def embedding_usage_object(settled: Settled, *, include_cost: bool) -> EmbeddingUsageObject:
    tokens = settled.usage.input_total
    if not include_cost:
        return EmbeddingUsageObject(prompt_tokens=tokens, total_tokens=tokens)
    return EmbeddingUsageObject(
        prompt_tokens=tokens,
        total_tokens=tokens,
        cost=money.usd_json(settled.cost.total_nano),
        cost_details=_cost_details(settled.cost),
        is_byok=settled.cost.byok,
    )


def _cost_details(cost: Cost) -> CostDetails:
    prompt_nano = cost.prompt_nano + cost.cache_read_nano + cost.cache_write_nano
    return CostDetails(
        upstream_inference_cost=money.usd_json(cost.list_price_nano) if cost.byok else None,
        upstream_inference_prompt_cost=money.usd_json(prompt_nano),
        upstream_inference_completions_cost=money.usd_json(
            cost.completion_nano + cost.reasoning_nano
        ),
    )
