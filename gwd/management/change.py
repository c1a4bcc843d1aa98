"""Who changes something and when: what every use case here is told, in one value."""

import msgspec

from gwd.core.caller import Caller


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The caller who changes something in their own organization."""

    actor: Caller
    now_us: int

    @property
    def organization_id(self) -> str:
        """The organization that is changed."""
        return self.actor.organization_id
