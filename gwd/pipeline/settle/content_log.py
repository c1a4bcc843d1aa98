"""What is stored of a generation that has ended, where its organization wants that: hidden, sealed, written.

The client has its last frame by then. What goes wrong here is counted and told in the log, and changes nothing else.
"""

import logging
from collections.abc import Sequence
from typing import Final

from gwd.content_log import service as content_log
from gwd.content_log.content import content_of, encode
from gwd.content_log.logging import Logging
from gwd.content_log.sealing import PURPOSE, digest, packed
from gwd.content_log.service import Entry
from gwd.core.clock import Clock
from gwd.core.counters import Counters
from gwd.core.events import Event
from gwd.core.request import Request
from gwd.core.vitals import LITTLE_BYTES, Vitals
from gwd.credentials.data_keys import DataKeys
from gwd.credentials.vault import Vault
from gwd.pipeline.admit.identity import GenerationIdentity
from gwd.pipeline.dispatch.offload import Offload
from gwd.pricing.hold import LARGE_BYTES
from gwd.store import Store

MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
"""Of the bodies of requests that wait to be stored; what comes on top is left out."""

log = logging.getLogger(__name__)


class ContentLogger:
    """One for the node; used from the event loop only."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        clock: Clock,
        *,
        offload: Offload,
        counters: Counters,
        vitals: Vitals,
    ) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._offload = offload
        self._counters = counters
        self._vitals = vitals
        self._data_keys = DataKeys(vault, PURPOSE)
        self._waiting_bytes = 0

    async def keep(
        self,
        wanted: Logging,
        identity: GenerationIdentity,
        request: Request,
        events: Sequence[Event],
    ) -> None:
        """Store a request and what its client was given. Raises nothing: whoever asks has done his part."""
        if self._vitals.disk_free_bytes < LITTLE_BYTES:
            self._count("left_out_disk")
            return
        if self._waiting_bytes + request.body_bytes > MAX_WAITING_BYTES:
            self._count("left_out_busy")
            return
        self._waiting_bytes += request.body_bytes
        try:
            is_stored = await self._write(wanted, identity, request, events)
        except Exception as error:  # noqa: BLE001 - the request was served, whatever becomes of this
            self._count("failed", error)
        else:
            self._count("stored" if is_stored else "switched_off")
        finally:
            self._waiting_bytes -= request.body_bytes

    async def _write(
        self,
        wanted: Logging,
        identity: GenerationIdentity,
        request: Request,
        events: Sequence[Event],
    ) -> bool:
        def made() -> bytes:
            return packed(encode(content_of(request, events, wanted.redactor)))

        content = await self._offload.run(LARGE_BYTES + 1, made)
        sender = identity.sender
        data_key = self._data_keys.of(identity.organization_id, now_us=self._clock.now_us())
        entry = Entry(
            generation_id=identity.generation_id,
            organization_id=identity.organization_id,
            workspace_id=identity.workspace_id,
            family_id=identity.family_id,
            user_digest=None
            if sender.user_id is None
            else digest(self._vault, "user", sender.user_id),
            session_digest=None
            if sender.session_id is None
            else digest(self._vault, "session", sender.session_id),
            created_us=identity.created_us,
            data_key=data_key,
            content=data_key.seal(content, identity.generation_id),
        )
        return await self._store.write(content_log.write, entry)

    def _count(self, outcome: str, error: Exception | None = None) -> None:
        seen = self._counters.content_log[outcome] = self._counters.content_log[outcome] + 1
        if outcome in ("stored", "switched_off") or seen & (seen - 1):
            return  # told are the first of a kind, and each time their number has doubled
        log.error(
            "a request was served and not stored: %s (%d such so far)",
            outcome if error is None else type(error).__name__,  # its text may quote the request
            seen,
        )
