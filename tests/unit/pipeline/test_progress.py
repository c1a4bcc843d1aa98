"""A checkpoint is read back whole, and one that an older gwd wrote is read as billed at the list price."""

import msgspec

from gwd.core.extras import Applied, Factor
from gwd.core.usage import Usage
from gwd.pipeline.settle import progress
from gwd.pipeline.settle.progress import Progress, Served
from tests.unit.pricing.builders import OPUS

APPLIED = Applied(factors={"speed": Factor(value="fast", millionths=6_000_000)}, searches=2)
PRICED = msgspec.structs.replace(
    OPUS, modifiers={"speed": {"fast": 6_000_000}}, web_search_nano=10_000_000
)
WRITTEN = Progress(
    served=Served(
        model="m", vendor="v", provider="p", endpoint_id="ep_1", price=PRICED, byok=False,
        fee_bps=0, forwarded_from=None,
    ),
    attempts=1,
    usage=Usage(input=3),
    applied=APPLIED,
)  # fmt: skip


def test_a_checkpoint_keeps_what_is_billed() -> None:
    assert progress.decode(msgspec.json.encode(WRITTEN)) == WRITTEN


def test_an_older_one_is_at_the_list_price() -> None:
    older = msgspec.to_builtins(WRITTEN)
    del older["applied"]
    for name in ("modifiers", "web_search_nano"):
        del older["served"]["price"][name]
    read = progress.decode(msgspec.json.encode(older))
    assert read.applied == Applied()
    assert read.served.price == OPUS
