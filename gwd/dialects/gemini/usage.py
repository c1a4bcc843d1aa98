"""`usageMetadata`, in which the prompt holds what was cached, and thoughts stand beside the answer."""

from typing import Any

from gwd.core.events import Settled
from gwd.core.money import usd_json

Json = dict[str, Any]


def usage_metadata(settled: Settled, *, include_cost: bool) -> Json:
    """Counts as Google has them, zeros of cache and thoughts left out; cost only where the client asked for it."""
    used = settled.usage
    found: Json = {
        "promptTokenCount": used.input_total,
        "candidatesTokenCount": used.output,
        "totalTokenCount": used.total,
    }
    if used.cache_read:
        found["cachedContentTokenCount"] = used.cache_read
    if used.reasoning:
        found["thoughtsTokenCount"] = used.reasoning
    return found | (_cost(settled) if include_cost else {})


def embedding_usage(settled: Settled, *, include_cost: bool) -> Json:
    """Embeddings are billed on their input alone."""
    tokens = settled.usage.input_total
    found: Json = {"promptTokenCount": tokens, "totalTokenCount": tokens}
    return found | (_cost(settled) if include_cost else {})


def _cost(settled: Settled) -> Json:
    cost = settled.cost
    return {
        "cost": usd_json(cost.total_nano),
        "cost_details": {
            "upstream_inference_cost": usd_json(cost.list_price_nano) if cost.byok else None,
            "upstream_inference_prompt_cost": usd_json(
                cost.prompt_nano + cost.cache_read_nano + cost.cache_write_nano
            ),
            "upstream_inference_completions_cost": usd_json(
                cost.completion_nano + cost.reasoning_nano
            ),
        },
        "is_byok": cost.byok,
    }
