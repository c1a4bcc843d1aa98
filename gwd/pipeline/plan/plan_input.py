"""All that a plan depends on besides the request, as one value."""

import random
from collections.abc import Mapping
from typing import Literal

import msgspec

from gwd.catalog.snapshot import Catalog
from gwd.credentials.service import VendorKey
from gwd.health.health import Health
from gwd.orgs.settings import OrganizationState
from gwd.pipeline.plan.stickiness import Conversation, Stickiness

Sort = Literal["price", "throughput", "latency"]


class PlanInput(msgspec.Struct, frozen=True, kw_only=True):
    """All that a plan depends on besides the request. `conversation` is the one that the request goes on with."""

    catalog: Catalog
    vendor_keys: Mapping[str, tuple[VendorKey, ...]]
    organization: OrganizationState
    allowed_models: tuple[str, ...] | None
    health: Health
    stickiness: Stickiness
    conversation: Conversation | None
    now_us: int
    now_s: float
    rng: random.Random
    default_output_bound: int
