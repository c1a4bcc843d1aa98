"""When it is worth asking again, as the client is told it."""

from math import ceil
from typing import Final, TypeVar

from gwd.core.errors import GatewayError, RateLimited

E = TypeVar("E", bound=GatewayError)

MAX_THROTTLED_S: Final = 60
"""The longest `retry-after` of a 429; its metadata tells the true end."""


def with_retry_after(wait_s: float | None, error: E) -> E:
    """The error with the end of a wait in its header and its metadata; as it is where nobody knows the end."""
    if wait_s is None:
        return error
    wait = max(1, ceil(wait_s))
    error.retry_after_s = min(wait, MAX_THROTTLED_S) if isinstance(error, RateLimited) else wait
    error.metadata = {**(error.metadata or {}), "retry_after": wait}
    return error
