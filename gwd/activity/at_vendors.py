"""What was sent to vendors, by UTC day, provider, endpoint and whose key: what a vendor's bill is laid beside."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd.activity.day_sums import COSTS
from gwd.core.clock import US_PER_DAY, iso
from gwd.core.fields import Count, Id, Moment, Slug, Tokens, Usd
from gwd.core.money import usd_json
from gwd.store import Connection

_TOKENS: Final = (
    *("tokens_input", "tokens_cache_read", "tokens_cache_write", "tokens_output"),
    "tokens_reasoning",
)
_WITHOUT_TOOLS: Final = " + ".join(
    name for name in COSTS if name not in ("cost_web_search_nano", "cost_platform_fee_nano")
)
_WHOSE: Final = {
    "one": "organization_id = ?1",
    "workspace": "organization_id = ?1 AND workspace_id = ?4",
    "all": "organization_id IN (SELECT id FROM organization WHERE ?1 IS NULL)",
}
_SUMS: Final = {
    whose: f"""
        SELECT day, provider, endpoint_id, model, byok, SUM(requests), SUM(errors), SUM(insured),
            {", ".join(f"SUM({name})" for name in _TOKENS)}, SUM({_WITHOUT_TOOLS}), SUM(cost_web_search_nano),
            SUM(charged_nano)
        FROM day_sum WHERE {condition} AND day >= ?2 AND day < ?3 AND provider <> ''
        GROUP BY day, provider, model, endpoint_id, byok HAVING SUM(requests) > 0
        ORDER BY day, provider, model, endpoint_id, byok"""  # noqa: S608
    for whose, condition in _WHOSE.items()
}


class VendorSum(msgspec.Struct, frozen=True, kw_only=True):
    """What one endpoint's requests of one UTC day came to, the day on which they were settled."""

    day: Annotated[Moment, Meta(description="The midnight (UTC) at which the day begins.")]
    provider: Annotated[Slug, Meta(description="The provider that the requests were sent to.")]
    endpoint_id: Annotated[Id, Meta(description="The endpoint that they were sent to.")]
    upstream_model: Annotated[
        str | None,
        Meta(
            description="What the endpoint calls the model at the provider now; null if it was deleted since."
        ),
    ]
    model: Annotated[Slug, Meta(description="The model of the catalog.")]
    byok: Annotated[
        bool, Meta(description="Whether an organization's own vendor key served, not the node's.")
    ]
    requests: Annotated[
        Count, Meta(description="How many were sent, insured, failed and cancelled ones included.")
    ]
    errors: Annotated[
        Count,
        Meta(
            description="How many of these failed or broke off; the vendor may have counted tokens unknown here."
        ),
    ]
    insured: Annotated[
        Count,
        Meta(description="How many of these had no output and were charged to nobody."),
    ]
    tokens_input: Annotated[
        Tokens, Meta(description="Input neither read from a cache nor written to it.")
    ]
    tokens_cache_read: Annotated[Tokens, Meta(description="Input read from the vendor's cache.")]
    tokens_cache_write: Annotated[Tokens, Meta(description="Input written to the vendor's cache.")]
    tokens_output: Annotated[Tokens, Meta(description="Output without reasoning.")]
    tokens_reasoning: Annotated[
        Tokens, Meta(description="Reasoning, which vendors bill as output.")
    ]
    cost: Annotated[
        Usd,
        Meta(
            description="List price of all of them, insured ones included, without vendor-run searches and the fee."
        ),
    ]
    cost_web_search: Annotated[Usd, Meta(description="List price of searches that the vendor ran.")]
    charged: Annotated[Usd, Meta(description="What organizations were charged for them.")]
    rounding: Annotated[
        Usd,
        Meta(
            description="How far `cost` may lie from an unrounded sum: half a nanodollar a request and token class."
        ),
    ]


class VendorUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The traffic to vendors in a stretch of whole UTC days; of a day that is not over, what was settled so far."""

    since: Annotated[Moment, Meta(description="The first day's midnight.")]
    until: Annotated[Moment, Meta(description="The midnight at which the last day ends.")]
    rows: Annotated[list[VendorSum], Meta(description="By day, provider and model.")]


def sums(
    connection: Connection,
    organization_id: str | None,
    upstream_models: dict[str, str],
    *,
    first_day: int,
    end_day: int,
    workspace_id: str | None = None,
) -> VendorUsage:
    """Of one organization (or its workspace), or of all with None; days count from 1970-01-01, `end_day` is exclusive.

    `upstream_models` says by endpoint what the provider calls its model.
    """
    asked = (organization_id, first_day, end_day)
    if organization_id is None:
        found = connection.rows(_SUMS["all"], asked)
    elif workspace_id is None:
        found = connection.rows(_SUMS["one"], asked)
    else:
        found = connection.rows(_SUMS["workspace"], (*asked, workspace_id))
    rows = []
    for day, provider, endpoint_id, model, byok, requests, errors, insured, *numbers in found:
        tokens = numbers[: len(_TOKENS)]
        cost_nano, search_nano, charged_nano = numbers[len(_TOKENS) :]
        classes = sum(number > 0 for number in tokens)
        rows.append(
            VendorSum(
                day=iso(day * US_PER_DAY),
                provider=provider,
                endpoint_id=endpoint_id,
                upstream_model=upstream_models.get(endpoint_id),
                model=model,
                byok=bool(byok),
                requests=requests,
                errors=errors,
                insured=insured,
                **dict(zip(_TOKENS, tokens, strict=True)),
                cost=usd_json(cost_nano),
                cost_web_search=usd_json(search_nano),
                charged=usd_json(charged_nano),
                rounding=usd_json((requests * classes + 1) // 2),
            )
        )
    return VendorUsage(
        since=iso(first_day * US_PER_DAY), until=iso(end_day * US_PER_DAY), rows=rows
    )
