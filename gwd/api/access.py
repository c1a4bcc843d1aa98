"""Who may call a route: named on the route itself, denied otherwise."""

from typing import Final

import msgspec

from gwd.core.caller import KeyKind
from gwd.orgs.rights import Right


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """`kinds` may call; management keys need `right` as well, if one is named. No kinds: anybody, without a key."""

    kinds: frozenset[KeyKind]
    right: Right | None = None

    @property
    def is_public(self) -> bool:
        return not self.kinds


PUBLIC: Final = Access(kinds=frozenset())
INFERENCE: Final = Access(kinds=frozenset(("inference",)))
ANY_KEY: Final = Access(kinds=frozenset(("inference", "management")))


def manage(right: Right) -> Access:
    """Management keys that have `right`; how far it reaches (all, own, workspace) is the room's business."""
    return Access(kinds=frozenset(("management",)), right=right)


def any_key_with(right: Right) -> Access:
    """Inference keys, and management keys that have `right`."""
    return Access(kinds=frozenset(("inference", "management")), right=right)
