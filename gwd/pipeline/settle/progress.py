"""How far a streamed answer has come, in a form that outlives the process: written once a second, read by recovery."""

from typing import Final

import msgspec

from gwd.core.cost import Price
from gwd.core.extras import Applied
from gwd.core.usage import Usage
from gwd.pipeline.dispatch.outcome import Received
from gwd.pipeline.plan.routing import Planned
from gwd.pipeline.settle.bill import applied_of, received_usage
from gwd.pricing.tokens import estimate_text


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Who serves a generation and at what price: what its record and its bill need, and no secret."""

    model: str
    vendor: str
    provider: str
    endpoint_id: str
    price: Price
    byok: bool
    fee_bps: int
    forwarded_from: str | None


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint: who serves, the usage and the extras that would be billed if the stream broke off here."""

    served: Served
    attempts: int
    usage: Usage
    applied: Applied = Applied()


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Progress)


def served_of(planned: Planned) -> Served:
    """The lasting part of a target."""
    target = planned.target
    return Served(
        model=target.model,
        vendor=target.vendor,
        provider=target.tag,
        endpoint_id=target.endpoint_id,
        price=target.price,
        byok=target.credential.byok,
        fee_bps=target.credential.fee_bps if target.credential.byok else 0,
        forwarded_from=planned.forwarded_from,
    )


def decode(data: bytes) -> Progress:
    """A checkpoint read back."""
    return _decoder.decode(data)


class Meter:
    """Counts what was delivered of one attempt, each piece once, however often it is asked."""

    def __init__(self, planned: Planned, received: Received, *, attempts: int) -> None:
        self._demand = received.demand
        self._target = planned.target
        self._served = served_of(planned)
        self._received = received
        self._attempts = attempts
        self._texts = 0
        self._reasonings = 0
        self._output_tokens = 0
        self._reasoning_tokens = 0

    def checkpoint(self) -> bytes | None:
        """The progress since the start; None when nothing came since the last call."""
        received = self._received
        texts, reasonings = len(received.texts), len(received.reasonings)
        if (texts, reasonings) == (self._texts, self._reasonings):
            return None
        self._output_tokens += estimate_text("".join(received.texts[self._texts :]))
        self._reasoning_tokens += estimate_text("".join(received.reasonings[self._reasonings :]))
        self._texts, self._reasonings = texts, reasonings
        progress = Progress(
            served=self._served,
            attempts=self._attempts,
            usage=received_usage(
                received.reported,
                self._demand,
                self._target,
                output_cap=received.output_cap,
                output_tokens=self._output_tokens,
                reasoning_tokens=self._reasoning_tokens,
            ),
            applied=applied_of(received.given, self._target),
        )
        return _encoder.encode(progress)
