"""The balance at the door: what is held, what is refused and with which figures, what is left out, what races."""

import asyncio
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import httpx
import pytest

from gwd import ledger
from gwd.demo import Behaviour
from gwd.pipeline import inference
from gwd.pipeline.plan.plan_input import PlanInput
from gwd.pipeline.plan.routing import plan as plan_of
from tests.flows.conftest import ORDER, A, B, Opened, add_backup
from tests.flows.frames import error_of, receipt_of
from tests.support.node import Gateway

NANO = 1_000_000_000


async def open_holds(gateway: Gateway) -> dict[str, int]:
    found = await gateway.store.read(ledger.open_reservations)
    return {hold.generation_id: hold.amount_nano for hold in found}


async def test_hold_covers_the_cap_and_the_rest_comes_back(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(delay_s=0.3))
    asking = asyncio.ensure_future(gateway.chat(max_tokens=1_000))
    await gateway.vendor.calls.wait_for(1)
    [(generation_id, hold_nano)] = (await open_holds(gateway)).items()
    assert 1_000 * 8_000 < hold_nano < 1_000 * 8_000 + 2_000 * 1_000
    credits_ = (await gateway.manage("GET", "/credits"))["data"]
    assert credits_["reserved"] == hold_nano / NANO
    assert credits_["available"] == credits_["balance"] - credits_["reserved"]
    reply = await asking
    assert reply.headers["x-gw-generation-id"] == generation_id
    assert await open_holds(gateway) == {}


async def test_too_little_credit_is_a_402_with_figures_that_hold(opened: Opened) -> None:
    """What is named as affordable is admitted, one token more is not."""
    async with opened(credit="0.01") as gateway:
        refused = await gateway.chat(max_tokens=5_000)
        error = error_of(refused)
        assert (refused.status_code, error["code"]) == (402, "insufficient_credits")
        assert error["type"] == "insufficient_credits_error"
        figures = error["metadata"]
        assert figures["available"] == 0.01
        assert figures["required"] > 0.04
        assert figures["top_up_url"].endswith("/settings/credits")
        affordable = figures["affordable_completion_tokens"]
        assert 0 < affordable < 5_000
        assert gateway.vendor.calls == []
        more = await gateway.chat(max_tokens=affordable + 1)
        assert more.status_code == 402
        assert (await gateway.chat(max_tokens=affordable)).status_code == 200
        record = await gateway.generation(refused)
        assert (record["status"], record["total_cost"]) == ("refused", 0)


async def test_nothing_is_affordable_without_any_credit(opened: Opened) -> None:
    async with opened(credit=None) as gateway:
        refused = await gateway.chat()
        assert refused.status_code == 402
        assert error_of(refused)["metadata"]["affordable_completion_tokens"] == 0


async def test_own_402_is_no_mark_against_an_endpoint(opened: Opened) -> None:
    async with opened(credit=None) as gateway:
        await add_backup(gateway)
        for _ in range(8):
            assert (await gateway.chat(provider=ORDER)).status_code == 402
        assert gateway.vendor.calls == []
        assert gateway.running.node.state.health._endpoints == {}
        await gateway.manage("POST", "/credits/purchases", {"amount": 5, "reference": "p1"})
        served = await gateway.chat(provider=ORDER, headers={"x-gw-metadata": "enabled"})
        assert served.status_code == 200
        assert receipt_of(served)["routing"]["fallbacks"] == []
        assert [call.model for call in gateway.vendor.calls] == [A]


async def test_dearer_target_is_left_out_when_the_balance_covers_only_the_cheaper(
    opened: Opened,
) -> None:
    """One hold, for the dearest target that the balance can pay for."""
    dear = {"prompt": "0.0001", "completion": "0.001"}
    async with opened(credit="0.05") as gateway:
        await add_backup(gateway, pricing=dear)
        first = {"order": ["backup", "openai-chat"]}
        served = await gateway.chat(
            provider=first, max_tokens=500, headers={"x-gw-metadata": "enabled"}
        )
        assert served.status_code == 200
        assert receipt_of(served)["pricing"]["completion_per_million"] == 8
        assert gateway.vendor.calls.of(B) == []
        await gateway.manage("POST", "/credits/purchases", {"amount": 5, "reference": "p1"})
        served = await gateway.chat(
            provider=first, max_tokens=500, headers={"x-gw-metadata": "enabled"}
        )
        assert receipt_of(served)["pricing"]["completion_per_million"] == 1_000


async def test_failure_of_the_cheap_target_does_not_fall_back_to_one_that_was_left_out(
    opened: Opened,
) -> None:
    dear = {"prompt": "0.0001", "completion": "0.001"}
    async with opened(credit="0.05") as gateway:
        await add_backup(gateway, pricing=dear)
        gateway.vendor.script.next("server_error", model=A)
        failed = await gateway.chat(provider=ORDER, max_tokens=500)
        assert failed.status_code == 502
        assert gateway.vendor.calls.of(B) == []


async def test_dearest_of_all_targets_is_held_for(gateway: Gateway) -> None:
    await add_backup(gateway, pricing={"prompt": "0.00001", "completion": "0.0001"})
    gateway.vendor.script.next(Behaviour(delay_s=0.3))
    asking = asyncio.ensure_future(gateway.chat(max_tokens=1_000, provider=ORDER))
    await gateway.vendor.calls.wait_for(1)
    [hold_nano] = (await open_holds(gateway)).values()
    assert hold_nano > 1_000 * 100_000
    assert (await asking).status_code == 200


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_two_hundred_at_once_cannot_spend_what_covers_a_hundred(
    opened: Opened, stream: bool
) -> None:
    """Over HTTP, through the whole line."""
    async with opened(credit=None) as gateway:
        gateway.vendor.script.always(Behaviour(delay_s=2.5))
        hold = await hold_of(gateway)
        await gateway.manage(
            "POST",
            "/credits/purchases",
            {"amount": float(Decimal(hold * 100 + 1) / NANO), "reference": "p1"},
        )
        before = await gateway.balance()
        await gateway.client.aclose()
        gateway.client = httpx.AsyncClient(
            base_url=gateway.base_url,
            headers={"authorization": f"Bearer {gateway.key}"},
            limits=httpx.Limits(max_connections=None),
            timeout=30,
        )
        replies = await asyncio.gather(
            *(gateway.chat(max_tokens=500, stream=stream) for _ in range(200))
        )
        statuses = Counter(reply.status_code for reply in replies)
        assert statuses == {200: 100, 402: 100}
        assert len(gateway.vendor.calls) == 100
        served = [reply for reply in replies if reply.status_code == 200]
        costs = [(await gateway.generation(reply))["total_cost"] for reply in served]
        spent = sum((Decimal(str(cost)) for cost in costs), Decimal(0))
        assert await gateway.balance() == before - spent > 0


async def hold_of(gateway: Gateway) -> int:
    """What a request of the test above holds, from the refusal of one."""
    refused = await gateway.chat(max_tokens=500)
    return math.ceil(Decimal(str(error_of(refused)["metadata"]["required"])) * NANO)


# Between the plan and the admission


class Interloper:
    """Does something between the plan of the next request and its admission, once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
        self._act = act
        self.plans = 0

        admit = inference.Generation._admit

        def counted(request: Any, plan_input: PlanInput, demand: Any) -> Any:
            self.plans += 1
            return plan_of(request, plan_input, demand)

        async def interrupted(generation: Any, demand: Any) -> Any:
            state = generation._line.state
            plan_input = state.plan_input

            async def meddled(*args: Any) -> Any:
                found = await plan_input(*args)
                act, self._act = self._act, None
                if act is not None:
                    await act()
                return found

            monkeypatch.setattr(state, "plan_input", meddled)
            try:
                return await admit(generation, demand)
            finally:
                monkeypatch.setattr(state, "plan_input", plan_input)

        monkeypatch.setattr(inference, "plan", counted)
        monkeypatch.setattr(inference.Generation, "_admit", interrupted)


async def test_key_disabled_between_plan_and_admission_is_refused(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await gateway.chat()).status_code == 200

    async def disable() -> None:
        await gateway.manage("PATCH", f"/keys/{gateway.key_id}", {"disabled": True})

    Interloper(monkeypatch, disable)
    refused = await gateway.chat()
    assert (refused.status_code, error_of(refused)["code"]) == (401, "key_disabled")
    assert len(gateway.vendor.calls) == 1
    assert (await gateway.generation(refused))["error"]["code"] == "key_disabled"


async def test_price_changed_between_plan_and_admission_is_the_price_that_is_charged(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await gateway.chat()

    async def raise_the_price() -> None:
        pricing = {"prompt": "0.00001", "completion": "0.0001"}
        await gateway.manage(
            "PATCH", "/catalog/models/demo/chat", {"pricing": pricing, "accept": True}
        )

    watching = Interloper(monkeypatch, raise_the_price)
    reply = await gateway.chat(headers={"x-gw-metadata": "enabled"})
    assert reply.status_code == 200
    assert watching.plans == 2
    assert receipt_of(reply)["pricing"]["completion_per_million"] == 100


async def test_endpoint_switched_off_between_plan_and_admission_is_not_called(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = await add_backup(gateway)

    async def switch_off() -> None:
        await gateway.manage("PATCH", f"/catalog/endpoints/{backup}", {"disabled": True})

    watching = Interloper(monkeypatch, switch_off)
    reply = await gateway.chat(provider={"order": ["backup"]})
    assert reply.status_code == 200
    assert watching.plans == 2
    assert gateway.vendor.calls.of(B) == []


async def test_model_forbidden_between_plan_and_admission_is_refused(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forbid() -> None:
        await gateway.manage("PATCH", "/organization/settings", {"allowed_models": ["demo/claude"]})

    Interloper(monkeypatch, forbid)
    refused = await gateway.chat()
    assert (refused.status_code, error_of(refused)["code"]) == (403, "model_not_allowed")
    assert gateway.vendor.calls == []
