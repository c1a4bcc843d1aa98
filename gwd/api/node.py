"""What handlers are given: the node's store, inference line, secrets and settings, assembled by `gwd.wiring`."""

from collections.abc import Callable, Mapping

import msgspec

from gwd.api.auth import Authenticator
from gwd.api.load import Load
from gwd.backups import Standing
from gwd.channels import ChannelSender
from gwd.core.counters import Counters
from gwd.core.node_clock import NodeClock
from gwd.core.vendor_format import VendorFormat
from gwd.core.vitals import Vitals
from gwd.credentials.ring_file import RingFile
from gwd.credentials.vault import Vault
from gwd.keys.rate_limit import RateLimiter
from gwd.keys.service import Issuing
from gwd.outbound.guard import Rules
from gwd.pipeline.admit.refusals import RefusalCounter
from gwd.pipeline.inference import Line
from gwd.pipeline.plan.state import PlanningState
from gwd.proof import Prover
from gwd.replay.items import ItemMemory
from gwd.settings import Settings
from gwd.store import Store


class NodeStatus:
    """The few things about the running node that change: is it draining, in quarantine.

    `take_certificate` reads the certificate's files again and gives back what is wrong with them.
    """

    def __init__(self, *, started_us: int) -> None:
        self.started_us = started_us
        self.draining = False
        self.is_followed = False
        """Draining, and another process takes the next connections: until the end, those that are open are served."""
        self.quarantine: str | None = None
        self.take_certificate: Callable[[], str | None] = lambda: None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One for the process."""

    settings: Settings
    store: Store
    clock: NodeClock
    vault: Vault
    ring_file: RingFile
    issuing: Issuing
    authenticator: Authenticator
    line: Line
    state: PlanningState
    formats: Mapping[str, VendorFormat]
    limiter: RateLimiter
    refusals: RefusalCounter
    items: ItemMemory
    prover: Prover
    status: NodeStatus
    counters: Counters
    vitals: Vitals
    backups: Standing | None
    load: Load
    outbound: Rules
    channels: ChannelSender

    @property
    def app_url(self) -> str:
        return self.settings.server.app_url

    @property
    def base_url(self) -> str:
        return self.settings.server.base_url
