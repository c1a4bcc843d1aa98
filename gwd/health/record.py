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
from gwd.core.target import KEYLESS
from gwd.credentials.service import VendorKey
from gwd.health.health import Circuit, Health
from gwd.health.rests import Rest

Keys = Mapping[str, tuple[VendorKey, ...]]
State = Literal["healthy", "cooling_down", "outage", "disabled", "no_price", "no_credential"]


CircuitState = Annotated[
    Circuit,
    Meta(
        description="closed: nothing rests; open: it rests after failures and is tried last or not at all;"
        " half_open: the rest is over, and one call at a time decides."
    ),
]


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


class CredentialHealthRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint stands with one credential."""

    credential_id: Annotated[
        Id | None,
        Meta(
            description="The credential: the platform's, or an organization's own that rests; null where its provider"
            " takes none."
        ),
    ]
    circuit: CircuitState
    on_trial: Annotated[
        bool, Meta(description="Whether a call is under way that decides whether it serves again.")
    ]
    rest: Annotated[RestRecord | None, Meta(description="What rests now; null where nothing does.")]


class LastFaultRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A call to an endpoint that failed; what is a request's own fault is none."""

    at: Annotated[Moment, Meta(description="When it failed.")]
    credential_id: Annotated[
        Id | None,
        Meta(description="The credential that was used; null where its provider takes none."),
    ]
    reason: Annotated[FaultReason, Meta(description="Why the vendor's answer failed.")]
    status: Annotated[
        int | None, Meta(description="The HTTP status of the answer; null where there was none.")
    ]
    message: Annotated[
        str, Meta(description="What the vendor said, without credentials, cut to a sentence.")
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
    circuit: CircuitState
    in_flight: Annotated[Count, Meta(description="How many requests are there now.")]


class EndpointCircuitRecord(EndpointHealthRecord, frozen=True, kw_only=True):
    """How an endpoint stands now with each credential, and what went wrong there last. It outlives a restart."""

    credentials: Annotated[
        list[CredentialHealthRecord],
        Meta(description="Every credential that can be used there, and those that rest."),
    ]
    last_errors: Annotated[
        list[LastFaultRecord],
        Meta(description="The last failed calls of a day, the newest first; ten at most."),
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


def endpoint_record(
    catalog: Catalog, keys: Keys, health: Health, endpoint_id: str, *, now_us: int, now_s: float
) -> EndpointCircuitRecord | None:
    """One endpoint with its credentials and last errors; None for one that does not exist."""
    found = (e for model in catalog.models.values() for e in model.endpoints if e.id == endpoint_id)
    endpoint = next(found, None)
    if endpoint is None:
        return None
    its_keys = keys.get(endpoint.provider, ())
    record = _record(endpoint, its_keys, health, now_us, now_s)
    usable = [key.id for key in its_keys if key.is_usable(now_us)]
    shown = dict.fromkeys([*usable, *health.resting_credentials(endpoint_id)])
    return EndpointCircuitRecord(
        **msgspec.structs.asdict(record),
        credentials=[
            _credential_record(endpoint_id, credential_id, health, now_us, now_s)
            for credential_id in shown
        ],
        last_errors=[
            LastFaultRecord(
                at=_iso(fault.at_s, now_us, now_s),
                credential_id=_shown(fault.credential_id),
                reason=fault.reason,
                status=fault.status,
                message=fault.message,
            )
            for fault in health.last_faults(endpoint_id)
        ],
    )


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
        circuit=_circuit(endpoint, ready, health, now_s),
        in_flight=health.in_flight(endpoint.id),
        p50_ttft_ms=None if ttft_s is None else round(ttft_s * 1000),
        p50_tokens_per_second=None if speed is None else round(speed, 1),
    )


def _credential_record(
    endpoint_id: str, credential_id: str, health: Health, now_us: int, now_s: float
) -> CredentialHealthRecord:
    rest = health.rest(endpoint_id, credential_id, now_s)
    return CredentialHealthRecord(
        credential_id=_shown(credential_id),
        circuit=health.circuit(endpoint_id, credential_id, now_s),
        on_trial=health.is_on_trial(endpoint_id, credential_id),
        rest=None if rest is None else _rest_record(_shown(credential_id), rest, now_us, now_s),
    )


def _shown(credential_id: str) -> str | None:
    """What stands for the key of a provider that takes none has no record."""
    return None if credential_id.startswith(KEYLESS) else credential_id


def _circuit(endpoint: Endpoint, ready: list[VendorKey], health: Health, now_s: float) -> Circuit:
    """Of the credential that stands best: with that one it serves."""
    states = {health.circuit(endpoint.id, key.id, now_s) for key in ready}
    best: tuple[Circuit, ...] = ("closed", "half_open", "open")
    return next((state for state in best if state in states), "closed")


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
