"""Authentication: from three headers to a key's row, with a cache that every management write empties.

The cache is keyed by the SHA-256 of these headers as they are sent (cheaper than the stored, keyed digest, and than
finding the key in them) and holds rows as they were read; expiry is judged against the clock each time, and the
admission transaction reads the row again. Addresses that keep failing are slowed down; valid keys never are.
"""

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from gwd.api.access import Access
from gwd.api.proxies import one_client
from gwd.core.caller import Caller
from gwd.core.clock import Clock
from gwd.core.counters import Counters
from gwd.core.errors import GatewayError, RateLimited, Unauthenticated, WrongKeyType
from gwd.keys import admission, secret
from gwd.keys.admission import KeyRow
from gwd.keys.rate_limit import RateLimiter, Refused
from gwd.orgs import rights
from gwd.store import Store

MAX_CACHED: Final = 10_000
FAILURES_PER_MINUTE: Final = 30
CREDENTIALS: Final = ("authorization", "x-api-key", "x-goog-api-key")
"""The headers that may carry a key."""


class Authenticator:
    """One for the node; used from the event loop only."""

    def __init__(
        self, *, store: Store, clock: Clock, pepper: bytes, rate_limit_ceiling: int
    ) -> None:
        self._store = store
        self._clock = clock
        self._pepper = pepper
        self._ceiling = rate_limit_ceiling
        self._rows: OrderedDict[bytes, KeyRow] = OrderedDict()
        self._generation = 0
        self._failures = RateLimiter()

    async def find(self, headers: Mapping[str, str], address: str) -> KeyRow:
        """The key of a request, disabled and expired ones included (see `admission.require_usable`).

        Raises Unauthenticated, and RateLimited for an address with too many failures in a minute.
        """
        try:
            sent = [headers.get(name) for name in CREDENTIALS]
            name = sha256("\n".join(map(str, sent)).encode()).digest()
            row = self._rows.get(name)
            if row is None:
                row = await self._look_up(name, secret.pick(*sent))
        except Unauthenticated as error:
            self.count_failure(address, error)
            raise
        return row

    def forget(self) -> None:
        """Something about keys, members or organizations changed: read rows anew."""
        self._generation += 1
        self._rows.clear()

    def count_failure(self, address: str, error: GatewayError) -> None:
        """A credential fitted nothing. Raises RateLimited in place of `error` once an address fails too often."""
        bucket = one_client(address)
        counted = self._failures.admit(bucket, FAILURES_PER_MINUTE, self._clock.monotonic_s())
        if isinstance(counted, Refused):
            raise RateLimited(
                "too many failed attempts from this address; wait and use a valid API key",
                retry_after_s=counted.retry_after_s,
            ) from error

    async def _look_up(self, name: bytes, key: str) -> KeyRow:
        generation = self._generation
        row = await self._store.read(
            admission.find_by_digest,
            secret.digest(key, self._pepper),
            rate_limit_ceiling=self._ceiling,
        )
        if row is None:
            raise secret.unknown_key()
        if generation == self._generation:
            self._rows[name] = row
            if len(self._rows) > MAX_CACHED:
                self._rows.popitem(last=False)
        return row


def count_auth_failure(counters: Counters, error: GatewayError) -> None:
    """Note a request that was refused for its credential, and nothing about whose it was."""
    if isinstance(error, Unauthenticated | WrongKeyType):
        counters.auth_failures[error.code] += 1
    elif isinstance(error.__cause__, Unauthenticated):
        counters.auth_failures["too_many_failures"] += 1


def check_access(row: KeyRow, access: Access, *, now_us: int) -> Caller:
    """The caller, if its key is usable and of a kind that may call the route. Raises the 401 or 403 that fits."""
    admission.require_usable(row, now_us=now_us)
    caller = row.caller
    if caller.kind not in access.kinds:
        other = (
            "a management key (gwm_…)" if caller.kind == "inference" else "an inference key (gwi_…)"
        )
        raise WrongKeyType(f"this endpoint needs {other}; {caller.kind} keys cannot call it")
    if caller.kind == "management" and access.right is not None:
        rights.require(caller, access.right)
    return caller
