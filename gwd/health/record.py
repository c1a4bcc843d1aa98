"""How each endpoint stands now, for the operator: the state of routing as records."""

from collections.abc import Mapping, Sequence
from math import isinf
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gwd.catalog.snapshot import Catalog, Endpoint
from gwd.core.clock import US_PER_S, iso
from gwd.core.errors import FaultReason
from gwd.core.fields import Count, Id, Milliseconds, Moment, Slug
from gwd.credentials.service import VendorKey
from gwd.health.health import Health
from gwd.health.rests import Rest

Keys = Mapping[str, tuple[VendorKey, ...]]
State = Literal["healthy", "cooling_down", "outage", "disabled", "no_price", "no_credential"]


class RestRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Why and until when an endpoint rests with one credential after a failure."""

    credential_id: Annotated[
        Id | None,
        Meta(description="The credential that it rests with; null where its provider takes none."),
    ]
    reason: Annotated[FaultReason, Meta(description="Why the vendor's answer failed.")]
    status: Annotated[
        int | None, Meta(description="The HTTP status of the answer; null where there was none.")
    ]
    message: Annotated[str, Meta(description="What the vendor said.")]
    since: Annotated[Moment, Meta(description="When the rest began.")]
    until: Annotated[
        Moment | None,
        Meta(
            description="When it ends; null where only a change of the key ends it, or of a provider that takes none."
        ),
    ]
    tried: Annotated[
        bool,
        Meta(description="Whether a request goes there all the same when nothing else is left."),
    ]


class EndpointHealthRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint stands now, by what the node saw of it in the last minutes."""

    id: Annotated[Id, Meta(description="The id of the endpoint, ep_….")]
    model: Annotated[Slug, Meta(description="The model that it serves.")]
    provider: Annotated[Slug, Meta(description="The provider that serves it.")]
    tag: Annotated[Slug, Meta(description="What requests may call it.")]
    status: Annotated[State, Meta(description="Healthy, or why it is not tried or tried last.")]
    reason: Annotated[
        str | None, Meta(description="The status in more words; null for a healthy one.")
    ]
    cooldown_until: Annotated[
        Moment | None,
        Meta(
            description="When its first rest ends; null where it does not cool down, or only a change ends it."
        ),
    ]
    rests: Annotated[list[RestRecord], Meta(description="The credentials that it rests with.")]
    attempts: Annotated[Count, Meta(description="How many calls were made to it lately.")]
    failures: Annotated[Count, Meta(description="How many of these failed.")]
    p50_ttft_ms: Annotated[
        Milliseconds | None,
        Meta(description="The median time to the first token; null where there is none."),
    ]
    p50_tokens_per_second: Annotated[
        float | None, Meta(description="The median speed of its output; null where there is none.")
    ]


def endpoint_records(
    catalog: Catalog, keys: Keys, health: Health, *, now_us: int, now_s: float
) -> list[EndpointHealthRecord]:
    """All endpoints by model: healthy, or why they are not tried or tried last. `keys` are those of each provider."""
    return [
        _record(endpoint, keys.get(endpoint.provider, ()), health, now_us, now_s)
        for model in catalog.models.values()
        for endpoint in model.endpoints
    ]


def can_serve(
    endpoint: Endpoint, keys: Sequence[VendorKey], health: Health, *, now_us: int, now_s: float
) -> bool:
    """Whether a request could be sent there now: it is live, has a price, and a key that is not closed."""
    if not endpoint.is_live or endpoint.price_at(now_us) is None:
        return False
    for key in keys:
        rest = health.rest(endpoint.id, key.id, now_s)
        if key.is_usable(now_us) and not (rest is not None and rest.is_closed):
            return True
    return False


def _record(
    endpoint: Endpoint, keys: tuple[VendorKey, ...], health: Health, now_us: int, now_s: float
) -> EndpointHealthRecord:
    attempts, failures = health.attempts(endpoint.id, now_s)
    ttft_s = health.median_ttft_s(endpoint.id, now_s)
    speed = health.median_throughput(endpoint.id, now_s)
    ready = [key for key in keys if key.is_usable(now_us)]
    rests = [
        (key.record_id, rest)
        for key in ready
        if endpoint.is_live and (rest := health.rest(endpoint.id, key.id, now_s)) is not None
    ]
    status, reason = _state(endpoint, keys, ready, len(rests), health, now_us, now_s)
    until_s: float | None = None
    if status == "cooling_down":
        # The one that is tried first: what is closed comes last.
        first = min((rest for _, rest in rests), key=lambda rest: (rest.is_closed, rest.until_s))
        reason, until_s = first.reason, first.until_s
    return EndpointHealthRecord(
        id=endpoint.id,
        model=endpoint.model,
        provider=endpoint.provider,
        tag=endpoint.tag,
        status=status,
        reason=reason,
        cooldown_until=_moment(until_s, now_us, now_s),
        rests=[_rest_record(key_id, rest, now_us, now_s) for key_id, rest in rests],
        attempts=attempts,
        failures=failures,
        p50_ttft_ms=None if ttft_s is None else round(ttft_s * 1000),
        p50_tokens_per_second=None if speed is None else round(speed, 1),
    )


def _rest_record(credential_id: str | None, rest: Rest, now_us: int, now_s: float) -> RestRecord:
    return RestRecord(
        credential_id=credential_id,
        reason=rest.reason,
        status=rest.status,
        message=rest.message,
        since=_iso(rest.began_s, now_us, now_s),
        until=_moment(rest.until_s, now_us, now_s),
        tried=not rest.is_closed,
    )


def _moment(at_s: float | None, now_us: int, now_s: float) -> str | None:
    """A moment of the monotonic clock as a time; None for one that comes only with an edit."""
    return None if at_s is None or isinf(at_s) else _iso(at_s, now_us, now_s)


def _iso(at_s: float, now_us: int, now_s: float) -> str:
    return iso(now_us + int((at_s - now_s) * US_PER_S))


def _state(
    endpoint: Endpoint,
    keys: tuple[VendorKey, ...],
    ready: list[VendorKey],
    resting: int,
    health: Health,
    now_us: int,
    now_s: float,
) -> tuple[State, str | None]:
    if not endpoint.is_live:
        return "disabled", "the endpoint or its provider is disabled or draining"
    if endpoint.price_at(now_us) is None:
        at_us = endpoint.opens_at_us(now_us)
        if at_us is not None:
            reported = (
                f"its first price begins at {iso(at_us)}; by this node's clock it is {iso(now_us)}"
            )
            return "no_price", reported
        return "no_price", "it has no complete price, so nothing is sent to it"
    if not ready:
        problem = next((key.problem for key in keys if key.problem is not None), None)
        return "no_credential", problem or "its provider has no usable credential"
    if resting == len(ready):
        return "cooling_down", None
    if health.has_outage(endpoint.id, now_s):
        return "outage", "many of its last calls failed; it is tried last"
    return "healthy", None
