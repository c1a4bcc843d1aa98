"""All that a plan depends on besides the request, as one value."""

import random
from collections.abc import Mapping
from typing import Final

import msgspec

from gwd.catalog.snapshot import Catalog
from gwd.credentials.service import VendorKey
from gwd.health.health import Health
from gwd.orgs.policy import Policy
from gwd.orgs.policy import Sort as Sort
from gwd.orgs.settings import OrganizationState
from gwd.pipeline.plan.stickiness import Conversation, Stickiness


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, as far as own vendor keys may be limited to them; `user_id` is the member whose API key it is.

    What a request says of its user is no part of it: anybody may say anything there.
    """

    family_id: str = ""
    workspace_id: str | None = None
    user_id: str | None = None


class OwnKeys(msgspec.Struct, frozen=True, kw_only=True):
    """An organization's own vendor keys (BYOK) by provider.

    `families` gives, by its hash, the family of each API key that one of them is limited to: who rotates an API key
    keeps what it may use.
    """

    by_provider: Mapping[str, tuple[VendorKey, ...]] = {}
    families: Mapping[str, str] = {}


NOBODY: Final = Asker()
NO_OWN_KEYS: Final = OwnKeys()


class PlanInput(msgspec.Struct, frozen=True, kw_only=True):
    """All that a plan depends on besides the request.

    `vendor_keys` are the platform's by provider, `conversation` is the one that the request goes on with. `policies`
    are those of the organization and the key that restrict anything; `sort` is what holds where the request says
    nothing: the key's, its workspace's or the organization's.
    """

    catalog: Catalog
    vendor_keys: Mapping[str, tuple[VendorKey, ...]]
    own_keys: OwnKeys = NO_OWN_KEYS
    asker: Asker = NOBODY
    organization: OrganizationState
    policies: tuple[Policy, ...]
    sort: Sort | None
    health: Health
    stickiness: Stickiness
    conversation: Conversation | None
    now_us: int
    now_s: float
    rng: random.Random
    default_output_bound: int
