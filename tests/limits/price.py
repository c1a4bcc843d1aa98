"""Answers that cost a round sum, so that limits are reached when a test says so."""

from decimal import Decimal

import httpx

from gwd import ledger
from gwd.activity.row import GenerationRow
from gwd.core.ids import mint
from gwd.demo import Behaviour
from gwd.keys import admission
from gwd.pipeline.settle import settlement
from gwd.store import Connection
from tests.support.money import USD
from tests.support.node import PRICES, Gateway

PER_TOKEN_NANO = int(Decimal(PRICES["completion"]) * USD)


def cents(number: int) -> Behaviour:
    """An answer of demo/chat that costs so many cents, nearly all of it in the prompt: its cap is short."""
    return Behaviour(text="fine", prompt_tokens=5_000 * number - 20, completion_tokens=5)


async def long_context(gateway: Gateway) -> None:
    """For answers above forty cents: no prompt that is longer than its model's context is believed."""
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"context_length": 1_000_000})


async def spend(gateway: Gateway, number: int, **headers: str) -> httpx.Response:
    """A request that costs so many cents, settled when this returns."""
    gateway.vendor.script.next(cents(number))
    reply = await gateway.chat(headers=headers, max_tokens=10)
    if reply.status_code != 200:
        gateway.vendor.script.clear()
    await gateway.at_rest()
    return reply


def bearer(key: str) -> dict[str, str]:
    """The header of another key than the gateway's own."""
    return {"authorization": f"Bearer {key}"}


async def served_by_own_key(gateway: Gateway, key_id: str, *, list_price: str, fee: str) -> None:
    """A request of a key that the organization's own provider key served: held, settled and recorded."""
    organization_id = await gateway.organization_id()
    await gateway.store.write(
        _own_key_request,
        organization_id,
        key_id,
        list_nano=int(Decimal(list_price) * USD),
        fee_nano=int(Decimal(fee) * USD),
        now_us=gateway.running.node.clock.now_us(),
    )


def _own_key_request(
    connection: Connection,
    organization_id: str,
    key_id: str,
    *,
    list_nano: int,
    fee_nano: int,
    now_us: int,
) -> None:
    key = admission.state(connection, key_id)
    assert key is not None
    price = connection.row("SELECT id FROM price WHERE model = 'demo/chat' ORDER BY rowid")
    assert price is not None
    generation_id = mint("gen-")
    hold = ledger.NewReservation(
        generation_id=generation_id,
        organization_id=organization_id,
        workspace_id=key.workspace_id,
        key_id=key.id,
        family_id=key.family_id,
        amount_nano=fee_nano,
        boot_id="boot",
        context=b"{}",
    )
    assert ledger.reserve(connection, hold, now_us=now_us) is not None
    row = GenerationRow(
        id=generation_id,
        organization_id=organization_id,
        workspace_id=key.workspace_id,
        key_id=key.id,
        family_id=key.family_id,
        dialect="chat_completions",
        model="demo/chat",
        status="succeeded",
        finish_reason="stop",
        tokens_output=list_nano // PER_TOKEN_NANO,
        price=price[0],
        fee_bps=fee_nano * 10_000 // list_nano,
        cost_completion_nano=list_nano,
        cost_platform_fee_nano=fee_nano,
        cost_total_nano=fee_nano,
        byok=True,
        created_at=now_us,
        settled_at=now_us,
    )
    settlement.settle(connection, row, charged=True, app_url="http://app.example", now_us=now_us)
