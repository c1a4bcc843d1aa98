"""Why a plan comes out as it does, endpoint by endpoint: noted while it is made, for whoever asks for an explanation.

Nobody asks while a request is served: then there is no trace, and nothing of this is computed.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from gwd.core.errors import GatewayError
from gwd.credentials.service import VendorKey
from gwd.health.rests import Rest

if TYPE_CHECKING:
    from gwd.pipeline.plan.resolution import Candidate

Reason = Literal[
    "disabled",
    "price",
    "allowed_providers",
    "ignored_providers",
    "data_policy",
    "vendor_file",
    "modality",
    "structured_outputs",
    "unsupported_tool",
    "require_parameters",
    "context_length",
    "earlier_media",
    "unsupported_parameters",
    "no_credential",
    "closed",
    "no_fallbacks",
    "too_many",
]
"""Why an endpoint is left out; what `metadata.excluded_by` of a refusal names, and what only an explanation tells."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint that is not in the plan. `lacks` names what of the request it does not take."""

    endpoint_id: str
    reason: Reason
    lacks: tuple[str, ...] = ()


class UnusableKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that an endpoint could not be called with: one that cannot be read or has ended, or is closed by a rest."""

    endpoint_id: str
    key: VendorKey
    rest: Rest | None


class Trace:
    """What one plan was made of.

    `resolved` are the names of the request that lead to a model, `refused` those that lead to none, with the reason.
    `candidates` hold each model once.
    """

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.resolved: dict[str, Candidate] = {}
        self.refused: dict[str, GatewayError] = {}
        self.left_out: list[LeftOut] = []
        self.unusable_keys: list[UnusableKey] = []

    def begin(self, candidates: "list[Candidate]") -> None:
        """The models are known; what is switched off of them is left out before anything else is asked."""
        self.candidates = candidates
        for candidate in candidates:
            for endpoint in candidate.model.endpoints:
                if not endpoint.is_live:
                    self.leave_out(endpoint.id, "disabled")

    def leave_out(self, endpoint_id: str, reason: Reason, lacks: Iterable[str] = ()) -> None:
        """An endpoint goes no further; the first reason counts."""
        if all(known.endpoint_id != endpoint_id for known in self.left_out):
            lacking = tuple(sorted(lacks))
            self.left_out.append(LeftOut(endpoint_id=endpoint_id, reason=reason, lacks=lacking))

    def note_unusable(
        self, endpoint_id: str, keys: Iterable[VendorKey], rest: Rest | None = None
    ) -> None:
        """Keys that an endpoint could not be called with, and the rest that closes them."""
        self.unusable_keys += [
            UnusableKey(endpoint_id=endpoint_id, key=key, rest=rest) for key in keys
        ]
