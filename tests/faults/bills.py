"""Asking a question and reading the bill for it, from the balance and from the activity."""

from decimal import Decimal
from typing import Any

import msgspec

from tests.faults.clients import NANO, Client, Seen
from tests.support.node import Gateway


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """What one request did: `charged_nano` is what the balance lost, `record` the generation."""

    charged_nano: int
    record: Any

    @property
    def outcome(self) -> tuple[str, str | None, bool]:
        """Status, error code, whether the tokens were estimated."""
        error = self.record["error"]
        return (
            self.record["status"],
            error["code"] if error else None,
            self.record["usage_estimated"],
        )

    @property
    def tokens(self) -> tuple[int, int]:
        return self.record["tokens_prompt"], self.record["tokens_completion"]


async def billed(
    node: Gateway, client: Client, *, stream: bool, **fields: Any
) -> tuple[Seen, Bill]:
    """Ask, and see what the answer cost; the record and the balance must say the same."""
    before = await node.balance()
    seen = await client.ask(node, stream=stream, **fields)
    record = await node.generation(seen.reply)
    charged_nano = int((before - await node.balance()) * NANO)
    assert Decimal(str(record["total_cost"])) * NANO == charged_nano
    return seen, Bill(charged_nano=charged_nano, record=record)
