"""What vendors said last of credentials, and when those were used; written to their records once a second."""

from collections.abc import Iterable
from math import inf
from typing import Final

import msgspec

from gwd.core.clock import US_PER_S, Clock
from gwd.core.errors import Fault
from gwd.core.target import Target
from gwd.credentials.service import VendorKey
from gwd.credentials.trouble import Trouble

TROUBLE: Final = frozenset(("auth_invalid", "quota_exhausted", "model_access_denied"))
USE_WRITTEN_US: Final = 60 * US_PER_S
"""How often the last use of one credential is written at most."""


class _Known(msgspec.Struct):
    """A trouble that is not over. `endpoint_id` is set where it is about that endpoint alone; the last failure was at
    `last_s` of the monotonic clock."""

    endpoint_id: str | None
    first_us: int
    last_us: int
    last_s: float
    failures: int


class CredentialTrouble:
    """One for the node; used from the event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._news: dict[str, Trouble] = {}
        self._used: dict[str, int] = {}
        self._use_written: dict[str, int] = {}

    def known(self, keys: Iterable[VendorKey]) -> None:
        """These keys were read: some records say that there was trouble; of what was changed, none is left."""
        for key in keys:
            trouble = self._known.get(key.id)
            if trouble is None:
                if key.in_trouble:
                    self._known[key.id] = _Known(None, 0, 0, -inf, 0)
            elif key.updated_at_us > trouble.last_us and not key.in_trouble:
                del self._known[key.id]
                self._news.pop(key.id, None)

    def failed(self, target: Target, fault: Fault, now_s: float, *, is_certain: bool) -> None:
        """A call failed; only what is the credential's own trouble is noted."""
        credential_id, now_us = target.credential.id, self._clock.now_us()
        self._used[credential_id] = now_us
        if fault.reason not in TROUBLE:
            return
        trouble = self._known.get(credential_id)
        if trouble is None:
            trouble = self._known[credential_id] = _Known(None, now_us, now_us, now_s, 0)
        is_of_model = fault.reason == "model_access_denied"
        trouble.endpoint_id = target.endpoint_id if is_of_model else None
        trouble.first_us = trouble.first_us or now_us
        trouble.last_us, trouble.last_s = now_us, now_s
        trouble.failures += 1
        self._news[credential_id] = Trouble(
            reason=fault.reason,
            first_us=trouble.first_us,
            last_us=now_us,
            failures=trouble.failures,
            is_certain=is_certain,
        )

    def served(self, target: Target, began_s: float) -> None:
        """A call that began then succeeded: the credential's trouble is over, if it began before.

        Where one endpoint was refused to it, only that endpoint shows it.
        """
        credential_id, now_us = target.credential.id, self._clock.now_us()
        self._used[credential_id] = now_us
        trouble = self._known.get(credential_id)
        if (
            trouble is not None
            and trouble.last_s <= began_s
            and trouble.endpoint_id in (None, target.endpoint_id)
        ):
            del self._known[credential_id]
            self._news[credential_id] = Trouble(
                reason=None, first_us=trouble.first_us, last_us=now_us
            )

    def take(self) -> dict[str, Trouble]:
        """What is to be written, by credential."""
        news, self._news = self._news, {}
        return news

    def take_used(self, *, all_of_it: bool = False) -> dict[str, int]:
        """When credentials were used last, of those for which that has not been written lately, or of all."""
        now_us = self._clock.now_us()
        due = {
            credential_id: at_us
            for credential_id, at_us in self._used.items()
            if all_of_it or abs(now_us - self._use_written.get(credential_id, 0)) >= USE_WRITTEN_US
        }
        for credential_id in due:
            del self._used[credential_id]
            self._use_written[credential_id] = now_us
        return due
