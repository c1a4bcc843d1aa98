"""Refusals before the line: recorded; those that a client can repeat at will are counted and written together.

That is what the rate limit refuses, what is refused because the node has too much to do, and every request with a key
that may not act: one record per key, code and second.
"""

from typing import Final

import msgspec

from gwd.activity import service as activity
from gwd.activity.row import GenerationRow
from gwd.core.clock import US_PER_S
from gwd.core.errors import Forbidden, GatewayError, Overloaded, RateLimited, Unauthenticated
from gwd.pipeline.admit.identity import GenerationIdentity, refused_row
from gwd.store import Connection, Store, maintains_cache

MAX_WAITING: Final = 10_000
_REPEATED: Final = (RateLimited, Overloaded, Unauthenticated, Forbidden)


class RefusalCounter:
    """One for the node; `flush` is called once a second."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[tuple[str, str, int], GenerationRow] = {}

    def refuse(
        self, identity: GenerationIdentity, error: GatewayError, now_us: int
    ) -> GenerationRow | None:
        """Put a refusal on record without making the client wait for it; its record if it has one of its own."""
        row = refused_row(identity, error, now_us)
        if not isinstance(error, _REPEATED):
            self._store.submit(activity.write, row)
            return row
        place = (identity.key_id, error.code, row.created_at // US_PER_S)
        counted = self._waiting.get(place)
        if counted is not None:
            row = msgspec.structs.replace(counted, occurrences=counted.occurrences + 1)
        self._waiting[place] = row
        if len(self._waiting) >= MAX_WAITING:
            self.flush()
        return None

    def flush(self) -> None:
        """Write what was counted."""
        if self._waiting:
            rows, self._waiting = list(self._waiting.values()), {}
            self._store.submit(_write, rows)


@maintains_cache
def _write(connection: Connection, rows: list[GenerationRow]) -> None:
    for row in rows:
        activity.count_refusal(connection, row)
