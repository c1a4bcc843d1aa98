"""Which credentials their vendors turned away last, for the records the operator looks at; written once a second."""

from collections.abc import Iterable
from typing import Final

from gwd.core.clock import Clock
from gwd.core.errors import Fault
from gwd.core.target import Credential

TROUBLE: Final = frozenset(("auth_invalid", "quota_exhausted", "model_access_denied"))


class CredentialTrouble:
    """One for the node; used from the event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubled: set[str] = set()
        self._news: dict[str, tuple[str | None, int]] = {}

    def known(self, troubled: Iterable[str]) -> None:
        """The ids whose records say that there was trouble."""
        self._troubled = set(troubled)
        self._troubled |= {name for name, (reason, _) in self._news.items() if reason}

    def failed(self, credential: Credential, fault: Fault) -> None:
        """A call failed; only what is the credential's own trouble is noted."""
        if fault.reason in TROUBLE:
            self._troubled.add(credential.id)
            self._news[credential.id] = fault.reason, self._clock.now_us()

    def served(self, credential: Credential) -> None:
        """A call succeeded: the credential's trouble is over."""
        if self._troubled and credential.id in self._troubled:
            self._troubled.remove(credential.id)
            self._news[credential.id] = None, self._clock.now_us()

    def take(self) -> dict[str, tuple[str | None, int]]:
        """What is to be written: credential → (reason, when); the reason is None where the trouble is over."""
        news, self._news = self._news, {}
        return news
