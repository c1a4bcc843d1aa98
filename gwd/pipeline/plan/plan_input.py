"""All that a plan depends on besides the request, as one value."""

import random
from collections.abc import Mapping

import msgspec

from gwd.catalog.snapshot import Catalog
from gwd.credentials.service import VendorKey
from gwd.health.health import Health
from gwd.orgs.policy import Policy
from gwd.orgs.policy import Sort as Sort
from gwd.orgs.settings import OrganizationState


class PlanInput(msgspec.Struct, frozen=True, kw_only=True):
    """All that a plan depends on besides the request.

    `policies` are those of the organization and the key that restrict anything; `sort` is what holds where the request
    says nothing: the key's, its workspace's or the organization's.
    """

    catalog: Catalog
    vendor_keys: Mapping[str, tuple[VendorKey, ...]]
    organization: OrganizationState
    policies: tuple[Policy, ...]
    sort: Sort | None
    health: Health
    now_us: int
    now_s: float
    rng: random.Random
    default_output_bound: int
