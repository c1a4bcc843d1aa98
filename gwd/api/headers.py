"""Response headers: what every answer, every inference answer and every stream carries."""

from email.utils import formatdate
from typing import Final

import msgspec

from gwd.catalog.lifecycle import Lifecycle
from gwd.core.clock import US_PER_S
from gwd.core.errors import GatewayError, MethodNotAllowed
from gwd.core.target import Target
from gwd.keys.rate_limit import Admitted, Refused

JSON: Final = "application/json"
EXPOSED: Final = (
    "x-gw-generation-id, x-gw-provider, x-gw-model, x-gw-overhead-ms, x-ratelimit-limit, x-ratelimit-remaining,"
    " x-ratelimit-reset, x-request-id, request-id, retry-after, x-should-retry, deprecation, sunset, link"
)


class Rate(msgspec.Struct, frozen=True):
    """Where the caller stands in its minute."""

    limit: int
    remaining: int
    reset_s: int


def rate_of(counted: Admitted | Refused) -> Rate:
    """The rate headers' numbers."""
    if isinstance(counted, Refused):
        return Rate(counted.limit, 0, counted.retry_after_s)
    return Rate(counted.limit, counted.remaining, counted.reset_s)


def base(request_id: str) -> dict[str, str]:
    """`request-id` repeats `x-request-id`: one SDK reads that name."""
    return {"x-request-id": request_id, "request-id": request_id}


def inference(
    request_id: str, generation_id: str, rate: Rate | None, served: Target | None, *, now_us: int
) -> dict[str, str]:
    """The ids of request and generation, the rate window, provider and model, as far as they are known."""
    headers = {
        "x-request-id": request_id,
        "request-id": request_id,
        "x-gw-generation-id": generation_id,
    }
    if rate is not None:
        headers["x-ratelimit-limit"] = str(rate.limit)
        headers["x-ratelimit-remaining"] = str(rate.remaining)
        headers["x-ratelimit-reset"] = str(now_us // US_PER_S + rate.reset_s)
    if served is not None:
        headers["x-gw-provider"] = _latin(served.vendor)
        headers["x-gw-model"] = served.model
    return headers


def stream() -> dict[str, str]:
    """Nothing between us and the client may hold frames back."""
    return {"cache-control": "no-cache", "x-accel-buffering": "no"}


def of_error(error: GatewayError) -> dict[str, str]:
    """`retry-after` where there is a time, `allow` where another method would do, and a word against trying again."""
    headers = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(error.retry_after_s)
    if isinstance(error, MethodNotAllowed) and error.allowed:
        headers["allow"] = ", ".join(error.allowed)
    if error.retry_by_client is not None:
        headers["x-should-retry"] = "true" if error.retry_by_client else "false"
    return headers


def lifecycle(life: Lifecycle, base_url: str, now_us: int) -> dict[str, str]:
    """What a deprecated model's answers carry (RFC 9745, 8594, 5829)."""
    if life.state(now_us) != "deprecated" or life.deprecated_at_us is None:
        return {}
    headers = {"deprecation": f"@{life.deprecated_at_us // US_PER_S}"}
    if life.retired_at_us is not None:
        headers["sunset"] = formatdate(life.retired_at_us / US_PER_S, usegmt=True)
    if life.successor is not None:
        headers["link"] = f'<{base_url}/models/{life.successor}>; rel="successor-version"'
    return headers


def _latin(text: str) -> str:
    """Header values are latin-1: a vendor's name in other letters loses them here, not in bodies."""
    return text.encode("latin-1", "replace").decode("latin-1")
