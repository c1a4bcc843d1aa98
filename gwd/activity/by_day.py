"""What generations came to by UTC day, model and endpoint, read from the day sums alone."""

from datetime import date, timedelta
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd.activity.analytics.scope import Scope
from gwd.activity.day_sums import LIST_PRICE
from gwd.core.fields import Count, Id, Slug, Tokens, Usd
from gwd.core.money import usd_json
from gwd.store import Connection

MOST_DAYS: Final = 30
_EPOCH: Final = date(1970, 1, 1)
_SUMS: Final = f"""
    SELECT day, NULLIF(model, ''), NULLIF(endpoint_id, ''), NULLIF(provider, ''), SUM(requests), SUM(charged_nano),
        SUM(({LIST_PRICE}) * byok), SUM(tokens_input + tokens_cache_read + tokens_cache_write),
        SUM(tokens_output + tokens_reasoning), SUM(tokens_reasoning), SUM(tokens_cache_read)
    FROM day_sum WHERE {{}} AND day >= ? AND day < ?
    GROUP BY 1, 2, 3, 4 HAVING SUM(requests) > 0 ORDER BY day DESC, 2, 3, 4"""  # noqa: S608


class ActivityRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one endpoint did on one UTC day."""

    date: Annotated[
        str, Meta(description="The UTC day, by the time at which requests ended: YYYY-MM-DD.")
    ]
    model: Annotated[
        Slug | None,
        Meta(description="The model that served, or was to; null where none was found."),
    ]
    model_permaslug: Annotated[Slug | None, Meta(description="As `model`.")]
    endpoint_id: Annotated[
        Id | None,
        Meta(
            description="The endpoint that served, or was to; null where it did not come to that."
        ),
    ]
    provider_name: Annotated[
        str | None,
        Meta(
            description="The provider that served, or was to; null where it did not come to that."
        ),
    ]
    requests: Annotated[Count, Meta(description="Requests that were dispatched.")]
    usage: Annotated[Usd, Meta(description="What was charged.")]
    byok_usage_inference: Annotated[
        Usd, Meta(description="The list price of what own vendor keys served.")
    ]
    prompt_tokens: Annotated[
        Tokens, Meta(description="Prompt tokens, those read from and written to a cache included.")
    ]
    completion_tokens: Annotated[Tokens, Meta(description="Output tokens, reasoning included.")]
    reasoning_tokens: Annotated[Tokens, Meta(description="Output tokens that were reasoning.")]
    cached_tokens: Annotated[
        Tokens, Meta(description="Prompt tokens that were read from the vendor's cache.")
    ]


def by_day(
    connection: Connection, scope: Scope, first_day: int, beyond_day: int
) -> list[ActivityRecord]:
    """The days from the first until before the last, counted from 1970-01-01, newest first."""
    conditions, values = scope.conditions()
    found = connection.rows(
        _SUMS.format(" AND ".join(conditions)), (*values, first_day, beyond_day)
    )
    return [_record(*row) for row in found]


def _record(
    day: int,
    model: str | None,
    endpoint_id: str | None,
    provider: str | None,
    requests: int,
    charged_nano: int,
    byok_nano: int,
    prompt: int,
    completion: int,
    reasoning: int,
    cached: int,
) -> ActivityRecord:
    return ActivityRecord(
        date=(_EPOCH + timedelta(days=day)).isoformat(),
        model=model,
        model_permaslug=model,
        endpoint_id=endpoint_id,
        provider_name=provider,
        requests=requests,
        usage=usd_json(charged_nano),
        byok_usage_inference=usd_json(byok_nano),
        prompt_tokens=prompt,
        completion_tokens=completion,
        reasoning_tokens=reasoning,
        cached_tokens=cached,
    )
