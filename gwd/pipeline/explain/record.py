"""How an explanation and an estimate look to clients."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gwd.budgets import KeyBudgetRecord
from gwd.catalog.lifecycle import State
from gwd.catalog.prices import ListedPricing
from gwd.core.errors import FaultReason, GatewayError
from gwd.core.fields import Count, Id, Milliseconds, Moment, Slug, Tokens, Usd
from gwd.core.request import DialectName
from gwd.pipeline.plan.plan_input import Sort
from gwd.pipeline.plan.trace import Reason

Standing = Literal["healthy", "outage", "resting"]
Model = Annotated[Slug, Meta(description="The model that it serves.")]
Tag = Annotated[Slug, Meta(description="What requests may call the endpoint.")]
Provider = Annotated[Slug, Meta(description="The provider that serves it.")]
Byok = Annotated[
    bool, Meta(description="Whether it is called with a key of the organization's own.")
]
Hold = Annotated[Usd, Meta(description="What would be held for it while the request runs, USD.")]


class RefusalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An error that the request would meet."""

    code: Annotated[str, Meta(description="The error's code, as a request would get it.")]
    status: Annotated[int, Meta(description="The error's HTTP status.")]
    message: Annotated[str, Meta(description="What is wrong and what would fix it.")]
    remedy: Annotated[str, Meta(description="What ends this kind of error.")]
    param: Annotated[
        str | None, Meta(description="The field that is wrong; null where it is none.")
    ]
    metadata: Annotated[dict[str, Any], Meta(description="More about it, as the error has it.")]


class CandidateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A name of the request's models, and where it leads."""

    requested: Annotated[str, Meta(description="The name as the request has it.")]
    model: Annotated[
        Slug | None, Meta(description="The model that it leads to; null where it leads to none.")
    ]
    forwarded_from: Annotated[
        Slug | None,
        Meta(description="The retired model whose requests go to it; null where that is not so."),
    ]
    sort: Annotated[
        Sort | None, Meta(description="What the name's suffix sorts by; null without one.")
    ]
    lifecycle: Annotated[
        State | None, Meta(description="Where the model stands in its life; null without a model.")
    ]
    retired_at: Annotated[
        Moment | None, Meta(description="From when on it is retired; null for never.")
    ]
    successor: Annotated[
        Slug | None, Meta(description="The model that takes its requests once it is retired.")
    ]
    error: Annotated[
        RefusalRecord | None,
        Meta(description="Why the name leads to no model of this request; null where it does."),
    ]


class PlannedRest(msgspec.Struct, frozen=True, kw_only=True):
    """Why and until when an endpoint comes after the others."""

    reason: Annotated[FaultReason, Meta(description="Why its vendor's last answer failed.")]
    until: Annotated[
        Moment | None,
        Meta(description="When it ends; null where only a change of the key ends it."),
    ]


class PlannedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint in the order in which it would be tried."""

    place: Annotated[int, Meta(ge=1, description="Its place in the plan, from 1.")]
    rank: Annotated[Count, Meta(description="Which of the request's models it serves, from 0.")]
    model: Model
    tag: Tag
    provider: Provider
    provider_name: Annotated[str, Meta(description="The provider's name.")]
    upstream_model: Annotated[str, Meta(description="What the provider calls the model.")]
    strategy: Annotated[
        str,
        Meta(
            description="`ordered` where the request named an order of providers, else the organization's strategy."
        ),
    ]
    sort: Annotated[
        Sort | None, Meta(description="What the endpoints are sorted by; null for nothing.")
    ]
    state: Annotated[Standing, Meta(description="How its last calls went.")]
    rest: Annotated[
        PlannedRest | None,
        Meta(description="Why it is tried after the others; null where it is not."),
    ]
    p50_ttft_ms: Annotated[
        Milliseconds | None,
        Meta(description="The median time to the first token; null where there is none."),
    ]
    p50_tokens_per_second: Annotated[
        float | None, Meta(description="The median speed of its output; null where there is none.")
    ]
    pricing: Annotated[
        ListedPricing,
        Meta(description="The prices in force for a prompt of the estimated length."),
    ]
    hold: Hold
    byok: Byok
    credential_id: Annotated[
        Id | None,
        Meta(description="The key that it would be called with; null but for the operator."),
    ]
    drops: Annotated[
        list[str],
        Meta(
            description="What of the request it is not sent, because it does not take it; looked at for the first six"
            " endpoints."
        ),
    ]
    replaces_media: Annotated[
        bool,
        Meta(description="Whether a sentence takes the place of pictures or files it cannot take."),
    ]
    skipped: Annotated[
        str | None, Meta(description="Why it is passed over all the same; null where it is tried.")
    ]


class LeftOutEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint of the request's models that is not in the plan."""

    model: Model
    tag: Tag
    provider: Provider
    reason: Annotated[Reason, Meta(description="Why it is left out.")]
    message: Annotated[str, Meta(description="The same in a sentence.")]
    lacks: Annotated[
        list[str], Meta(description="What of the request it does not take, where it is that.")
    ]


class UnusableCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the platform that an endpoint could not be called with."""

    credential_id: Annotated[Id, Meta(description="The credential, pk_….")]
    tag: Tag
    provider: Provider
    message: Annotated[str, Meta(description="Why it cannot be used, and what ends that.")]


class PromptTokens(msgspec.Struct, frozen=True, kw_only=True):
    """How long the prompt is."""

    estimate: Annotated[
        Tokens, Meta(description="About how many tokens a vendor will count, our own estimate.")
    ]
    bound: Annotated[Tokens, Meta(description="How many tokens no vendor's count exceeds.")]
    images: Annotated[Count, Meta(description="How many pictures it holds.")]


class HoldRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What would be held while the request runs; what it costs is charged at its end, and the rest given back."""

    amount: Annotated[
        Usd | None,
        Meta(description="For the dearest endpoint that can be paid for, USD; null for none."),
    ]
    needed: Annotated[
        Usd | None,
        Meta(description="What the cheapest endpoint of the plan needs, USD; null without a plan."),
    ]
    available: Annotated[
        Usd, Meta(description="What the balance can pay now, USD; below 0 in debt.")
    ]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a request."""

    dialect: Annotated[DialectName, Meta(description="How the request was read.")]
    key_id: Annotated[
        Id | None, Meta(description="The key whose limits were asked; null for none.")
    ]
    workspace_id: Annotated[
        Id | None, Meta(description="The workspace whose budgets were asked; null for none.")
    ]
    serves: Annotated[
        Slug | None,
        Meta(
            description="The tag of the endpoint that would be called first; null where the request would be refused."
        ),
    ]
    is_drawn: Annotated[
        bool,
        Meta(
            description="Whether the first of several endpoints is drawn by lot, the cheaper the likelier: the next"
            " request may go to another."
        ),
    ]
    models: Annotated[
        list[CandidateRecord], Meta(description="The request's models in their order.")
    ]
    targets: Annotated[
        list[PlannedTarget], Meta(description="Who would be tried, in order; empty without a plan.")
    ]
    left_out: Annotated[
        list[LeftOutEndpoint], Meta(description="The other endpoints of these models, and why not.")
    ]
    credentials: Annotated[
        list[UnusableCredential] | None,
        Meta(description="Keys that could not be used; null but for the operator."),
    ]
    prompt: Annotated[PromptTokens, Meta(description="How long the prompt is.")]
    output_cap: Annotated[
        Tokens | None, Meta(description="The request's own limit on the answer; null for none.")
    ]
    dropped_tools: Annotated[
        list[str],
        Meta(description="Tools for the vendor to run that only an endpoint with a price is sent."),
    ]
    hold: Annotated[HoldRecord, Meta(description="What would be held.")]
    refusals: Annotated[
        list[RefusalRecord],
        Meta(description="Every error it would meet, the one that it would get first."),
    ]
    budgets: Annotated[
        list[KeyBudgetRecord],
        Meta(description="The budgets it counts against; soft ones refuse nothing."),
    ]


class CostRange(msgspec.Struct, frozen=True, kw_only=True):
    """What a request costs by class, USD."""

    prompt: Annotated[Usd, Meta(description="Prompt tokens that come from no cache, and images.")]
    cache_read: Annotated[Usd, Meta(description="Prompt tokens read from the vendor's cache.")]
    cache_write: Annotated[Usd, Meta(description="Prompt tokens written to the vendor's cache.")]
    completion: Annotated[Usd, Meta(description="Output tokens, reasoning among them.")]
    request_fee: Annotated[Usd, Meta(description="What is charged for each request.")]
    web_search: Annotated[Usd, Meta(description="Searches that the vendor runs.")]
    platform_fee: Annotated[
        Usd, Meta(description="The fee for a request that is served on an own vendor key.")
    ]
    total: Annotated[Usd, Meta(description="What would be charged to the balance.")]


class TargetEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What one endpoint would cost."""

    model: Model
    tag: Tag
    provider: Provider
    byok: Byok
    output_from: Annotated[Tokens, Meta(description="The fewest output tokens of an answer.")]
    output_to: Annotated[Tokens, Meta(description="The most output tokens of an answer.")]
    least: Annotated[
        CostRange,
        Meta(description="The estimated prompt, read from no cache, and the shortest answer."),
    ]
    most: Annotated[
        CostRange,
        Meta(
            description="The longest that the prompt can be, in the dearest class, and the longest answer."
        ),
    ]
    hold: Hold


class EstimateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens a request has, and what it would cost."""

    dialect: Annotated[DialectName, Meta(description="How the request was read.")]
    prompt: Annotated[PromptTokens, Meta(description="How long the prompt is.")]
    first: Annotated[
        TargetEstimate | None,
        Meta(description="The endpoint that would be tried first; null where there is none."),
    ]
    dearest: Annotated[
        TargetEstimate | None,
        Meta(description="The dearest endpoint of the plan; null where there is none."),
    ]
    without_price: Annotated[
        list[Slug],
        Meta(description="Models of the request that have no endpoint with a price now."),
    ]
    refusals: Annotated[
        list[RefusalRecord],
        Meta(description="Every error the request would meet, the one that it would get first."),
    ]


def refusal_record(error: GatewayError) -> RefusalRecord:
    """A refusal as the client of an explanation sees it."""
    metadata = dict(error.metadata or {})
    if error.retry_after_s is not None:
        metadata.setdefault("retry_after", error.retry_after_s)
    return RefusalRecord(
        code=error.code,
        status=error.status,
        message=error.message,
        remedy=error.remedy,
        param=error.param,
        metadata=metadata,
    )
